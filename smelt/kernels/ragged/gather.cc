// RaggedGather: rows of a ragged tensor. RaggedRange: a ragged tensor of arithmetic sequences.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/slice_name.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

StatusOr<std::unique_ptr<KernelState>> PrepareRaggedGather(const Node& node) {
  return ReadIntAttrs(node, {"PARAMS_RAGGED_RANK", "OUTPUT_RAGGED_RANK"});
}

// INVALID_ARGUMENT unless row splits rise from at least 0 to at most the size of what they split.
// TensorFlow allows one more in all but the innermost ones, and reads beyond the next splits.
Status CheckGatherSplits(OpContext& ctx, int rank, int64_t num_values) {
  for (int d = 0; d < rank; ++d) {
    const Tensor& splits = ctx.input(d);
    const int64_t n = splits.num_elements();
    const int64_t last = d == rank - 1 ? num_values : ctx.input(d + 1).num_elements();
    if (n == 0) return InvalidArgument("Ragged splits may not be empty");
    if (IndexAt(splits, 0) < 0) return InvalidArgument("Ragged splits must be non-negative");
    if (IndexAt(splits, n - 1) > last) {
      return InvalidArgument("Ragged splits must not point past values");
    }
    for (int64_t i = 1; i < n; ++i) {
      if (IndexAt(splits, i - 1) > IndexAt(splits, i)) {
        return InvalidArgument("Ragged splits must be sorted");
      }
    }
    if (d < rank - 1 && IndexAt(splits, n - 1) >= std::max<int64_t>(1, last)) {
      return InvalidArgument("Ragged splits must not point past values");
    }
  }
  return OkStatus();
}

Status RunRaggedGather(OpContext& ctx) {
  const auto rank = static_cast<int>(ctx.state<IntAttrs>()[0]);
  const int64_t output_rank = ctx.state<IntAttrs>()[1];
  const Tensor& values = ctx.input(rank);
  const Tensor& indices = ctx.input(rank + 1);
  if (ctx.input(0).rank() == 0) return InvalidArgument("Split tensors must not be scalars");
  const int64_t num_params = ctx.input(0).dim(0) - 1;
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t index = IndexAt(indices, i);
    if (index < 0 || index >= num_params) {
      return InvalidArgument("indices", SliceName(indices.shape(), i), " = ", index,
                             " is not in [0, ", num_params, ")");
    }
  }
  if (values.rank() == 0) return InvalidArgument("params.rank must be nonzero");
  RETURN_IF_ERROR(CheckGatherSplits(ctx, rank, values.dim(0)));
  const int outer = indices.rank() - 1;
  if (output_rank != rank + outer) {
    return InvalidArgument("OUTPUT_RAGGED_RANK is ", output_rank, ", but ", rank + outer,
                           " splits come out");
  }
  std::vector<std::vector<int64_t>> splits(static_cast<size_t>(output_rank), {0});
  // The outer dimensions of indices become splits of rows of equal length.
  int64_t rows = 1;
  for (int d = 0; d < outer; ++d) {
    rows *= indices.dim(d);
    for (int64_t i = 1; i <= rows; ++i) splits[d].push_back(i * indices.dim(d + 1));
  }
  std::vector<std::pair<int64_t, int64_t>> pieces;
  int64_t total = 0;
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    int64_t start = IndexAt(indices, i), limit = start + 1;
    for (int d = 0; d < rank; ++d) {
      const Tensor& from = ctx.input(d);
      if (d + outer >= 0) {
        std::vector<int64_t>& to = splits[d + outer];
        const int64_t delta = to.back() - IndexAt(from, start);
        for (int64_t j = start; j < limit; ++j) to.push_back(IndexAt(from, j + 1) + delta);
      }
      start = IndexAt(from, start);
      limit = IndexAt(from, limit);
    }
    if (start != limit) pieces.emplace_back(start, limit);
    total += limit - start;
  }
  for (size_t d = 0; d < splits.size(); ++d) {
    RETURN_IF_ERROR(SetInts(ctx, static_cast<int>(d), splits[d]));
  }
  Dims dims(values.shape().dims().begin(), values.shape().dims().end());
  dims[0] = total;
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(static_cast<int>(output_rank), shape));
  const int64_t each = values.shape().Product(1, values.rank());
  if (each == 0) return OkStatus();
  const Dtype dtype = values.dtype();
  void* to = out->raw();
  for (const auto& [start, limit] : pieces) {
    CopyRun(dtype, to, At(dtype, values.raw(), start * each), (limit - start) * each);
    to = At(dtype, to, (limit - start) * each);
  }
  return OkStatus();
}

