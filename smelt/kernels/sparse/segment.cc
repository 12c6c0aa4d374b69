// Segment reductions: rows of one segment combined. Sorted, unsorted, and through a list of rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/common/slice_name.h"

namespace smelt {
namespace {

enum class SegmentOp : uint8_t { kSum, kMean, kSqrtN, kProd, kMax, kMin };

// What rows are folded into; in the unsorted ops also what a segment without rows holds.
template <typename T>
T SegmentStart(SegmentOp op) {
  if constexpr (!kIsComplex<T>) {
    if constexpr (kIsHalf<T>) {
      const float large = std::is_same_v<T, Half> ? 65504.0f : 3.38953139e38f;
      if (op == SegmentOp::kMax) return T(-large);
      if (op == SegmentOp::kMin) return T(large);
    } else {
      if (op == SegmentOp::kMax) return std::numeric_limits<T>::lowest();
      if (op == SegmentOp::kMin) return std::numeric_limits<T>::max();
    }
  }
  return op == SegmentOp::kProd ? T(1) : T(0);
}

template <typename T>
void CombineRows(SegmentOp op, T* __restrict into, const T* __restrict row, int64_t n) {
  switch (op) {
    case SegmentOp::kProd:
      for (int64_t i = 0; i < n; ++i) into[i] = MultiplyValues(into[i], row[i]);
      return;
    case SegmentOp::kMax:
      if constexpr (!kIsComplex<T>) {
        for (int64_t i = 0; i < n; ++i) into[i] = LessThan(into[i], row[i]) ? row[i] : into[i];
      }
      return;
    case SegmentOp::kMin:
      if constexpr (!kIsComplex<T>) {
        for (int64_t i = 0; i < n; ++i) into[i] = LessThan(row[i], into[i]) ? row[i] : into[i];
      }
      return;
    default:
      for (int64_t i = 0; i < n; ++i) into[i] = AddValues(into[i], row[i]);
  }
}

template <typename T>
void DivideRow(T* row, int64_t n, int64_t count) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (kIsHalf<T>) {
      row[i] = T(static_cast<float>(row[i]) / static_cast<float>(count));
    } else if constexpr (kIsComplex<T>) {
      row[i] /= static_cast<typename T::value_type>(count);
    } else {
      row[i] = static_cast<T>(row[i] / static_cast<T>(count));
    }
  }
}

// Rows of the result of a sorted op: one more than the last id.
StatusOr<int64_t> SortedSegments(const Tensor& ids) {
  const int64_t n = ids.num_elements();
  if (n == 0) return 0;
  const int64_t last = IndexAt(ids, n - 1);
  if (last == std::numeric_limits<int64_t>::max()) {
    return InvalidArgument("segment ids are too large: ", last);
  }
  const int64_t segments = last + 1;
  if (last < 0) return InvalidArgument("segment ids must be >= 0");
  return segments;
}

// The rows [begin, result) have one id, which must be in range, and the next one must be larger.
StatusOr<int64_t> SegmentEnd(const Tensor& ids, int64_t begin, int64_t segments) {
  const int64_t n = ids.num_elements();
  const int64_t id = IndexAt(ids, begin);
  int64_t end = begin + 1;
  while (end < n && IndexAt(ids, end) == id) ++end;
  if (end < n && IndexAt(ids, end) < id) {
    return InvalidArgument("segment ids are not increasing");
  }
  if (id < 0 || id >= segments) {
    return InvalidArgument("Segment id ", id, " out of range [0, ", segments,
                           "), possibly because 'segment_ids' input is not sorted.");
  }
  return end;
}

