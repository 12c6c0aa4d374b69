// Sparse tensors in another shape or order: reshape, reorder, concat, slice, split, filled rows.
#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/sparse/fill_rows.h"
#include "smelt/kernels/sparse/sparse_tensor.h"

namespace smelt {
namespace {

// Rows chosen from a sparse tensor, with their new indices.
struct SparseRows {
  std::vector<int64_t> indices;  // flat
  std::vector<int64_t> from;     // by row: which of the source's values
};

Status SetSparse(OpContext& ctx, int indices_output, int values_output, int rank,
                 const SparseRows& rows, const Tensor& values) {
  const auto n = static_cast<int64_t>(rows.from.size());
  ASSIGN_OR_RETURN(Tensor * indices, ctx.Allocate(indices_output, Shape({n, rank})));
  std::copy(rows.indices.begin(), rows.indices.end(), indices->data<int64_t>());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(values_output, Shape({n})));
  for (int64_t i = 0; i < n; ++i) {
    CopyRun(values.dtype(), At(values.dtype(), out->raw(), i),
            At(values.dtype(), values.raw(), rows.from[i]), 1);
  }
  return OkStatus();
}

Status RunSparseReorder(OpContext& ctx) {
  ASSIGN_OR_RETURN(const SparseView view, ViewSparse(ctx.input(0), ctx.input(1), ctx.input(2),
                                                     false, SparseWords::kSparse));
  const int rank = view.rank();
  SparseRows rows;
  rows.from = SortedRows(view.row(0), view.count(), rank);
  if (std::is_sorted(rows.from.begin(), rows.from.end())) {
    ctx.set_output(0, ctx.TakeInput(0));
    ctx.set_output(1, ctx.TakeInput(1));
    return OkStatus();
  }
  for (int64_t i : rows.from) {
    rows.indices.insert(rows.indices.end(), view.row(i), view.row(i) + rank);
  }
  return SetSparse(ctx, 0, 1, rank, rows, *view.values);
}

Status RunSparseReshape(OpContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& old_shape = ctx.input(1);
  const Tensor& new_shape = ctx.input(2);
  if (indices.rank() != 2) {
    return InvalidArgument("Input must be a matrix.");
  }
  if (old_shape.rank() != 1) {
    return InvalidArgument("Input shape must be a vector.");
  }
  if (new_shape.rank() != 1) {
    return InvalidArgument("Target shape should be a vector but received shape ",
                           new_shape.shape().ToString());
  }
  if (indices.dim(1) != old_shape.num_elements()) {
    return InvalidArgument("Input tensor rank must match input shape length.");
  }
  const Dims from = IntsOf(old_shape);
  Dims to = IntsOf(new_shape);
  ASSIGN_OR_RETURN(const Shape from_shape, BuiltShape(from));
  const int64_t size = from_shape.num_elements();
  int64_t product = 1;
  int unknown = -1;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == -1) {
      if (unknown != -1) {
        return InvalidArgument("only one output dimension may be -1, not both ", unknown, " and ",
                               d);
      }
      unknown = static_cast<int>(d);
    } else if (to[d] < 0) {
      return InvalidArgument("size ", d, " must be non-negative, not ", to[d]);
    } else if (__builtin_mul_overflow(product, to[d], &product)) {
      return InvalidArgument("Shape [", absl::StrJoin(to, ","),
                             "] would have more than 2**63 - 1 elements");
    }
  }
  if (unknown != -1) {
    if (product <= 0) {
      return InvalidArgument("reshape cannot infer the missing input size for an empty tensor ",
                             "unless all specified input sizes are non-zero");
    }
    const int64_t missing = size / product;
    to[unknown] = 1;  // as the message shows it
    if (product * missing != size) {
      return InvalidArgument("Input to reshape is a SparseTensor with ", size,
                             " dense values, but the requested shape requires a multiple of ",
                             product, ". input_shape=", from_shape.ToString(), " output_shape=[",
                             absl::StrJoin(to, ","), "]");
    }
    to[unknown] = missing;
    product *= missing;
  }
  if (product != size) {
    return InvalidArgument("Input to reshape is a tensor with ", size,
                           " dense values, but the requested shape has ", product,
                           ". input_shape=", from_shape.ToString(), " output_shape=[",
                           absl::StrJoin(to, ","), "]");
  }
  const int64_t n = indices.dim(0);
  const auto rank = static_cast<int64_t>(from.size()), new_rank = static_cast<int64_t>(to.size());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({n, new_rank})));
  if (from == to) {
    ctx.set_output(0, indices);
    return SetInts(ctx, 1, to);
  }
  if (n > 0 && size == 0) {
    return InvalidArgument("Input tensor has ", n, " non zero elements but input shape (",
                           from_shape.ToString(), ") or output shape ([", absl::StrJoin(to, ","),
                           "]) is empty");
  }
  const Dims strides = size == 0 ? Dims() : Strides(Shape(std::span<const int64_t>(to)));
  for (int64_t i = 0; i < n; ++i) {
    // Indices outside of the shape stay outside, as in TensorFlow; the arithmetic may wrap.
    uint64_t sum = 0;
    for (int64_t d = 0; d < rank; ++d) {
      sum = sum * static_cast<uint64_t>(from[d]) +
            static_cast<uint64_t>(indices.data<int64_t>()[i * rank + d]);
    }
    auto flat = static_cast<int64_t>(sum);
    for (int64_t d = 0; d < new_rank; ++d) {
      out->data<int64_t>()[i * new_rank + d] = flat / strides[d];
      flat %= strides[d];
    }
  }
  return SetInts(ctx, 1, to);
}