// How many of start, start + delta, ... lie before limit. INVALID_ARGUMENT when more than `most`.
template <typename T>
StatusOr<int64_t> RaggedRangeLength(T start, T limit, T delta, int64_t most) {
  if (delta == T(0)) return InvalidArgument("Requires delta != 0");
  if ((delta > 0 && limit < start) || (delta < 0 && limit > start)) return 0;
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U distance = limit > start ? static_cast<U>(limit) - static_cast<U>(start)
                                     : static_cast<U>(start) - static_cast<U>(limit);
    const U by = delta > 0 ? static_cast<U>(delta) : static_cast<U>(U{0} - static_cast<U>(delta));
    const U n = static_cast<U>(distance / by + (distance % by != 0 ? 1 : 0));
    if (n > static_cast<uint64_t>(most)) {
      return InvalidArgument("Requires ((limit - start) / delta) <= ", most);
    }
    return static_cast<int64_t>(n);
  } else {
    const T n = std::ceil(std::abs((limit - start) / delta));
    // Negated so that NaN is refused, too.
    if (!(n < static_cast<T>(most))) {
      return InvalidArgument("Requires ((limit - start) / delta) <= ", most);
    }
    return static_cast<int64_t>(n);
  }
}

template <typename T>
Status RaggedRangeOf(OpContext& ctx, int64_t rows) {
  const auto arg = [&](int i, int64_t row) {
    const Tensor& t = ctx.input(i);
    return t.data<T>()[t.rank() == 0 ? 0 : row];
  };
  const int64_t most = ctx.output_type(0) == Dtype::kInt32 ? std::numeric_limits<int32_t>::max()
                                                           : std::numeric_limits<int64_t>::max();
  std::vector<int64_t> splits{0};
  for (int64_t row = 0; row < rows; ++row) {
    ASSIGN_OR_RETURN(const int64_t size,
                     RaggedRangeLength<T>(arg(0, row), arg(1, row), arg(2, row), most));
    if (size > most - splits.back()) {
      return InvalidArgument("The total range size overflowed. Consider using int64 instead of ",
                             "int32 for row_splits_dtype.");
    }
    splits.push_back(splits.back() + size);
  }
  RETURN_IF_ERROR(SetInts(ctx, 0, splits));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(1, Shape({splits.back()})));
  T* to = out->data<T>();
  for (int64_t row = 0; row < rows; ++row) {
    T value = arg(0, row);
    const T delta = arg(2, row);
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      *to++ = value;
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        value = static_cast<T>(static_cast<U>(value) + static_cast<U>(delta));
      } else {
        value += delta;
      }
    }
  }
  return OkStatus();
}

Status RunRaggedRange(OpContext& ctx) {
  constexpr absl::string_view kNames[] = {"starts", "limits", "deltas"};
  int64_t rows = -1;
  for (int i = 0; i < 3; ++i) {
    if (ctx.input(i).rank() > 1) {
      return InvalidArgument(kNames[i], " must be a scalar or vector");
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (ctx.input(i).rank() == 0) continue;
    if (rows >= 0 && rows != ctx.input(i).dim(0)) {
      return InvalidArgument("starts, limits, and deltas must have the same shape");
    }
    rows = ctx.input(i).dim(0);
  }
  if (rows < 0) rows = 1;
  return VisitOneOf(CppTypes<float, double, int32_t, int64_t>(), ctx.input(0).dtype(),
                    [&]<typename T>() { return RaggedRangeOf<T>(ctx, rows); });
}

constexpr Kernel kRaggedGatherTable[] = {
    {"RaggedGather", "", kAnyType, "ragged:gather", RunRaggedGather, PrepareRaggedGather},
    {"RaggedRange", "T", kFloatTypes | kIndexTypes, "ragged:range", RunRaggedRange},
};

}  // namespace

extern constinit const std::span<const Kernel> kRaggedGatherKernels = kRaggedGatherTable;

}  // namespace smelt
