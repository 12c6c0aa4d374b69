// XLA's ops, of which JAX makes models, where they are something simpler.
#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/rules.h"
#include "smelt/lite/common/xla_function.h"
#include "smelt/lite/rows/chain.h"
#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt {
namespace {

constexpr DtypeSet kXlaFloat = Types(Dtype::kFloat);
constexpr DtypeSet kXlaMoved = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8,
                                     Dtype::kUint8, Dtype::kInt16, Dtype::kBool);

bool IsAmong(std::span<const int64_t> numbers, int64_t n) {
  return std::ranges::find(numbers, n) != numbers.end();
}

LiteEndpoints XlaDotRow(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kXlaFloat));
  if (n.input_types[1] != Dtype::kFloat || n.output_types[0] != Dtype::kFloat) {
    return Unimplemented("its operator takes float alone");
  }
  ASSIGN_OR_RETURN(const DotDimensions d, ParseDotDimensions(n.String("dimension_numbers")));
  const int rank_a = l.rank(n.input(0)), rank_b = l.rank(n.input(1));
  if (rank_a < 0 || rank_b < 0) return Unimplemented("the ranks of its inputs are not known");
  EinsumLabels a(static_cast<size_t>(rank_a)), b(static_cast<size_t>(rank_b)), result;
  for (int i = 0; i < rank_a; ++i) a[static_cast<size_t>(i)] = i;
  for (int i = 0; i < rank_b; ++i) b[static_cast<size_t>(i)] = rank_a + i;
  const auto join = [&](const Dims& left, const Dims& right) {
    if (left.size() != right.size()) return false;
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] < 0 || left[i] >= rank_a || right[i] < 0 || right[i] >= rank_b) return false;
      b[static_cast<size_t>(right[i])] = static_cast<int>(left[i]);
    }
    return true;
  };
  if (!join(d.lhs_batch, d.rhs_batch) || !join(d.lhs_contracting, d.rhs_contracting)) {
    return InvalidArgument("its dimension numbers do not fit its inputs");
  }
  for (const int64_t i : d.lhs_batch) result.push_back(static_cast<int>(i));
  for (int i = 0; i < rank_a; ++i) {
    if (!IsAmong(d.lhs_batch, i) && !IsAmong(d.lhs_contracting, i)) result.push_back(i);
  }
  for (int i = 0; i < rank_b; ++i) {
    if (!IsAmong(d.rhs_batch, i) && !IsAmong(d.rhs_contracting, i)) result.push_back(rank_a + i);
  }
  return Contracted(n, l, a, b, result);
}

// XLA moves a slice that reaches beyond the end.
LiteEndpoints XlaSliceRow(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kXlaMoved));
  const PartialShape shape = l.shape(n.input(0));
  const auto sizes = l.Integers(n.input(2));
  if (!sizes || !shape.fully_known() || static_cast<int>(sizes->size()) != shape.rank()) {
    return Unimplemented("the sizes of its slice are not known");
  }
  std::vector<int64_t> last;
  for (int i = 0; i < shape.rank(); ++i)
    last.push_back(shape[i] - (*sizes)[static_cast<size_t>(i)]);
  if (auto begin = l.Integers(n.input(1)); begin && begin->size() == last.size()) {
    for (size_t i = 0; i < last.size(); ++i) {
      (*begin)[i] = std::max<int64_t>(std::min((*begin)[i], last[i]), 0);
    }
    return One(l.Add("tfl.slice", {n.input(0), l.Ints(*begin), l.Ints(*sizes)}, {}, l.OutputOf(n)));
  }
  ASSIGN_OR_RETURN(Endpoint start, AsInt32(n.input(1), l));
  OperatorChain c(l);
  start = c.Max(c.Min(start, l.Ints(last)), 0);
  return c.Done(c.Make("tfl.slice", {n.input(0), start, l.Ints(*sizes)}, {}, l.OutputOf(n)));
}