StatusOr<std::unique_ptr<KernelState>> PrepareSparseConcat(const Node& node) {
  return ReadIntAttrs(node, {"concat_dim"});
}

Status CheckConcatRanks(const OpContext& ctx, int n) {
  constexpr absl::string_view kNames[] = {"indices", "values", "shapes"};
  for (int i = 0; i < 3 * n; ++i) {
    const int part = i / n;
    const Shape& shape = ctx.input(i).shape();
    if (shape.rank() == (part == 0 ? 2 : 1)) continue;
    return InvalidArgument("Input ", kNames[part], " should be a ", part == 0 ? "matrix" : "vector",
                           " but received shape ", shape.ToString(), " at position ", i % n);
  }
  return OkStatus();
}

Status RunSparseConcat(OpContext& ctx) {
  const int n = ctx.num_inputs() / 3;
  RETURN_IF_ERROR(CheckConcatRanks(ctx, n));
  std::vector<Dims> shapes;
  for (int i = 0; i < n; ++i) {
    shapes.push_back(IntsOf(ctx.input(2 * n + i)));
    if (!BuiltShape(shapes.back()).ok()) {
      return Internal("Encountered overflow from large input shape.");
    }
  }
  const auto rank = static_cast<int>(shapes[0].size());
  const int64_t given = ctx.state<IntAttrs>()[0];
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) {
    return InvalidArgument("Concat dimension must be in range [", -rank, ", ", rank, "), got ",
                           given);
  }
  Dims shape = shapes[0];
  for (int i = 1; i < n; ++i) {
    if (static_cast<int>(shapes[i].size()) != rank) {
      return InvalidArgument("Ranks of all input tensors must match: expected ", rank, " but got ",
                             shapes[i].size(), " at position ", i);
    }
    for (int d = 0; d < rank; ++d) {
      if (d != axis && shapes[i][d] != shape[d]) {
        return InvalidArgument("Input shapes must match: expected ", shape[d], " for dimension ", d,
                               " but got ", shapes[i][d], " at position ", i);
      }
    }
    if (__builtin_add_overflow(shape[axis], shapes[i][axis], &shape[axis])) {
      return Internal("Encountered overflow from large input shape.");
    }
  }
  std::vector<SparseView> views;
  for (int i = 0; i < n; ++i) {
    const Tensor &indices = ctx.input(i), &values = ctx.input(n + i), &size = ctx.input(2 * n + i);
    RETURN_IF_ERROR(CheckSparseParts(indices, values, size));
    ASSIGN_OR_RETURN(SparseView view, ViewSparse(indices, values, size, false));
    views.push_back(std::move(view));
  }
  struct Row {
    int view;
    int64_t row;
  };
  std::vector<Row> rows;
  std::vector<int64_t> indices;
  int64_t offset = 0;
  for (int v = 0; v < n; ++v) {
    for (int64_t i = 0; i < views[v].count(); ++i) {
      rows.push_back({v, i});
      indices.insert(indices.end(), views[v].row(i), views[v].row(i) + rank);
      int64_t& moved = indices[indices.size() - rank + axis];
      if (__builtin_add_overflow(moved, offset, &moved)) {
        return InvalidArgument("indices[", i, "] is too large");
      }
    }
    offset += views[v].shape[axis];
  }
  const auto total = static_cast<int64_t>(rows.size());
  const std::vector<int64_t> order = SortedRows(indices.data(), total, rank);
  ASSIGN_OR_RETURN(Tensor * out_indices, ctx.Allocate(0, Shape({total, rank})));
  ASSIGN_OR_RETURN(Tensor * out_values, ctx.Allocate(1, Shape({total})));
  const Dtype dtype = out_values->dtype();
  for (int64_t i = 0; i < total; ++i) {
    std::copy_n(&indices[order[i] * rank], rank, out_indices->data<int64_t>() + i * rank);
    const Row& r = rows[order[i]];
    CopyRun(dtype, At(dtype, out_values->raw(), i), At(dtype, views[r.view].values->raw(), r.row),
            1);
  }
  return SetInts(ctx, 2, shape);
}

