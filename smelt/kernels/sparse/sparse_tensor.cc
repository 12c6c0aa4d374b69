#include "smelt/kernels/sparse/sparse_tensor.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_join.h"

namespace smelt {

int CompareIndices(const int64_t* a, const int64_t* b, int n) {
  for (int i = 0; i < n; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

std::string IndicesText(const int64_t* row, int n) {
  return absl::StrCat("[", absl::StrJoin(row, row + n, ","), "]");
}

std::vector<int64_t> SortedRows(const int64_t* indices, int64_t count, int n) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const auto less = [&](int64_t a, int64_t b) {
    return CompareIndices(indices + a * n, indices + b * n, n) < 0;
  };
  // Most are sorted as they come.
  if (!std::is_sorted(order.begin(), order.end(), less)) {
    std::stable_sort(order.begin(), order.end(), less);
  }
  return order;
}

StatusOr<Shape> BuiltShape(std::span<const int64_t> dims) {
  for (const int64_t d : dims) {
    if (d < 0) return InvalidArgument("Expected shape dimensions to be non-negative, got ", d);
  }
  uint64_t n = 1;
  for (const int64_t d : dims) {
    const auto before = static_cast<int64_t>(n);
    const bool wraps = __builtin_mul_overflow(n, static_cast<uint64_t>(d), &n);
    if (!wraps && n <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) continue;
    return InvalidArgument("Encountered overflow when multiplying ", before, " with ", d,
                           ", result: ", wraps ? -1 : static_cast<int64_t>(n));
  }
  return CheckedShape(dims);
}

Status CheckSparseParts(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  if (shape.rank() != 1) return InvalidArgument("Shape must be a 1D tensor.");
  RETURN_IF_ERROR(BuiltShape(IntsOf(shape)).status());
  if (values.rank() != 1) {
    return InvalidArgument("vals must be a vec, but got: ", values.shape().ToString());
  }
  if (indices.rank() > 0 && indices.dim(0) != values.dim(0)) {
    return InvalidArgument("indices and values rows (indexing dimension) must match. (indices = ",
                           indices.dim(0), ", values = ", values.dim(0), ")");
  }
  if (indices.rank() != 2) {
    return InvalidArgument("indices must be a matrix, but got: ", indices.shape().ToString());
  }
  if (indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("Order length must be SparseTensor rank.");
  }
  return OkStatus();
}

Status CheckSparseOrder(const Tensor& indices, std::span<const int64_t> sizes) {
  const auto rank = static_cast<int>(sizes.size());
  const int64_t* row = indices.data<int64_t>();
  for (int64_t i = 0; i < indices.dim(0); ++i, row += rank) {
    const auto wrong = [&](absl::string_view what) {
      return InvalidArgument("indices[", i, "] = ", IndicesText(row, rank), what);
    };
    for (int d = 0; d < rank; ++d) {
      if (row[d] >= 0 && row[d] < sizes[d]) continue;
      return wrong(
          absl::StrCat(" is out of bounds: need 0 <= index < [", absl::StrJoin(sizes, ","), "]"));
    }
    const int order = i == 0 ? 1 : CompareIndices(row, row - rank, rank);
    if (order == 0) return wrong(" is repeated");
    if (order < 0) {
      return wrong(
          " is out of order. Many sparse ops require sorted indices.\n"
          "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n");
    }
  }
  return OkStatus();
}

Status CheckSparseCounts(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument("Number of elements in indices (", indices.dim(0), ") and values (",
                           values.dim(0), ") do not match");
  }
  if (indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("Index rank (", indices.dim(1), ") and shape rank (", shape.dim(0),
                           ") do not match");
  }
  return OkStatus();
}

StatusOr<SparseView> ViewSparse(const Tensor& indices, const Tensor& values, const Tensor& shape,
                                bool bounds, SparseWords words) {
  struct Part {
    const Tensor& tensor;
    absl::string_view name;
    int rank;
  };
  const Part parts[] = {{indices, "indices", 2}, {values, "values", 1}, {shape, "shape", 1}};
  for (const Part& p : parts) {
    if (p.tensor.rank() == p.rank) continue;
    if (words == SparseWords::kSparse) {
      return InvalidArgument("Sparse ", p.name, " must be rank ", p.rank, " but is rank ",
                             p.tensor.rank());
    }
    return InvalidArgument("Input ", p.name, " should be a ", p.rank == 2 ? "matrix" : "vector",
                           " but received shape ", p.tensor.shape().ToString());
  }
  RETURN_IF_ERROR(CheckSparseCounts(indices, values, shape));
  SparseView view{&indices, &values, IntsOf(shape)};
  for (int64_t d : view.shape) {
    if (d < 0 && bounds && view.count() == 0) {
      return InvalidArgument("Dimension ", d, " must be >= 0");
    }
  }
  if (!bounds) return view;
  for (int64_t i = 0; i < view.count(); ++i) {
    const int64_t* row = view.row(i);
    for (int d = 0; d < view.rank(); ++d) {
      if (row[d] >= 0 && row[d] < view.shape[d]) continue;
      if (words == SparseWords::kSparse) {
        return InvalidArgument("Sparse index tuple indices[", i, ", :] = [",
                               absl::StrJoin(row, row + view.rank(), ", "), "] is out of bounds");
      } else {
        return InvalidArgument("indices[", i, "] = ", IndicesText(row, view.rank()),
                               " is out of bounds: need 0 <= index < [",
                               absl::StrJoin(view.shape, ","), "]");
      }
    }
  }
  return view;
}

}  // namespace smelt
