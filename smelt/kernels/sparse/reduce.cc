// Sums and maxima of sparse tensors over some dimensions, and softmax over the last one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_join.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/sparse/sparse_tensor.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

StatusOr<std::unique_ptr<KernelState>> PrepareSparseReduce(const Node& node) {
  return ReadIntAttrs(node, {"keep_dims"});
}

// Which dimensions go away. Axes, a scalar or a vector, may repeat.
StatusOr<std::vector<bool>> ReducedDims(const Tensor& axes, int64_t rank) {
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (int64_t axis : IntsOf(axes)) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension ", axis, ", for input with ", rank,
                             " dimensions.");
    }
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return reduced;
}

// What values are folded into. A maximum starts below all values, and NaN never replaces it.
template <bool kMax, typename T>
T ReduceStart() {
  if constexpr (!kMax) {
    return T(0);
  } else if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return T(-std::numeric_limits<Wide<T>>::infinity());
  }
}

// Rows sorted by the dimensions that stay, then by those that go.
struct ReduceGroups {
  std::vector<int64_t> kept;  // dimensions that stay
  std::vector<int64_t> rows;
  std::vector<size_t> begins;  // of groups in rows, and the end
};

ReduceGroups GroupRows(const Tensor& indices, const std::vector<bool>& reduced) {
  ReduceGroups g;
  std::vector<int64_t> order;
  const auto rank = static_cast<int64_t>(reduced.size());
  for (int64_t d = 0; d < rank; ++d) {
    if (!reduced[d]) g.kept.push_back(d);
  }
  order = g.kept;
  for (int64_t d = 0; d < rank; ++d) {
    if (reduced[d]) order.push_back(d);
  }
  g.rows.resize(static_cast<size_t>(indices.dim(0)));
  std::iota(g.rows.begin(), g.rows.end(), 0);
  const int64_t* at = indices.data<int64_t>();
  const auto compare = [&](int64_t a, int64_t b, const std::vector<int64_t>& dims) {
    for (int64_t d : dims) {
      const int64_t x = at[a * rank + d], y = at[b * rank + d];
      if (x != y) return x < y ? -1 : 1;
    }
    return 0;
  };
  std::stable_sort(g.rows.begin(), g.rows.end(),
                   [&](int64_t a, int64_t b) { return compare(a, b, order) < 0; });
  for (size_t i = 0; i < g.rows.size(); ++i) {
    if (i == 0 || compare(g.rows[i - 1], g.rows[i], g.kept) != 0) g.begins.push_back(i);
  }
  g.begins.push_back(g.rows.size());
  return g;
}

template <bool kMax, typename T>
T ReduceGroup(const T* values, std::span<const int64_t> rows) {
  T sum = ReduceStart<kMax, T>();
  for (int64_t row : rows) {
    if constexpr (!kMax) {
      sum = AddValues(sum, values[row]);
    } else if constexpr (!kIsComplex<T>) {
      sum = LessThan(sum, values[row]) ? values[row] : sum;
    }
  }
  return sum;
}

// The dense result, or (kSparse) indices, values and shape of a sparse one.
template <bool kMax, bool kSparse>
Status RunSparseReduce(OpContext& ctx) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2);
  if (shape.rank() != 1) {
    return InvalidArgument("Expected input_shape to be a vector; got shape: ",
                           shape.shape().ToString());
  }
  if (ctx.input(3).rank() > 1) {
    return InvalidArgument("Expected reduction_axes to be a scalar or a vector; got shape: ",
                           ctx.input(3).shape().ToString());
  }
  const int64_t rank = shape.dim(0);
  ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedDims(ctx.input(3), rank));
  RETURN_IF_ERROR(CheckSparseParts(indices, values, shape));
  const bool keep = ctx.state<IntAttrs>()[0] != 0;
  Dims sizes;
  for (int64_t d = 0; d < rank; ++d) {
    if (!reduced[d]) {
      sizes.push_back(IndexAt(shape, d));
    } else if (keep) {
      sizes.push_back(1);
    }
  }
  const ReduceGroups groups = GroupRows(indices, reduced);
  const auto count = static_cast<int64_t>(groups.begins.size()) - 1;
  Tensor* out = nullptr;
  if constexpr (kSparse) {
    ASSIGN_OR_RETURN(Tensor * out_indices,
                     ctx.Allocate(0, Shape({count, static_cast<int64_t>(sizes.size())})));
    ASSIGN_OR_RETURN(out, ctx.Allocate(1, Shape({count})));
    RETURN_IF_ERROR(SetInts(ctx, 2, sizes));
    int64_t* to = out_indices->data<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t* row = indices.data<int64_t>() + groups.rows[groups.begins[i]] * rank;
      for (int64_t d = 0; d < rank; ++d) {
        if (!reduced[d]) {
          *to++ = row[d];
        } else if (keep) {
          *to++ = 0;
        }
      }
    }
  } else {
    ASSIGN_OR_RETURN(out, ctx.Allocate(0, Shape(sizes)));
  }
  Status status = OkStatus();
  VisitNumber(values.dtype(), [&]<typename T>() {
    T* to = out->data<T>();
    if (!kSparse) std::fill_n(to, out->num_elements(), T(0));
    for (int64_t i = 0; i < count; ++i) {
      const std::span<const int64_t> rows(groups.rows.begin() + groups.begins[i],
                                          groups.rows.begin() + groups.begins[i + 1]);
      int64_t at = i;
      if (!kSparse) {
        at = 0;
        for (int64_t d : groups.kept) {
          const int64_t index = indices.data<int64_t>()[rows[0] * rank + d];
          at = AddValues(MultiplyValues(at, IndexAt(shape, d)), index);
        }
        if (at < 0 || at >= out->num_elements()) {
          status = Internal("Obtained a write index of ", at, " which is outside of bounds of [0, ",
                            out->num_elements(), ")");
          return;
        }
      }
      to[at] = ReduceGroup<kMax, T>(values.data<T>(), rows);
    }
  });
  return status;
}