Status RunSparseSlice(OpContext& ctx) {
  ASSIGN_OR_RETURN(const SparseView view, ViewSparse(ctx.input(0), ctx.input(1), ctx.input(2),
                                                     false, SparseWords::kSparse));
  const Tensor& start = ctx.input(3);
  const Tensor& size = ctx.input(4);
  if (start.rank() != 1) {
    return InvalidArgument("Input start should be a vector but received shape ",
                           start.shape().ToString());
  }
  if (size.rank() != 1) {
    return InvalidArgument("Input size should be a vector but received shape ",
                           size.shape().ToString());
  }
  const int rank = view.rank();
  if (rank != start.num_elements()) {
    return InvalidArgument("Expected start to be a vector of length ", rank, " but got length ",
                           start.num_elements());
  }
  if (rank != size.num_elements()) {
    return InvalidArgument("Expected size to be a vector of length ", rank, " but got length ",
                           size.num_elements());
  }
  RETURN_IF_ERROR(BuiltShape(view.shape).status());
  const Dims first = IntsOf(start);
  Dims shape(rank), lengths(rank);
  for (int d = 0; d < rank; ++d) {
    const int64_t length = IndexAt(size, d);
    lengths[d] = length;
    // What lies beyond the shape is cut off; as in TensorFlow, the differences may wrap.
    const int64_t size_here = view.shape[d];
    const auto minus = [size_here](int64_t x) {
      return static_cast<int64_t>(static_cast<uint64_t>(size_here) - static_cast<uint64_t>(x));
    };
    shape[d] = first[d] < minus(length) ? length : first[d] < size_here ? minus(first[d]) : 0;
    if (shape[d] < 0) return InvalidArgument("Expected a non-negative size, got ", shape[d]);
  }
  SparseRows rows;
  for (int64_t i = 0; i < view.count(); ++i) {
    const int64_t* row = view.row(i);
    bool inside = true;
    for (int d = 0; d < rank && inside; ++d) {
      int64_t at = 0;
      inside = !__builtin_sub_overflow(row[d], first[d], &at) && at >= 0 && at < lengths[d];
    }
    if (!inside) continue;
    for (int d = 0; d < rank; ++d) rows.indices.push_back(row[d] - first[d]);
    rows.from.push_back(i);
  }
  RETURN_IF_ERROR(SetSparse(ctx, 0, 1, rank, rows, *view.values));
  return SetInts(ctx, 2, shape);
}

