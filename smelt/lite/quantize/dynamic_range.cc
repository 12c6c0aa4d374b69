#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/quantize/conversion.h"
#include "smelt/lite/quantize/quantize.h"
#include "smelt/lite/quantize/quantized_ops.h"
#include "smelt/lite/quantize/weights.h"
#include "smelt/tensor/float16.h"

namespace smelt {
namespace {

Status SetWeights(Graph& graph, Node* n, int input, const QuantizedWeights& weights, int dim,
                  int64_t block) {
  AttrMap attrs;
  attrs.Set("dtype", weights.values.dtype());
  attrs.Set("value", weights.values);
  attrs.Set(kScales, weights.scales);
  attrs.Set(kZeroPoints, std::vector<int64_t>(weights.scales.size(), 0));
  if (dim >= 0) attrs.Set(kQuantizedDim, static_cast<int64_t>(dim));
  if (block != 0) attrs.Set(kBlockSize, block);
  const std::string name = n->input(input).node->name();
  ASSIGN_OR_RETURN(Node * constant, graph.Add(name, "Const", {}, std::move(attrs)));
  Node* before = n->input(input).node;
  graph.SetInput(n, input, {constant, 0});
  if (before->uses().empty()) graph.Remove(before);
  return UpdateInputTypes(graph, n);
}

// How the weights of an operator are quantized.
struct WeightForm {
  int bits = 8, dim = -1;
  int64_t block = 0;
};
WeightForm FormOf(const QuantizedOp& row, const DynamicRangeFlags& flags, const Shape& shape) {
  WeightForm form;
  if (row.hybrid4) form.bits = flags.weight_bits;
  form.dim = row.ScaledDimension(flags);
  if (form.bits == 4 && row.rows4 && flags.per_channel) form.dim = 0;
  const bool fits = shape.rank() == 2 && flags.block_size > 0 && shape[1] % flags.block_size == 0;
  if (form.bits == 4 && row.blocks && fits) form.block = flags.block_size;
  if (form.block != 0) form.dim = 0;
  return form;
}

// Kernels of recurrences take all their weights in one type: are all of them constants of floats,
// and is one worth it?
bool WeightsAreWorthIt(const Node& n, const QuantizedOp& row, const DynamicRangeFlags& flags) {
  bool worth = false;
  for (const int input : row.Weights()) {
    if (input >= n.num_inputs() || n.input(input).node->Is("tfl.no_value")) continue;
    const TensorValue* stated = StatedConstant(*n.input(input).node);
    if (stated == nullptr || stated->dtype != Dtype::kFloat) return false;
    worth = worth || stated->num_elements() >= flags.least_elements;
  }
  return worth;
}

// nullptr: the input is no constant of floats that is worth it.
const TensorValue* WeightsAt(const Node& n, int input, const DynamicRangeFlags& flags) {
  const TensorValue* stated = StatedConstant(*n.input(input).node);
  const bool worth = stated != nullptr && stated->dtype == Dtype::kFloat &&
                     stated->num_elements() >= flags.least_elements;
  return worth ? stated : nullptr;
}

Status OfConstant(const Status& status, const Node& n, int input) {
  return Prefix(status, absl::StrCat("operator '", n.name(), "' (", OperatorName(n),
                                     "), constant '", n.input(input).node->name(), "': "));
}

// Elements of a constant, of which only those that are picked become floats again.
Status QuantizePicked(Graph& graph, Node* n, int input, const DynamicRangeFlags& flags) {
  const TensorValue* stated = WeightsAt(*n, input, flags);
  if (stated == nullptr) return OkStatus();
  ASSIGN_OR_RETURN(const Tensor value, stated->Materialize());
  const auto weights = QuantizeWeights(value, -1);
  if (!weights.ok()) return OfConstant(weights.status(), *n, input);
  AttrMap& own = n->AttrsToChange();
  own.Set("Tout", std::vector<Dtype>{Dtype::kInt8});
  own.Set(kScales, weights->scales);
  own.Set(kZeroPoints, std::vector<int64_t>{0});
  RETURN_IF_ERROR(SetWeights(graph, n, input, *weights, -1, 0));
  const std::vector<Use> uses = n->OrderedUses();
  ASSIGN_OR_RETURN(const Endpoint floats, AddConversion(graph, absl::StrCat(n->name(), "/float"),
                                                        "tfl.dequantize", {n, 0}, Dtype::kFloat));
  for (const Use& use : uses) {
    if (!use.is_control()) graph.SetInput(use.node, use.input, floats);
  }
  return OkStatus();
}

// Numbers too small for half, so that nothing would be left of them.
bool AllBecomeZero(const Tensor& value, const Tensor& half) {
  const auto zero = [](auto number) { return static_cast<float>(number) == 0; };
  return std::ranges::all_of(half.flat<Half>(), zero) &&
         !std::ranges::all_of(value.flat<float>(), zero);
}

}  // namespace

Status UpdateInputTypes(Graph& graph, Node* n) {
  DtypeVector types;
  for (const Endpoint& e : n->inputs()) {
    types.push_back(e.node->output_types[static_cast<size_t>(e.port)]);
  }
  n->AttrsToChange().Set("Tin", types);
  return graph.ResolveTypes(n);
}

std::string OperatorName(const Node& n) {
  return absl::AsciiStrToUpper(absl::StripPrefix(n.op(), "tfl."));
}

Status QuantizeDynamicRange(Graph& graph, const DynamicRangeFlags& flags) {
  for (Node* n : graph.Nodes()) {
    const QuantizedOp* row = FindQuantizedOp(n->op_name());
    if (row == nullptr || (!row->hybrid && row->picked < 0)) continue;
    if (flags.float_ops.contains(OperatorName(*n)) || flags.float_nodes.contains(n->name())) {
      continue;
    }
    if (row->picked >= 0) {
      RETURN_IF_ERROR(QuantizePicked(graph, n, row->picked, flags));
      continue;
    }
    DynamicRangeFlags own = flags;
    if (row->last_weights > row->first_weights) {
      if (!WeightsAreWorthIt(*n, *row, flags)) continue;
      own.least_elements = 1;
    }
    bool any = false;
    for (const int input : row->Weights()) {
      if (input >= n->num_inputs()) continue;
      const TensorValue* stated = WeightsAt(*n, input, own);
      if (stated == nullptr) continue;
      ASSIGN_OR_RETURN(const Tensor value, stated->Materialize());
      const WeightForm form = FormOf(*row, flags, value.shape());
      auto weights = form.block != 0 ? QuantizeBlocks(value, form.block, form.bits)
                                     : QuantizeWeights(value, form.dim, form.bits);
      if (!weights.ok()) return OfConstant(weights.status(), *n, input);
      RETURN_IF_ERROR(SetWeights(graph, n, input, *weights, form.dim, form.block));
      any = true;
    }
    if (any && row->asymmetric_inputs) {
      n->AttrsToChange().Set("asymmetric_quantize_inputs", true);
    }
  }
  return OkStatus();
}

Status QuantizeToHalf(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    const TensorValue* stated = StatedConstant(*n);
    if (stated == nullptr || stated->dtype != Dtype::kFloat) continue;
    // XNNPACK, which reads halves in place of what a DEQUANTIZE makes of them, has no results that
    // are: LiteRT then does not run the file.
    const auto is_result = [](const Use& use) { return use.node->Is("_Retval"); };
    if (std::ranges::any_of(n->uses(), is_result)) continue;
    ASSIGN_OR_RETURN(const Tensor value, stated->Materialize());
    ASSIGN_OR_RETURN(const Tensor half, HalfWeights(value));
    // Such as the 1e-10 that keeps a logarithm finite.
    if (AllBecomeZero(value, half)) continue;
    const std::string name = n->name();
    Node* constant = graph.AddConst(absl::StrCat(name, "/half"), half);
    ASSIGN_OR_RETURN(const Endpoint made,
                     AddConversion(graph, absl::StrCat(name, "/float"), "tfl.dequantize",
                                   {constant, 0}, Dtype::kFloat));
    graph.ReplaceAllUses({n, 0}, made);
    graph.ReplaceControlUses(n, nullptr);
    graph.Remove(n);
  }
  return OkStatus();
}

}  // namespace smelt
