// Normalizations that are spelled out, for oneDNN.
#include <algorithm>
#include <cmath>

#include "smelt/optimize/onednn.h"
#include "smelt/optimize/remap/contraction.h"
#include "smelt/optimize/remap/patterns.h"
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

constexpr OpSet kAdds = {"Add", "AddV2"};

// x * (rsqrt(variance + epsilon) * scale) + (offset - mean * (rsqrt(...) * scale)), whose mean and
// variance are those of x along `axes`.
struct SpelledNorm {
  Endpoint x, scale, offset;
  float epsilon = 0;
  std::vector<int64_t> axes;
  absl::string_view why;
};

bool IsMeanOf(const Node& mean, Endpoint x, Endpoint axes) {
  return mean.Is("Mean") && mean.input(0) == x && mean.input(1) == axes && mean.Bool("keep_dims") &&
         IsOutOfOrder(mean) && !IsRoot(mean);
}

// The normalization whose last node is `sum`; x.node is nullptr where there is none.
SpelledNorm FindSpelled(const Node& sum, Rewriter& r) {
  SpelledNorm out;
  if (!sum.Is(kAdds)) return out;
  const auto [sub, scaled] = Sides(sum, {"Sub"});
  if (sub == nullptr || !scaled.node->Is("Mul") || !sub->input(1).node->Is("Mul")) return out;
  const Node& by_mean = *sub->input(1).node;
  // The factor is what both products read.
  for (int side = 0; side < 2; ++side) {
    const Endpoint factor = scaled.node->input(side);
    const Endpoint x = scaled.node->input(1 - side);
    const auto [root_side, scale] = Sides(*factor.node, {"Rsqrt"});
    if (!factor.node->Is("Mul") || root_side == nullptr) continue;
    const int mean_side = by_mean.input(0) == factor ? 1 : 0;
    const Endpoint mean = by_mean.input(mean_side);
    const Node& added = *root_side->input(0).node;
    if (by_mean.input(1 - mean_side) != factor || !added.Is(kAdds)) continue;
    const auto [variance, epsilon] = Sides(added, {"Mean"});
    if (variance == nullptr) continue;
    const Node& squares = *variance->input(0).node;
    const Endpoint axes = variance->input(1);
    if (!squares.Is("SquaredDifference") || !IsMeanOf(*mean.node, x, axes) ||
        !IsMeanOf(*variance, {const_cast<Node*>(&squares), 0}, axes)) {
      continue;
    }
    const bool differs = (squares.input(0) == x && squares.input(1) == mean) ||
                         (squares.input(0) == mean && squares.input(1) == x);
    if (!differs) continue;
    if (!r.OnCpu(sum)) {
      out.why = "it is not placed on a CPU";
      return out;
    }
    if (sum.Type("T") != Dtype::kFloat) {
      out.why = "for oneDNN floats are fused alone";
      return out;
    }
    for (const Node* n :
         {sub, static_cast<const Node*>(scaled.node), &by_mean, root_side, &added, &squares}) {
      if (!IsInner(*n)) out.why = "others need a step of it";
    }
    if (!IsOutOfOrder(*factor.node) || IsRoot(*factor.node) || NumDataUses(*factor.node) != 2 ||
        NumDataUses(*mean.node) != 2 || NumDataUses(*variance) != 1 || !IsOutOfOrder(sum)) {
      out.why = "others need a step of it, or an order hangs on it";
    }
    const std::optional<Tensor> number = r.Constant(epsilon);
    const auto along = r.Integers(axes);
    if (!number || number->dtype() != Dtype::kFloat || number->num_elements() != 1 || !along) {
      out.why = "its axes and the number that is added are no constants";
    }
    if (!out.why.empty()) return out;
    out.x = x;
    out.scale = scale;
    out.offset = sub->input(0);
    out.epsilon = number->scalar<float>();
    out.axes = *along;
    return out;
  }
  return out;
}

// Is `e` one number for each channel, which is dimension `at` of `x`, whatever their number?
bool IsOfChannels(Endpoint e, const PartialShape& x, int at, Rewriter& r) {
  const PartialShape& s = r.shape(e);
  const int before = x.rank() - s.rank();
  if (!s.fully_known() || s.rank() < x.rank() - at || before < 0) return false;
  for (int i = 0; i < s.rank(); ++i) {
    if (i + before != at && s[i] != 1) return false;
  }
  return x[at] < 0 || x[at] == s[at - before];
}