// TensorFlow looks at the sizes before it looks at the axis, at the entries after it.
Status CheckSplitSizes(const OpContext& ctx) {
  constexpr absl::string_view kNames[] = {"indices", "values", "shape"};
  for (int i = 0; i < 3; ++i) {
    const Shape& shape = ctx.input(i + 1).shape();
    if (shape.rank() == (i == 0 ? 2 : 1)) continue;
    // TensorFlow shows the shape of the indices for values of another rank.
    const Shape& shown = i == 1 ? ctx.input(1).shape() : shape;
    return InvalidArgument("Input ", kNames[i], " should be a ", i == 0 ? "matrix" : "vector",
                           " but received shape ", shown.ToString());
  }
  return CheckSparseCounts(ctx.input(1), ctx.input(2), ctx.input(3));
}

Status RunSparseSplit(OpContext& ctx) {
  const Tensor& dim = ctx.input(0);
  const Tensor& shape_tensor = ctx.input(3);
  const int parts = ctx.num_outputs() / 3;
  if (dim.rank() != 0) {
    return InvalidArgument("Input axis should be a scalar but received shape ",
                           dim.shape().ToString());
  }
  RETURN_IF_ERROR(CheckSplitSizes(ctx));
  const int64_t given = IndexAt(dim, 0);
  const int64_t rank = shape_tensor.num_elements();
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) {
    return InvalidArgument("Input axis should be in range [", -rank, ", ", rank, "), got ", given);
  }
  ASSIGN_OR_RETURN(const SparseView view, ViewSparse(ctx.input(1), ctx.input(2), shape_tensor, true,
                                                     SparseWords::kSparse));
  if (parts < 1 || parts > view.shape[axis]) {
    return InvalidArgument("Input num_split should be between 1 and the splitting dimension size (",
                           view.shape[axis], "), got ", parts);
  }
  // The first `more` parts are one longer.
  const int64_t length = view.shape[axis] / parts, more = view.shape[axis] % parts;
  const int64_t long_end = more * (length + 1);
  std::vector<SparseRows> split(static_cast<size_t>(parts));
  for (int64_t i = 0; i < view.count(); ++i) {
    const int64_t* row = view.row(i);
    const int64_t x = row[axis];
    const int64_t part = x < long_end ? x / (length + 1) : more + (x - long_end) / length;
    const int64_t begin = part <= more ? part * (length + 1) : long_end + (part - more) * length;
    SparseRows& rows = split[part];
    rows.indices.insert(rows.indices.end(), row, row + rank);
    rows.indices[rows.indices.size() - rank + axis] -= begin;
    rows.from.push_back(i);
  }
  for (int p = 0; p < parts; ++p) {
    RETURN_IF_ERROR(SetSparse(ctx, p, parts + p, static_cast<int>(rank), split[p], *view.values));
    Dims shape = view.shape;
    shape[axis] = length + (p < more ? 1 : 0);
    RETURN_IF_ERROR(SetInts(ctx, 2 * parts + p, shape));
  }
  return OkStatus();
}

