// Linear algebra of small matrices, element by element or column by column.
#include <algorithm>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// Columns are computed one by one: of so many at most.
constexpr int64_t kMostColumns = 32;
// Determinants by cofactors.
constexpr int64_t kMostCofactors = 3;

std::vector<int64_t> MatrixDims(const PartialShape& shape) {
  std::vector<int64_t> out;
  for (int i = 0; i < shape.rank(); ++i) out.push_back(std::max<int64_t>(shape[i], -1));
  return out;
}

// The size of square matrices.
StatusOr<int64_t> SquareSize(Endpoint e, int64_t most, const Legalizer& l) {
  const PartialShape shape = l.shape(e);
  const int rank = shape.rank();
  if (rank < 2 || shape[rank - 1] < 1 || shape[rank - 1] != shape[rank - 2]) {
    return Unimplemented("the size of its matrices is not known");
  }
  if (shape[rank - 1] > most) {
    return Unimplemented("its matrices are of ", shape[rank - 1], " rows, and more than ", most,
                         " are not spelled out");
  }
  return shape[rank - 1];
}

// Rows and columns [row, row + rows) and so on of the innermost matrices.
Endpoint Block(Endpoint e, int64_t row, int64_t rows, int64_t column, int64_t columns,
               OperatorChain& c) {
  if (!c.ok()) return {};
  std::vector<int64_t> dims = MatrixDims(c.shape(e));
  std::vector<int64_t> begin(dims.size()), sizes(dims.size(), -1);
  const size_t last = dims.size() - 1;
  begin[last - 1] = row;
  begin[last] = column;
  sizes[last - 1] = dims[last - 1] = rows;
  sizes[last] = dims[last] = columns;
  return c.Make("tfl.slice", {e, c.l().Ints(begin), c.l().Ints(sizes)}, {},
                {c.l().type(e), PartialShape::Of(dims)});
}

Endpoint Joined(const std::vector<Endpoint>& parts, int axis_from_end, OperatorChain& c) {
  if (parts.size() == 1 || !c.ok()) return parts[0];
  std::vector<int64_t> dims = MatrixDims(c.shape(parts[0]));
  const size_t axis = dims.size() - static_cast<size_t>(axis_from_end);
  dims[axis] = 0;
  for (const Endpoint& e : parts) dims[axis] += c.shape(e)[static_cast<int>(axis)];
  const auto made =
      c.l().Add("tfl.concatenation", parts, Options({{"axis", static_cast<int64_t>(axis)}}),
                {c.l().type(parts[0]), PartialShape::Of(dims)});
  c.Fail(made.status());
  return made.ok() ? *made : Endpoint();
}

// Each column less what the columns before it explain, over the root of its first element.
LiteEndpoints Cholesky(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  ASSIGN_OR_RETURN(const int64_t size, SquareSize(n.input(0), kMostColumns, l));
  OperatorChain c(l);
  std::vector<Endpoint> columns;  // below and at the diagonal
  std::vector<Endpoint> whole;
  for (int64_t k = 0; k < size; ++k) {
    Endpoint rest = Block(n.input(0), k, size - k, k, 1, c);
    for (int64_t i = 0; i < k; ++i) {
      // The column's rows from k on, and its element in row k.
      const Endpoint below = Block(columns[static_cast<size_t>(i)], k - i, size - k, 0, 1, c);
      const Endpoint first = Block(columns[static_cast<size_t>(i)], k - i, 1, 0, 1, c);
      rest = c.Sub(rest, c.Mul(below, first));
    }
    columns.push_back(c.Div(rest, c.Op("tfl.sqrt", {Block(rest, 0, 1, 0, 1, c)})));
    if (k == 0) {
      whole.push_back(columns.back());
      continue;
    }
    const Endpoint above = c.Op("tfl.zeros_like", {Block(columns[0], 0, k, 0, 1, c)});
    whole.push_back(Joined({above, columns.back()}, 2, c));
  }
  return c.Done(Joined(whole, 1, c));
}

