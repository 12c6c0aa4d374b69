// Systems of equations whose matrix is triangular, stored whole or as bands. Batches broadcast.
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/linalg/batch.h"
#include "smelt/kernels/linalg/dense.inc"
#include "smelt/kernels/nn/matmul_reference.h"

namespace smelt {
namespace {

struct TriangularAttrs {
  bool lower, adjoint;
};

// x holds the right-hand side, and then the solution. A zero on the diagonal gives infinities or
// NaN.
template <typename T>
void SolveWhole(const T* matrix, T* x, int64_t n, int64_t cols, TriangularAttrs attrs) {
  const DenseIn<T> a(matrix, n, n);
  DenseOut<T> y(x, n, cols);
  if (attrs.lower) {
    const auto lower = a.template triangularView<Eigen::Lower>();
    attrs.adjoint ? lower.adjoint().solveInPlace(y) : lower.solveInPlace(y);
  } else {
    const auto upper = a.template triangularView<Eigen::Upper>();
    attrs.adjoint ? upper.adjoint().solveInPlace(y) : upper.solveInPlace(y);
  }
}

// A triangular matrix of n rows of which `count` diagonals may hold numbers, each a row of `data`:
// the main one first when it is lower, last when upper. Element j of a band belongs to row j.
template <typename T>
struct BandMatrix {
  const T* data;
  int64_t count, n;
  TriangularAttrs attrs;

