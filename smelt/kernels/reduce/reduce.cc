// Sum, Mean, Prod, Max, Min, EuclideanNorm, Any, All.
// Long because the loops are templates that all of them share.
//
// The shape is collapsed: dimensions of size 1 vanish, neighbors that are both reduced or both
// kept become one. What remains is loops over outer offsets around an inner run that is either
// reduced (a row) or kept (columns, taken in strips that fit the first cache). Elements are read in
// blocks as one of five accumulator types, so that the loops exist once per accumulator and not per
// dtype.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/isa/columns.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

enum class Reduction : uint8_t { kSum, kMean, kProd, kMax, kMin, kNorm };

using ReduceComplex = std::complex<double>;

constexpr int64_t kReduceBlock = 1024;  // elements of a row that are read at a time
constexpr int64_t kReduceStrip = 256;   // columns that are reduced together
constexpr int64_t kReduceFlush = 256;   // rows that are added in the narrow type
constexpr int64_t kReduceGrain = 32768;

// ---- the plan ----

struct ReduceLoop {
  Dims sizes;
  Dims strides;  // in elements
  int64_t count = 1;
  void Add(int64_t size, int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
    count *= size;
  }
};

struct ReducePlan {
  ReduceLoop kept;     // around the inner run
  ReduceLoop reduced;  // around the inner run
  int64_t inner = 1;
  bool inner_reduced = true;
  int64_t reduced_elements = 1;
};

ReducePlan PlanReduction(const Shape& shape, const absl::InlinedVector<bool, 8>& reduce) {
  absl::InlinedVector<std::pair<int64_t, bool>, 8> dims;
  ReducePlan plan;
  for (int i = 0; i < shape.rank(); ++i) {
    if (reduce[i]) plan.reduced_elements *= shape[i];
    if (shape[i] == 1) continue;
    if (!dims.empty() && dims.back().second == reduce[i]) {
      dims.back().first *= shape[i];
    } else {
      dims.emplace_back(shape[i], reduce[i]);
    }
  }
  if (dims.empty()) return plan;
  plan.inner = dims.back().first;
  plan.inner_reduced = dims.back().second;
  dims.pop_back();
  Dims strides(dims.size());
  int64_t stride = plan.inner;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i].first;
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    (dims[i].second ? plan.reduced : plan.kept).Add(dims[i].first, strides[i]);
  }
  return plan;
}

// Calls fn(offset) for iterations [begin, end) of the loop nest.
template <typename F>
void ForOffsets(const ReduceLoop& loop, int64_t begin, int64_t end, F fn) {
  const size_t n = loop.sizes.size();
  if (n == 0) {
    if (begin < end) fn(int64_t{0});
    return;
  }
  if (n == 1) {
    for (int64_t i = begin; i < end; ++i) fn(i * loop.strides[0]);
    return;
  }
  Dims at(n);
  int64_t rest = begin, offset = 0;
  for (size_t d = n; d-- > 0;) {
    at[d] = rest % loop.sizes[d];
    rest /= loop.sizes[d];
    offset += at[d] * loop.strides[d];
  }
  for (int64_t i = begin; i < end; ++i) {
    fn(offset);
    for (size_t d = n; d-- > 0;) {
      offset += loop.strides[d];
      if (++at[d] < loop.sizes[d]) break;
      offset -= loop.sizes[d] * loop.strides[d];
      at[d] = 0;
    }
  }
}

// ---- combining ----

// `Add` combines an accumulator and an element, `Merge` two accumulators. Floats are added in float
// within a block and in double between blocks.
template <Reduction kOp, typename Acc>
struct Combine {
  static constexpr bool kOrdered = kOp == Reduction::kMax || kOp == Reduction::kMin;
  using Wide = std::conditional_t<std::is_same_v<Acc, float> && !kOrdered, double, Acc>;