// Row by row, from the one that has a single unknown.
LiteEndpoints TriangularSolve(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  ASSIGN_OR_RETURN(const int64_t size, SquareSize(n.input(0), kMostColumns, l));
  const PartialShape right = l.shape(n.input(1));
  if (right.rank() != l.rank(n.input(0))) return Unimplemented("its batches broadcast");
  const bool adjoint = n.Bool("adjoint"), from_top = n.Bool("lower", true) != adjoint;
  const int64_t columns = std::max<int64_t>(right[right.rank() - 1], -1);
  OperatorChain c(l);
  std::vector<Endpoint> solved(static_cast<size_t>(size));
  for (int64_t step = 0; step < size; ++step) {
    const int64_t row = from_top ? step : size - 1 - step;
    const auto factor = [&](int64_t k) {
      return adjoint ? Block(n.input(0), k, 1, row, 1, c) : Block(n.input(0), row, 1, k, 1, c);
    };
    Endpoint rest = Block(n.input(1), row, 1, 0, columns, c);
    for (int64_t before = 0; before < step; ++before) {
      const int64_t k = from_top ? before : size - 1 - before;
      rest = c.Sub(rest, c.Mul(factor(k), solved[static_cast<size_t>(k)]));
    }
    solved[static_cast<size_t>(row)] = c.Div(rest, factor(row));
  }
  return c.Done(Joined(solved, 2, c));
}

// The element of the innermost matrices; (..., 1, 1).
using Elements = std::vector<std::vector<Endpoint>>;

Elements ElementsOf(Endpoint e, int64_t size, OperatorChain& c) {
  Elements out(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t k = 0; k < size; ++k) {
      out[static_cast<size_t>(i)].push_back(Block(e, i, 1, k, 1, c));
    }
  }
  return out;
}

// Of the matrix without row i and column k, by its sign.
Endpoint Cofactor(const Elements& m, size_t i, size_t k, OperatorChain& c) {
  const size_t size = m.size();
  if (size == 2) {
    const Endpoint e = m[1 - i][1 - k];
    return i == k ? e : c.Op("tfl.neg", {e});
  }
  // Going around gives the sign.
  const size_t a = (i + 1) % 3, b = (i + 2) % 3, p = (k + 1) % 3, q = (k + 2) % 3;
  return c.Sub(c.Mul(m[a][p], m[b][q]), c.Mul(m[a][q], m[b][p]));
}

Endpoint DeterminantOf(const Elements& m, OperatorChain& c) {
  if (m.size() == 1) return m[0][0];
  Endpoint sum;
  for (size_t k = 0; k < m.size(); ++k) {
    const Endpoint term = c.Mul(m[0][k], Cofactor(m, 0, k, c));
    sum = k == 0 ? term : c.Add(sum, term);
  }
  return sum;
}

// A number in place of each matrix (..., 1, 1).
Endpoint WithoutMatrix(Endpoint e, const LiteOutput& out, OperatorChain& c) {
  const int64_t rank = c.shape(e).rank();
  const std::vector<int64_t> squeezed = {rank - 2, rank - 1};
  return c.Make("tfl.squeeze", {e}, Options({{"squeeze_dims", squeezed}}), out);
}

LiteEndpoints Determinant(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  ASSIGN_OR_RETURN(const int64_t size, SquareSize(n.input(0), kMostCofactors, l));
  OperatorChain c(l);
  return c.Done(WithoutMatrix(DeterminantOf(ElementsOf(n.input(0), size, c), c), l.OutputOf(n), c));
}

// Its sign, and the logarithm of its size: of a singular matrix 0 and -inf.
LiteEndpoints LogDeterminant(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  ASSIGN_OR_RETURN(const int64_t size, SquareSize(n.input(0), kMostCofactors, l));
  OperatorChain c(l);
  const Endpoint value =
      WithoutMatrix(DeterminantOf(ElementsOf(n.input(0), size, c), c), l.OutputOf(n), c);
  return c.Done({c.Op("tfl.sign", {value}), c.Op("tfl.log", {c.Op("tfl.abs", {value})})});
}

StatusOr<Endpoint> InverseOf(Endpoint e, bool adjoint, OperatorChain& c) {
  ASSIGN_OR_RETURN(const int64_t size, SquareSize(e, kMostCofactors, c.l()));
  const Elements m = ElementsOf(e, size, c);
  if (size == 1) return c.Div(1, m[0][0]);
  std::vector<Endpoint> rows;
  for (size_t i = 0; i < m.size(); ++i) {
    std::vector<Endpoint> row;
    for (size_t k = 0; k < m.size(); ++k) {
      row.push_back(adjoint ? Cofactor(m, i, k, c) : Cofactor(m, k, i, c));
    }
    rows.push_back(Joined(row, 1, c));
  }
  return c.Div(Joined(rows, 2, c), DeterminantOf(m, c));
}

