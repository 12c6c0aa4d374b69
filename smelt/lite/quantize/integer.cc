// Full integer quantization: activations by what samples showed, weights by their own numbers.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/lite/quantize/conversion.h"
#include "smelt/lite/quantize/integer_plan.h"
#include "smelt/lite/quantize/integer_rewrite.h"
#include "smelt/lite/quantize/masked_ranges.h"
#include "smelt/lite/quantize/quantize.h"
#include "smelt/lite/quantize/quantized_ops.h"

namespace smelt {

Status QuantizeToInteger(Graph& graph, const LiteRanges& ranges, const IntegerFlags& flags) {
  StateHiddenScores(graph, ranges);
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  IntegerPlan plan(ranges, flags);
  RETURN_IF_ERROR(plan.Make(graph, order));
  RETURN_IF_ERROR(RewriteToIntegers(graph, order, plan));
  RETURN_IF_ERROR(NarrowBorders(graph, flags.input_type, flags.output_type, flags.some_borders));
  if (!flags.only_integer) return OkStatus();
  std::string left;
  for (const Node* n : graph.Nodes()) {
    if (!absl::StartsWith(n->op(), "tfl.") || IsConversion(*n)) continue;
    for (const Dtype t : n->output_types) {
      if (t != Dtype::kFloat) continue;
      absl::StrAppend(&left, "  ", OperatorName(*n), " '", n->name(), "'\n");
      break;
    }
  }
  if (left.empty()) return OkStatus();
  return Unimplemented("these operators stay float:\n", left);
}

}  // namespace smelt