  template <typename A>
  static A Init() {
    if constexpr (kOp == Reduction::kProd) {
      return A(1);
    } else if constexpr (kOrdered) {
      using Limits = std::numeric_limits<A>;
      if constexpr (Limits::has_infinity) {
        return kOp == Reduction::kMax ? -Limits::infinity() : Limits::infinity();
      } else {
        return kOp == Reduction::kMax ? Limits::min() : Limits::max();
      }
    } else {
      return A(0);
    }
  }
  template <typename A>
  static A Merge(A a, A b) {
    if constexpr (kOp == Reduction::kProd) {
      return a * b;
    } else if constexpr (kOp == Reduction::kMax) {
      return b > a || b != b ? b : a;  // NaN wins
    } else if constexpr (kOp == Reduction::kMin) {
      return b < a || b != b ? b : a;
    } else {
      return a + b;
    }
  }
  static Acc Add(Acc a, Acc x) {
    if constexpr (kOp == Reduction::kNorm) {
      if constexpr (std::is_same_v<Acc, ReduceComplex>) {
        return a + std::norm(x);
      } else {
        return a + x * x;
      }
    } else {
      return Merge(a, x);
    }
  }

  // A block of a row. Eight partial results hide the latency of the operation.
  static Acc Block(const Acc* x, int64_t n) {
    if constexpr (std::is_same_v<Acc, float>) {
      if constexpr (kOp == Reduction::kSum) return Isa().sum(x, n);
      if constexpr (kOp == Reduction::kMax) return Isa().max(x, n);
      if constexpr (kOp == Reduction::kMin) return Isa().min(x, n);
      if constexpr (kOp == Reduction::kNorm) return Isa().sum_squares(x, n, 0.0f);
    }
    constexpr int kLanes = 8;
    Acc total = Init<Acc>();
    int64_t i = 0;
    if (n >= 2 * kLanes) {
      Acc lanes[kLanes];
      for (Acc& l : lanes) l = Init<Acc>();
      for (; i + kLanes <= n; i += kLanes) {
        for (int l = 0; l < kLanes; ++l) lanes[l] = Add(lanes[l], x[i + l]);
      }
      for (const Acc& l : lanes) total = Merge(total, l);
    }
    for (; i < n; ++i) total = Add(total, x[i]);
    return total;
  }
  // One row of a strip: acc[j] takes x[j].
  static void Columns(Acc* acc, const Acc* x, int64_t n) {
    if constexpr (std::is_same_v<Acc, float> && kOp != Reduction::kNorm) {
      if (n >= 8) {
        constexpr IsaBinary op = kOp == Reduction::kSum    ? IsaBinary::kAdd
                                 : kOp == Reduction::kProd ? IsaBinary::kMul
                                 : kOp == Reduction::kMax  ? IsaBinary::kMaximum
                                                           : IsaBinary::kMinimum;
        Isa().binary[static_cast<int>(op)][static_cast<int>(IsaType::kF32)].vv(acc, x, acc, n);
        return;
      }
    }
    for (int64_t j = 0; j < n; ++j) acc[j] = Add(acc[j], x[j]);
  }
};

// ---- reading and writing dtypes ----

using ReduceLoad = void (*)(const void* from, int64_t begin, int64_t n, void* acc);
using ReduceStore = void (*)(const void* wide, int64_t n, int64_t count, void* to, int64_t begin);

template <typename T, typename Acc>
void LoadAs(const void* from, int64_t begin, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(from) + begin;
  Acc* a = static_cast<Acc*>(acc);
  for (int64_t i = 0; i < n; ++i) a[i] = static_cast<Acc>(x[i]);
}

void LoadBfloat16(const void* from, int64_t begin, int64_t n, void* acc) {
  Isa().bf16_to_f32(static_cast<const uint16_t*>(from) + begin, acc, n);
}