template <typename T>
Status ReduceSorted(const Tensor& data, const Tensor& ids, SegmentOp op, int64_t segments,
                    Tensor* out) {
  const int64_t n = ids.num_elements();
  const int64_t row = out->num_elements() == 0 ? 0 : out->num_elements() / segments;
  const T* from = data.data<T>();
  T* to = out->data<T>();
  const T blank = op == SegmentOp::kProd ? T(1) : T(0);
  int64_t next = 0;  // first row of the result that is not written
  for (int64_t begin = 0; begin < n;) {
    const int64_t id = IndexAt(ids, begin);
    ASSIGN_OR_RETURN(const int64_t end, SegmentEnd(ids, begin, segments));
    std::fill(to + next * row, to + id * row, blank);
    T* into = to + id * row;
    // A row alone stays as it is; others fold into the start value, which a NaN does not replace.
    if (end - begin == 1) {
      std::copy_n(from + begin * row, row, into);
    } else {
      std::fill_n(into, row, SegmentStart<T>(op));
      for (int64_t i = begin; i < end; ++i) CombineRows(op, into, from + i * row, row);
    }
    if (op == SegmentOp::kMean) DivideRow(into, row, end - begin);
    next = id + 1;
    begin = end;
  }
  return OkStatus();
}

template <SegmentOp kOp>
Status RunSegment(OpContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& ids = ctx.input(1);
  if (data.rank() < 1) return InvalidArgument("input must be at least rank 1");
  if (ids.rank() != 1) return InvalidArgument("segment_ids should be a vector.");
  if (ids.num_elements() != data.dim(0)) {
    return InvalidArgument("segment_ids should be the same size as dimension 0 of input.");
  }
  ASSIGN_OR_RETURN(const int64_t segments, SortedSegments(ids));
  Dims dims(data.shape().dims().begin(), data.shape().dims().end());
  dims[0] = segments;
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  Status status = OkStatus();
  if (!VisitNumber(data.dtype(), [&]<typename T>() {
        status = ReduceSorted<T>(data, ids, kOp, segments, out);
      })) {
    return Unimplemented(ctx.node().op(), " of type ", DtypeName(data.dtype()));
  }
  return status;
}

// As CombineRows, but a NaN replaces what is there, and the next row replaces it.
template <typename T>
void CombineUnsortedRows(SegmentOp op, T* __restrict into, const T* __restrict row, int64_t n) {
  if constexpr (!kIsComplex<T>) {
    if (op == SegmentOp::kMax) {
      for (int64_t i = 0; i < n; ++i) into[i] = LessThan(row[i], into[i]) ? into[i] : row[i];
      return;
    }
    if (op == SegmentOp::kMin) {
      for (int64_t i = 0; i < n; ++i) into[i] = LessThan(into[i], row[i]) ? into[i] : row[i];
      return;
    }
  }
  CombineRows(op, into, row, n);
}