// What one index alone names is a slice, which XLA moves where it reaches beyond the end.
LiteEndpoints SliceByOne(Node& n, const GatherDimensions& d, std::span<const int64_t> sizes,
                         Legalizer& l) {
  const PartialShape from = l.shape(n.input(0));
  const auto rank = static_cast<int64_t>(sizes.size());
  const std::vector<int64_t> named(d.index_map.begin(), d.index_map.end());
  const auto count = static_cast<int64_t>(named.size());
  std::vector<int64_t> last;
  for (int i = 0; i < from.rank(); ++i) last.push_back(from[i] - sizes[static_cast<size_t>(i)]);
  OperatorChain c(l);
  Endpoint begin;
  if (const auto given = l.Integers(n.input(1)); given && given->size() == named.size()) {
    std::vector<int64_t> places(sizes.size(), 0);
    for (size_t i = 0; i < named.size(); ++i) {
      const auto k = static_cast<size_t>(named[i]);
      places[k] = std::max<int64_t>(std::min((*given)[i], last[k]), 0);
    }
    begin = l.Ints(places);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      if (named[static_cast<size_t>(i)] != named[0] + i) {
        return Unimplemented("its index is computed, and names dimensions that are no neighbors");
      }
    }
    ASSIGN_OR_RETURN(const Endpoint index, AsInt32(n.input(1), l));
    const std::vector<int64_t> around = {named[0], rank - named[0] - count};
    begin = c.Make("tfl.pad", {index, l.IntPairs(around)}, {},
                   {Dtype::kInt32, PartialShape::Of({rank})});
    begin = c.Max(c.Min(begin, l.Ints(last)), 0);
  }
  const Endpoint slice = c.Make("tfl.slice", {n.input(0), begin, l.Ints(sizes)}, {},
                                {l.type(n.input(0)), PartialShape::Of(sizes)});
  std::vector<int64_t> stay;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!IsAmong(d.collapsed, static_cast<int64_t>(i))) {
      stay.push_back(sizes[i]);
    }
  }
  return c.Done(stay.size() == sizes.size() ? slice : c.Reshape(slice, stay));
}

