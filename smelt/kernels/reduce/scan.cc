// Cumsum, Cumprod, CumulativeLogsumexp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

enum class Scan : uint8_t { kSum, kProd, kLogSumExp };

// The type in which one step computes; the running value itself is rounded to T after every step.
template <typename T>
struct ScanStepType {
  using type = T;
};
template <>
struct ScanStepType<Half> {
  using type = float;
};
template <>
struct ScanStepType<Bfloat16> {
  using type = float;
};
template <std::signed_integral T>
struct ScanStepType<T> {
  using type = std::make_unsigned_t<T>;  // sums of integers wrap
};

template <Scan kOp, typename V>
V ScanStep(V a, V b) {
  if constexpr (kOp == Scan::kSum) {
    return a + b;
  } else if constexpr (kOp == Scan::kProd) {
    // Narrow unsigned types would multiply as int, which may overflow.
    if constexpr (std::is_integral_v<V>) {
      return static_cast<V>(uint64_t{a} * b);
    } else {
      return a * b;
    }
  } else {
    // The running value a stands for a NaN b, as in TensorFlow.
    const V high = a < b ? b : a, low = b < a ? b : a;
    if (high == -std::numeric_limits<V>::infinity()) return high;
    return high + std::log1p(std::exp(low - high));
  }
}

template <Scan kOp, typename T>
T ScanInit() {
  if constexpr (kOp == Scan::kSum) {
    return T(0);
  } else if constexpr (kOp == Scan::kProd) {
    return T(1);
  } else if constexpr (std::is_same_v<T, double>) {
    return -std::numeric_limits<double>::infinity();
  } else {
    return T(-std::numeric_limits<float>::infinity());
  }
}

constexpr int64_t kScanStrip = 128;
constexpr int64_t kScanGrain = 16384;

struct ScanJob {
  const void* in;
  void* out;
  int64_t outer, n, inner;
  bool exclusive, reverse;
};

// Shape [outer, n, inner], along n. Reads an element before it writes there, so that out may be in.
template <Scan kOp, typename T>
void ScanAll(const ScanJob& job) {
  using V = typename ScanStepType<T>::type;
  const T* in = static_cast<const T*>(job.in);
  T* out = static_cast<T*>(job.out);
  const int64_t strips = (job.inner + kScanStrip - 1) / kScanStrip;
  const int64_t cost = std::max<int64_t>(job.n * std::min(job.inner, kScanStrip), 16);
  const int64_t step = job.reverse ? -job.inner : job.inner;
  ParallelFor(job.outer * strips, kScanGrain / cost + 1, [&](int64_t begin, int64_t end) {
    T running[kScanStrip];
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / strips;
      const int64_t column = (unit - row * strips) * kScanStrip;
      const int64_t width = std::min(kScanStrip, job.inner - column);
      int64_t at = (row * job.n + (job.reverse ? job.n - 1 : 0)) * job.inner + column;
      if (job.inner == 1) {  // the running value stays in a register
        T value = ScanInit<kOp, T>();
        for (int64_t i = 0; i < job.n; ++i, at += step) {
          const T before = value;
          value = static_cast<T>(ScanStep<kOp, V>(static_cast<V>(before), static_cast<V>(in[at])));
          out[at] = job.exclusive ? before : value;
        }
        continue;
      }
      std::fill_n(running, width, ScanInit<kOp, T>());
      for (int64_t i = 0; i < job.n; ++i, at += step) {
        for (int64_t j = 0; j < width; ++j) {
          const T before = running[j];
          running[j] =
              static_cast<T>(ScanStep<kOp, V>(static_cast<V>(before), static_cast<V>(in[at + j])));
          out[at + j] = job.exclusive ? before : running[j];
        }
      }
    }
  });
}

using ScanLoop = void (*)(const ScanJob&);

template <Scan kOp>
ScanLoop ScanLoopOf(Dtype t) {
  switch (t) {
    case Dtype::kFloat:
      return ScanAll<kOp, float>;
    case Dtype::kDouble:
      return ScanAll<kOp, double>;
    case Dtype::kHalf:
      return ScanAll<kOp, Half>;
    case Dtype::kBfloat16:
      return ScanAll<kOp, Bfloat16>;
    default:
      break;
  }
  if constexpr (kOp != Scan::kLogSumExp) {
    switch (t) {
      case Dtype::kInt8:
      case Dtype::kUint8:
        return ScanAll<kOp, uint8_t>;
      case Dtype::kInt16:
      case Dtype::kUint16:
        return ScanAll<kOp, uint16_t>;
      case Dtype::kInt32:
      case Dtype::kUint32:
        return ScanAll<kOp, uint32_t>;
      case Dtype::kInt64:
      case Dtype::kUint64:
        return ScanAll<kOp, uint64_t>;
      case Dtype::kComplex64:
        return ScanAll<kOp, std::complex<float>>;
      case Dtype::kComplex128:
        return ScanAll<kOp, std::complex<double>>;
      default:
        break;
    }
  }
  return nullptr;
}

struct ScanState final : KernelState {
  ScanLoop loop = nullptr;
  bool exclusive = false;
  bool reverse = false;
};

template <Scan kOp>
StatusOr<std::unique_ptr<KernelState>> PrepareScan(const Node& node) {
  auto state = std::make_unique<ScanState>();
  state->loop = ScanLoopOf<kOp>(node.Type("T"));
  state->exclusive = node.Bool("exclusive");
  state->reverse = node.Bool("reverse");
  if (state->loop == nullptr) return Unimplemented(node.op(), " of ", DtypeName(node.Type("T")));
  return state;
}

Status RunScan(OpContext& ctx) {
  const ScanState& state = ctx.state<ScanState>();
  const Tensor& axis_tensor = ctx.input(1);
  if (axis_tensor.rank() != 0) {
    return InvalidArgument("ScanOp: axis must be a scalar, not ", axis_tensor.shape().ToString());
  }
  const Shape shape = ctx.input(0).shape();
  const int64_t given = IndexAt(axis_tensor, 0);
  const int64_t axis = given < 0 ? given + shape.rank() : given;
  if (axis < 0 || axis >= shape.rank()) {
    return InvalidArgument("ScanOp: Expected scan axis in the range [", -shape.rank(), ", ",
                           shape.rank(), "), but got ", axis);
  }
  const int a = static_cast<int>(axis);
  const void* in = ctx.input(0).raw();
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, shape));
  if (out->num_elements() == 0) return OkStatus();
  state.loop({in, out->raw(), shape.Product(0, a), shape[a], shape.Product(a + 1, shape.rank()),
              state.exclusive, state.reverse});
  return OkStatus();
}

constexpr Kernel kScanTable[] = {
    {"Cumsum", "T", kNumberTypes, "reduce:cumsum", RunScan, PrepareScan<Scan::kSum>},
    {"Cumprod", "T", kNumberTypes, "reduce:cumprod", RunScan, PrepareScan<Scan::kProd>},
    {"CumulativeLogsumexp", "T", kFloatTypes | kHalfTypes, "reduce:cumulative_logsumexp", RunScan,
     PrepareScan<Scan::kLogSumExp>},
};

}  // namespace

extern constinit const std::span<const Kernel> kScanKernels = kScanTable;

}  // namespace smelt
