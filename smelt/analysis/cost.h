// What nodes, graphs and functions cost: docs/cost_model.md. Not thread safe.
#ifndef SMELT_ANALYSIS_COST_H_
#define SMELT_ANALYSIS_COST_H_

#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {

// Elements of a tensor; sizes that are not known count as 1.
int64_t CostElements(const PartialShape& shape);
// Sums end at 2^60.
int64_t AddCost(int64_t a, int64_t b);

class CostModel {
 public:
  // Infers the shapes of the graph and of its library's functions. REQUIRES: nobody changes them
  // while this lives.
  explicit CostModel(const Graph& graph);

  // Nodes of the graph, with what they call; what accelerator calls run is left out.
  int64_t OfNodes(std::span<Node* const> nodes);
  // A function, with what it calls; accelerator calls left out.
  int64_t OfFunction(absl::string_view name);
  // The node alone, with the functions that it calls.
  int64_t OfNode(const Node& n, const ShapeTable& shapes);

  const ShapeTable& ShapesOf(absl::string_view function) const;
  const ModelShapes& shapes() const { return shapes_; }

 private:
  int64_t Sum(std::span<Node* const> nodes, const ShapeTable& shapes);

  const Graph& graph_;
  const ModelShapes shapes_;
  absl::flat_hash_map<std::string, int64_t> functions_;
};

}  // namespace smelt

#endif  // SMELT_ANALYSIS_COST_H_
