// TensorFlow's layout optimizer: images and volumes are computed in the format that the device is
// fastest with.
#include "smelt/optimize/layout/apply.h"

namespace smelt {
namespace {

// Shapes that nodes state are those of before.
void DropOutputShapes(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is("_Arg")) n->EraseAttr("_output_shapes");
  }
}

// Why no node changes, for who asks.
Status DeclineAll(const Graph& graph, const PassContext& context, absl::string_view why) {
  if (context.log == nullptr || !context.log->explaining()) return OkStatus();
  for (const Node* n : graph.Nodes()) {
    if (const auto* row = layout::FindSensitiveRow(*n)) context.Declined(row->name, *n, why);
  }
  return OkStatus();
}

}  // namespace

Status OptimizeLayout(Graph& graph, const PassContext& context) {
  const auto conversion = layout::ChooseConversion(graph, context);
  if (!conversion) {
    const bool asked = context.config.cpu_layout_conversion != CpuLayout::kNoConversion;
    return DeclineAll(graph, context,
                      asked ? "Conversion from NHWC to NCHW is currently not available for CPU."
                            : "no GPU is known, and no conversion for a CPU asked for");
  }
  if (!context.fetch_known) {
    return DeclineAll(graph, context, "it is not known what is fetched: any value may be");
  }
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
