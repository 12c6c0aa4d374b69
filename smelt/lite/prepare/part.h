// A part of a graph, cut out as the body of a function.
#ifndef SMELT_LITE_PREPARE_PART_H_
#define SMELT_LITE_PREPARE_PART_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/graph.h"

namespace smelt {

// The values of a graph that functions cut out of it take: argument i is values[i].
struct Captures {
  std::vector<Endpoint> values;
  // What nodes of the functions wait for, and is outside.
  absl::flat_hash_set<Node*> waits;

  int64_t Of(Endpoint e);
};

// Where a part ends.
struct PartBorder {
  struct Place {
    Endpoint value;        // what stands for it
    bool outside = false;  // the value is one of the graph around the part
  };
  std::function<Place(Endpoint)> place;
  enum class Wait { kInside, kOutside, kNone };
  // Of a node that nodes inside wait for.
  std::function<Wait(const Node&)> wait;
};

// A copy of what the results and the nodes with an effect need: _Arg nodes for those captures that
// it reads, result i in a _Retval. INTERNAL where a node inside is not in the graph's order.
StatusOr<std::unique_ptr<Graph>> CutPart(const Graph& graph, const std::vector<Endpoint>& results,
                                         const std::vector<Node*>& effects,
                                         const PartBorder& border, Captures& captures);

// Adds the arguments that the part does not read, and makes it a function of the graph's library.
StatusOr<FuncAttr> AddPart(Graph& graph, std::unique_ptr<Graph> part, absl::string_view name,
                           const Captures& captures);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_PART_H_
