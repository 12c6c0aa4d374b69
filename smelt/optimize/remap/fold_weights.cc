#include "smelt/optimize/remap/fold_weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/nn/fused.h"

namespace smelt::remap {
namespace {

// A scaled copy of a larger filter would lie in memory beside the file's pages.
constexpr size_t kWorthSharing = 256 << 10;

StatusOr<Tensor> FloatVector(const std::vector<float>& values) {
  const Shape shape({static_cast<int64_t>(values.size())});
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(Dtype::kFloat, shape, HeapAllocator()));
  std::ranges::copy(values, t.data<float>());
  return t;
}

StatusOr<Tensor> ScaledFilter(const Tensor& filter, const std::vector<float>& scale) {
  ASSIGN_OR_RETURN(const Tensor from, ToFloat(filter, HeapAllocator()));
  ASSIGN_OR_RETURN(Tensor to, Tensor::Make(Dtype::kFloat, filter.shape(), HeapAllocator()));
  const auto depth = static_cast<int64_t>(scale.size());
  const float* x = from.data<float>();
  float* y = to.data<float>();
  for (int64_t i = 0; i < filter.num_elements(); i += depth) {
    for (int64_t c = 0; c < depth; ++c) y[i + c] = x[i + c] * scale[static_cast<size_t>(c)];
  }
  return FromFloat(to, filter.dtype(), HeapAllocator());
}

}  // namespace

int64_t Depth(const Node& root, const Rewriter& r) {
  // Not as a tensor: a constant that states one value may be large.
  const TensorValue* value = r.ConstantValue(root.input(1));
  if (value == nullptr || value->num_elements() < 0) return -1;
  const PartialShape& w = value->shape;
  if (root.Is("MatMul")) return w.rank() == 2 ? w[root.Bool("transpose_b") ? 0 : 1] : -1;
  if (w.rank() != 4) return -1;
  return root.Is("DepthwiseConv2dNative") ? w[2] * w[3] : w[3];
}

std::optional<std::vector<float>> ByChannel(Endpoint e, const Node& root, const Rewriter& r) {
  const int64_t depth = Depth(root, r);
  const std::optional<Tensor> t = r.Constant(e);
  if (!t || depth <= 0 || t->rank() > (root.Is("MatMul") ? 2 : 4)) return std::nullopt;
  const int64_t count = t->num_elements();
  if (count != 1 && (count != depth || t->shape().back() != depth)) return std::nullopt;
  if (t->dtype() != Dtype::kFloat && t->dtype() != Dtype::kBfloat16) return std::nullopt;
  const auto wide = ToFloat(*t, HeapAllocator());
  if (!wide.ok()) return std::nullopt;
  const auto v = wide->flat<float>();
  std::vector<float> values(static_cast<size_t>(depth), v[0]);
  if (count == depth) values.assign(v.begin(), v.end());
  // A sum of infinities is another number than an infinite product of the sum.
  const auto finite = [](float f) { return std::isfinite(f); };
  if (!std::ranges::all_of(values, finite)) return std::nullopt;
  return values;
}

bool MayScale(const Chain& chain, const Rewriter& r) {
  const Node& root = *chain.root;
  return Depth(root, r) > 0 && !(root.Is("MatMul") && root.Bool("transpose_b")) &&
         r.Constant(root.input(1)).has_value() &&
         (chain.ops.empty() ||
          (chain.ops.size() == 1 && chain.ops[0] == "BiasAdd" &&
           (!chain.bias.empty() || ByChannel(chain.args[0], root, r).has_value())));
}

void StartFolding(Chain& chain, const Rewriter& r) {
  if (!chain.bias.empty()) return;
  chain.bias.assign(static_cast<size_t>(Depth(*chain.root, r)), 0.0F);
  if (!chain.ops.empty()) chain.bias = *ByChannel(chain.args[0], *chain.root, r);
  chain.ops = {"BiasAdd"};
  chain.args = {{}};  // made of chain.bias
}

