// What follows a convolution or a product, and is one with it: sums and factors of channels.
#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {

AffineParts PartsOf(const Node& n) {
  if (n.Is("tfl.depthwise_conv_2d")) return {1, 2, 3};
  if (n.Is("tfl.transpose_conv")) return {1, 3, 0};
  if (n.Is("tfl.conv_3d")) return {1, 2, 4};
  if (n.Is("tfl.conv_3d_transpose")) return {1, 3, 3};
  return {1, 2, 0};
}

StatusOr<std::optional<Tensor>> PerChannel(const Tensor& value, int64_t channels) {
  if (value.dtype() != Dtype::kFloat) return std::nullopt;
  const Shape& s = value.shape();
  const bool last = s.rank() > 0 && s.back() == channels && s.num_elements() == channels;
  if (last) return value.WithShape(Shape({channels}));
  if (s.num_elements() != 1) return std::nullopt;
  ASSIGN_OR_RETURN(Tensor all, Tensor::Make(Dtype::kFloat, Shape({channels})));
  std::fill_n(all.data<float>(), channels, value.scalar<float>());
  return all;
}

StatusOr<Tensor> BiasOf(const Node& affine, int64_t channels) {
  const AffineParts parts = PartsOf(affine);
  if (parts.bias < affine.num_inputs() && !affine.input(parts.bias).node->Is("tfl.no_value")) {
    const auto value = Fuser::Constant(affine.input(parts.bias));
    if (!value) return Tensor();
    return *value;
  }
  return Tensor::Zeros(Dtype::kFloat, Shape({channels}));
}

Status SetBias(Node* affine, const Tensor& bias, Fuser& f) {
  const int at = PartsOf(*affine).bias;
  const Endpoint value = f.Const(bias, *affine);
  if (at < affine->num_inputs()) {
    f.SetInput(affine, at, value);
  } else {
    f.graph().AddInput(affine, value);
  }
  DtypeVector types;
  for (const Endpoint& e : affine->inputs()) types.push_back(Fuser::type(e));
  affine->AttrsToChange().Set("Tin", types);
  return f.graph().ResolveTypes(affine);
}