// 64-bit words: integers sign- or zero-extended.
template <typename T>
void LoadWord(const void* from, int64_t begin, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(from) + begin;
  uint64_t* a = static_cast<uint64_t*>(acc);
  for (int64_t i = 0; i < n; ++i) a[i] = static_cast<uint64_t>(static_cast<int64_t>(x[i]));
}

template <typename T, Reduction kOp, typename Wide>
T FinishReduced(Wide w, int64_t count) {
  if constexpr (std::is_same_v<Wide, ReduceComplex>) {
    using Real = typename T::value_type;
    if constexpr (kOp == Reduction::kNorm) return T(static_cast<Real>(std::sqrt(w.real())), 0);
    if constexpr (kOp == Reduction::kMean) w /= static_cast<double>(count);
    return T(static_cast<Real>(w.real()), static_cast<Real>(w.imag()));
  } else if constexpr (std::is_integral_v<Wide> && !std::is_same_v<T, bool>) {
    if constexpr (kOp == Reduction::kMean) {
      if (std::is_unsigned_v<T>) return static_cast<T>(w / static_cast<uint64_t>(count));
      return static_cast<T>(static_cast<int64_t>(w) / count);
    }
    if constexpr (kOp == Reduction::kNorm) {
      // The sum of squares wraps, like every integer sum, and may thus be negative.
      const T sum = static_cast<T>(w);
      if (std::is_signed_v<T> && sum < 0) {
        return sizeof(T) >= 4 ? std::numeric_limits<T>::min() : T{0};
      }
      return static_cast<T>(std::sqrt(static_cast<double>(sum)));
    }
    if constexpr (kOp == Reduction::kMax || kOp == Reduction::kMin) {
      // Without elements the accumulator still holds the wide type's limit.
      w = std::clamp<Wide>(w, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    }
    return static_cast<T>(w);
  } else if constexpr (std::is_same_v<T, bool>) {
    return w != 0;
  } else {
    if constexpr (kOp == Reduction::kMean) {
      // The sum is rounded to half first, as in TensorFlow, and may overflow.
      if constexpr (std::is_same_v<T, Half>) w = static_cast<float>(T(static_cast<float>(w)));
      w /= static_cast<Wide>(count);
    }
    if constexpr (kOp == Reduction::kNorm) w = std::sqrt(w);
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
      return T(static_cast<float>(w));
    } else {
      return static_cast<T>(w);
    }
  }
}

template <typename T, Reduction kOp, typename Wide>
void StoreReduced(const void* wide, int64_t n, int64_t count, void* to, int64_t begin) {
  const Wide* w = static_cast<const Wide*>(wide);
  T* out = static_cast<T*>(to) + begin;
  for (int64_t i = 0; i < n; ++i) out[i] = FinishReduced<T, kOp>(w[i], count);
}

// ---- the loops ----

struct ReduceJob {
  const ReducePlan& plan;
  const void* in;
  void* out;
  ReduceLoad load;  // nullptr: the bytes are accumulators already
  ReduceStore store;
};

template <typename Acc>
const Acc* ReadBlock(const ReduceJob& job, int64_t offset, int64_t n, Acc* buffer) {
  if (job.load == nullptr) return static_cast<const Acc*>(job.in) + offset;
  job.load(job.in, offset, n, buffer);
  return buffer;
}

template <Reduction kOp, typename Acc>
typename Combine<kOp, Acc>::Wide ReduceRow(const ReduceJob& job, int64_t offset, int64_t n) {
  using C = Combine<kOp, Acc>;
  using Wide = typename C::Wide;
  Acc buffer[kReduceBlock];
  Wide total = C::template Init<Wide>();
  for (int64_t i = 0; i < n; i += kReduceBlock) {
    const int64_t block = std::min(kReduceBlock, n - i);
    total = C::Merge(total,
                     static_cast<Wide>(C::Block(ReadBlock(job, offset + i, block, buffer), block)));
  }
  return total;
}

