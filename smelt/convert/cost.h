// What nodes, functions and signatures cost: docs/cost_model.md. Not thread safe.
#ifndef SMELT_CONVERT_COST_H_
#define SMELT_CONVERT_COST_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/wire/saved_model.h"

namespace smelt {

// Elements of a tensor; sizes that are not known count as 1.
int64_t CostElements(const PartialShape& shape);
// Sums end at 2^60.
int64_t AddCost(int64_t a, int64_t b);

class CostModel {
 public:
  // Infers the model's shapes. REQUIRES: nobody changes the model while this lives.
  explicit CostModel(const MetaGraph& meta);

  // What the signatures reach on the host; what accelerator calls run is left out.
  int64_t Host();
  // A function, with what it calls; accelerator calls left out.
  int64_t OfFunction(const std::string& name);
  // The node alone, with the functions that it calls.
  int64_t OfNode(const Node& n, const ShapeTable& shapes);

  const ShapeTable& ShapesOf(const std::string& function) const;
  const ModelShapes& shapes() const { return shapes_; }

 private:
  int64_t OfGraph(const Graph& graph, const ShapeTable& shapes, bool served_only);

  const MetaGraph& meta_;
  const ModelShapes shapes_;
  absl::flat_hash_map<std::string, int64_t> functions_;
};

}  // namespace smelt

#endif  // SMELT_CONVERT_COST_H_
