#include "smelt/lite/recurrences/cell.h"

#include <algorithm>

#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/values.h"
#include "smelt/lite/common/evaluate.h"

namespace smelt {

Endpoint BehindChecks(Endpoint e) {
  for (;;) {
    e = BehindIdentities(e);
    if (!e.node->Is("EnsureShape")) return e;
    e = e.node->input(0);
  }
}

std::optional<std::vector<int64_t>> StatedInts(Endpoint e) {
  const auto value = ConstantTensor(*BehindChecks(e).node);
  const auto ints = value ? IntVectorOf(*value) : std::nullopt;
  if (!ints || !ints->complete()) return std::nullopt;
  return std::vector<int64_t>(ints->values.begin(), ints->values.end());
}

bool SwapsTime(const Node& n) {
  return n.Is("Transpose") && StatedInts(n.input(1)) == std::vector<int64_t>{1, 0, 2};
}

namespace {

// One dimension of a tensor, and another that is the same.
struct TimeSize {
  Endpoint of;
  int64_t dim;
  bool operator==(const TimeSize&) const = default;
};
TimeSize OriginOfSize(TimeSize s) {
  for (;;) {
    s.of = BehindChecks(s.of);
    const Node& n = *s.of.node;
    if (n.Is("Transpose")) {
      const auto order = StatedInts(n.input(1));
      if (!order || s.dim >= static_cast<int64_t>(order->size())) return s;
      s.dim = (*order)[static_cast<size_t>(s.dim)];
    } else if (n.Is("tfl.unidirectional_sequence_lstm")) {
      if (s.dim > 1) return s;
    } else if (!n.Is({"ReverseV2", "BiasAdd", "Relu", "Tanh", "Sigmoid"})) {
      return s;
    }
    s.of = n.input(0);
  }
}

}  // namespace

namespace {

// Is the number no less than that of the rows of x?
bool IsRowsAtLeast(Endpoint number, Endpoint x, const ShapeTable& shapes) {
  const Node& n = *BehindChecks(number).node;
  if (n.Is("Maximum") &&
      (IsRowsAtLeast(n.input(0), x, shapes) || IsRowsAtLeast(n.input(1), x, shapes))) {
    return true;
  }
  return IsRowsOf(number, x, shapes);
}

}  // namespace

bool IsRowsOf(Endpoint number, Endpoint x, const ShapeTable& shapes) {
  number = BehindChecks(number);
  const Node& n = *number.node;
  if (const auto stated = StatedInts(number)) {
    const PartialShape& shape = shapes.of(x);
    return stated->size() == 1 && shape.known_rank() && shape.rank() > 0 &&
           shape[0] == stated->front();
  }
  if (n.Is("Maximum")) {
    for (const int i : {0, 1}) {
      const auto low = StatedInts(n.input(i));
      if (low && low->size() == 1 && low->front() <= 0) return IsRowsOf(n.input(1 - i), x, shapes);
    }
    return false;
  }
  if (n.Is("Minimum")) {
    const Endpoint a = n.input(0), b = n.input(1);
    return (IsRowsOf(a, x, shapes) && IsRowsAtLeast(b, x, shapes)) ||
           (IsRowsOf(b, x, shapes) && IsRowsAtLeast(a, x, shapes));
  }
  if (!n.Is("StridedSlice") || n.Int("shrink_axis_mask") != 1 || n.Int("begin_mask") > 1) {
    return false;
  }
  const Node& of = *BehindChecks(n.input(0)).node;
  const auto begin = StatedInts(n.input(1));
  if (!of.Is("Shape") || !begin || begin->size() != 1) return false;
  const int64_t dim = n.Int("begin_mask") == 1 ? 0 : begin->front();
  if (dim < 0) return false;
  return OriginOfSize({of.input(0), dim}) == OriginOfSize({x, 0});
}

std::string WhyNotAllRows(const Scan& scan, Endpoint x, const ShapeTable& shapes) {
  if (!IsRowsOf(scan.steps(), x, shapes)) {
    return absl::StrCat("it is not known to read all of its input: how many steps there are says '",
                        BehindChecks(scan.steps()).node->name(), "' (",
                        BehindChecks(scan.steps()).node->op(), ")");
  }
  for (int i = 0; i < scan.arrays; ++i) {
    const Endpoint length = scan.length(i);
    const bool fits = scan.last[static_cast<size_t>(i)]
                          ? StatedInts(length) == std::vector<int64_t>{1}
                          : IsRowsOf(length, x, shapes);
    if (!fits) return "it gives more rows than it has steps";
  }
  return "";
}

StatusOr<Tensor> GateSum::Bias() const {
  ASSIGN_OR_RETURN(Tensor sum, Tensor::Zeros(Dtype::kFloat, Shape({units()})));
  for (const Tensor& b : biases) {
    ASSIGN_OR_RETURN(sum, Binary("AddV2", sum, b));
  }
  return sum;
}

Endpoint CellReader::MaskOf(Endpoint condition) const {
  for (;;) {
    condition = BehindChecks(condition);
    const Node& n = *condition.node;
    if (n.Is("_Arg")) break;
    // One truth value for each sequence, repeated for its numbers.
    if (!n.Is({"Tile", "BroadcastTo", "ExpandDims"})) return {nullptr, 0};
    condition = n.input(0);
  }
  const int row = static_cast<int>(condition.node->Int("index")) - scan_.states;
  return row >= 0 && row < scan_.rows ? scan_.row(row) : Endpoint{nullptr, 0};
}

bool CellReader::IsZeros(Endpoint e, bool in_body) const {
  if (const auto value = Constant(e, in_body)) {
    return value->dtype() == Dtype::kFloat &&
           std::ranges::all_of(value->flat<float>(), [](float v) { return v == 0; });
  }
  e = BehindChecks(e);
  if (e.node->Is("ZerosLike")) return true;
  return e.node->Is("Fill") && IsZeros(e.node->input(1), in_body);
}

bool CellReader::TakeMask() {
  int masks = 0;
  for (int i = 0; i < scan_.states + scan_.arrays; ++i) {
    const Endpoint e = BehindIdentities(scan_.results[static_cast<size_t>(i)]->input(0));
    results_.push_back({e, -1});
    const Node& n = *e.node;
    if (!n.Is({"Select", "SelectV2"})) continue;
    const Endpoint mask = MaskOf(n.input(0));
    if (mask.node == nullptr)
      return No("a state is chosen by what is no row of a mask: ", n.name());
    if (masks++ > 0 && !(mask == mask_)) return No("its states have several masks");
    mask_ = mask;
    results_.back().value = BehindIdentities(n.input(1));
    const Endpoint other = BehindIdentities(n.input(2));
    const auto state = std::ranges::find(scan_.args, other.node);
    const auto at = static_cast<int>(state - scan_.args.begin());
    if (at < scan_.states && (i >= scan_.states || at == i)) {
      results_.back().instead = at;
    } else if (i < scan_.states || !IsZeros(other, true)) {
      return No("where its mask says no, something else than a state stands: ", n.name());
    }
  }
  if (masks > 0 && masks < scan_.states + scan_.arrays)
    return No("a mask is for some states alone");
  return true;
}

bool CellReader::CheckGates(std::span<const GateSum> sums) {
  for (const GateSum& s : sums) {
    if (!s.weights || !s.recurrent) return No("a gate lacks its input or its state");
    if (!(s.x == sums[0].x)) return No("its gates read several inputs");
    if (s.weights->dtype() != Dtype::kFloat) return No("it does not compute in float");
    const int64_t units = sums[0].units();
    if (s.units() != units || s.recurrent->dim(0) != units || s.recurrent->dim(1) != units) {
      return No("its gates have several sizes");
    }
    for (const Tensor& b : s.biases) {
      if (b.rank() > 0 && b.dim(0) != units) return No("its biases are broadcast");
    }
  }
  return true;
}

bool CellReader::GivesOnly(int hidden, int own) {
  for (int i = 0; i < scan_.states + scan_.arrays; ++i) {
    if (i == own) continue;
    if (!(result(i).value == result(hidden).value))
      return No("it gives something else than its outputs");
    if (result(i).instead == own && own >= 0)
      return No("masked outputs are those of another state");
  }
  return true;
}

// Wherever it is stated.
std::optional<Tensor> CellReader::Constant(Endpoint e, bool in_body) const {
  e = BehindChecks(e);
  if (in_body && e.node->Is("_Arg")) {
    const int rest = static_cast<int>(e.node->Int("index")) - scan_.states - scan_.rows;
    if (rest < 0) return std::nullopt;
    e = BehindChecks(scan_.rest_of(rest));
  }
  return ConstantTensor(*e.node);
}

StatusOr<Tensor> CellReader::Part(const Tensor& t, Columns c, bool transposed) {
  Tensor from = t;
  if (transposed) {
    ASSIGN_OR_RETURN(from, Transposed(t, {1, 0}));
  }
  if (c.parts == 1) return from;
  const int64_t width = from.dim(from.rank() - 1) / c.parts;
  std::vector<int64_t> begin(static_cast<size_t>(from.rank()), 0), sizes;
  for (int i = 0; i < from.rank(); ++i) sizes.push_back(from.dim(i));
  begin.back() = c.part * width;
  sizes.back() = width;
  AttrMap attrs;
  attrs.Set("T", from.dtype());
  attrs.Set("Index", Dtype::kInt64);
  ASSIGN_OR_RETURN(auto out, Evaluate("Slice",
                                      {from, Tensor::Vector(std::span<const int64_t>(begin)),
                                       Tensor::Vector(std::span<const int64_t>(sizes))},
                                      std::move(attrs)));
  return std::move(out[0]);
}

StatusOr<bool> CellReader::Add(Endpoint e, int hidden, bool in_body, Columns c, GateSum& sum) {
  e = BehindChecks(e);
  const Node& n = *e.node;
  if (const auto value = Constant(e, in_body)) {
    if (value->rank() == 0) {
      sum.biases.push_back(*value);
      return true;
    }
    if (value->rank() != 1) return No("what it adds is no vector of a bias: ", n.name());
    ASSIGN_OR_RETURN(sum.biases.emplace_back(), Part(*value, c, false));
    return true;
  }
  if (n.Is(kCellAdds) || n.Is("BiasAdd")) {
    ASSIGN_OR_RETURN(const bool left, Add(n.input(0), hidden, in_body, c, sum));
    if (!left) return false;
    return Add(n.input(1), hidden, in_body, c, sum);
  }
  if (n.Is("Split")) {
    const auto axis = StatedInts(n.input(0));
    const int64_t dims = in_body ? 2 : 3;
    if (c.parts != 1 || !axis || (axis->front() != -1 && axis->front() != dims - 1)) {
      return No("its gates are split in another way: ", n.name());
    }
    return Add(n.input(1), hidden, in_body, {e.port, n.Int("num_split")}, sum);
  }
  if (in_body && n.Is("_Arg")) {
    const int row = static_cast<int>(n.Int("index")) - scan_.states;
    if (row < 0 || row >= scan_.rows) return No("a gate adds a state: ", n.name());
    return Add(scan_.row(row), hidden, false, c, sum);
  }
  if (in_body && n.Is("MatMul")) {
    const auto matrix = Constant(n.input(1), true);
    if (!matrix || matrix->rank() != 2 || n.Bool("transpose_a") || sum.recurrent) {
      return No("a product of its state is not with one constant matrix: ", n.name());
    }
    const Endpoint state = BehindIdentities(n.input(0));
    if (state.node != scan_.args[static_cast<size_t>(hidden)]) {
      return No("a gate multiplies something else than the last output: ", n.name());
    }
    ASSIGN_OR_RETURN(sum.recurrent, Part(*matrix, c, n.Bool("transpose_b")));
    return true;
  }
  if (!in_body && n.Is({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})) {
    const auto matrix = Constant(n.input(1), false);
    if (!matrix || matrix->rank() != 2 || n.Bool("adj_x") || sum.weights) {
      return No("a product of its input is not with one constant matrix: ", n.name());
    }
    sum.x = BehindChecks(n.input(0));
    ASSIGN_OR_RETURN(sum.weights, Part(*matrix, c, n.Bool("adj_y")));
    return true;
  }
  return No("a gate is made by ", n.op(), " '", n.name(), "'");
}

}  // namespace smelt