namespace {

constexpr OpSet kAffine = {"tfl.conv_2d",        "tfl.depthwise_conv_2d", "tfl.fully_connected",
                           "tfl.transpose_conv", "tfl.conv_3d",           "tfl.conv_3d_transpose"};

// The affine operator that `e` is, if it can still take more.
Node* AffineBehind(Endpoint e) {
  Node* n = e.node;
  return n->Is(kAffine) && Fuser::ReadOnce(e) && !HasActivation(*n) ? n : nullptr;
}

struct Step {
  Node* affine = nullptr;
  int constant = 0;  // which input of the operator is the constant
  Tensor value;      // for each channel
};

// An operator of an affine one and a constant of its channels.
StatusOr<std::optional<Step>> StepOf(Node& n, Fuser& f) {
  if (n.num_inputs() != 2 || Fuser::type({&n, 0}) != Dtype::kFloat) return std::nullopt;
  for (const int c : {1, 0}) {
    const std::optional<Tensor> value = Fuser::Constant(n.input(c));
    const Endpoint other = n.input(1 - c);
    if (!value || !other.node->Is(kAffine)) continue;
    Step s;
    s.constant = c;
    s.affine = AffineBehind(other);
    if (s.affine == nullptr) {
      f.Declined(n, HasActivation(*other.node) ? "what it follows has an activation"
                                               : "others read what it follows");
      return std::nullopt;
    }
    const AffineParts parts = PartsOf(*s.affine);
    const PartialShape weights = Fuser::shape(s.affine->input(parts.weights));
    if (weights.rank() <= parts.channels || weights[parts.channels] < 0) return std::nullopt;
    const int64_t channels = weights[parts.channels];
    ASSIGN_OR_RETURN(const std::optional<Tensor> all, PerChannel(*value, channels));
    // A constant of more dimensions than the result would add some.
    const int rank = Fuser::shape(other).rank();
    if (!all || (rank >= 0 && value->rank() > rank) || (rank < 0 && value->rank() > 1)) {
      f.Declined(n, "its constant is not one number for each channel");
      return std::nullopt;
    }
    s.value = *all;
    return s;
  }
  return std::nullopt;
}

template <bool kSub>
StatusOr<bool> FuseSum(Node& n, Fuser& f) {
  ASSIGN_OR_RETURN(const auto step, StepOf(n, f));
  if (!step) return false;
  if (kSub && step->constant == 0) return f.Declined(n, "it subtracts from a constant");
  ASSIGN_OR_RETURN(const Tensor bias, BiasOf(*step->affine, step->value.dim(0)));
  if (!bias.valid()) return f.Declined(n, "the bias is no constant");
  ASSIGN_OR_RETURN(const Tensor sum,
                   Binary(kSub ? OpName("Sub") : OpName("AddV2"), bias, step->value));
  RETURN_IF_ERROR(SetBias(step->affine, sum, f));
  step->affine->AttrsToChange().Set("fused_activation_function",
                                    n.String("fused_activation_function", "NONE"));
  f.Replace(&n, {step->affine, 0});
  return true;
}

template <bool kDiv>
StatusOr<bool> FuseFactor(Node& n, Fuser& f) {
  ASSIGN_OR_RETURN(const auto step, StepOf(n, f));
  if (!step) return false;
  if (kDiv && step->constant == 0) return f.Declined(n, "it divides a constant");
  const AffineParts parts = PartsOf(*step->affine);
  const auto weights = Fuser::Constant(step->affine->input(parts.weights));
  if (!weights) return f.Declined(n, "the weights are no constant");
  const int64_t channels = step->value.dim(0);
  ASSIGN_OR_RETURN(const Tensor bias, BiasOf(*step->affine, channels));
  if (!bias.valid()) return f.Declined(n, "the bias is no constant");
  std::vector<int64_t> sizes(static_cast<size_t>(weights->rank()), 1);
  sizes[static_cast<size_t>(parts.channels)] = channels;
  const OpName op = kDiv ? OpName("RealDiv") : OpName("Mul");
  ASSIGN_OR_RETURN(const Tensor scaled, Binary(op, *weights, step->value.WithShape(Shape(sizes))));
  ASSIGN_OR_RETURN(const Tensor moved, Binary(op, bias, step->value));
  f.SetInput(step->affine, parts.weights, f.Const(scaled, *step->affine));
  const bool had_bias = parts.bias < step->affine->num_inputs() &&
                        !step->affine->input(parts.bias).node->Is("tfl.no_value");
  if (had_bias) f.SetInput(step->affine, parts.bias, f.Const(moved, *step->affine));
  step->affine->AttrsToChange().Set("fused_activation_function",
                                    n.String("fused_activation_function", "NONE"));
  f.Replace(&n, {step->affine, 0});
  return true;
}

// What `e` is a reshape of, whose last dimension, of channels, stays.
Endpoint BehindReshapes(Endpoint e) {
  constexpr OpSet kReshapes = {"tfl.reshape", "tfl.squeeze", "tfl.expand_dims"};
  const auto channels = [](Endpoint x) {
    const PartialShape s = Fuser::shape(x);
    return s.rank() < 1 ? -1 : s[s.rank() - 1];
  };
  while (e.node->Is(kReshapes) && Fuser::ReadOnce(e) && channels(e) > 0 &&
         channels(e.node->input(0)) == channels(e)) {
    e = e.node->input(0);
  }
  return e;
}

// A constant that is added to a sum goes into the bias of one of its operands.
StatusOr<bool> FuseAddPastSum(Node& n, Fuser& f) {
  for (const int c : {1, 0}) {
    const auto value = Fuser::Constant(n.input(c));
    const Endpoint sum = n.input(1 - c);
    const bool plain = (sum.node->Is("tfl.add") && !HasActivation(*sum.node)) ||
                       (sum.node->Is("tfl.add_n") && sum.node->num_inputs() == 2);
    if (!value || !plain || Fuser::type(sum) != Dtype::kFloat) continue;
    for (const Endpoint& e : sum.node->inputs()) {
      Node* affine = AffineBehind(BehindReshapes(e));
      if (affine == nullptr || !(Fuser::shape(e) == Fuser::shape(sum))) continue;
      if (!Fuser::ReadOnce(sum)) return f.Declined(n, "others read the sum before it");
      const AffineParts parts = PartsOf(*affine);
      const PartialShape weights = Fuser::shape(affine->input(parts.weights));
      if (weights.rank() <= parts.channels || weights[parts.channels] < 0) continue;
      ASSIGN_OR_RETURN(const auto all, PerChannel(*value, weights[parts.channels]));
      if (!all || value->rank() > Fuser::shape(sum).rank()) continue;
      ASSIGN_OR_RETURN(const Tensor bias, BiasOf(*affine, all->dim(0)));
      if (!bias.valid()) continue;
      ASSIGN_OR_RETURN(const Tensor moved, Binary("AddV2", bias, *all));
      RETURN_IF_ERROR(SetBias(affine, moved, f));
      AttrMap options;
      if (HasActivation(n)) {
        options.Set("fused_activation_function", n.String("fused_activation_function"));
      }
      ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.add", {sum.node->input(0), sum.node->input(1)},
                                                std::move(options), n));
      f.Replace(&n, by);
      return true;
    }
  }
  return false;
}

constexpr Fusion kAffineFusions[] = {
    {"FuseAddIntoAffine", {"tfl.add"}, FuseSum<false>, "conv(x) + c -> conv(x) with bias c"},
    {"FuseSubIntoAffine", {"tfl.sub"}, FuseSum<true>, "conv(x) - c -> conv(x) with bias -c"},
    {"FuseMulIntoAffine", {"tfl.mul"}, FuseFactor<false>, "conv(x) * c -> conv(x) by weights * c"},
    {"FuseAddPastSum", {"tfl.add"}, FuseAddPastSum, "conv(x) + y + c -> conv(x) + y with bias c"},
    {"FuseDivIntoAffine", {"tfl.div"}, FuseFactor<true>, "conv(x) / c -> conv(x) by weights / c"},
};

}  // namespace

std::span<const Fusion> AffineFusions() { return kAffineFusions; }

}  // namespace smelt
