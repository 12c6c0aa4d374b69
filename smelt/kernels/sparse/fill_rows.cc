#include "smelt/kernels/sparse/fill_rows.h"

#include <algorithm>

#include "smelt/kernels/common/copy.h"

namespace smelt {

StatusOr<RowPlaces> RowPlaces::Of(OpContext& ctx, const int64_t* ids, int64_t step, int64_t n,
                                  int64_t rows) {
  RowPlaces places;
  places.ids_ = ids;
  places.step_ = step;
  places.n_ = n;
  places.rows_ = rows;
  ASSIGN_OR_RETURN(Tensor * empty, ctx.Allocate(2, Shape({rows})));
  bool* is_empty = empty->data<bool>();
  std::fill_n(is_empty, rows, true);
  ASSIGN_OR_RETURN(places.next_, ctx.Temp(Dtype::kInt64, Shape({rows})));
  int64_t* next = places.next_.data<int64_t>();
  std::fill_n(next, rows, 0);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = ids[i * step];
    if (row < 0 || row >= rows) {
      return InvalidArgument("indices(", i, ", 0) is invalid: ", row, " >= ", rows);
    }
    is_empty[row] = false;
    ++next[row];
  }
  // From counts to the first place of each row; an empty one takes one place.
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t count = std::max<int64_t>(1, next[r]);
    next[r] = places.total_;
    places.total_ += count;
  }
  return places;
}

Status RowPlaces::Fill(OpContext& ctx, const Tensor& values, const Tensor& blank,
                       absl::FunctionRef<void(int64_t, int64_t)> place_blank,
                       absl::FunctionRef<void(int64_t, int64_t)> place_value) {
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(1, Shape({total_})));
  ASSIGN_OR_RETURN(Tensor * reverse, ctx.Allocate(3, Shape({n_})));
  const Dtype dtype = values.dtype();
  const bool* is_empty = ctx.output(2).data<bool>();
  int64_t* next = next_.data<int64_t>();
  for (int64_t r = 0; r < rows_; ++r) {
    if (!is_empty[r]) continue;
    place_blank(r, next[r]);
    CopyRun(dtype, At(dtype, out->raw(), next[r]), blank.raw(), 1);
  }
  for (int64_t i = 0; i < n_; ++i) {
    const int64_t p = next[ids_[i * step_]]++;
    place_value(i, p);
    CopyRun(dtype, At(dtype, out->raw(), p), At(dtype, values.raw(), i), 1);
    reverse->data<int64_t>()[i] = p;
  }
  return OkStatus();
}

}  // namespace smelt