// Rows that indices name: those of an index map 0, 1, ..., whose dimensions the result lacks, and
// all of the others, behind those of the indices.
LiteEndpoints XlaGatherRow(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kXlaMoved));
  ASSIGN_OR_RETURN(const GatherDimensions d, ParseGatherDimensions(n.String("dimension_numbers")));
  const PartialShape from = l.shape(n.input(0)), at = l.shape(n.input(1));
  const auto sizes = l.Integers(n.input(2));
  if (!from.fully_known() || !at.known_rank() || !sizes ||
      static_cast<int>(sizes->size()) != from.rank()) {
    return Unimplemented("the sizes of its slices are not known");
  }
  // Dimensions that the operand and the indices share come first in the indices.
  const std::vector<int64_t> shared(d.operand_batch.begin(), d.operand_batch.end());
  const size_t count = d.index_map.size();
  if (!shared.empty() && count != 1) {
    return Unimplemented("its operand has dimensions of a batch, and indices name several others");
  }
  for (size_t i = 0; i < shared.size(); ++i) {
    if (i >= d.indices_batch.size() || d.indices_batch[i] != static_cast<int64_t>(i) ||
        d.index_vector < static_cast<int64_t>(shared.size())) {
      return Unimplemented("the batch does not come first in its indices");
    }
  }
  std::vector<int64_t> mapped(d.index_map.begin(), d.index_map.end());
  std::vector<int64_t> collapsed(d.collapsed.begin(), d.collapsed.end());
  std::ranges::sort(collapsed);
  for (size_t i = 0; i < count; ++i) {
    if (mapped[i] < 0 || mapped[i] >= from.rank()) return InvalidArgument("its index map is wrong");
  }
  std::vector<int64_t> sorted = mapped;
  std::ranges::sort(sorted);
  // Of dimensions that indices name, and stay, one element is taken: they are put back at the end.
  std::vector<int64_t> ones;
  std::ranges::set_difference(sorted, collapsed, std::back_inserter(ones));
  std::vector<int64_t> named;
  std::ranges::set_union(ones, collapsed, std::back_inserter(named));
  const bool alone = at.rank() == 1 && d.index_vector == 0 && shared.empty() && count > 0;
  if (sorted != collapsed && alone && at[0] == static_cast<int64_t>(count)) {
    return SliceByOne(n, d, *sizes, l);
  }
  if (sorted != named) return Unimplemented("it leaves out dimensions that no index names");
  for (int i = 0; i < from.rank(); ++i) {
    const bool taken = IsAmong(mapped, i) || IsAmong(shared, i);
    if ((*sizes)[static_cast<size_t>(i)] != (taken ? 1 : from[i])) {
      return Unimplemented(sorted == collapsed ? "its slices are parts of what stays"
                                               : "its slices begin in dimensions that stay");
    }
  }
  OperatorChain c(l);
  // Index vectors come last.
  ASSIGN_OR_RETURN(Endpoint indices, AsInt32(n.input(1), l));
  std::vector<int64_t> batch;
  for (int i = 0; i < at.rank(); ++i) {
    if (i != d.index_vector) batch.push_back(std::max<int64_t>(at[i], -1));
  }
  std::vector<int64_t> vectors = batch;
  vectors.push_back(static_cast<int64_t>(count));
  if (!shared.empty()) {
    if (d.index_vector < at.rank()) indices = c.Reshape(indices, batch);
  } else if (d.index_vector == at.rank()) {
    indices = c.Make("tfl.expand_dims", {indices, l.Int(-1)}, {},
                     {Dtype::kInt32, PartialShape::Of(vectors)});
  } else if (d.index_vector != at.rank() - 1) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < at.rank(); ++i) {
      if (i != d.index_vector) order.push_back(i);
    }
    order.push_back(d.index_vector);
    indices = c.Transpose(indices, order);
  }
  // Beyond the ends XLA takes what is there.
  std::vector<int64_t> last;
  for (const int64_t m : mapped) last.push_back(from[static_cast<int>(m)] - 1);
  indices = c.Max(c.Min(indices, l.Ints(last)), 0);
  // The operand's dimensions in the order of the map.
  std::vector<int64_t> order = shared, rest;
  order.insert(order.end(), mapped.begin(), mapped.end());
  for (int64_t i = 0; i < from.rank(); ++i) {
    if (!IsAmong(order, i)) rest.push_back(i);
  }
  order.insert(order.end(), rest.begin(), rest.end());
  Endpoint operand = n.input(0);
  if (!std::ranges::is_sorted(order)) operand = c.Transpose(operand, order);
  std::vector<int64_t> made = batch;
  for (const int64_t i : rest) made.push_back(from[static_cast<int>(i)]);
  const LiteOutput gathered = {l.type(n.input(0)), PartialShape::Of(made)};
  const auto axis = static_cast<int64_t>(shared.size());
  Endpoint rows = shared.empty()
                      ? c.Make("tfl.gather_nd", {operand, indices}, {}, gathered)
                      : c.Make("tfl.gather", {operand, indices},
                               Options({{"axis", axis}, {"batch_dims", axis}}), gathered);
  // The window's dimensions are where it says, those of the indices between them.
  std::vector<int64_t> places, sizes_then;
  size_t next_batch = 0, next_window = batch.size();
  int64_t next = 0;  // of the operand, in the window
  for (size_t i = 0; i < made.size() + ones.size(); ++i) {
    const bool window = IsAmong(d.window, static_cast<int64_t>(i));
    while (window && (IsAmong(collapsed, next) || IsAmong(shared, next))) ++next;
    if (window && IsAmong(ones, next++)) {
      sizes_then.push_back(1);
      continue;
    }
    places.push_back(static_cast<int64_t>(window ? next_window++ : next_batch++));
    sizes_then.push_back(made[static_cast<size_t>(places.back())]);
  }
  if (!std::ranges::is_sorted(places)) rows = c.Transpose(rows, places);
  return c.Done(ones.empty() ? rows : c.Reshape(rows, sizes_then));
}

