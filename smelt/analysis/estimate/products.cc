// Products of matrices.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "smelt/analysis/estimate/rows.h"

namespace smelt::estimate {
namespace {

// [m, k] times [k, n], as they are stored. Nothing where they do not fit each other.
int64_t ProductFlops(const Dims& a, const Dims& b, bool transpose_a, bool transpose_b) {
  const int64_t m = a[transpose_a ? 1 : 0], k = a[transpose_a ? 0 : 1];
  const int64_t n = b[transpose_b ? 0 : 1], other_k = b[transpose_b ? 1 : 0];
  if (k != 1 && other_k != 1 && k != other_k) return 0;
  return Multiply(2, m, n, std::max(k, other_k));
}

OpEstimate EstimateMatMul(Op& op) {
  const Dims a = op.Sizes(op.input(0), 2), b = op.Sizes(op.input(1), 2);
  return op.Whole(ProductFlops(a, b, op.node.Bool("transpose_a"), op.node.Bool("transpose_b")));
}

// The sizes before the last two.
Dims BatchSizes(const Dims& sizes) { return Dims(sizes.begin(), sizes.end() - 2); }
Dims MatrixSizes(const Dims& sizes) { return Dims(sizes.end() - 2, sizes.end()); }

OpEstimate EstimateBatchMatMul(Op& op) {
  Dims a = op.Sizes(op.input(0), std::max(2, op.input(0).rank()));
  Dims b = op.Sizes(op.input(1), std::max(2, op.input(1).rank()));
  int64_t products = 1;
  const Dims more = BatchSizes(a.size() < b.size() ? b : a);
  const Dims fewer = BatchSizes(a.size() < b.size() ? a : b);
  for (size_t i = 0; i < more.size(); ++i) {
    const size_t missing = more.size() - fewer.size();
    products = Multiply(products, std::max(more[i], i < missing ? 1 : fewer[i - missing]));
  }
  return op.Whole(Multiply(products, ProductFlops(MatrixSizes(a), MatrixSizes(b),
                                                  op.node.Bool("adj_x"), op.node.Bool("adj_y"))));
}

bool HasRepeats(absl::string_view labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels.find(labels[i], i + 1) != absl::string_view::npos) return true;
  }
  return false;
}

// Products of two operands whose labels each mean one thing: a batch, a row, a column or a sum.
OpEstimate EstimateEinsum(Op& op) {
  const std::string equation = op.node.String("equation");
  const std::vector<absl::string_view> sides = absl::StrSplit(equation, "->");
  if (op.node.num_inputs() != 2 || sides.size() != 2) return op.Unknown();
  const std::vector<absl::string_view> labels = absl::StrSplit(sides[0], ',');
  if (labels.size() != 2 || absl::StrContains(sides[0], "...")) return op.Unknown();
  Dims sizes[2];
  for (int i = 0; i < 2; ++i) {
    const PartialShape& shape = op.input(i);
    sizes[i] = op.Sizes(shape, std::max(2, shape.rank()));
    const absl::string_view named = labels[static_cast<size_t>(i)];
    if (named.size() != sizes[i].size() || HasRepeats(named)) return op.Unknown();
  }
  if (HasRepeats(sides[1])) return op.Unknown();
  const auto has = [](absl::string_view text, char label) {
    return text.find(label) != absl::string_view::npos;
  };
  // Every label counts once: sums, batches, and what only one operand has.
  int64_t flops = 2, bytes_read = 0;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  for (size_t i = 0; i < labels[0].size(); ++i) {
    const char label = labels[0][i];
    int64_t& kind = !has(labels[1], label) ? m : has(sides[1], label) ? batch : k;
    if (&kind == &m && !has(sides[1], label)) return op.Unknown();
    kind = Multiply(kind, sizes[0][i]);
  }
  for (size_t i = 0; i < labels[1].size(); ++i) {
    const char label = labels[1][i];
    if (has(labels[0], label)) continue;
    if (!has(sides[1], label)) return op.Unknown();
    n = Multiply(n, sizes[1][i]);
  }
  flops = Multiply(flops, batch, m, n, k);
  bytes_read = AddEstimates(
      Multiply(batch, m, k, static_cast<int64_t>(DtypeSize(BaseType(op.input_type(0))))),
      Multiply(batch, k, n, static_cast<int64_t>(DtypeSize(BaseType(op.input_type(1))))));
  const int64_t bytes_written = op.AllOutputBytes();
  return op.Of(flops, bytes_read, bytes_written);
}

// Every element of a that is there meets a row of b.
OpEstimate EstimateSparseTensorDenseMatMul(Op& op) {
  const int64_t elements = op.Elements(op.input(1));
  const int64_t n = op.Sizes(op.input(3), 2)[1];
  int64_t read = Multiply(elements, n, static_cast<int64_t>(DtypeSize(BaseType(op.input_type(3)))));
  for (int i = 0; i < 3; ++i) read = AddEstimates(read, op.InputBytes(i));
  const int64_t written = op.AllOutputBytes();
  return op.Of(Multiply(2, elements, n), read, written);
}

constexpr Row kProductRows[] = {
    {"BatchMatMul", EstimateBatchMatMul},
    {"BatchMatMulV2", EstimateBatchMatMul},
    {"BatchMatMulV3", EstimateBatchMatMul, KnownOps::kMore},
    {"Einsum", EstimateEinsum},
    {"MatMul", EstimateMatMul},
    {"QuantizedMatMul", EstimateMatMul},
    {"SparseMatMul", EstimateMatMul},
    {"SparseTensorDenseMatMul", EstimateSparseTensorDenseMatMul},
    {"XlaEinsum", EstimateEinsum},
    {"_FusedMatMul", EstimateMatMul, KnownOps::kMore},
};

}  // namespace

const std::span<const Row> kProducts = kProductRows;

}  // namespace smelt::estimate