template <Reduction kOp, typename Acc>
void ReduceRows(const ReduceJob& job) {
  using C = Combine<kOp, Acc>;
  using Wide = typename C::Wide;
  const ReducePlan& p = job.plan;
  if (p.kept.count == 1 && p.reduced.count == 1 && p.inner >= 2 * kReduceGrain) {
    // One result: the row itself is split, in parts that do not depend on the team's size.
    constexpr int64_t kParts = 64;
    Wide partial[kParts];
    const int64_t part = std::max(kReduceGrain / 2, (p.inner + kParts - 1) / kParts);
    const int64_t parts = (p.inner + part - 1) / part;
    ParallelFor(parts, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        partial[i] = ReduceRow<kOp, Acc>(job, i * part, std::min(part, p.inner - i * part));
      }
    });
    for (int64_t i = 1; i < parts; ++i) partial[0] = C::Merge(partial[0], partial[i]);
    job.store(partial, 1, p.reduced_elements, job.out, 0);
    return;
  }
  const int64_t cost = std::max<int64_t>(p.reduced_elements, 16);
  ParallelFor(p.kept.count, kReduceGrain / cost + 1, [&](int64_t begin, int64_t end) {
    constexpr int kGather = 32;
    Wide results[kGather];
    int gathered = 0;
    int64_t done = begin;
    ForOffsets(p.kept, begin, end, [&](int64_t base) {
      Wide total = C::template Init<Wide>();
      ForOffsets(p.reduced, 0, p.reduced.count, [&](int64_t offset) {
        total = C::Merge(total, ReduceRow<kOp, Acc>(job, base + offset, p.inner));
      });
      results[gathered++] = total;
      if (gathered == kGather) {
        job.store(results, gathered, p.reduced_elements, job.out, done);
        done += gathered;
        gathered = 0;
      }
    });
    job.store(results, gathered, p.reduced_elements, job.out, done);
  });
}

// Columns [offset, offset + n), n <= kReduceStrip, over iterations [begin, end) of the reduced
// loop.
template <Reduction kOp, typename Acc, typename Wide>
void ReduceStrip(const ReduceJob& job, int64_t offset, int64_t n, int64_t begin, int64_t end,
                 Wide* total) {
  using C = Combine<kOp, Acc>;
  Acc buffer[kReduceStrip], acc[kReduceStrip];
  std::fill_n(total, n, C::template Init<Wide>());
  if constexpr (std::is_same_v<Acc, float> && kOp != Reduction::kProd && kOp != Reduction::kNorm) {
    const ReduceLoop& loop = job.plan.reduced;
    const bool narrow = job.load == LoadBfloat16;
    if (loop.sizes.size() == 1 && (job.load == nullptr || narrow)) {
      const ColumnLoops& loops = IsaColumns();
      const ColumnsFn columns = kOp == Reduction::kMax   ? loops.max
                                : kOp == Reduction::kMin ? loops.min
                                                         : loops.sum;
      const NarrowColumnsFn narrow_columns = kOp == Reduction::kMax   ? loops.narrow_max
                                             : kOp == Reduction::kMin ? loops.narrow_min
                                                                      : loops.narrow_sum;
      for (int64_t i = begin; i < end; i += kReduceFlush) {
        const int64_t from = offset + i * loop.strides[0], count = std::min(kReduceFlush, end - i);
        if (narrow) {
          narrow_columns(static_cast<const uint16_t*>(job.in) + from, loop.strides[0], count, n,
                         acc);
        } else {
          columns(static_cast<const float*>(job.in) + from, loop.strides[0], count, n, acc);
        }
        for (int64_t j = 0; j < n; ++j) total[j] = C::Merge(total[j], static_cast<Wide>(acc[j]));
      }
      return;
    }
  }
  std::fill_n(acc, n, C::template Init<Acc>());
  int64_t rows = 0;
  auto flush = [&] {
    for (int64_t j = 0; j < n; ++j) {
      total[j] = C::Merge(total[j], static_cast<Wide>(acc[j]));
      acc[j] = C::template Init<Acc>();
    }
    rows = 0;
  };
  ForOffsets(job.plan.reduced, begin, end, [&](int64_t row) {
    C::Columns(acc, ReadBlock(job, offset + row, n, buffer), n);
    if (++rows == kReduceFlush) flush();
  });
  flush();
}