void ScaleAndShift(Chain& chain, const std::vector<float>& scale, const std::vector<float>& shift,
                   const Rewriter& r) {
  StartFolding(chain, r);
  if (chain.scale.empty()) chain.scale.assign(scale.size(), 1.0F);
  for (size_t i = 0; i < scale.size(); ++i) {
    chain.scale[i] *= scale[i];
    chain.bias[i] = chain.bias[i] * scale[i] + shift[i];
  }
}

std::optional<ConstantNorm> ConstantNormOf(const Node& batch_norm, int64_t channels,
                                           const Rewriter& r) {
  std::optional<Tensor> four[4];
  const Tensor* args[4];
  for (int i = 0; i < 4; ++i) {
    four[i] = r.Constant(batch_norm.input(1 + i));
    if (!four[i] || four[i]->dtype() != Dtype::kFloat || four[i]->num_elements() != channels) {
      return std::nullopt;
    }
    args[i] = &*four[i];
  }
  ConstantNorm norm;
  norm.scale.resize(static_cast<size_t>(channels));
  norm.shift.resize(static_cast<size_t>(channels));
  FusedOps ops;
  ops.epsilon = batch_norm.Float("epsilon", 1e-4F);
  nn::FoldBatchNorm(ops, args, norm.scale.data(), norm.shift.data());
  return norm;
}

bool FoldBatchNorm(Chain& chain, const Node& batch_norm, const Rewriter& r) {
  if (!MayScale(chain, r)) return false;
  const auto norm = ConstantNormOf(batch_norm, Depth(*chain.root, r), r);
  if (!norm) return false;
  ScaleAndShift(chain, norm->scale, norm->shift, r);
  return true;
}

StatusOr<Endpoint> FoldedFilter(Chain& chain, Rewriter& r) {
  const Node& root = *chain.root;
  Endpoint filter = root.input(1);
  if (chain.bias.empty()) return filter;
  const std::optional<Tensor> w = r.Constant(filter);
  const Dtype t = root.Type("T");
  const auto add = [&](absl::string_view name, const Tensor& value) {
    return Endpoint{
        r.AddConst(r.graph().FreeName(absl::StrCat(root.name(), "/", name)), value, root), 0};
  };
  // The factors of a large filter are applied to the result, as a normalization of mean 0 and
  // variance 1.
  if (!chain.scale.empty() && w->bytes() >= kWorthSharing &&
      (t == Dtype::kFloat || root.Is("Conv2D")) &&
      std::ranges::find(chain.ops, "FusedBatchNorm") == chain.ops.end()) {
    chain.ops[0] = "FusedBatchNorm";
    chain.epsilon = 0;
    chain.args.clear();
    const std::vector<float> zeros(chain.bias.size(), 0.0F), ones(chain.bias.size(), 1.0F);
    const std::array<const std::vector<float>*, 4> statistics = {&chain.scale, &chain.bias, &zeros,
                                                                 &ones};
    for (const std::vector<float>* values : statistics) {
      ASSIGN_OR_RETURN(const Tensor arg, FloatVector(*values));
      chain.args.push_back(add("scale_and_shift", arg));
    }
    return filter;
  }
  if (!chain.scale.empty()) {
    ASSIGN_OR_RETURN(const Tensor scaled, ScaledFilter(*w, chain.scale));
    filter = add("scaled_filter", scaled);
  }
  ASSIGN_OR_RETURN(Tensor bias, FloatVector(chain.bias));
  // _FusedConv2D alone takes arguments of another type (TArgs): there the bias stays float.
  if (!root.Is("Conv2D")) {
    ASSIGN_OR_RETURN(bias, FromFloat(bias, t, HeapAllocator()));
  }
  chain.args[0] = add("folded_bias", bias);
  return filter;
}

}  // namespace smelt::remap
