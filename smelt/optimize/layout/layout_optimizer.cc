// TensorFlow's layout optimizer: images and volumes are computed in the format that the device is
// fastest with.
#include "smelt/optimize/layout/apply.h"

namespace smelt {
namespace {

// Shapes that nodes state are those of before.
void DropOutputShapes(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is("_Arg")) n->attrs().Erase("_output_shapes");
  }
}

}  // namespace

Status OptimizeLayout(Graph& graph, const PassContext& context) {
  // Where nobody said what is fetched, every value may be.
  if (!context.fetch_known) return OkStatus();
  const auto conversion = layout::ChooseConversion(graph, context);
  if (!conversion) return OkStatus();
  const bool aggressive = context.config.layout_optimizer == Toggle::kAggressive;
  Rewriter r(graph, context, "LayoutOptimizer", aggressive);
  layout::LayoutPlan plan(*conversion, r);
  RETURN_IF_ERROR(plan.Make());
  const bool changes = !plan.Changes().empty();
  if (changes) RETURN_IF_ERROR(layout::ApplyPlan(*conversion, plan, r));
  if (changes || aggressive) RETURN_IF_ERROR(layout::CancelAroundPads(r));
  DropOutputShapes(graph);
  return OkStatus();
}

}  // namespace smelt