// Which dimension holds the channels where all between those and the first one are averaged; -1:
// other axes.
int ChannelsOfInstance(const SpelledNorm& norm, int rank) {
  if (rank != 4 && rank != 5) return -1;
  std::vector<int64_t> axes = norm.axes;
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::ranges::sort(axes);
  if (static_cast<int>(axes.size()) != rank - 2) return -1;
  const int first = static_cast<int>(axes.front());
  if (first != 1 && first != 2) return -1;
  for (int i = 0; i < rank - 2; ++i) {
    if (axes[static_cast<size_t>(i)] != first + i) return -1;
  }
  return first == 1 ? rank - 1 : 1;
}

StatusOr<Rewritten> LayerNorm(Node& node, Rewriter& r) {
  const SpelledNorm norm = FindSpelled(node, r);
  if (norm.x.node == nullptr) return norm.why.empty() ? r.No() : r.No(norm.why);
  const PartialShape& x = r.shape(norm.x);
  const int rank = x.rank();
  if (rank < 2 || rank > 3) return r.No("the rank is neither 2 nor 3");
  if (norm.axes.size() != 1 || norm.axes[0] != rank - 1) {
    return r.No("another dimension than the last is averaged");
  }
  for (const Endpoint e : {norm.scale, norm.offset}) {
    if (r.shape(e).rank() != 1 || !IsOfChannels(e, x, rank - 1, r)) {
      return r.No("scale and offset are not of the last dimension");
    }
  }
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  attrs.Set("epsilon", norm.epsilon);
  r.graph().SetInputs(&node, {norm.x, norm.scale, norm.offset});
  RETURN_IF_ERROR(r.Become(&node, "_MklLayerNorm", std::move(attrs)));
  return r.InPlace();
}

// What makes `node`, the sum or an activation of it, an instance normalization.
StatusOr<Rewritten> FuseInstance(Node& node, const Node& sum, Rewriter& r) {
  const SpelledNorm norm = FindSpelled(sum, r);
  if (norm.x.node == nullptr) return norm.why.empty() ? r.No() : r.No(norm.why);
  if (&node != &sum && !IsInner(sum)) return r.No("others need the normalized tensor");
  const PartialShape& x = r.shape(norm.x);
  const int at = ChannelsOfInstance(norm, x.rank());
  if (at < 0) return r.No("other dimensions than those of an image are averaged");
  for (const Endpoint e : {norm.scale, norm.offset}) {
    if (!IsOfChannels(e, x, at, r)) {
      return r.No("scale and offset are not of the channels");
    }
  }
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  attrs.Set("epsilon", norm.epsilon);
  attrs.Set("reduction_axes", norm.axes);
  if (&node != &sum) {
    attrs.Set("fused_ops", std::vector<std::string>{std::string(node.op())});
    if (node.Is("LeakyRelu")) attrs.Set("leakyrelu_alpha", node.Float("alpha", 0.2F));
  }
  r.graph().SetInputs(&node, {norm.x, norm.scale, norm.offset});
  RETURN_IF_ERROR(r.Become(&node, "_MklFusedInstanceNorm", std::move(attrs)));
  return r.InPlace();
}

StatusOr<Rewritten> InstanceNorm(Node& node, Rewriter& r) { return FuseInstance(node, node, r); }

StatusOr<Rewritten> InstanceNormWithActivation(Node& node, Rewriter& r) {
  if (!IsOutOfOrder(node) || node.Type("T") != Dtype::kFloat) return r.No();
  return FuseInstance(node, *node.input(0).node, r);
}

bool ForOneDnnNorms(const PassContext&) { return IsForOneDnn(); }

}  // namespace

const Rule kLayerNorm = {"LayerNorm", kAdds, LayerNorm, "a spelled out mean -> _MklLayerNorm",
                         ForOneDnnNorms};
const Rule kInstanceNorm = {"InstanceNorm", kAdds, InstanceNorm,
                            "a spelled out mean of images -> _MklFusedInstanceNorm",
                            ForOneDnnNorms};
const Rule kInstanceNormWithActivation = {"InstanceNormWithActivation",
                                          {"LeakyRelu", "Relu"},
                                          InstanceNormWithActivation,
                                          "Relu(a mean of images) -> _MklFusedInstanceNorm",
                                          ForOneDnnNorms};

}  // namespace smelt::remap
