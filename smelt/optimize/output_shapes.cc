// The shapes that nodes state of their outputs ("_output_shapes"), after what they compute changed.
#include <algorithm>

#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr absl::string_view kOutputShapes = "_output_shapes";

bool Contradicts(const Node& n, const std::vector<PartialShape>& stated, const ShapeTable& shapes) {
  for (int i = 0; i < n.num_outputs() && i < static_cast<int>(stated.size()); ++i) {
    const PartialShape& found = shapes.of({const_cast<Node*>(&n), i});
    if (!PartialShape::Merge(found, stated[static_cast<size_t>(i)]).ok()) return true;
  }
  return false;
}

}  // namespace

void DropWrongOutputShapes(Graph& graph) {
  std::vector<Node*> stating;
  for (Node* n : graph.Nodes()) {
    if (n->attrs().Find(kOutputShapes) != nullptr) stating.push_back(n);
  }
  if (stating.empty()) return;
  const ShapeTable shapes = InferSymbolicShapes(graph, XlaShapeRules());
  for (Node* n : stating) {
    const auto* stated = n->attrs().Find(kOutputShapes)->get<std::vector<PartialShape>>();
    if (stated == nullptr || static_cast<int>(stated->size()) != n->num_outputs() ||
        Contradicts(*n, *stated, shapes)) {
      n->EraseAttr(kOutputShapes);
    }
  }
}

}  // namespace smelt
