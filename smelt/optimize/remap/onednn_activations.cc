// Activations that are spelled out, and that oneDNN has as one.
#include <algorithm>

#include "smelt/optimize/onednn.h"
#include "smelt/optimize/remap/contraction.h"
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

// x of Mul(x, f(x)), where `inner` finds x behind f; nothing else may need f(x).
struct Gated {
  Endpoint x;
  absl::string_view why;
};
Gated FindGated(const Node& mul, const Rewriter& r, OpName last, OpName first) {
  Gated out;
  for (int side = 0; side < 2; ++side) {
    const Node* gate = mul.input(side).node;
    if (!gate->Is(last)) continue;
    const Node* inner = gate;
    if (last != first) {
      inner = gate->input(0).node;
      if (!inner->Is(first)) continue;
    }
    if (inner->input(0) != mul.input(1 - side)) continue;
    if (!r.OnCpu(mul)) {
      out.why = "it is not placed on a CPU";
    } else if (mul.Type("T") != Dtype::kFloat) {
      out.why = "for oneDNN floats are fused alone";
    } else if (!IsOutOfOrder(mul) || !IsInner(*gate) || !IsInner(*inner)) {
      out.why = "others need what is multiplied, or an order hangs on it";
    } else {
      out.x = inner->input(0);
    }
    return out;
  }
  return out;
}

StatusOr<Rewritten> BecomeUnary(Node& node, const Gated& found, absl::string_view op, Rewriter& r) {
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  r.graph().SetInputs(&node, {found.x});
  RETURN_IF_ERROR(r.Become(&node, op, std::move(attrs)));
  return r.InPlace();
}

StatusOr<Rewritten> Swish(Node& node, Rewriter& r) {
  const Gated found = FindGated(node, r, "Sigmoid", "Sigmoid");
  if (found.x.node == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  return BecomeUnary(node, found, "_MklSwish", r);
}

StatusOr<Rewritten> Mish(Node& node, Rewriter& r) {
  const Gated found = FindGated(node, r, "Tanh", "Softplus");
  if (found.x.node == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  return BecomeUnary(node, found, "_MklFusedMish", r);
}

// Mul(s, Sigmoid(s)) of s = BiasAdd(Conv2D), which the two alone read.
StatusOr<Rewritten> ConvWithSwish(Node& node, Rewriter& r) {
  const Gated gated = FindGated(node, r, "Sigmoid", "Sigmoid");
  if (gated.x.node == nullptr) return r.No();
  const Node& sum = *gated.x.node;
  if (!sum.Is({"Add", "AddV2", "BiasAdd"})) return r.No();
  const Biased found = FindBiased(sum, r);
  if (found.contraction == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  if (!found.contraction->Is("Conv2D")) return r.No("it is no convolution");
  if (IsRoot(sum) || NumDataUses(sum) != 2) return r.No("others need the sum with the bias");
  if (!r.context().allow_non_differentiable_rewrites) return r.No("a gradient may be taken");
  const std::vector<Endpoint> args = {found.bias};
  AttrMap attrs = FusedAttrs(*found.contraction, *found.row, {"BiasAdd", "_MklSwish"}, args);
  RETURN_IF_ERROR(Fuse(node, *found.contraction, *found.row, std::move(attrs), args, r));
  return r.InPlace();
}

// Maximum(x * k, x), k a number from 0 to 1: the larger one is x where x is positive.
StatusOr<Rewritten> MaximumToLeakyRelu(Node& node, Rewriter& r) {
  for (int side = 0; side < 2; ++side) {
    const Node* mul = node.input(side).node;
    const Endpoint x = node.input(1 - side);
    if (!mul->Is("Mul")) continue;
    for (int factor = 0; factor < 2; ++factor) {
      if (mul->input(1 - factor) != x) continue;
      const std::optional<Tensor> k = r.Constant(mul->input(factor));
      if (!k || k->dtype() != Dtype::kFloat || k->num_elements() != 1 || k->shape().rank() != 0) {
        continue;
      }
      const float alpha = k->scalar<float>();
      if (!(alpha >= 0 && alpha <= 1)) return r.No("the factor is not between 0 and 1");
      if (!r.OnCpu(node)) return r.No("it is not placed on a CPU");
      if (node.Type("T") != Dtype::kFloat) return r.No("for oneDNN floats are fused alone");
      if (!IsOutOfOrder(node) || !IsInner(*mul)) return r.No("others need the product");
      AttrMap attrs;
      attrs.Set("T", Dtype::kFloat);
      attrs.Set("alpha", alpha);
      r.graph().SetInputs(&node, {x});
      RETURN_IF_ERROR(r.Become(&node, "LeakyRelu", std::move(attrs)));
      return r.InPlace();
    }
  }
  return r.No();
}

bool ForOneDnnActivations(const PassContext&) { return IsForOneDnn(); }

}  // namespace

const Rule kSwish = {
    "Swish", {"Mul"}, Swish, "Mul(x, Sigmoid(x)) -> _MklSwish(x)", ForOneDnnActivations};
const Rule kMish = {"SoftplusTanhMul",
                    {"Mul"},
                    Mish,
                    "Mul(x, Tanh(Softplus(x))) -> _MklFusedMish(x)",
                    ForOneDnnActivations};
const Rule kConvWithSwish = {"ContractionWithBiasAndSwish",
                             {"Mul"},
                             ConvWithSwish,
                             "Mul(s, Sigmoid(s)), s = BiasAdd(Conv2D) -> _FusedConv2D",
                             ForOneDnnActivations};
const Rule kMaximumToLeakyRelu = {"MulAndMaximum",
                                  {"Maximum"},
                                  MaximumToLeakyRelu,
                                  "Maximum(x, x * k) -> LeakyRelu(x)",
                                  ForOneDnnActivations};

}  // namespace smelt::remap