template <SegmentOp kOp>
Status RunUnsortedSegment(OpContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& ids = ctx.input(1);
  const Tensor& num = ctx.input(2);
  if (num.rank() != 0) {
    return InvalidArgument("num_segments should be a scalar, not shape ", num.shape().ToString());
  }
  const auto d = data.shape().dims();
  const auto s = ids.shape().dims();
  if (d.size() < s.size() || !std::equal(s.begin(), s.end(), d.begin())) {
    return InvalidArgument("data.shape = ", data.shape().ToString(),
                           " does not start with segment_ids.shape = ", ids.shape().ToString());
  }
  const int64_t segments = IndexAt(num, 0);
  if (segments < 0) {
    return InvalidArgument("Input num_segments == ", segments, " must not be negative.");
  }
  Dims dims{segments};
  dims.insert(dims.end(), d.begin() + ids.rank(), d.end());
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  const int64_t n = ids.num_elements();
  for (int64_t i = 0; i < n && data.num_elements() > 0; ++i) {
    if (IntAt(ids, i) >= segments) {
      return InvalidArgument("segment_ids", SliceName(ids.shape(), i), " = ", IntAt(ids, i),
                             " is out of range [0, ", segments, ")");
    }
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  const int64_t row = shape.num_elements() == 0 ? 0 : shape.num_elements() / segments;
  if (!VisitNumber(data.dtype(), [&]<typename T>() {
        T* to = out->data<T>();
        const T* from = data.data<T>();
        std::fill_n(to, out->num_elements(), SegmentStart<T>(kOp));
        for (int64_t i = 0; i < n && row > 0; ++i) {
          const int64_t id = IntAt(ids, i);
          if (id >= 0) CombineUnsortedRows(kOp, to + id * row, from + i * row, row);
        }
      })) {
    return Unimplemented(ctx.node().op(), " of type ", DtypeName(data.dtype()));
  }
  return OkStatus();
}

// Sums rows of `data` that `indices` name, in float for the 16-bit types.
template <typename T>
Status ReduceListed(const Tensor& data, const Tensor& indices, const Tensor& ids, SegmentOp op,
                    int64_t segments, Tensor* out) {
  using W = Wide<T>;
  const int64_t n = indices.num_elements();
  const int64_t rows = data.dim(0);
  const int64_t row = data.num_elements() == 0 ? 0 : data.num_elements() / rows;
  const T* from = data.data<T>();
  T* to = out->data<T>();
  std::fill_n(to, out->num_elements(), T(0));
  std::vector<W> sum(static_cast<size_t>(row));
  for (int64_t begin = 0; begin < n;) {
    const int64_t id = IndexAt(ids, begin);
    ASSIGN_OR_RETURN(const int64_t end, SegmentEnd(ids, begin, segments));
    std::fill(sum.begin(), sum.end(), W(0));
    for (int64_t k = begin; k < end; ++k) {
      const int64_t index = IndexAt(indices, k);
      if (index < 0 || index >= rows) {
        return InvalidArgument("Bad: indices[", k, "] == ", index, " out of range [0, ", rows, ")");
      }
      const T* line = from + index * row;
      for (int64_t i = 0; i < row; ++i) sum[i] = AddValues<W>(sum[i], static_cast<W>(line[i]));
    }
    const auto count = static_cast<double>(end - begin);
    T* into = to + id * row;
    for (int64_t i = 0; i < row && out->num_elements() > 0; ++i) {
      if constexpr (std::is_floating_point_v<W>) {
        if (op == SegmentOp::kMean) sum[i] /= static_cast<W>(count);
        if (op == SegmentOp::kSqrtN) sum[i] /= static_cast<W>(std::sqrt(count));
      }
      into[i] = T(sum[i]);
    }
    begin = end;
  }
  return OkStatus();
}

template <SegmentOp kOp>
Status RunSparseSegment(OpContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Tensor& ids = ctx.input(2);
  int64_t segments = -1;
  if (ctx.num_inputs() == 4) {
    const Tensor& num = ctx.input(3);
    if (num.rank() != 0) {
      return InvalidArgument("num_segments should be a scalar, not shape ", num.shape().ToString());
    }
    segments = IndexAt(num, 0);
    if (segments < 0) return InvalidArgument("segment ids must be >= 0");
  }
  if (indices.rank() != 1) return InvalidArgument("indices should be a vector.");
  if (ids.rank() != 1) return InvalidArgument("segment_ids should be a vector.");
  if (indices.num_elements() != ids.num_elements()) {
    return InvalidArgument("segment_ids and indices should have same size.");
  }
  if (data.rank() < 1) return InvalidArgument("Shape must be at least rank 1");
  ASSIGN_OR_RETURN(const int64_t named, SortedSegments(ids));
  if (segments == -1) {
    segments = named;
  } else if (named > segments) {
    return InvalidArgument("segment ids must be < num_segments");
  }
  if (segments == 0 && ids.num_elements() > 0) {
    return InvalidArgument("segment ids must be >= 0");
  }
  Dims dims(data.shape().dims().begin(), data.shape().dims().end());
  dims[0] = segments;
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  Status status = OkStatus();
  if (!VisitReal(data.dtype(), [&]<typename T>() {
        status = ReduceListed<T>(data, indices, ids, kOp, segments, out);
      })) {
    return Unimplemented(ctx.node().op(), " of type ", DtypeName(data.dtype()));
  }
  return status;
}

// Adds to row place[i] of `out`, for every i, the row of `grad` of segment ids[i], scaled by what
// `op` divided its `counts` rows by.
template <typename T>
void SpreadSegments(const Tensor& grad, const Tensor& ids, const std::vector<int64_t>& counts,
                    const std::vector<int64_t>& place, SegmentOp op, Tensor* out) {
  using W = Wide<T>;
  if constexpr (std::is_floating_point_v<W>) {
    const int64_t rows = out->dim(0), total = out->num_elements();
    const int64_t row = total == 0 ? 0 : total / rows;
    std::vector<W> sum(static_cast<size_t>(total), W(0));
    for (size_t i = 0; i < place.size(); ++i) {
      const int64_t id = IndexAt(ids, static_cast<int64_t>(i));
      const auto count = static_cast<double>(counts[id]);
      const W scale = op == SegmentOp::kSum    ? W(1)
                      : op == SegmentOp::kMean ? W(1) / static_cast<W>(count)
                                               : static_cast<W>(1.0 / std::sqrt(count));
      const T* line = grad.data<T>() + id * row;
      W* to = sum.data() + place[i] * row;
      for (int64_t j = 0; j < row; ++j) to[j] += static_cast<W>(line[j]) * scale;
    }
    T* to = out->data<T>();
    for (size_t j = 0; j < sum.size(); ++j) to[j] = T(sum[j]);
  }
}

// The gradient spreads each segment's row over the rows that made it. The compact form gives only
// those rows, in the order of their indices, and the indices.
template <SegmentOp kOp, bool kCompact>
Status RunSparseSegmentGrad(OpContext& ctx) {
  const Tensor& grad = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Tensor& ids = ctx.input(2);
  const Tensor& dim0 = ctx.input(3);
  if (indices.rank() != 1) return InvalidArgument("indices should be a vector.");
  if (ids.rank() != 1) return InvalidArgument("segment_ids should be a vector.");
  if (dim0.rank() != 0) {
    return InvalidArgument(kCompact ? "dense_" : "", "output_dim0 should be a scalar.");
  }
  if (grad.rank() < 1) {
    if (kCompact) return InvalidArgument("Index must be less than 0, got 0");
    return InvalidArgument("Shape must be at least rank 1");
  }
  const int64_t n = indices.num_elements();
  if (n != ids.num_elements()) {
    return InvalidArgument("segment_ids and indices should have same size.");
  }
  const int64_t rows = IndexAt(dim0, 0);
  if (rows < 0) return InvalidArgument("Expected a non-negative size, got ", rows);
  const int64_t segments = grad.dim(0);
  if (n > 0 && rows > 0 && IndexAt(ids, n - 1) >= segments) {
    return InvalidArgument("Invalid number of segments");
  }
  std::vector<int64_t> counts(static_cast<size_t>(segments), 0), place;
  // TensorFlow does not check indices for an output without rows.
  for (int64_t i = 0; i < n && rows > 0; ++i) {
    const int64_t id = IndexAt(ids, i), index = IndexAt(indices, i);
    if (id < 0 || id >= segments) {
      return InvalidArgument("Segment id ", id, " out of range [0, ", segments, ").");
    }
    if (index < 0 || index >= rows) {
      return InvalidArgument("Index ", index, " out of range [0, ", rows, ").");
    }
    ++counts[id];
    place.push_back(index);
  }
  Dims dims(grad.shape().dims().begin(), grad.shape().dims().end());
  dims[0] = rows;
  if (kCompact) {
    std::vector<int64_t> unique = place;
    std::sort(unique.begin(), unique.end());
    unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
    for (int64_t& p : place) {
      p = std::lower_bound(unique.begin(), unique.end(), p) - unique.begin();
    }
    dims[0] = static_cast<int64_t>(unique.size());
    RETURN_IF_ERROR(SetInts(ctx, 1, unique));
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (!VisitReal(grad.dtype(),
                 [&]<typename T>() { SpreadSegments<T>(grad, ids, counts, place, kOp, out); })) {
    return Unimplemented(ctx.node().op(), " of type ", DtypeName(grad.dtype()));
  }
  return OkStatus();
}

constexpr DtypeSet kSegmentGradTypes = kFloatTypes | kHalfTypes;

constexpr Kernel kSegmentTable[] = {
    {"SegmentSum", "T", kNumberTypes, "sparse:segment", RunSegment<SegmentOp::kSum>},
    {"SegmentMean", "T", kNumberTypes, "sparse:segment", RunSegment<SegmentOp::kMean>},
    {"SegmentProd", "T", kNumberTypes, "sparse:segment", RunSegment<SegmentOp::kProd>},
    {"SegmentMax", "T", kRealTypes, "sparse:segment", RunSegment<SegmentOp::kMax>},
    {"SegmentMin", "T", kRealTypes, "sparse:segment", RunSegment<SegmentOp::kMin>},
    {"UnsortedSegmentSum", "T", kNumberTypes, "sparse:segment",
     RunUnsortedSegment<SegmentOp::kSum>},
    {"UnsortedSegmentProd", "T", kNumberTypes, "sparse:segment",
     RunUnsortedSegment<SegmentOp::kProd>},
    {"UnsortedSegmentMax", "T", kRealTypes, "sparse:segment", RunUnsortedSegment<SegmentOp::kMax>},
    {"UnsortedSegmentMin", "T", kRealTypes, "sparse:segment", RunUnsortedSegment<SegmentOp::kMin>},
    {"SparseSegmentSum", "T", kRealTypes, "sparse:segment", RunSparseSegment<SegmentOp::kSum>},
    {"SparseSegmentMean", "T", kSegmentGradTypes, "sparse:segment",
     RunSparseSegment<SegmentOp::kMean>},
    {"SparseSegmentSqrtN", "T", kSegmentGradTypes, "sparse:segment",
     RunSparseSegment<SegmentOp::kSqrtN>},
    {"SparseSegmentSumWithNumSegments", "T", kRealTypes, "sparse:segment",
     RunSparseSegment<SegmentOp::kSum>},
    {"SparseSegmentMeanWithNumSegments", "T", kSegmentGradTypes, "sparse:segment",
     RunSparseSegment<SegmentOp::kMean>},
    {"SparseSegmentSqrtNWithNumSegments", "T", kSegmentGradTypes, "sparse:segment",
     RunSparseSegment<SegmentOp::kSqrtN>},
    {"SparseSegmentSumGrad", "T", kSegmentGradTypes, "sparse:segment",
     RunSparseSegmentGrad<SegmentOp::kSum, false>},
    {"SparseSegmentMeanGrad", "T", kSegmentGradTypes, "sparse:segment",
     RunSparseSegmentGrad<SegmentOp::kMean, false>},
    {"SparseSegmentSqrtNGrad", "T", kSegmentGradTypes, "sparse:segment",
     RunSparseSegmentGrad<SegmentOp::kSqrtN, false>},
    {"SparseSegmentSumGradV2", "T", kSegmentGradTypes, "sparse:segment_grad",
     RunSparseSegmentGrad<SegmentOp::kSum, true>},
    {"SparseSegmentMeanGradV2", "T", kSegmentGradTypes, "sparse:segment_grad",
     RunSparseSegmentGrad<SegmentOp::kMean, true>},
    {"SparseSegmentSqrtNGradV2", "T", kSegmentGradTypes, "sparse:segment_grad",
     RunSparseSegmentGrad<SegmentOp::kSqrtN, true>},
};

}  // namespace

extern constinit const std::span<const Kernel> kSegmentKernels = kSegmentTable;

}  // namespace smelt
