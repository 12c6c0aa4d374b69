// SOFTMAX of quantized rows: exponentials from a table of float, of int16 from one of fixed point.
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct SoftmaxState final : KernelState {
  std::array<float, 256> exponentials{};  // by how far a number is below the row's largest
  float scale = 1;
  int32_t zero = 0;
  Range range;
  Factor factor;  // of int16: to 2^16 / 10 steps for 1
};

StatusOr<std::unique_ptr<KernelState>> PrepareSoftmax(const Node& node) {
  auto s = std::make_unique<SoftmaxState>();
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  const Dtype in_type = node.input_types[0];
  const float beta = node.Float("beta");
  const float step = -in.scale() * beta;
  for (size_t i = 0; i < 256; ++i) s->exponentials[i] = std::exp(step * static_cast<float>(i));
  s->scale = out.scale();
  // LiteRT's kernel of uint8 knows no zero point.
  s->zero = in_type == Dtype::kUint8 ? 0 : out.zero();
  s->range = RangeOf(node.output_types[0]);
  s->factor = FactorOf(static_cast<double>(in.scale() * beta) / (10.0 / 65535.0));
  return s;
}

Status RunSoftmax(OpContext& ctx) {
  const auto& s = ctx.state<SoftmaxState>();
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("a scalar");
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const int64_t depth = in.dim(in.rank() - 1);
  if (in.num_elements() == 0) return OkStatus();
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    T* y = out->data<T>();
    ParallelFor(in.num_elements() / depth, 16, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *from = x + r * depth, *last = from + depth;
        const int32_t most = *std::max_element(from, last);
        float sum = 0;
        const auto at = [&](int64_t i) {
          return s.exponentials[static_cast<size_t>(most - from[i]) & 255];
        };
        for (int64_t i = 0; i < depth; ++i) sum += at(i);
        const float factor = 1.0f / (sum * s.scale);
        for (int64_t i = 0; i < depth; ++i) {
          const float steps = at(i) * factor;
          y[r * depth + i] = static_cast<T>(s.range.Clamp(Truncated(steps + 0.5f), s.zero));
        }
      }
    });
  });
  return OkStatus();
}

// ---- int16

// 513 samples of a function of [from, to], between which lines are drawn, in 16 bits with the sign.
class Lines {
 public:
  template <typename F>
  Lines(F fn, double from, double to) {
    const auto sample = [](double v) {
      return static_cast<int16_t>(std::clamp(v, -32768.0, 32767.0));
    };
    const double step = (to - from) / 512;
    for (int i = 0; i < 512; ++i) {
      const double here = std::round(fn(from + i * step) * 32768);
      const double next = fn(from + (i + 1) * step) * 32768;
      const double middle = std::round(fn(from + i * step + step / 2) * 32768);
      // Half of what a line misses in its middle is taken off its begin.
      const double error = std::round((next + here) / 2) - middle;
      samples_[static_cast<size_t>(i)] = sample(here - std::round(error / 2));
    }
    samples_[512] = sample(std::round(fn(to) * 32768));
  }
  int16_t operator()(int16_t x) const {
    const auto i = static_cast<size_t>(256 + (x >> 7));
    const int32_t a = samples_[i], b = samples_[i + 1];
    const int32_t part = (x & 127) * (b - a);
    return static_cast<int16_t>(a + ((part + 64) >> 7));
  }

 private:
  std::array<int16_t, 513> samples_{};
};

int16_t Clamped16(int64_t x) { return static_cast<int16_t>(std::clamp<int64_t>(x, -32768, 32767)); }

Status RunSoftmax16(OpContext& ctx) {
  static const auto* exponential = new Lines([](double x) { return std::exp(x); }, -10, 0);
  static const auto* reciprocal = new Lines([](double x) { return 1 / (1 + x); }, 0, 1);
  const auto& s = ctx.state<SoftmaxState>();
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("a scalar");
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const int64_t depth = in.dim(in.rank() - 1);
  if (in.num_elements() == 0) return OkStatus();
  const int16_t* x = in.data<int16_t>();
  int16_t* y = out->data<int16_t>();
  ParallelFor(in.num_elements() / depth, 16, [&](int64_t begin, int64_t end) {
    std::vector<int16_t> e(static_cast<size_t>(depth));
    for (int64_t r = begin; r < end; ++r) {
      const int16_t* from = x + r * depth;
      const int32_t most = *std::max_element(from, from + depth);
      int64_t wide = 0;
      for (int64_t i = 0; i < depth; ++i) {
        const int32_t below = Times(int32_t{from[i]} - most, s.factor);
        e[static_cast<size_t>(i)] = (*exponential)(Clamped16(int64_t{below} + 32767));
        wide += e[static_cast<size_t>(i)];
      }
      // Of more numbers than 32 bits can sum, the most that they can.
      const auto sum =
          static_cast<int32_t>(std::min<int64_t>(wide, std::numeric_limits<int32_t>::max()));
      // The sum as 1 + f of a power of two, and 1 / (1 + f).
      const int headroom = std::countl_zero(static_cast<uint32_t>(std::max(sum, 1)));
      const int64_t shifted = ((static_cast<int64_t>(sum) << (headroom - 1)) + (1 << 13)) >> 14;
      const int16_t inverse = (*reciprocal)(Clamped16(shifted - (1 << 16) - (1 << 15)));
      const int right = 31 - headroom;
      const int64_t round = int64_t{1} << (right - 1);
      for (int64_t i = 0; i < depth; ++i) {
        const int64_t product = int64_t{e[static_cast<size_t>(i)]} * inverse;
        y[r * depth + i] =
            static_cast<int16_t>(std::clamp<int64_t>((product + round) >> right, 0, 32767));
      }
    }
  });
  return OkStatus();
}

std::string DeclineSoftmax(const Node& node) {
  std::string why = DeclineUnlessNarrow(node, 1);
  if (why.empty() && node.output_types[0] == Dtype::kInt16) why = "its output is int16";
  return why;
}
std::string DeclineSoftmax16(const Node& node) {
  std::string why = DeclineUnlessNarrow(node, 1);
  if (why.empty() && node.output_types[0] != Dtype::kInt16) why = "its output is not int16";
  return why;
}

constexpr Kernel kLiteSoftmaxTable[] = {
    {"tfl.softmax", "", kAnyType, "lite:softmax", RunSoftmax, PrepareSoftmax, DeclineSoftmax},
    {"tfl.softmax", "", kAnyType, "lite:softmax_int16", RunSoftmax16, PrepareSoftmax,
     DeclineSoftmax16},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteSoftmaxKernels = lite::kLiteSoftmaxTable;
}  // namespace smelt