// So many elements `fill` between neighbors along a dimension: behind each, without those behind
// the last.
Endpoint PadBetween(Endpoint e, std::vector<int64_t>* dims, size_t axis, int64_t count,
                    Endpoint fill, OperatorChain& c) {
  int64_t elements = 1, inside = 1;
  for (size_t i = 0; i < dims->size(); ++i) {
    (i <= axis ? elements : inside) *= (*dims)[i];
  }
  const Dtype type = c.l().type(e);
  Endpoint apart = c.Reshape(e, {elements, 1, inside});
  apart = c.Make("tfl.padv2",
                 {apart, c.l().IntPairs(std::array<int64_t, 6>{0, 0, 0, count, 0, 0}), fill}, {},
                 {type, PartialShape::Of({elements, 1 + count, inside})});
  (*dims)[axis] *= 1 + count;
  apart = c.Reshape(apart, *dims);
  (*dims)[axis] -= count;
  const std::vector<int64_t> begin(dims->size(), 0);
  return c.Make("tfl.slice", {apart, c.l().Ints(begin), c.l().Ints(*dims)}, {},
                {type, PartialShape::Of(*dims)});
}

// Padded where numbers are positive, cut where they are negative.
LiteEndpoints XlaPadRow(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  const auto low = l.Integers(n.input(2)), high = l.Integers(n.input(3)),
             interior = l.Integers(n.input(4));
  const PartialShape shape = l.shape(n.input(0));
  if (!low || !high || !interior || !shape.fully_known()) {
    return Unimplemented("its padding is no constant");
  }
  OperatorChain c(l);
  const auto rank = static_cast<size_t>(shape.rank());
  Endpoint e = n.input(0);
  std::vector<int64_t> from = StatedDims(shape);
  auto elements = static_cast<double>(NumElements(shape));
  for (size_t i = 0; i < rank; ++i) {
    const int64_t between = (*interior)[i];
    constexpr double kMostElements = 1e12;
    elements *= 1.0 + static_cast<double>(between);
    if (between < 0 || elements > kMostElements) {
      return Unimplemented("it pads by ", between, " between elements");
    }
    if (between > 0 && from[i] > 1) e = PadBetween(e, &from, i, between, n.input(1), c);
  }
  std::vector<int64_t> begin(rank), sizes, pads, dims;
  bool cuts = false, adds = false;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t before = (*low)[i], behind = (*high)[i], size = from[i];
    begin[i] = std::max<int64_t>(-before, 0);
    sizes.push_back(size - begin[i] - std::max<int64_t>(-behind, 0));
    if (sizes.back() < 0) return Unimplemented("it cuts more than there is");
    pads.insert(pads.end(), {std::max<int64_t>(before, 0), std::max<int64_t>(behind, 0)});
    dims.push_back(size + before + behind);
    cuts = cuts || before < 0 || behind < 0;
    adds = adds || before > 0 || behind > 0;
  }
  if (cuts) {
    e = c.Make("tfl.slice", {e, l.Ints(begin), l.Ints(sizes)}, {},
               {l.type(e), PartialShape::Of(sizes)});
  }
  if (!adds) return c.Done(e);
  return c.Done(c.Make("tfl.padv2", {e, l.IntPairs(pads), n.input(1)}, {},
                       {l.type(n.input(0)), PartialShape::Of(dims)}));
}

