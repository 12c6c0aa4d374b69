// Sum, Mean, Prod, Max, Min, EuclideanNorm, Any, All.
//
// Columns are taken in strips that fit the first cache. Elements are read in blocks as one of five
// accumulator types, so that the loops exist once per accumulator and not per dtype.
#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/reduce/reduce_numbers.h"
#include "smelt/kernels/reduce/reduce_plan.h"

namespace smelt {
namespace {

constexpr int64_t kReduceBlock = 1024;  // elements of a row that are read at a time
constexpr int64_t kReduceStrip = 256;   // columns that are reduced together
constexpr int64_t kReduceFlush = 256;   // rows that are added in the narrow type
constexpr int64_t kReduceGrain = 32768;

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
typename ReduceCombine<kOp, Acc>::Wide ReduceRow(const ReduceJob& job, int64_t offset, int64_t n) {
  using C = ReduceCombine<kOp, Acc>;
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
  using C = ReduceCombine<kOp, Acc>;
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
  if constexpr (std::is_same_v<Acc, float> && kOp == Reduction::kSum) {
    // Many short rows that lie one after the other.
    constexpr int64_t kShortSum = 256;
    if (job.load == nullptr && p.reduced.count == 1 && p.inner <= kShortSum &&
        p.kept.sizes.size() == 1) {
      ParallelFor(p.kept.count, kReduceGrain / cost + 1, [&](int64_t begin, int64_t end) {
        float sums[kReduceStrip];
        Wide results[kReduceStrip];
        for (int64_t r = begin; r < end; r += kReduceStrip) {
          const int64_t rows = std::min(kReduceStrip, end - r);
          IsaColumns().row_sum(static_cast<const float*>(job.in) + r * p.inner, rows, p.inner,
                               sums);
          std::copy_n(sums, rows, results);
          job.store(results, rows, p.reduced_elements, job.out, r);
        }
      });
      return;
    }
  }
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
  using C = ReduceCombine<kOp, Acc>;
  Acc buffer[kReduceStrip], acc[kReduceStrip];
  std::fill_n(total, n, C::template Init<Wide>());
  if constexpr (std::is_same_v<Acc, float> && kOp != Reduction::kProd && kOp != Reduction::kNorm) {
    const ReduceLoop& loop = job.plan.reduced;
    const bool narrow = job.load == LoadReducedBfloat16;
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

// Each `group` of n neighbors becomes one; how many there are then.
template <typename C, typename Wide>
int64_t MergeGroups(Wide* total, int64_t n, int64_t group) {
  if (group == 1) return n;
  for (int64_t j = 0; j < n / group; ++j) {
    Wide all = total[j * group];
    for (int64_t i = 1; i < group; ++i) all = C::Merge(all, total[j * group + i]);
    total[j] = all;
  }
  return n / group;
}

template <Reduction kOp, typename Acc>
void ReduceColumns(const ReduceJob& job) {
  using C = ReduceCombine<kOp, Acc>;
  using Wide = typename C::Wide;
  const ReducePlan& p = job.plan;
  const int64_t strip = kReduceStrip / p.group * p.group;
  const int64_t strips = (p.inner + strip - 1) / strip;
  const int64_t width = std::min(p.inner, strip);
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
    job.store(partial, MergeGroups<C>(partial, width, p.group), p.reduced_elements, job.out, 0);
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
          const int64_t column = (unit - outer * strips) * strip;
          const int64_t n = std::min(strip, p.inner - column);
          ReduceStrip<kOp, Acc>(job, base + column, n, 0, p.reduced.count, total);
          job.store(total, MergeGroups<C>(total, n, p.group), p.reduced_elements, job.out,
                    (outer * p.inner + column) / p.group);
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
  s->store = StoreReduced<T, kOp, typename ReduceCombine<kLoop, Acc>::Wide>;
}

template <Reduction kOp, typename T>
void ChooseWord(ReduceState* s) {
  constexpr bool kOrdered = kOp == Reduction::kMax || kOp == Reduction::kMin;
  constexpr ReduceLoad load = sizeof(T) == 8 ? nullptr : LoadReducedWord<T>;
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
      Choose<kOp, float, Half>(
          s, kOp == Reduction::kNorm ? LoadSquaredHalf : LoadReduced<Half, float>);
      return true;
    case Dtype::kBfloat16:
      Choose<kOp, float, Bfloat16>(s, LoadReducedBfloat16);
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
      Choose<kOp, ReduceComplex, std::complex<float>>(
          s, LoadReduced<std::complex<float>, ReduceComplex>);
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
  Choose<kOp, uint64_t, bool>(state.get(), LoadReducedWord<uint8_t>);
  return state;
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
    state.run({nothing, in.raw(), out->raw(), state.load, state.store});
    FillRun(in.dtype(), At(in.dtype(), out->raw(), 1), out->raw(), n - 1);
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