template <Reduction kOp, typename Acc>
void ReduceColumns(const ReduceJob& job) {
  using C = Combine<kOp, Acc>;
  using Wide = typename C::Wide;
  const ReducePlan& p = job.plan;
  const int64_t strips = (p.inner + kReduceStrip - 1) / kReduceStrip;
  const int64_t width = std::min(p.inner, kReduceStrip);
  if (p.kept.count * strips == 1 && p.reduced.count * width >= 2 * kReduceGrain) {
    // Few columns, many rows: the rows are split.
    constexpr int64_t kParts = 16;
    Wide partial[kParts * kReduceStrip];
    const int64_t part = (p.reduced.count + kParts - 1) / kParts;
    ParallelFor(kParts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = std::min(i * part, p.reduced.count);
        ReduceStrip<kOp, Acc>(job, 0, width, first, std::min(first + part, p.reduced.count),
                              &partial[i * kReduceStrip]);
      }
    });
    for (int64_t i = 1; i < kParts; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        partial[j] = C::Merge(partial[j], partial[i * kReduceStrip + j]);
      }
    }
    job.store(partial, width, p.reduced_elements, job.out, 0);
    return;
  }
  const int64_t cost = std::max<int64_t>(p.reduced.count * width, 16);
  ParallelFor(p.kept.count * strips, kReduceGrain / cost + 1, [&](int64_t begin, int64_t end) {
    Wide total[kReduceStrip];
    int64_t unit = begin;
    while (unit < end) {
      const int64_t outer = unit / strips;
      const int64_t last = std::min(end, (outer + 1) * strips);
      ForOffsets(p.kept, outer, outer + 1, [&](int64_t base) {
        for (; unit < last; ++unit) {
          const int64_t column = (unit - outer * strips) * kReduceStrip;
          const int64_t n = std::min(kReduceStrip, p.inner - column);
          ReduceStrip<kOp, Acc>(job, base + column, n, 0, p.reduced.count, total);
          job.store(total, n, p.reduced_elements, job.out, outer * p.inner + column);
        }
      });
    }
  });
}

template <Reduction kOp, typename Acc>
void ReduceAll(const ReduceJob& job) {
  if (job.plan.inner_reduced) {
    ReduceRows<kOp, Acc>(job);
  } else {
    ReduceColumns<kOp, Acc>(job);
  }
}

// ---- choosing ----

struct ReduceState final : KernelState {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;

  bool keep_dims = false;
  bool identity = false;  // reducing one element gives the element
  void (*run)(const ReduceJob&) = nullptr;
  ReduceLoad load = nullptr;
  ReduceStore store = nullptr;
};

// How the loop adds up is the same for a sum and a mean.
constexpr Reduction LoopOf(Reduction op) { return op == Reduction::kMean ? Reduction::kSum : op; }

template <Reduction kOp, typename Acc, typename T>
void Choose(ReduceState* s, ReduceLoad load) {
  constexpr Reduction kLoop = LoopOf(kOp);
  s->run = ReduceAll<kLoop, Acc>;
  s->load = load;
  s->store = StoreReduced<T, kOp, typename Combine<kLoop, Acc>::Wide>;
}

template <Reduction kOp, typename T>
void ChooseWord(ReduceState* s) {
  constexpr bool kOrdered = kOp == Reduction::kMax || kOp == Reduction::kMin;
  constexpr ReduceLoad load = sizeof(T) == 8 ? nullptr : LoadWord<T>;
  if constexpr (kOrdered && std::is_signed_v<T>) {
    Choose<kOp, int64_t, T>(s, load);
  } else {
    Choose<kOp, uint64_t, T>(s, load);
  }
}

