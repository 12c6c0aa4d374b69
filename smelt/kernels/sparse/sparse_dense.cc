// Between sparse and dense: SparseToDense, SparseTensorDenseMatMul, elementwise ops of both.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/sparse/sparse_tensor.h"

namespace smelt {
namespace {

StatusOr<std::unique_ptr<KernelState>> PrepareSparseToDense(const Node& node) {
  return ReadIntAttrs(node, {"validate_indices"});
}

Status RunSparseToDense(OpContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& output_shape = ctx.input(1);
  const Tensor& values = ctx.input(2);
  const Tensor& blank = ctx.input(3);
  if (indices.rank() > 2) {
    return InvalidArgument("sparse_indices should be a scalar, vector, or matrix, got shape ",
                           indices.shape().ToString());
  }
  const int64_t n = indices.rank() == 0 ? 1 : indices.dim(0);
  const int64_t rank = indices.rank() == 2 ? indices.dim(1) : 1;
  if (output_shape.rank() != 1) {
    return InvalidArgument("output_shape must be rank 1, got shape ",
                           output_shape.shape().ToString());
  }
  if (output_shape.num_elements() != rank) {
    return InvalidArgument("output_shape has incorrect number of elements: ",
                           output_shape.num_elements(), " should be: ", rank);
  }
  if (values.rank() != 0 && !(values.rank() == 1 && values.dim(0) == n)) {
    return InvalidArgument("sparse_values has incorrect shape ", values.shape().ToString(),
                           ", should be [] or [", n, "]");
  }
  if (blank.rank() != 0) return InvalidArgument("default_value should be a scalar.");
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(IntsOf(output_shape)));
  Dims at(rank), before(rank);
  const bool validate = ctx.state<IntAttrs>()[0] != 0;
  for (int64_t i = 0; i < n; ++i) {
    bool inside = true;
    for (int64_t d = 0; d < rank; ++d) {
      at[d] = IndexAt(indices, i * rank + d);
      inside = inside && at[d] >= 0 && at[d] < shape[static_cast<int>(d)];
    }
    if (!inside) {
      if (!validate) {
        return InvalidArgument("Indices are not valid (out of bounds).  Shape: ", shape.ToString());
      }
      return InvalidArgument("indices[", i, "] = ", IndicesText(at.data(), static_cast<int>(rank)),
                             " is out of bounds: need 0 <= index < ", shape.ToString());
    }
    if (validate && i > 0) {
      const int order = CompareIndices(before.data(), at.data(), static_cast<int>(rank));
      if (order == 0) {
        return InvalidArgument(
            "indices[", i, "] = ", IndicesText(at.data(), static_cast<int>(rank)), " is repeated");
      }
      if (order > 0) {
        return InvalidArgument(
            "indices[", i, "] = ", IndicesText(at.data(), static_cast<int>(rank)),
            " is out of order. Many sparse ops require sorted indices.\n",
            "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n");
      }
    }
    std::swap(at, before);
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  FillRun(out->dtype(), out->raw(), blank.raw(), out->num_elements());
  for (int64_t i = 0; i < n; ++i) {
    int64_t place = 0;
    for (int64_t d = 0; d < rank; ++d) {
      place = place * shape[static_cast<int>(d)] + IndexAt(indices, i * rank + d);
    }
    CopyRun(out->dtype(), At(out->dtype(), out->raw(), place),
            At(out->dtype(), values.raw(), values.rank() == 0 ? 0 : i), 1);
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareSparseMatMul(const Node& node) {
  return ReadIntAttrs(node, {"adjoint_a", "adjoint_b"});
}

template <typename T>
Status SparseMatMul(const Tensor& indices, const Tensor& values, const Tensor& b, bool adjoint_a,
                    bool adjoint_b, Tensor* out) {
  using W = Wide<T>;
  const int64_t rows = out->dim(0), cols = out->dim(1);
  const int64_t inner = b.dim(adjoint_b ? 1 : 0);
  std::vector<W> wide;
  W* sum = nullptr;
  if constexpr (kIsHalf<T>) {
    wide.assign(static_cast<size_t>(rows * cols), W(0));
    sum = wide.data();
  } else {
    sum = out->data<T>();
    std::fill_n(sum, rows * cols, W(0));
  }
  const T* from = b.data<T>();
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const int64_t m = IndexAt(indices, 2 * i + (adjoint_a ? 1 : 0));
    const int64_t k = IndexAt(indices, 2 * i + (adjoint_a ? 0 : 1));
    if (k < 0 || k >= inner) {
      return InvalidArgument("k (", k, ") from index[", i, ",", adjoint_a ? 0 : 1,
                             "] out of bounds (>=", inner, ")");
    }
    if (m < 0 || m >= rows) {
      return InvalidArgument("m (", m, ") from index[", i, ",", adjoint_a ? 1 : 0,
                             "] out of bounds (>=", rows, ")");
    }
    const W a = static_cast<W>(ConjugateIf(values.data<T>()[i], adjoint_a));
    W* to = sum + m * cols;
    if (adjoint_b) {
      for (int64_t j = 0; j < cols; ++j) {
        to[j] = AddValues<W>(
            to[j], MultiplyValues<W>(a, static_cast<W>(ConjugateIf(from[j * inner + k], true))));
      }
    } else {
      const T* line = from + k * cols;
      for (int64_t j = 0; j < cols; ++j) {
        to[j] = AddValues<W>(to[j], MultiplyValues<W>(a, static_cast<W>(line[j])));
      }
    }
  }
  if constexpr (kIsHalf<T>) {
    for (int64_t j = 0; j < rows * cols; ++j) out->data<T>()[j] = T(sum[j]);
  }
  return OkStatus();
}

Status RunSparseTensorDenseMatMul(OpContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const Tensor& a_shape = ctx.input(2);
  const Tensor& b = ctx.input(3);
  const bool adjoint_a = ctx.state<IntAttrs>()[0] != 0, adjoint_b = ctx.state<IntAttrs>()[1] != 0;
  if (b.rank() != 2) return InvalidArgument("Tensor 'b' is not a matrix");
  if (a_shape.rank() != 1) return InvalidArgument("Tensor 'a_shape' is not a vector");
  if (a_shape.num_elements() != 2) {
    return InvalidArgument("Tensor 'a_shape' must have 2 elements");
  }
  if (values.rank() != 1) return InvalidArgument("Tensor 'a_values' is not a vector");
  if (indices.rank() != 2) return InvalidArgument("Tensor 'a_indices' is not a matrix");
  if (indices.dim(0) != values.num_elements()) {
    return InvalidArgument(
        "Number of rows of a_indices does not match number of entries in a_values");
  }
  if (indices.dim(1) != 2) {
    return InvalidArgument(
        "Number of columns of a_indices does not match number of entries in a_shape");
  }
  const int64_t rows = IndexAt(a_shape, adjoint_a ? 1 : 0);
  const int64_t inner_a = IndexAt(a_shape, adjoint_a ? 0 : 1);
  const int64_t inner_b = b.dim(adjoint_b ? 1 : 0);
  const int64_t cols = b.dim(adjoint_b ? 0 : 1);
  if (inner_a != inner_b) {
    return InvalidArgument(
        "Cannot multiply A and B because inner dimension does not match: ", inner_a, " vs. ",
        inner_b, ".  Did you forget a transpose?  Dimensions ", "of A: [", IndexAt(a_shape, 0),
        ", ", IndexAt(a_shape, 1), ").  Dimensions of B: ", b.shape().ToString());
  }
  if (rows < 0) return InvalidArgument("Dimension ", rows, " must be >= 0");
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(Dims{rows, cols}));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  Status status = OkStatus();
  if (!VisitNumber(values.dtype(), [&]<typename T>() {
        status = SparseMatMul<T>(indices, values, b, adjoint_a, adjoint_b, out);
      })) {
    return Unimplemented(ctx.node().op(), " of type ", DtypeName(values.dtype()));
  }
  return status;
}

StatusOr<std::unique_ptr<KernelState>> PrepareMatMulOfZeros(const Node& node) {
  return ReadIntAttrs(node, {"transpose_a", "transpose_b"});
}

// Element i of a tensor of float or bfloat16.
float FloatAt(const Tensor& t, int64_t i) {
  return t.dtype() == Dtype::kFloat ? t.data<float>()[i]
                                    : static_cast<float>(t.data<Bfloat16>()[i]);
}

// Despite its name both matrices are dense: many zeros only make TensorFlow's kernel faster.
Status RunSparseMatMul(OpContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  if (a.rank() != 2) return InvalidArgument("a is not a matrix");
  if (b.rank() != 2) return InvalidArgument("b is not a matrix");
  const bool ta = ctx.state<IntAttrs>()[0] != 0, tb = ctx.state<IntAttrs>()[1] != 0;
  const int64_t rows = a.dim(ta ? 1 : 0), inner = a.dim(ta ? 0 : 1), cols = b.dim(tb ? 0 : 1);
  if (b.dim(tb ? 1 : 0) != inner) {
    return InvalidArgument("Matrix size incompatible: a: ", a.shape().ToString(),
                           ", b: ", b.shape().ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(Dims{rows, cols}));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  float* to = out->data<float>();
  std::fill_n(to, shape.num_elements(), 0.0f);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < inner; ++k) {
      const float x = FloatAt(a, ta ? k * rows + i : i * inner + k);
      for (int64_t j = 0; j < cols; ++j) {
        to[i * cols + j] += x * FloatAt(b, tb ? j * inner + k : k * cols + j);
      }
    }
  }
  return OkStatus();
}

template <typename T>
bool IsZero(T v) {
  if constexpr (kIsHalf<T>) {
    return static_cast<float>(v) == 0;
  } else {
    return v == T(0);
  }
}

enum class SparseDenseOp : uint8_t { kAdd, kMultiply, kDivide };

Status CheckSparseOperand(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  if (indices.rank() != 2) {
    return InvalidArgument("Input sp_indices should be a matrix but received shape: ",
                           indices.shape().ToString());
  }
  if (values.rank() != 1 || shape.rank() != 1) {
    return InvalidArgument("Inputs sp_values and sp_shape should be vectors but received shapes: ",
                           values.shape().ToString(), " and ", shape.shape().ToString());
  }
  if (values.dim(0) != indices.dim(0)) {
    return InvalidArgument("The first dimension of values and indices should match. (",
                           values.dim(0), " vs. ", indices.dim(0), ")");
  }
  if (shape.dim(0) != indices.dim(1)) {
    return InvalidArgument("Number of dimensions must match second dimension of indices. Got ",
                           shape.dim(0),
                           " dimensions, indices shape: ", indices.shape().ToString());
  }
  if (shape.num_elements() == 0) {
    return InvalidArgument("The shape argument requires at least one element.");
  }
  return BuiltShape(IntsOf(shape)).status();
}

// values[i] op dense[indices[i]], dense broadcast to the sparse shape.
template <SparseDenseOp kOp>
Status RunSparseDense(OpContext& ctx) {
  const Tensor& dense = ctx.input(3);
  RETURN_IF_ERROR(CheckSparseOperand(ctx.input(0), ctx.input(1), ctx.input(2)));
  const SparseView view{&ctx.input(0), &ctx.input(1), IntsOf(ctx.input(2))};
  const int missing = view.rank() - dense.rank();
  bool fits = missing >= 0;
  for (int d = 0; fits && d < dense.rank(); ++d) {
    fits = dense.dim(d) == 1 || dense.dim(d) == view.shape[d + missing];
  }
  if (!fits) {
    return InvalidArgument("SparseDenseBinaryOpShared broadcasts dense to sparse only; got ",
                           "incompatible shapes: [", absl::StrJoin(view.shape, ","), "] vs. [",
                           absl::StrJoin(dense.shape().dims(), ","), "]");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, view.values->shape()));
  if (view.count() == 0) return OkStatus();
  if (view.rank() < 1 || view.rank() > 5) {
    return InvalidArgument("Only tensors with ranks between 1 and 5 are currently supported.  ",
                           "Tensor rank: ", view.rank());
  }
  for (int64_t i = 0; i < view.count(); ++i) {
    for (int d = 0; d < view.rank(); ++d) {
      if (view.row(i)[d] >= 0 && view.row(i)[d] < view.shape[d]) continue;
      return InvalidArgument(
          "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape");
    }
  }
  const Dims strides = Strides(dense.shape());
  Status status = OkStatus();
  if (!VisitNumber(dense.dtype(), [&]<typename T>() {
        if constexpr (kOp == SparseDenseOp::kDivide) {
          // Also where no value of the sparse tensor meets the zero.
          const auto divisors = dense.flat<T>();
          if (std::any_of(divisors.begin(), divisors.end(), [](T v) { return IsZero(v); })) {
            status = InvalidArgument(
                "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero ");
            return;
          }
        }
        for (int64_t i = 0; i < view.count(); ++i) {
          int64_t at = 0;
          for (int d = 0; d < dense.rank(); ++d) {
            if (dense.dim(d) != 1) at += view.row(i)[d + missing] * strides[d];
          }
          const T a = view.values->data<T>()[i], b = dense.data<T>()[at];
          T& to = out->data<T>()[i];
          if constexpr (kOp == SparseDenseOp::kAdd) {
            to = AddValues(a, b);
          } else if constexpr (kOp == SparseDenseOp::kMultiply) {
            to = MultiplyValues(a, b);
          } else if constexpr (kIsHalf<T>) {
            to = T(static_cast<float>(a) / static_cast<float>(b));
          } else if constexpr (std::is_integral_v<T>) {
            to = b == static_cast<T>(-1) && std::is_signed_v<T> ? SubtractValues(T(0), a)
                                                                : static_cast<T>(a / b);
          } else {
            to = a / b;
          }
        }
      })) {
    return Unimplemented(ctx.node().op(), " of type ", DtypeName(dense.dtype()));
  }
  return status;
}

constexpr Kernel kSparseDenseTable[] = {
    {"SparseToDense", "", kAnyType, "sparse:to_dense", RunSparseToDense, PrepareSparseToDense},
    {"SparseTensorDenseMatMul", "T", kNumberTypes, "sparse:matmul", RunSparseTensorDenseMatMul,
     PrepareSparseMatMul},
    {"SparseMatMul", "", kAnyType, "sparse:matmul", RunSparseMatMul, PrepareMatMulOfZeros},
    {"SparseDenseCwiseAdd", "T", kNumberTypes, "sparse:cwise", RunSparseDense<SparseDenseOp::kAdd>},
    {"SparseDenseCwiseMul", "T", kNumberTypes, "sparse:cwise",
     RunSparseDense<SparseDenseOp::kMultiply>},
    {"SparseDenseCwiseDiv", "T", kNumberTypes, "sparse:cwise",
     RunSparseDense<SparseDenseOp::kDivide>},
};

}  // namespace

extern constinit const std::span<const Kernel> kSparseDenseKernels = kSparseDenseTable;

}  // namespace smelt
