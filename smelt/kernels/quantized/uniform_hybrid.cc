// UniformQuantizedDotHybrid: a float operand is quantised row by row as it comes, so that the sums
// are of 8-bit integers.
#include "smelt/kernels/quantized/affine.h"
#include "smelt/kernels/quantized/range.h"

namespace smelt {
namespace {

using quantized::Plain;

struct HybridState final : KernelState {
  quantized::AffineAttrs rhs;
};

StatusOr<std::unique_ptr<KernelState>> PrepareHybrid(const Node& node) {
  auto s = std::make_unique<HybridState>();
  ASSIGN_OR_RETURN(s->rhs, quantized::ReadAffineAttrs(node, "rhs_quantization"));
  return s;
}

// A row in int8, centred on its zero point; returns its scale.
float QuantizeRow(const float* x, int64_t n, int32_t* centered) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  if (low == high) {
    std::fill_n(centered, n, 0);
    return 0;
  }
  constexpr double kLeast = -128, kMost = 127;
  const double scale = (static_cast<double>(high) - low) / (kMost - kLeast);
  const double from_min = kLeast - low / scale, from_max = kMost - high / scale;
  const double error_min = std::abs(kLeast) + std::abs(low / scale);
  const double error_max = std::abs(kMost) + std::abs(high / scale);
  const double zero =
      std::clamp(std::round(error_min < error_max ? from_min : from_max), kLeast, kMost);
  const auto inverse = static_cast<float>(1.0 / scale);
  const auto zero_point = static_cast<float>(zero);
  for (int64_t i = 0; i < n; ++i) {
    const float step = std::round(x[i] * inverse + zero_point);
    centered[i] = static_cast<int32_t>(std::clamp(step, -128.0f, 127.0f) - zero_point);
  }
  return static_cast<float>(scale);
}

Status RunDotHybrid(OpContext& ctx) {
  const auto& s = ctx.state<HybridState>();
  const Tensor &lhs = ctx.input(0), &rhs = ctx.input(1), &scales = ctx.input(2),
               &zeros = ctx.input(3);
  if (lhs.rank() != 2) {
    return InvalidArgument("lhs rank must be 2, but given lhs shape ", lhs.shape().ToString());
  }
  if (rhs.rank() != 2) {
    return InvalidArgument("rhs rank must be 2, but given rhs shape ", rhs.shape().ToString());
  }
  if (lhs.dim(1) != rhs.dim(0)) {
    return InvalidArgument(
        "lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape ",
        lhs.shape().ToString(), " and rhs shape ", rhs.shape().ToString());
  }
  RETURN_IF_ERROR(quantized::CheckAffine(rhs.shape(), scales, zeros, s.rhs.axis));
  if (s.rhs.axis == 0) {
    return InvalidArgument("rhs_quantization_axis must be -1 or 1, but is ", s.rhs.axis);
  }
  if (!quantized::AllPositive(scales)) {
    return InvalidArgument("rhs scales elements must be all positive.");
  }
  const int64_t rows = lhs.dim(0), k = lhs.dim(1), columns = rhs.dim(1);
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{rows, columns}));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  const int8_t* w = Plain<int8_t>(rhs);
  std::vector<int32_t> centered(static_cast<size_t>(k));
  std::vector<int64_t> sums(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    const float scale = QuantizeRow(lhs.data<float>() + r * k, k, centered.data());
    std::fill(sums.begin(), sums.end(), 0);
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t zero = zeros.data<int32_t>()[s.rhs.axis < 0 ? 0 : c];
        sums[static_cast<size_t>(c)] +=
            centered[static_cast<size_t>(i)] * (w[i * columns + c] - zero);
      }
    }
    for (int64_t c = 0; c < columns; ++c) {
      const float each = scales.data<float>()[s.rhs.axis < 0 ? 0 : c];
      out->data<float>()[r * columns + c] =
          static_cast<float>(static_cast<int32_t>(sums[static_cast<size_t>(c)])) * (scale * each);
    }
  }
  return OkStatus();
}

constexpr Kernel kHybridTable[] = {
    {"UniformQuantizedDotHybrid", "", kAnyType, "quantized:uniform_dot_hybrid", RunDotHybrid,
     PrepareHybrid},
};

}  // namespace

extern constinit const std::span<const Kernel> kUniformHybridKernels = kHybridTable;

}  // namespace smelt