template <Reduction kOp>
bool ChooseReduction(Dtype dtype, ReduceState* s) {
  switch (dtype) {
    case Dtype::kFloat:
      Choose<kOp, float, float>(s, nullptr);
      return true;
    case Dtype::kDouble:
      Choose<kOp, double, double>(s, nullptr);
      return true;
    case Dtype::kHalf:
      Choose<kOp, float, Half>(s, LoadAs<Half, float>);
      return true;
    case Dtype::kBfloat16:
      Choose<kOp, float, Bfloat16>(s, LoadBfloat16);
      return true;
    case Dtype::kInt8:
      ChooseWord<kOp, int8_t>(s);
      return true;
    case Dtype::kInt16:
      ChooseWord<kOp, int16_t>(s);
      return true;
    case Dtype::kInt32:
      ChooseWord<kOp, int32_t>(s);
      return true;
    case Dtype::kInt64:
      ChooseWord<kOp, int64_t>(s);
      return true;
    case Dtype::kUint8:
      ChooseWord<kOp, uint8_t>(s);
      return true;
    case Dtype::kUint16:
      ChooseWord<kOp, uint16_t>(s);
      return true;
    case Dtype::kUint32:
      ChooseWord<kOp, uint32_t>(s);
      return true;
    case Dtype::kUint64:
      ChooseWord<kOp, uint64_t>(s);
      return true;
    default:
      break;
  }
  if constexpr (kOp != Reduction::kMax && kOp != Reduction::kMin) {
    if (dtype == Dtype::kComplex64) {
      Choose<kOp, ReduceComplex, std::complex<float>>(s,
                                                      LoadAs<std::complex<float>, ReduceComplex>);
      return true;
    }
    if (dtype == Dtype::kComplex128) {
      Choose<kOp, ReduceComplex, std::complex<double>>(s, nullptr);
      return true;
    }
  }
  return false;
}

template <Reduction kOp>
StatusOr<std::unique_ptr<KernelState>> PrepareReduce(const Node& node) {
  auto state = std::make_unique<ReduceState>();
  state->keep_dims = node.Bool("keep_dims");
  state->identity = kOp != Reduction::kNorm;
  const Dtype dtype = node.Type("T");
  if (!ChooseReduction<kOp>(dtype, state.get())) {
    return Unimplemented(node.op(), " of ", DtypeName(dtype));
  }
  return state;
}

template <Reduction kOp>
StatusOr<std::unique_ptr<KernelState>> PrepareLogicalReduce(const Node& node) {
  auto state = std::make_unique<ReduceState>();
  state->keep_dims = node.Bool("keep_dims");
  state->identity = true;
  Choose<kOp, uint64_t, bool>(state.get(), LoadWord<uint8_t>);
  return state;
}

// By dimension, whether it is reduced.
StatusOr<absl::InlinedVector<bool, 8>> ReducedDimensions(const Shape& shape, const Tensor& axes) {
  absl::InlinedVector<bool, 8> reduce(shape.rank(), false);
  const int64_t num_axes = axes.num_elements();
  for (int64_t i = 0; i < num_axes; ++i) {
    int64_t axis = IndexAt(axes, i);
    if (axis < -shape.rank() || axis >= shape.rank()) {
      return InvalidArgument("Invalid reduction dimension (", axis, " for input with ",
                             shape.rank(), " dimension(s)");
    }
    if (axis < 0) axis += shape.rank();
    if (reduce[axis]) {
      return InvalidArgument("Invalid reduction arguments: Axes contains duplicate dimension: ",
                             axis);
    }
    reduce[axis] = true;
  }
  return reduce;
}