// As in TensorFlow, y follows the order of the sorted indices, whatever theirs is.
template <typename T>
void SparseSoftmaxRows(const Tensor& indices, const T* x, T* y) {
  using W = Wide<T>;
  const int64_t n = indices.dim(0);
  const auto rank = static_cast<int>(indices.dim(1));
  const int64_t* at = indices.data<int64_t>();
  const std::vector<int64_t> order = SortedRows(at, n, rank);
  const auto row = [&](int64_t i) { return at + order[i] * rank; };
  const auto value = [&](int64_t i) { return static_cast<W>(x[order[i]]); };
  for (int64_t begin = 0; begin < n;) {
    int64_t end = begin + 1;
    while (end < n && CompareIndices(row(begin), row(end), rank - 1) == 0) ++end;
    W largest = value(begin), sum = 0;
    for (int64_t i = begin; i < end; ++i) largest = std::max(largest, value(i));
    for (int64_t i = begin; i < end; ++i) sum += std::exp(value(i) - largest);
    for (int64_t i = begin; i < end; ++i) y[i] = T(std::exp(value(i) - largest) / sum);
    begin = end;
  }
}

Status RunSparseSoftmax(OpContext& ctx) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2);
  if (indices.rank() != 2) {
    return InvalidArgument("Input sp_indices should be a matrix but received shape: ",
                           indices.shape().ToString());
  }
  if (values.rank() != 1 || shape.rank() != 1) {
    return InvalidArgument("Inputs sp_values and sp_shape should be vectors but received shapes: ",
                           values.shape().ToString(), " and ", shape.shape().ToString());
  }
  if (shape.dim(0) < 2) {
    return InvalidArgument("Input should have rank >= 2, but received shape: ",
                           absl::StrJoin(IntsOf(shape), " "));
  }
  RETURN_IF_ERROR(CheckSparseParts(indices, values, shape));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, values.shape()));
  VisitOneOf(CppTypes<float, double, Half>(), values.dtype(),
             [&]<typename T>() { SparseSoftmaxRows(indices, values.data<T>(), out->data<T>()); });
  return OkStatus();
}

constexpr DtypeSet kSparseSoftmaxTypes = kFloatTypes | Types(Dtype::kHalf);

constexpr Kernel kSparseReduceTable[] = {
    {"SparseReduceSum", "T", kNumberTypes, "sparse:reduce", RunSparseReduce<false, false>,
     PrepareSparseReduce},
    {"SparseReduceSumSparse", "T", kNumberTypes, "sparse:reduce", RunSparseReduce<false, true>,
     PrepareSparseReduce},
    {"SparseReduceMax", "T", kRealTypes, "sparse:reduce", RunSparseReduce<true, false>,
     PrepareSparseReduce},
    {"SparseReduceMaxSparse", "T", kRealTypes, "sparse:reduce", RunSparseReduce<true, true>,
     PrepareSparseReduce},
    {"SparseSoftmax", "T", kSparseSoftmaxTypes, "sparse:softmax", RunSparseSoftmax},
};

}  // namespace

extern constinit const std::span<const Kernel> kSparseReduceKernels = kSparseReduceTable;

}  // namespace smelt
