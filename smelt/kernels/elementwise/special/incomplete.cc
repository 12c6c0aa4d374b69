// Incomplete gamma and beta functions: Eigen's, as TensorFlow's are.
#include <unsupported/Eigen/SpecialFunctions>

#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"

namespace smelt {
namespace {

#define SMELT_INCOMPLETE(Name, function)    \
  struct Name {                             \
    template <typename T>                   \
    static T Of(T a, T x) {                 \
      return Eigen::numext::function(a, x); \
    }                                       \
  };
SMELT_INCOMPLETE(IncompleteLower, igamma)
SMELT_INCOMPLETE(IncompleteUpper, igammac)
SMELT_INCOMPLETE(IncompleteSlope, igamma_der_a)
SMELT_INCOMPLETE(IncompleteSampleSlope, gamma_sample_der_alpha)
#undef SMELT_INCOMPLETE

template <typename F>
StatusOr<std::unique_ptr<KernelState>> PrepareIncomplete(const Node& node) {
  const Dtype t = node.Type("T");
  return MakeBinaryState(node, t, t, FloatLoops<F>(t), OperandCheck::kNone, 1 << 10);
}

template <typename T>
void FillBetainc(const Tensor& a, const Tensor& b, const Tensor& x, Tensor* out) {
  const auto at = [](const Tensor& t, int64_t i) { return t.data<T>()[t.rank() == 0 ? 0 : i]; };
  T* to = out->data<T>();
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    to[i] = Eigen::numext::betainc(at(a, i), at(b, i), at(x, i));
  }
}

Status RunBetainc(OpContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  const Tensor& x = ctx.input(2);
  // Scalars broadcast; other shapes must agree.
  const Tensor* wide = a.rank() != 0 ? &a : b.rank() != 0 ? &b : &x;
  constexpr absl::string_view kNames[] = {"a", "b", "x"};
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = ctx.input(i);
    if (t.rank() == 0 || t.shape() == wide->shape()) continue;
    const int first = wide == &a ? 0 : 1;
    return InvalidArgument("Shapes of ", kNames[first], " and ", kNames[i],
                           " are inconsistent: ", wide->shape().ToString(), " vs. ",
                           t.shape().ToString());
  }
  const Shape shape = wide->shape();
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->dtype() == Dtype::kFloat) {
    FillBetainc<float>(a, b, x, out);
  } else {
    FillBetainc<double>(a, b, x, out);
  }
  return OkStatus();
}

constexpr Kernel kIncompleteTable[] = {
    {"Igamma", "T", kFloatTypes, "special:igamma", RunBinary, PrepareIncomplete<IncompleteLower>},
    {"Igammac", "T", kFloatTypes, "special:igammac", RunBinary, PrepareIncomplete<IncompleteUpper>},
    {"IgammaGradA", "T", kFloatTypes, "special:igamma_grad_a", RunBinary,
     PrepareIncomplete<IncompleteSlope>},
    {"RandomGammaGrad", "T", kFloatTypes, "special:gamma_sample_gradient", RunBinary,
     PrepareIncomplete<IncompleteSampleSlope>},
    {"Betainc", "T", kFloatTypes, "special:betainc", RunBetainc},
};

}  // namespace

extern constinit const std::span<const Kernel> kIncompleteKernels = kIncompleteTable;

}  // namespace smelt