LiteEndpoints Inverse(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  OperatorChain c(l);
  ASSIGN_OR_RETURN(const Endpoint inverse, InverseOf(n.input(0), n.Bool("adjoint"), c));
  return c.Done(inverse);
}

LiteEndpoints Solved(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  OperatorChain c(l);
  ASSIGN_OR_RETURN(const Endpoint inverse, InverseOf(n.input(0), n.Bool("adjoint"), c));
  return c.Done(c.Make("tfl.batch_matmul", {inverse, n.input(1)}, {}, l.OutputOf(n)));
}

// Rows of zeros above and below the innermost matrices.
Endpoint WithRows(Endpoint e, int64_t above, int64_t below, OperatorChain& c) {
  if (!c.ok()) return {};
  std::vector<int64_t> dims = MatrixDims(c.shape(e));
  std::vector<int64_t> pads(2 * dims.size());
  const size_t row = dims.size() - 2;
  pads[2 * row] = above;
  pads[2 * row + 1] = below;
  dims[row] += above + below;
  return c.Make("tfl.pad", {e, c.l().IntPairs(pads)}, {}, {c.l().type(e), PartialShape::Of(dims)});
}

// Each row by the diagonal, and its neighbours by the elements beside it: the unused corners are
// cut off, for they may be no numbers.
LiteEndpoints TridiagonalProduct(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const PartialShape right = l.shape(n.input(3));
  const int rank = right.rank();
  if (rank < 2 || right[rank - 2] < 1)
    return Unimplemented("the size of its matrices is not known");
  const int64_t size = right[rank - 2], columns = std::max<int64_t>(right[rank - 1], -1);
  OperatorChain c(l);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const auto diagonal = [&](int i, int64_t first, int64_t count) {
    const Endpoint e = n.input(i);
    return c.Transpose(count == size ? e : Block(e, 0, 1, first, count, c), order);
  };
  const auto rows = [&](int64_t first) {
    return Block(n.input(3), first, size - 1, 0, columns, c);
  };
  Endpoint sum = c.Mul(diagonal(1, 0, size), n.input(3));
  if (size == 1) return c.Done(sum);
  const Endpoint above = diagonal(0, 0, size - 1);
  sum = c.Add(sum, WithRows(c.Mul(above, rows(1)), 0, 1, c));
  const Endpoint below = diagonal(2, 1, size - 1);
  return c.Done(c.Add(sum, WithRows(c.Mul(below, rows(0)), 1, 0, c)));
}

// Of vectors of three elements.
LiteEndpoints CrossProduct(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  const PartialShape shape = l.shape(n.input(0));
  if (shape.rank() < 1) return Unimplemented("the rank of its inputs is not known");
  const auto turned = [&](Endpoint e, std::vector<int64_t> order, OperatorChain& c) {
    return c.Make("tfl.gather", {e, l.Ints(order)}, Options({{"axis", int64_t{shape.rank()} - 1}}),
                  l.OutputOf(n));
  };
  OperatorChain c(l);
  const Endpoint a = c.Mul(turned(n.input(0), {1, 2, 0}, c), turned(n.input(1), {2, 0, 1}, c));
  const Endpoint b = c.Mul(turned(n.input(0), {2, 0, 1}, c), turned(n.input(1), {1, 2, 0}, c));
  return c.Done(c.Sub(a, b));
}

constexpr ExportRow kMatrixRows[] = {
    {"Cholesky", Cholesky},
    {"BatchCholesky", Cholesky},
    {"MatrixTriangularSolve", TriangularSolve},
    {"BatchMatrixTriangularSolve", TriangularSolve},
    {"MatrixDeterminant", Determinant},
    {"BatchMatrixDeterminant", Determinant},
    {"LogMatrixDeterminant", LogDeterminant},
    {"TridiagonalMatMul", TridiagonalProduct},
    {"MatrixInverse", Inverse},
    {"BatchMatrixInverse", Inverse},
    {"MatrixSolve", Solved},
    {"BatchMatrixSolve", Solved},
    {"Cross", CrossProduct},
};

}  // namespace

std::span<const ExportRow> MatrixExport() { return kMatrixRows; }

}  // namespace smelt
