// RaggedFillEmptyRows: one default value for each row without values. Its gradient is that of
// SparseFillEmptyRows (sparse/sparse_shape.cc).
#include <algorithm>

#include "smelt/kernels/movement/arguments.h"
#include "smelt/kernels/movement/copy.h"

namespace smelt {
namespace {

Status RunRaggedFillEmptyRows(OpContext& ctx) {
  const Tensor& ids = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const Tensor& nrows = ctx.input(2);
  const Tensor& blank = ctx.input(3);
  if (nrows.rank() != 0) {
    return InvalidArgument("nrows must be a scalar, saw: ", nrows.shape().ToString());
  }
  if (ids.rank() != 1) {
    return InvalidArgument("value_rowids must be a vector, saw: ", ids.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("values must be a vector, saw: ", values.shape().ToString());
  }
  if (ids.dim(0) != values.dim(0)) {
    return InvalidArgument("The length of `values` (", values.dim(0),
                           ") must match the first dimension of `value_rowids` (", ids.dim(0),
                           ").");
  }
  if (blank.rank() != 0) {
    return InvalidArgument("default_value must be a scalar, saw: ", blank.shape().ToString());
  }
  const int64_t rows = nrows.scalar<int64_t>(), n = ids.num_elements();
  const int64_t* at = ids.data<int64_t>();
  if (rows == 0 && n != 0) {
    return InvalidArgument("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = ",
                           n);
  }
  if (rows < 0) {
    return InvalidArgument("Expected shape dimensions to be non-negative, got ", rows);
  }
  ASSIGN_OR_RETURN(Tensor * empty, ctx.Allocate(2, Shape({rows})));
  bool* is_empty = empty->data<bool>();
  std::fill_n(is_empty, rows, true);
  ASSIGN_OR_RETURN(Tensor place, ctx.Temp(Dtype::kInt64, Shape({rows})));
  int64_t* next = place.data<int64_t>();
  std::fill_n(next, rows, 0);
  for (int64_t i = 0; i < n; ++i) {
    if (at[i] < 0 || at[i] >= rows) {
      return InvalidArgument("indices(", i, ", 0) is invalid: ", at[i], " >= ", rows);
    }
    is_empty[at[i]] = false;
    ++next[at[i]];
  }
  // From counts to the first place of each row; an empty one takes one place.
  int64_t total = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t count = std::max<int64_t>(1, next[r]);
    next[r] = total;
    total += count;
  }
  // Without rows TensorFlow's result is a matrix, as that of SparseFillEmptyRows is.
  const Shape ids_shape = rows == 0 ? Shape({0, 1}) : Shape({total});
  ASSIGN_OR_RETURN(Tensor * out_ids, ctx.Allocate(0, ids_shape));
  ASSIGN_OR_RETURN(Tensor * out_values, ctx.Allocate(1, Shape({total})));
  ASSIGN_OR_RETURN(Tensor * reverse, ctx.Allocate(3, Shape({n})));
  const Dtype dtype = values.dtype();
  int64_t* to = out_ids->data<int64_t>();
  for (int64_t r = 0; r < rows; ++r) {
    if (!is_empty[r]) continue;
    to[next[r]] = r;
    CopyRun(dtype, At(dtype, out_values->raw(), next[r]), blank.raw(), 1);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t p = next[at[i]]++;
    to[p] = at[i];
    CopyRun(dtype, At(dtype, out_values->raw(), p), At(dtype, values.raw(), i), 1);
    reverse->data<int64_t>()[i] = p;
  }
  return OkStatus();
}

constexpr Kernel kRaggedFillTable[] = {
    {"RaggedFillEmptyRows", "", kAnyType, "ragged:fill_empty_rows", RunRaggedFillEmptyRows},
};

}  // namespace

extern constinit const std::span<const Kernel> kRaggedFillKernels = kRaggedFillTable;

}  // namespace smelt