class BoundReduce final : public BoundKernel {
 public:
  BoundReduce(ReducePlan plan, const ReduceState& state)
      : plan_(std::move(plan)), run_(state.run), load_(state.load), store_(state.store) {}

  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    run_({plan_, inputs[0], outputs[0], load_, store_});
    return OkStatus();
  }

 private:
  const ReducePlan plan_;
  void (*const run_)(const ReduceJob&);
  const ReduceLoad load_;
  const ReduceStore store_;
};

StatusOr<std::unique_ptr<BoundKernel>> ReduceState::Bind(const BindContext& context) {
  const BoundTensor& in = context.inputs[0];
  if (context.inputs[1].constant == nullptr || in.shape.num_elements() == 0) {
    return DeclineToBind("the dimensions are no constant, or the input is empty");
  }
  const auto reduce = ReducedDimensions(in.shape, *context.inputs[1].constant);
  if (!reduce.ok()) return nullptr;  // the run says why
  ReducePlan plan = PlanReduction(in.shape, *reduce);
  if (plan.reduced_elements == 1 && identity) {
    return DeclineToBind("it gives its input, which the run passes on");
  }
  return std::make_unique<BoundReduce>(std::move(plan), *this);
}

Status RunReduce(OpContext& ctx) {
  const ReduceState& state = ctx.state<ReduceState>();
  const Tensor& in = ctx.input(0);
  const Shape& shape = in.shape();
  ASSIGN_OR_RETURN(const auto reduce, ReducedDimensions(shape, ctx.input(1)));
  Shape out_shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduce[i]) {
      out_shape.Add(shape[i]);
    } else if (state.keep_dims) {
      out_shape.Add(1);
    }
  }
  const ReducePlan plan = PlanReduction(shape, reduce);
  if (plan.reduced_elements == 1 && state.identity) {
    ctx.set_output(0, ctx.TakeInput(0).WithShape(out_shape));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, out_shape));
  const int64_t n = out->num_elements();
  if (n == 0) return OkStatus();
  if (in.num_elements() == 0) {
    // Every result is that of reducing nothing: one row without elements. The mean of no integers
    // is 0.
    ReducePlan nothing;
    nothing.inner = 0;
    const bool floating = IsFloating(in.dtype());
    nothing.reduced_elements = floating ? 0 : 1;
    for (int64_t i = 0; i < n; ++i) {
      state.run({nothing, in.raw(),
                 static_cast<char*>(out->raw()) + i * static_cast<int64_t>(DtypeSize(in.dtype())),
                 state.load, state.store});
    }
    return OkStatus();
  }
  state.run({plan, in.raw(), out->raw(), state.load, state.store});
  return OkStatus();
}

constexpr Kernel kReduceTable[] = {
    {"Sum", "T", kNumberTypes, "reduce:sum", RunReduce, PrepareReduce<Reduction::kSum>},
    {"Mean", "T", kNumberTypes, "reduce:mean", RunReduce, PrepareReduce<Reduction::kMean>},
    {"Prod", "T", kNumberTypes, "reduce:prod", RunReduce, PrepareReduce<Reduction::kProd>},
    {"Max", "T", kRealTypes, "reduce:max", RunReduce, PrepareReduce<Reduction::kMax>},
    {"Min", "T", kRealTypes, "reduce:min", RunReduce, PrepareReduce<Reduction::kMin>},
    {"EuclideanNorm", "T", kNumberTypes, "reduce:euclidean_norm", RunReduce,
     PrepareReduce<Reduction::kNorm>},
    {"Any", "", kAnyType, "reduce:any", RunReduce, PrepareLogicalReduce<Reduction::kMax>},
    {"All", "", kAnyType, "reduce:all", RunReduce, PrepareLogicalReduce<Reduction::kMin>},
};

}  // namespace

extern constinit const std::span<const Kernel> kReduceKernels = kReduceTable;

}  // namespace smelt
