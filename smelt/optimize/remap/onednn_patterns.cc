// Contractions with activations that are spelled out, or with what comes before them.
#include <algorithm>

#include "smelt/optimize/onednn.h"
#include "smelt/optimize/remap/contraction.h"
#include "smelt/optimize/remap/patterns.h"
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

constexpr OpSet kPlus = {"Add", "AddV2"};
constexpr float kRootOfHalf = 0.70710678F;

// `node` becomes the contraction with its bias and `activation`, where `readers` nodes of the
// pattern read the sum with the bias, and nobody else.
StatusOr<Rewritten> FuseActivation(Node& node, Endpoint sum, int readers, const OpSet& ops,
                                   absl::string_view activation, Rewriter& r) {
  const Biased found = FindBiased(*sum.node, r);
  if (found.contraction == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  if (!found.contraction->Is(ops)) return r.No("the contraction is not fused with it");
  if (IsRoot(*sum.node) || NumDataUses(*sum.node) != readers) {
    return r.No("others need the sum with the bias");
  }
  if (!IsOutOfOrder(node)) return r.No("an order hangs on it");
  if (!r.context().allow_non_differentiable_rewrites) return r.No("a gradient may be taken");
  const std::vector<Endpoint> args = {found.bias};
  AttrMap attrs =
      FusedAttrs(*found.contraction, *found.row, {"BiasAdd", std::string(activation)}, args);
  RETURN_IF_ERROR(Fuse(node, *found.contraction, *found.row, std::move(attrs), args, r));
  return r.InPlace();
}

// (s / 6) * Relu6(s + 3)
StatusOr<Rewritten> HardSwish(Node& node, Rewriter& r) {
  const auto [clipped, scaled] = Sides(node, {"Relu6"});
  if (clipped == nullptr || !scaled.node->Is("Mul")) return r.No();
  const Node& shifted = *clipped->input(0).node;
  if (!shifted.Is(kPlus)) return r.No();
  const Endpoint sum = BesideNumber(shifted, 3, r);
  if (sum.node == nullptr || sum != BesideNumber(*scaled.node, 1.0F / 6, r)) {
    return r.No("the numbers are not those of HardSwish");
  }
  if (!IsInner(*clipped) || !IsInner(*scaled.node) || !IsInner(shifted)) {
    return r.No("others need a step of it");
  }
  return FuseActivation(node, sum, 2, {"Conv2D", "DepthwiseConv2dNative"}, "_FusedHardSwish", r);
}

// s * (erf(s * sqrt(1/2)) + 1) / 2, with the half on either side
StatusOr<Rewritten> GeluExact(Node& node, Rewriter& r) {
  for (int side = 0; side < 2; ++side) {
    const Node* half = node.input(side).node;
    Endpoint sum = node.input(1 - side);
    if (!half->Is("Mul")) continue;
    const Endpoint halved = BesideNumber(*half, 0.5F, r);
    if (halved.node == nullptr) continue;
    const Node* plus = halved.node;
    if (!plus->Is(kPlus)) {
      plus = sum.node;
      sum = halved;
    }
    const Endpoint erf = plus->Is(kPlus) ? BesideNumber(*plus, 1, r) : Endpoint();
    if (erf.node == nullptr || !erf.node->Is("Erf")) continue;
    const Node& scaled = *erf.node->input(0).node;
    if (!scaled.Is("Mul") || BesideNumber(scaled, kRootOfHalf, r) != sum) continue;
    for (const Node* n : {half, plus, static_cast<const Node*>(erf.node), &scaled}) {
      if (!IsInner(*n)) return r.No("others need a step of it");
    }
    return FuseActivation(node, sum, 2, {"MatMul"}, "GeluExact", r);
  }
  return r.No();
}

// BatchMatMul(x, y) * number + addend, the addend one matrix for each first dimension
StatusOr<Rewritten> BatchMatMulWithMulAndAdd(Node& node, Rewriter& r) {
  for (int side = 0; side < 2; ++side) {
    const Node* mul = node.input(side).node;
    const Endpoint addend = node.input(1 - side);
    if (!mul->Is("Mul")) continue;
    const auto [product, number] = Sides(*mul, {"BatchMatMulV2"});
    if (product == nullptr) continue;
    if (!r.OnCpu(*product)) return r.No("it is not placed on a CPU");
    if (product->Type("T") != Dtype::kFloat) return r.No("for oneDNN floats are fused alone");
    if (!IsInner(*mul) || !IsInner(*product) || !IsOutOfOrder(node)) {
      return r.No("others need a step of it, or an order hangs on it");
    }
    const std::optional<Tensor> factor = r.Constant(number);
    if (!factor || factor->num_elements() != 1) return r.No("the factor is no constant number");
    const PartialShape& whole = r.shape({const_cast<Node*>(product), 0});
    const PartialShape& added = r.shape(addend);
    if (whole.rank() != 4 || added.rank() != 4) return r.No("the rank is not 4");
    if (added[1] != 1) return r.No("the addend's second dimension is not 1");
    for (const int i : {0, 2, 3}) {
      if (added[i] == -1 || added[i] != whole[i]) return r.No("the addend is of another shape");
    }
    AttrMap attrs;
    attrs.Set("T", Dtype::kFloat);
    for (const absl::string_view name : {"adj_x", "adj_y"}) attrs.Set(name, product->Bool(name));
    attrs.Set("fused_ops", std::vector<std::string>{"Mul", "Add"});
    attrs.Set("num_args", int64_t{2});
    attrs.Set("epsilon", 0.0F);
    const std::string device = product->device;
    r.graph().SetInputs(&node, {product->input(0), product->input(1), number, addend});
    node.device = device;
    RETURN_IF_ERROR(r.Become(&node, "_MklFusedBatchMatMulV2", std::move(attrs)));
    return r.InPlace();
  }
  return r.No();
}

// The paddings that Pad adds before `node` takes its windows, one behind the other.
std::optional<std::vector<int64_t>> PaddingsBefore(const Node& node, Rewriter& r) {
  const Node& pad = *node.input(0).node;
  if (!pad.Is("Pad") || !IsInner(pad) || node.String("padding") != "VALID") return std::nullopt;
  const std::optional<Tensor> pads = r.Constant(pad.input(1));
  if (!pads || pads->shape().rank() != 2 || pads->num_elements() != 10) return std::nullopt;
  if (pads->dtype() != Dtype::kInt32 && pads->dtype() != Dtype::kInt64) return std::nullopt;
  std::vector<int64_t> list;
  for (int64_t i = 0; i < 10; ++i) {
    list.push_back(pads->dtype() == Dtype::kInt32 ? pads->data<int32_t>()[i]
                                                  : pads->data<int64_t>()[i]);
    // Of images alone, which is all that a convolution pads.
    if (list.back() < 0 || (list.back() > 0 && (i < 2 || i > 7))) return std::nullopt;
  }
  return list;
}

StatusOr<Rewritten> PadWithConv3D(Node& node, Rewriter& r) {
  if (!node.input(0).node->Is("Pad")) return r.No();
  if (!r.OnCpu(node)) return r.No("it is not placed on a CPU");
  if (node.Type("T") != Dtype::kFloat) return r.No("for oneDNN floats are fused alone");
  if (ChannelsFirst(node)) return r.No("channels must come last");
  if (!node.Ints("padding_list").empty()) return r.No("it pads already");
  const auto list = PaddingsBefore(node, r);
  if (!list)
    return r.No("the paddings are no constants of images, or others need the padded tensor");
  AttrMap attrs = node.attrs();
  if (node.Is("Conv3D")) {
    attrs = FusedAttrs(node, {"Conv3D", "_FusedConv3D"}, {}, {});
    attrs.Erase("fused_ops");
    attrs.Erase("epsilon");
  }
  attrs.Set("padding_list", *list);
  const Endpoint from = node.input(0).node->input(0);
  r.graph().SetInput(&node, 0, from);
  RETURN_IF_ERROR(r.Become(&node, "_FusedConv3D", std::move(attrs)));
  return r.InPlace();
}

// LeakyRelu(_FusedConv2D) where that only adds a bias, or another tensor
StatusOr<Rewritten> FusedConvWithActivation(Node& node, Rewriter& r) {
  Node* conv = node.input(0).node;
  if (!conv->Is({"_FusedConv2D", "_FusedConv3D"})) return r.No();
  if (!r.OnCpu(*conv)) return r.No("it is not placed on a CPU");
  if (conv->Type("T") != Dtype::kFloat) return r.No("for oneDNN floats are fused alone");
  if (!IsInner(*conv) || !IsOutOfOrder(node)) return r.No("others need the convolution");
  const Attr* ops = conv->Find("fused_ops");
  const auto* names = ops == nullptr ? nullptr : ops->get<std::vector<std::string>>();
  const bool adds = names != nullptr && !names->empty() && names->front() == "BiasAdd" &&
                    (names->size() == 1 || (names->size() == 2 && names->back() == "Add"));
  if (!adds) return r.No("it has an activation");
  if (!r.context().allow_non_differentiable_rewrites) return r.No("a gradient may be taken");
  AttrMap attrs = conv->attrs();
  std::vector<std::string> all = *names;
  all.emplace_back(node.op());
  attrs.Set("fused_ops", std::move(all));
  attrs.Set("leakyrelu_alpha", node.Float("alpha", 0.2F));
  const std::string op(conv->op());
  node.device = conv->device;
  r.graph().SetInputs(&node, conv->inputs());
  RETURN_IF_ERROR(r.Become(&node, op, std::move(attrs)));
  return r.InPlace();
}

bool ForOneDnnPatterns(const PassContext&) { return IsForOneDnn(); }

}  // namespace

