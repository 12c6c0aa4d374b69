#include "smelt/kernels/nn/depthwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/line_kernel.h"
#include "smelt/kernels/nn/tiled_steps.h"

namespace smelt::nn {
namespace {

// Rows of `channels` floats as narrow_depthwise takes them.
std::vector<float> NarrowPieces(std::span<const float> rows, int64_t channels) {
  const int64_t lanes = IsaConv().lanes, piece = 2 * lanes;
  const int64_t count = std::ssize(rows) / channels;
  std::vector<float> out;
  for (int64_t at = 0; at < channels; at += piece) {
    const int64_t first = std::min(at, channels - piece);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = 0; i < piece; ++i) {
        const int64_t c = first + i % lanes * 2 + i / lanes;
        const float x = rows[static_cast<size_t>(r * channels + c)];
        out.push_back(std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x);
      }
    }
  }
  return out;
}

// Multiplications that are worth a thread.
constexpr int64_t kDepthwisePerThread = 1 << 16;
// Elements that are repeated.
constexpr int64_t kRepeatedPerThread = 1 << 14;

// Each of n elements `times` times.
template <typename T>
void Repeat(const T* x, int64_t n, int64_t times, T* y) {
  int64_t i = 0;
  if (times == 2) {
    typedef T Block __attribute__((vector_size(16)));
    constexpr int64_t kBlock = 16 / sizeof(T);
    for (; i + kBlock <= n; i += kBlock) {
      Block block, low, high;
      std::memcpy(&block, x + i, sizeof(block));
      if constexpr (kBlock == 4) {
        low = __builtin_shufflevector(block, block, 0, 0, 1, 1);
        high = __builtin_shufflevector(block, block, 2, 2, 3, 3);
      } else {
        low = __builtin_shufflevector(block, block, 0, 0, 1, 1, 2, 2, 3, 3);
        high = __builtin_shufflevector(block, block, 4, 4, 5, 5, 6, 6, 7, 7);
      }
      std::memcpy(y + 2 * i, &low, sizeof(low));
      std::memcpy(y + 2 * i + kBlock, &high, sizeof(high));
    }
  }
  for (; i < n; ++i) std::fill_n(y + i * times, times, x[i]);
}

class BoundDepthwise final : public BoundKernel, public LineKernel {
 public:
  // `times`: results of each channel, for which the channels are repeated.
  BoundDepthwise(const DepthwiseLoop& loop, bool narrow, int64_t batch, int64_t times,
                 std::vector<float> weights, std::vector<float> bias)
      : loop_(loop),
        narrow_(narrow),
        times_(times),
        values_(batch * loop.in_h * loop.in_w * loop.channels / times),
        rows_(batch * loop.out_h),
        grain_(std::max<int64_t>(1, kDepthwisePerThread / (loop.out_w * loop.channels) /
                                        (loop.kernel_h * loop.kernel_w))),
        weights_(std::move(weights)),
        bias_(std::move(bias)),
        zeros_(static_cast<size_t>(loop.channels), 0.0f) {
    loop_.weights = weights_.data();
    loop_.bias = bias_.data();
    loop_.zeros = zeros_.data();
  }

