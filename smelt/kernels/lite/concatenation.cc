// CONCATENATION of uint8 tensors on different scales. Those of other types move integers as they
// are.
#include "absl/strings/str_cat.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct ConcatenationState final : KernelState {
  std::vector<Affine> in;
  Affine out;
};

StatusOr<std::unique_ptr<KernelState>> PrepareConcatenation(const Node& node) {
  auto s = std::make_unique<ConcatenationState>();
  for (int i = 0; i < node.num_inputs(); ++i) s->in.push_back(InputAffine(node, i));
  s->out = OutputAffine(node);
  return s;
}

Status RunConcatenation(OpContext& ctx) {
  const auto& s = ctx.state<ConcatenationState>();
  const Tensor& first = ctx.input(0);
  int64_t axis = ctx.node().Int("axis");
  if (axis < 0) axis += first.rank();
  if (axis < 0 || axis >= first.rank()) return InvalidArgument("it has no dimension ", axis);
  const auto at = static_cast<int>(axis);
  Dims dims(first.shape().dims().begin(), first.shape().dims().end());
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    const Tensor& in = ctx.input(i);
    for (int d = 0; d < first.rank(); ++d) {
      if (in.rank() == first.rank() && (d == at || in.dim(d) == first.dim(d))) continue;
      return InvalidArgument("shapes ", first.shape().ToString(), " and ", in.shape().ToString(),
                             " in dimension ", axis);
    }
    dims[static_cast<size_t>(at)] += in.dim(at);
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape(dims)));
  if (out->num_elements() == 0) return OkStatus();
  const int64_t outer = first.shape().Product(0, at);
  const int64_t row = out->num_elements() / outer;
  int64_t place = 0;
  const float inverse = 1.0f / s.out.scale();
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Affine& affine = s.in[static_cast<size_t>(i)];
    const int64_t n = ctx.input(i).num_elements() / outer;
    const uint8_t* x = ctx.input(i).data<uint8_t>();
    uint8_t* y = out->data<uint8_t>() + place;
    const bool same = affine.scale() == s.out.scale() && affine.zero() == s.out.zero();
    const float scale = affine.scale() * inverse;
    const float bias = -static_cast<float>(affine.zero()) * scale;
    for (int64_t r = 0; r < outer; ++r) {
      for (int64_t k = 0; k < n; ++k) {
        const uint8_t q = x[r * n + k];
        const float steps = std::round(static_cast<float>(q) * scale + bias);
        const float moved = steps + static_cast<float>(s.out.zero());
        y[r * row + k] = same ? q : static_cast<uint8_t>(std::clamp(moved, 0.0f, 255.0f));
      }
    }
    place += n;
  }
  return OkStatus();
}

std::string DeclineConcatenation(const Node& node) {
  if (node.num_inputs() < 1) return "it has no inputs";
  if (node.output_types[0] != Dtype::kUint8) {
    return absl::StrCat("its output is ", DtypeName(node.output_types[0]));
  }
  if (node.String("fused_activation_function", "NONE") != "NONE") return "it has an activation";
  return DeclineUnlessNarrow(node, node.num_inputs());
}

constexpr Kernel kLiteConcatenationTable[] = {
    {"tfl.concatenation", "", kAnyType, "lite:concatenation", RunConcatenation,
     PrepareConcatenation, DeclineConcatenation},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteConcatenationKernels =
    lite::kLiteConcatenationTable;
}  // namespace smelt