const Rule kHardSwish = {"ContractionWithBiasAddAndHardSwish",
                         {"Mul"},
                         HardSwish,
                         "Mul(s / 6, Relu6(s + 3)), s = BiasAdd(Conv2D) -> _FusedConv2D",
                         ForOneDnnPatterns};
const Rule kGeluExact = {"MatMulBiasAddAndGelu",
                         {"Mul"},
                         GeluExact,
                         "s * (Erf(s * sqrt(1/2)) + 1) / 2, s = BiasAdd(MatMul) -> _FusedMatMul",
                         ForOneDnnPatterns};
const Rule kBatchMatMulWithMulAndAdd = {"FusedBatchMatMul", kPlus, BatchMatMulWithMulAndAdd,
                                        "BatchMatMulV2(x, y) * k + a -> _MklFusedBatchMatMulV2",
                                        ForOneDnnPatterns};
const Rule kPadWithConv3D = {"PadWithConv3D",
                             {"Conv3D", "_FusedConv3D"},
                             PadWithConv3D,
                             "Conv3D(Pad(x)) -> _FusedConv3D",
                             ForOneDnnPatterns};
const Rule kFusedConvWithActivation = {"FusedConvWithFusedActivation",
                                       {"LeakyRelu"},
                                       FusedConvWithActivation,
                                       "LeakyRelu(_FusedConv2D) -> _FusedConv2D",
                                       ForOneDnnPatterns};

}  // namespace smelt::remap