template <typename T>
bool IsNeutralNumber(OpName function, T n) {
  using Limits = std::numeric_limits<T>;
  if (function == OpName("Mul")) return n == 1;
  const T most = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const T least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (function == OpName("Maximum")) return n == least;
  return function == OpName("Minimum") ? n == most : n == 0;
}
// Does the function of this number and another give the other?
bool IsNeutral(OpName function, const Tensor& number) {
  switch (number.dtype()) {
    case Dtype::kFloat:
      return IsNeutralNumber(function, number.scalar<float>());
    case Dtype::kInt32:
      return IsNeutralNumber(function, number.scalar<int32_t>());
    default:
      return IsNeutralNumber(function, number.scalar<int64_t>());
  }
}

// Sums, products, maxima or minima of all that is before, or behind: windows as long as the
// dimension.
LiteEndpoints RunningRow(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  const PartialShape shape = l.shape(n.input(0));
  const auto first = l.Constant(n.input(1));
  std::optional<std::vector<int64_t>> numbers[5];
  for (int i = 0; i < 5; ++i) numbers[i] = l.Integers(n.input(2 + i));
  for (const auto& v : numbers) {
    if (!v || !shape.fully_known()) return Unimplemented("its windows are not known");
  }
  const auto ones = [](const std::vector<int64_t>& v) {
    return std::ranges::all_of(v, [](int64_t i) { return i == 1; });
  };
  if (!ones(*numbers[1]) || !ones(*numbers[2]) || !ones(*numbers[3])) {
    return Unimplemented("its windows do not stand beside each other");
  }
  struct Row {
    OpName function, op;
  };
  static constexpr Row kRows[] = {{"Add", "tfl.add"},
                                  {"AddV2", "tfl.add"},
                                  {"Mul", "tfl.mul"},
                                  {"Maximum", "tfl.maximum"},
                                  {"Minimum", "tfl.minimum"}};
  const OpName function = OpOfTwo(*l.graph().library(), n.Func("computation"));
  const auto* row = std::ranges::find(kRows, function, &Row::function);
  if (row == std::end(kRows) || !first || first->rank() != 0 || !IsNeutral(function, *first)) {
    return Unimplemented("it does not sum, multiply, or take maxima or minima");
  }
  int axis = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t window = (*numbers[0])[at];
    const int64_t low = (*numbers[4])[2 * at], high = (*numbers[4])[2 * at + 1];
    if (window == 1 && low == 0 && high == 0) continue;
    const bool before = low == window - 1 && high == 0, behind = high == window - 1 && low == 0;
    if (axis >= 0 || window != shape[i] || (!before && !behind)) {
      return Unimplemented("its windows are not all that is before");
    }
    axis = i;
  }
  if (axis < 0) return LiteEndpoints({n.input(0)});
  const bool reverse = (*numbers[4])[2 * static_cast<size_t>(axis)] == 0;
  if (row->op != OpName("tfl.add")) {
    if (shape[axis] > kMostRunning) return Unimplemented("its windows are too long");
    OperatorChain c(l);
    return c.Done(Running(row->op, n.input(0), axis, reverse, n.input(1), c));
  }
  return One(l.Add("tfl.cumsum", {n.input(0), l.Int(axis)}, Options({{"reverse", reverse}}),
                   l.OutputOf(n)));
}

// Those that SpellXlaScatters left.
LiteEndpoints RefuseScatter(Node&, Legalizer&) {
  return Unimplemented(
      "it does more than to set, add, or take maxima or minima of, what its indices name whole");
}

constexpr ExportRow kXlaRows[] = {
    {"XlaDot", XlaDotRow},         {"XlaDotV2", XlaDotRow}, {"XlaDynamicSlice", XlaSliceRow},
    {"XlaGather", XlaGatherRow},   {"XlaPad", XlaPadRow},   {"XlaReduceWindow", RunningRow},
    {"XlaScatter", RefuseScatter},
};

}  // namespace

std::span<const ExportRow> XlaExport() { return kXlaRows; }

}  // namespace smelt
