// L2_NORMALIZATION and LOG_SOFTMAX of quantized rows.
#include <array>
#include <type_traits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/lite/fixed_functions.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct RowState final : KernelState {
  Affine in, out;
  Range range;
  std::array<float, 256> exponentials{};  // by how far a number is below the row's largest
};

StatusOr<std::unique_ptr<KernelState>> PrepareRows(const Node& node) {
  auto s = std::make_unique<RowState>();
  s->in = InputAffine(node, 0);
  s->out = OutputAffine(node);
  s->range = RangeOf(node.output_types[0]);
  for (size_t i = 0; i < 256; ++i) {
    s->exponentials[i] = std::exp(-s->in.scale() * static_cast<float>(i));
  }
  return s;
}

// fn(from, to, depth) of rows of bytes of T.
template <typename F>
Status ForRows(OpContext& ctx, F fn) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("a scalar");
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const int64_t depth = in.dim(in.rank() - 1);
  if (in.num_elements() == 0) return OkStatus();
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    T* y = out->data<T>();
    ParallelFor(in.num_elements() / depth, 16, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) fn(x + r * depth, y + r * depth, depth);
    });
  });
  return OkStatus();
}

Status RunL2(OpContext& ctx) {
  const auto& s = ctx.state<RowState>();
  return ForRows(ctx, [&]<typename T>(const T* x, T* y, int64_t depth) {
    uint32_t squares = 0;  // of so many numbers it wraps around
    for (int64_t i = 0; i < depth; ++i) {
      const int32_t value = int32_t{x[i]} - s.in.zero();
      squares += static_cast<uint32_t>(value * value);
    }
    // Seven bits more of the result; those of uint8 are rounded off behind the factor.
    Factor inverse = InverseRoot(static_cast<int32_t>(squares));
    const int bits = std::is_same_v<T, uint8_t> ? 7 : 0;
    inverse.shift += 7 - bits;
    for (int64_t i = 0; i < depth; ++i) {
      const int32_t value = ShiftedLeft(int32_t{x[i]} - s.in.zero(), bits);
      y[i] = static_cast<T>(s.range.Clamp(Times(value, inverse), s.out.zero()));
    }
  });
}

Status RunLogSoftmax(OpContext& ctx) {
  const auto& s = ctx.state<RowState>();
  return ForRows(ctx, [&]<typename T>(const T* x, T* y, int64_t depth) {
    const int32_t most = *std::max_element(x, x + depth);
    float sum = 0;
    for (int64_t i = 0; i < depth; ++i) {
      sum += s.exponentials[static_cast<size_t>(most - x[i]) & 255];
    }
    const float scale = s.in.scale() / s.out.scale();
    const float base = (s.in.scale() * static_cast<float>(most) + std::log(sum)) / s.out.scale();
    for (int64_t i = 0; i < depth; ++i) {
      const float steps = std::nearbyint(scale * static_cast<float>(x[i]) - base);
      y[i] = static_cast<T>(s.range.Clamp(Truncated(steps), s.out.zero()));
    }
  });
}

// Results have 7 bits behind the point.
std::string DeclineL2(const Node& node) {
  std::string why = DeclineUnlessNarrow(node, 1);
  if (!why.empty()) return why;
  const Affine out = OutputAffine(node);
  const int32_t zero = node.output_types[0] == Dtype::kUint8 ? 128 : 0;
  if (node.output_types[0] == Dtype::kInt16) return "its output is int16";
  return out.scale() == 1.0f / 128 && out.zero() == zero ? "" : "its output is no [-1, 1)";
}
// int16 takes more than 256 exponentials.
std::string DeclineLogSoftmax(const Node& node) {
  std::string why = DeclineUnlessNarrow(node, 1);
  if (why.empty() && node.output_types[0] == Dtype::kInt16) why = "its output is int16";
  return why;
}

constexpr Kernel kLiteNormalizationTable[] = {
    {"tfl.l2_normalization", "", kAnyType, "lite:l2_normalization", RunL2, PrepareRows, DeclineL2},
    {"tfl.log_softmax", "", kAnyType, "lite:log_softmax", RunLogSoftmax, PrepareRows,
     DeclineLogSoftmax},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteNormalizationKernels =
    lite::kLiteNormalizationTable;
}  // namespace smelt