Status RunSparseFillEmptyRows(OpContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const Tensor& dense_shape = ctx.input(2);
  const Tensor& blank = ctx.input(3);
  if (dense_shape.rank() != 1) {
    return InvalidArgument("dense_shape must be a vector, saw: ", dense_shape.shape().ToString());
  }
  if (indices.rank() != 2) {
    return InvalidArgument("indices must be a matrix, saw: ", indices.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("values must be a vector, saw: ", values.shape().ToString());
  }
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument("The length of `values` (", values.dim(0),
                           ") must match the first dimension of `indices` (", indices.dim(0), ").");
  }
  if (indices.dim(1) != dense_shape.dim(0)) {
    return InvalidArgument("The length of `dense_shape` (", dense_shape.dim(0),
                           ") must match the second dimension of `indices` (", indices.dim(1),
                           ").");
  }
  if (blank.rank() != 0) {
    return InvalidArgument("default_value must be a scalar, saw: ", blank.shape().ToString());
  }
  if (dense_shape.num_elements() == 0) return InvalidArgument("Dense shape cannot be empty.");
  const int64_t rows = IndexAt(dense_shape, 0);
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  RETURN_IF_ERROR(BuiltShape(Dims{rows}).status());
  if (rows == 0 && n != 0) {
    return InvalidArgument("Received SparseTensor with dense_shape[0] = 0 but ",
                           "indices.shape[0] = ", n);
  }
  const int64_t* at = indices.data<int64_t>();
  ASSIGN_OR_RETURN(RowPlaces places, RowPlaces::Of(ctx, at, rank, n, rows));
  ASSIGN_OR_RETURN(Tensor * out_indices, ctx.Allocate(0, Shape({places.total(), rank})));
  int64_t* to = out_indices->data<int64_t>();
  return places.Fill(
      ctx, values, blank,
      [&](int64_t row, int64_t p) {
        std::fill_n(to + p * rank, rank, 0);
        to[p * rank] = row;
      },
      [&](int64_t i, int64_t p) { std::copy_n(at + i * rank, rank, to + p * rank); });
}

Status RunSparseFillEmptyRowsGrad(OpContext& ctx) {
  const Tensor& reverse = ctx.input(0);
  const Tensor& grad = ctx.input(1);
  if (reverse.rank() != 1) {
    return InvalidArgument("reverse_index_map must be a vector, saw: ", reverse.shape().ToString());
  }
  if (grad.rank() != 1) {
    return InvalidArgument("grad_values must be a vector, saw: ", grad.shape().ToString());
  }
  const int64_t n = reverse.num_elements(), total = grad.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t p = reverse.data<int64_t>()[i];
    if (p < 0 || p >= total) {
      return InvalidArgument("Elements in reverse index must be in [0, ", total, ") but got ", p);
    }
  }
  ASSIGN_OR_RETURN(Tensor * values, ctx.Allocate(0, Shape({n})));
  ASSIGN_OR_RETURN(Tensor * blank, ctx.Allocate(1, Shape()));
  if (!VisitNumber(grad.dtype(), [&]<typename T>() {
        std::vector<bool> used(static_cast<size_t>(total), false);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t p = reverse.data<int64_t>()[i];
          values->data<T>()[i] = grad.data<T>()[p];
          used[p] = true;
        }
        T sum = T(0);
        for (int64_t p = 0; p < total; ++p) {
          if (!used[p]) sum = AddValues(sum, grad.data<T>()[p]);
        }
        *blank->data<T>() = sum;
      })) {
    return Unimplemented(ctx.node().op(), " of type ", DtypeName(grad.dtype()));
  }
  return OkStatus();
}

constexpr Kernel kSparseShapeTable[] = {
    {"SparseReshape", "", kAnyType, "sparse:reshape", RunSparseReshape},
    {"SparseReorder", "", kAnyType, "sparse:reorder", RunSparseReorder},
    {"SparseConcat", "", kAnyType, "sparse:concat", RunSparseConcat, PrepareSparseConcat},
    {"SparseSlice", "", kAnyType, "sparse:slice", RunSparseSlice},
    {"SparseSplit", "", kAnyType, "sparse:split", RunSparseSplit},
    {"SparseFillEmptyRows", "", kAnyType, "sparse:fill_empty_rows", RunSparseFillEmptyRows},
    {"SparseFillEmptyRowsGrad", "T", kNumberTypes, "sparse:fill_empty_rows",
     RunSparseFillEmptyRowsGrad},
    {"RaggedFillEmptyRowsGrad", "T", kNumberTypes, "sparse:fill_empty_rows",
     RunSparseFillEmptyRowsGrad},
};

}  // namespace

extern constinit const std::span<const Kernel> kSparseShapeKernels = kSparseShapeTable;

}  // namespace smelt