  size_t scratch_bytes() const override {
    if (times_ == 1) return 0;
    return static_cast<size_t>(values_ * times_) * (narrow_ ? sizeof(uint16_t) : sizeof(float));
  }
  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const void* x = inputs[0];
    if (times_ > 1) {
      SharedParallelFor(values_, kRepeatedPerThread, [&](int64_t begin, int64_t end) {
        const auto repeat = [&]<typename T>(const T* from, T* to) {
          Repeat(from + begin, end - begin, times_, to + begin * times_);
        };
        narrow_ ? repeat(static_cast<const uint16_t*>(x), static_cast<uint16_t*>(scratch))
                : repeat(static_cast<const float*>(x), static_cast<float*>(scratch));
      });
      x = scratch;
    }
    SharedParallelFor(rows_, grain_,
                      [&](int64_t begin, int64_t end) { Rows(loop_, x, outputs[0], begin, end); });
    return OkStatus();
  }

  const LineKernel* lines() const override { return times_ == 1 ? this : nullptr; }
  LineSizes sizes() const override {
    const auto element = static_cast<int64_t>(narrow_ ? sizeof(uint16_t) : sizeof(float));
    return {.images = rows_ / loop_.out_h,
            .in_lines = loop_.in_h,
            .in_bytes = loop_.in_w * loop_.channels * element,
            .out_lines = loop_.out_h,
            .out_bytes = loop_.out_w * loop_.channels * element,
            .weights = std::ssize(weights_) * int64_t{sizeof(float)}};
  }
  LineRange Reads(LineRange out) const override {
    const int64_t window = (loop_.kernel_h - 1) * loop_.dilation_h + 1;
    const int64_t first = out.first * loop_.stride_h - loop_.pad_top;
    const int64_t last = (out.last - 1) * loop_.stride_h - loop_.pad_top + window;
    return {std::clamp<int64_t>(first, 0, loop_.in_h), std::clamp<int64_t>(last, 0, loop_.in_h)};
  }
  void MakeLines(const void* const* /*inputs*/, const void* from, int64_t /*image*/, LineRange out,
                 void* to) const override {
    // The lines are an image, whose first one is not that of the whole image.
    DepthwiseLoop loop = loop_;
    const LineRange in = Reads(out);
    loop.in_h = in.count();
    loop.out_h = out.count();
    loop.pad_top += in.first - out.first * loop.stride_h;
    Rows(loop, from, to, 0, out.count());
  }

 private:
  void Rows(const DepthwiseLoop& loop, const void* x, void* y, int64_t begin, int64_t end) const {
    if (narrow_) {
      IsaConv().narrow_depthwise(loop, static_cast<const uint16_t*>(x), static_cast<uint16_t*>(y),
                                 begin, end);
    } else {
      IsaConv().depthwise(loop, static_cast<const float*>(x), static_cast<float*>(y), begin, end);
    }
  }

  DepthwiseLoop loop_;
  const bool narrow_;             // bfloat16
  const int64_t times_, values_;  // of the input
  const int64_t rows_, grain_;
  const std::vector<float> weights_, bias_, zeros_;
};

}  // namespace

StatusOr<std::unique_ptr<BoundKernel>> BindDepthwise(const ConvProblem& p, const Tensor& filter,
                                                     std::span<const float> factors,
                                                     const float* bias, const FusedOps& fused) {
  TiledSteps steps;
  const bool narrow = filter.dtype() == Dtype::kBfloat16;
  if (!p.channels_last || p.spatial() != 2 || p.groups != p.in_depth ||
      p.out_depth % p.in_depth != 0 || p.out_depth < IsaConv().lanes * (narrow ? 2 : 1) ||
      p.kernel[0] * p.kernel[1] > kMostDepthwiseTaps || !TiledStepsOf(fused, bias, &steps) ||
      steps.adds) {
    return nullptr;
  }
  DepthwiseLoop loop;
  loop.clamps = steps.clamps;
  loop.low = steps.low, loop.high = steps.high;
  loop.act = steps.act;
  loop.alpha = steps.alpha;
  loop.channels = p.out_depth;
  loop.in_h = p.in[0], loop.in_w = p.in[1];
  loop.out_h = p.out[0], loop.out_w = p.out[1];
  loop.kernel_h = p.kernel[0], loop.kernel_w = p.kernel[1];
  loop.stride_h = p.strides[0], loop.stride_w = p.strides[1];
  loop.dilation_h = p.dilations[0], loop.dilation_w = p.dilations[1];
  loop.pad_top = p.pad_before[0], loop.pad_left = p.pad_before[1];
  Tensor wide = filter;
  if (narrow) {
    ASSIGN_OR_RETURN(wide, ToFloat(filter, HeapAllocator()));
  }
  const std::span<const float> given(wide.data<float>(), static_cast<size_t>(wide.num_elements()));
  std::vector<float> weights(given.begin(), given.end());
  for (size_t i = 0; !factors.empty() && i < weights.size(); ++i) {
    weights[i] *= factors[i % factors.size()];
  }
  std::vector<float> biases(static_cast<size_t>(p.out_depth), 0.0f);
  if (steps.has_bias) std::copy_n(bias, p.out_depth, biases.begin());
  if (narrow) {
    weights = NarrowPieces(weights, p.out_depth);
    biases = NarrowPieces(biases, p.out_depth);
  }
  return std::make_unique<BoundDepthwise>(loop, narrow, p.batch, p.out_depth / p.in_depth,
                                          std::move(weights), std::move(biases));
}

}  // namespace smelt::nn