  const T* diagonal(int64_t distance) const {
    return data + (attrs.lower ? distance : count - 1 - distance) * n;
  }
  bool Invertible() const {
    const T* d = diagonal(0);
    if (n == 0) return true;
    // As TensorFlow's, from a minimum that a NaN takes part in only where it comes first.
    auto least = std::abs(d[0]);
    for (int64_t i = 1; i < n; ++i) least = std::min(least, std::abs(d[i]));
    return least > 0;
  }
};

// Substitution row by row; for the adjoint each solved row is subtracted from those that remain.
template <typename T>
void SolveBands(const BandMatrix<T>& a, T* x, int64_t cols) {
  const auto [lower, adjoint] = a.attrs;
  const bool downwards = lower != adjoint;
  const int64_t reach = std::min(a.count, a.n) - 1;
  for (int64_t step = 0; step < a.n; ++step) {
    const int64_t row = downwards ? step : a.n - 1 - step;
    T* y = x + row * cols;
    if (!adjoint) {
      for (int64_t d = 1; d <= std::min(reach, step); ++d) {
        const T factor = a.diagonal(d)[row];
        const T* solved = x + (lower ? row - d : row + d) * cols;
        for (int64_t c = 0; c < cols; ++c) y[c] -= factor * solved[c];
      }
    }
    const T pivot = ConjugateIf(a.diagonal(0)[row], adjoint);
    for (int64_t c = 0; c < cols; ++c) y[c] /= pivot;
    if (adjoint) {
      for (int64_t d = 1; d <= std::min(reach, a.n - 1 - step); ++d) {
        const T factor = ConjugateIf(a.diagonal(d)[row], true);
        T* open = x + (lower ? row - d : row + d) * cols;
        for (int64_t c = 0; c < cols; ++c) open[c] -= factor * y[c];
      }
    }
  }
}

Status CheckNotEmpty(const Tensor& t, int i) {
  if (t.num_elements() > 0) return OkStatus();
  return InvalidArgument("In[", i,
                         "] must not be an empty tensor: Tensor<type: ", DtypeName(t.dtype()),
                         " shape: ", t.shape().ToString(), " values: >");
}

// Checks the inputs. Returns the problem of the product matrix * solution, for its batches.
StatusOr<nn::MatMulProblem> CheckTriangular(const OpContext& ctx, bool banded,
                                            TriangularAttrs attrs) {
  const Tensor &matrix = ctx.input(0), &rhs = ctx.input(1);
  if (matrix.rank() < 2) return InvalidArgument("In[0] ndims must be >= 2: ", matrix.rank());
  if (rhs.rank() < 2) return InvalidArgument("In[1] ndims must be >= 2: ", rhs.rank());
  // TensorFlow checks the batches first: in these shapes the matrices fit whatever their sizes.
  Shape square = matrix.shape(), other = rhs.shape();
  const int64_t n = matrix.shape().back(1);
  square.Set(square.rank() - 2, n);
  other.Set(other.rank() - 2, n);
  ASSIGN_OR_RETURN(const nn::MatMulProblem problem,
                   nn::MakeMatMulProblem(square, other, false, false, true));
  if (banded) {
    RETURN_IF_ERROR(CheckNotEmpty(matrix, 0));
    RETURN_IF_ERROR(CheckNotEmpty(rhs, 1));
  } else if (matrix.shape().back(2) != n) {
    return InvalidArgument("In[0] matrices in the last dimensions must be square (", n,
                           " =/= ", matrix.shape().back(2), ")");
  }
  if (rhs.shape().back(2) != n) {
    return InvalidArgument("In[0] mismatch In[1] shape: ", n, " vs. ", rhs.shape().back(2), ": ",
                           matrix.shape().ToString(), " ", rhs.shape().ToString(), " ",
                           static_cast<int>(attrs.lower), " ", static_cast<int>(attrs.adjoint));
  }
  return problem;
}

template <typename T, bool kBanded>
Status SolveTriangularBatch(OpContext& ctx, const nn::MatMulProblem& p, TriangularAttrs attrs) {
  const int64_t n = p.k, cols = p.n, rows = ctx.input(0).shape().back(2);
  const nn::MatMulBatches batches(p);
  const T* matrices = ctx.input(0).data<T>();
  if (kBanded) {
    const int64_t count = ctx.input(0).num_elements() / (rows * n);
    for (int64_t b = 0; b < count; ++b) {
      if (!BandMatrix<T>{matrices + b * rows * n, rows, n, attrs}.Invertible()) {
        return InvalidArgument("Input matrix is not invertible.");
      }
    }
  }
  const T* from = ctx.input(1).data<T>();
  T* to = ctx.output(0).data<T>();
  const auto grain = static_cast<int64_t>(
      std::max(1.0, 2e4 / (static_cast<double>(n) * static_cast<double>(rows * cols))));
  ParallelFor(p.batches(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const auto [at, rhs] = batches.Operands(b);
      T* x = to + b * n * cols;
      std::copy_n(from + rhs * n * cols, n * cols, x);
      const T* matrix = matrices + at * rows * n;
      if constexpr (kBanded) {
        SolveBands(BandMatrix<T>{matrix, rows, n, attrs}, x, cols);
      } else {
        SolveWhole(matrix, x, n, cols, attrs);
      }
    }
  });
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareTriangular(const Node& node) {
  return ReadIntAttrs(node, {"lower", "adjoint"});
}

template <bool kBanded>
Status RunTriangularSolve(OpContext& ctx) {
  const auto& ints = ctx.state<IntAttrs>();
  const TriangularAttrs attrs{ints[0] != 0, ints[1] != 0};
  ASSIGN_OR_RETURN(const nn::MatMulProblem problem, CheckTriangular(ctx, kBanded, attrs));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, problem.output));
  if (out->num_elements() == 0) return OkStatus();
  return VisitMatrixType(ctx.input(0).dtype(), [&]<typename T>() {
    return SolveTriangularBatch<T, kBanded>(ctx, problem, attrs);
  });
}

constexpr Kernel kTriangularTable[] = {
    {"MatrixTriangularSolve", "T", kMatrixTypes, "linalg:triangular_solve",
     RunTriangularSolve<false>, PrepareTriangular},
    {"BandedTriangularSolve", "T", kMatrixTypes, "linalg:banded_solve", RunTriangularSolve<true>,
     PrepareTriangular},
};

}  // namespace

extern constinit const std::span<const Kernel> kTriangularKernels = kTriangularTable;

}  // namespace smelt
