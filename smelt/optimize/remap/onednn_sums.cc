// Convolutions and products with a bias, another tensor that is added, and an activation.
#include <algorithm>

#include "smelt/optimize/onednn.h"
#include "smelt/optimize/remap/contraction.h"
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

constexpr OpSet kSums = {"Add", "AddN", "AddV2"};
constexpr OpSet kActivationsOfSums = {"Elu", "LeakyRelu", "Relu", "Relu6"};

struct SideSum {
  Biased biased;
  Endpoint other;
};

// A sum of two tensors of one shape, one of which is a contraction with its bias.
SideSum FindSideSum(const Node& sum, Rewriter& r) {
  SideSum out;
  if (!sum.Is(kSums) || sum.num_inputs() != 2 || !IsOutOfOrder(sum)) return out;
  for (int side = 0; side < 2; ++side) {
    const Node& bias_add = *sum.input(side).node;
    const Biased found = FindBiased(bias_add, r);
    if (found.contraction == nullptr) {
      if (!found.why.empty()) out.biased.why = found.why;
      continue;
    }
    if (!IsInner(bias_add)) {
      out.biased.why = "others need the sum with the bias";
    } else if (found.contraction->Is("DepthwiseConv2dNative")) {
      out.biased.why = "depthwise convolutions are not fused with it";
    } else if (!sum.Is("AddN") &&
               !SameSymbolicShape(r.shape(sum.input(0)), r.shape(sum.input(1)))) {
      out.biased.why = "the shapes differ, or are not known";
    } else {
      out.biased = found;
      out.other = sum.input(1 - side);
      return out;
    }
  }
  return out;
}

StatusOr<Rewritten> FuseSide(Node& node, const SideSum& found, Rewriter& r) {
  if (!r.context().allow_non_differentiable_rewrites) return r.No("a gradient may be taken");
  const Biased& biased = found.biased;
  const std::vector<Endpoint> args = {biased.bias, found.other};
  std::vector<std::string> ops = {"BiasAdd", "Add"};
  if (!node.Is(kSums)) ops.emplace_back(node.op());
  AttrMap attrs = FusedAttrs(*biased.contraction, *biased.row, std::move(ops), args);
  if (node.Is("LeakyRelu")) attrs.Set("leakyrelu_alpha", node.Float("alpha", 0.2F));
  RETURN_IF_ERROR(Fuse(node, *biased.contraction, *biased.row, std::move(attrs), args, r));
  return r.InPlace();
}

StatusOr<Rewritten> BiasAndAdd(Node& node, Rewriter& r) {
  const SideSum found = FindSideSum(node, r);
  if (found.biased.contraction == nullptr) {
    return found.biased.why.empty() ? r.No() : r.No(found.biased.why);
  }
  return FuseSide(node, found, r);
}

StatusOr<Rewritten> BiasAndAddAndActivation(Node& node, Rewriter& r) {
  const Node& sum = *node.input(0).node;
  if (!IsOutOfOrder(node)) return r.No();
  const SideSum found = FindSideSum(sum, r);
  if (found.biased.contraction == nullptr) {
    return found.biased.why.empty() ? r.No() : r.No(found.biased.why);
  }
  if (!found.biased.contraction->Is({"Conv2D", "Conv3D"})) return r.No("it is no convolution");
  if (!IsInner(sum)) return r.No("others need the sum");
  return FuseSide(node, found, r);
}

bool ForOneDnn(const PassContext&) { return IsForOneDnn(); }

}  // namespace

const Rule kContractionWithBiasAndAdd = {"ContractionWithBiasAddAndAdd", kSums, BiasAndAdd,
                                         "Add(BiasAdd(Conv2D | Conv3D | MatMul), y) -> fused",
                                         ForOneDnn};
const Rule kContractionWithBiasAndAddAndActivation = {
    "ContractionWithBiasAndAddActivation", kActivationsOfSums, BiasAndAddAndActivation,
    "Relu(Add(BiasAdd(Conv2D | Conv3D), y)) -> fused", ForOneDnn};

}  // namespace smelt::remap
