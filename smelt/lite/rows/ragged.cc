// Rows of their own lengths: what RaggedTensors are made of and become.
#include <algorithm>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kRaggedTypes = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8,
                                        Dtype::kUint8, Dtype::kInt16, Dtype::kBool);

// Where rows begin among their values, and how many each has: int32 vectors.
struct RaggedRows {
  Endpoint starts, lengths;
};

// All but the last, or the first, of a vector.
Endpoint WithoutEnd(Endpoint e, bool last, OperatorChain& c) {
  Legalizer& l = c.l();
  const int64_t size = c.shape(e).rank() == 1 ? c.shape(e)[0] : -1;
  const std::vector<int64_t> begin = {last ? 0 : 1}, end = {last ? -1 : 0}, step = {1};
  return c.Make("tfl.strided_slice", {e, l.Ints(begin), l.Ints(end), l.Ints(step)},
                last ? Options({{"begin_mask", int64_t{1}}}) : Options({{"end_mask", int64_t{1}}}),
                {l.type(e), PartialShape::Of({size < 0 ? -1 : size - 1})});
}

RaggedRows RowsOfSplits(Endpoint splits, OperatorChain& c) {
  const Endpoint starts = WithoutEnd(splits, true, c);
  return {starts, c.Sub(WithoutEnd(splits, false, c), starts)};
}

Endpoint RunningSum(Endpoint e, bool exclusive, OperatorChain& c) {
  return c.Make("tfl.cumsum", {e, c.l().Int(0)}, Options({{"exclusive", exclusive}}),
                {Dtype::kInt32, c.shape(e)});
}

Endpoint OnesLike(Endpoint e, OperatorChain& c) { return c.Add(c.Op("tfl.zeros_like", {e}), 1); }

Endpoint JoinedVectors(Endpoint a, Endpoint b, OperatorChain& c) {
  const int64_t size_a = c.shape(a)[0], size_b = c.shape(b)[0];
  const int64_t size = size_a < 0 || size_b < 0 ? -1 : size_a + size_b;
  return c.Make("tfl.concatenation", {a, b}, Options({{"axis", int64_t{0}}}),
                {c.l().type(a), PartialShape::Of({size})});
}

// Each value of rows of these lengths: which row it is in, and how far behind its first it stands.
struct SpreadRows {
  Endpoint splits, row, within;
};
SpreadRows Spread(Endpoint lengths, OperatorChain& c) {
  Legalizer& l = c.l();
  const Endpoint ends = RunningSum(lengths, false, c);
  if (!c.ok()) return {};
  const std::vector<int64_t> last = {-1}, end = {0}, step = {1}, none = {0};
  SpreadRows out;
  out.splits = JoinedVectors(l.Ints(none), ends, c);
  const Endpoint total =
      c.Make("tfl.strided_slice", {out.splits, l.Ints(last), l.Ints(end), l.Ints(step)},
             Options({{"end_mask", int64_t{1}}, {"shrink_axis_mask", int64_t{1}}}),
             {Dtype::kInt32, PartialShape::Of({})});
  // How many rows end at each place: a value is in the row behind all that end there or before.
  const Endpoint marks =
      c.Make("tfl.unsorted_segment_sum", {OnesLike(ends, c), ends, c.Add(total, 1)}, {},
             {Dtype::kInt32, PartialShape::Of({-1})});
  out.row = WithoutEnd(RunningSum(marks, false, c), true, c);
  const Endpoint all = c.CountTo(total, -1);
  out.within = c.Sub(all, c.Rows(c.Sub(ends, lengths), out.row));
  return out;
}

// The rows of one partition of RaggedTensorToTensor; `at` is moved behind it.
StatusOr<RaggedRows> RowsOfPartition(const Node& n, const std::vector<std::string>& kinds, int* at,
                                     OperatorChain& c) {
  const std::string& kind = kinds[static_cast<size_t>(*at)];
  if (kind == "ROW_SPLITS") {
    ASSIGN_OR_RETURN(const Endpoint splits, AsInt32(n.input(3 + (*at)++), c.l()));
    return RowsOfSplits(splits, c);
  }
  if (kind != "FIRST_DIM_SIZE" || static_cast<size_t>(*at) + 1 >= kinds.size() ||
      kinds[static_cast<size_t>(*at) + 1] != "VALUE_ROWIDS") {
    return Unimplemented("its rows are of the kind ", kind);
  }
  ASSIGN_OR_RETURN(const Endpoint count, AsInt32(n.input(3 + *at), c.l()));
  ASSIGN_OR_RETURN(const Endpoint rows, AsInt32(n.input(4 + *at), c.l()));
  *at += 2;
  const Endpoint lengths = c.Make("tfl.unsorted_segment_sum", {OnesLike(rows, c), rows, count}, {},
                                  {Dtype::kInt32, PartialShape::Of({-1})});
  return RaggedRows{RunningSum(lengths, true, c), lengths};
}

// A dense tensor: what stands at each of its places, or that there is nothing, is an index of
// values, behind which the default stands.
LiteEndpoints ToDense(Node& n, Legalizer& l) {
  const Endpoint values = n.input(1);
  if (!Has(kRaggedTypes, l.type(values))) {
    return Unimplemented("its operators do not take ", DtypeName(l.type(values)));
  }
  const auto kinds = n.Find("row_partition_types")->get<std::vector<std::string>>();
  const auto wanted = l.Integers(n.input(0));
  const PartialShape shape = l.shape(values), fill = l.shape(n.input(2));
  if (kinds == nullptr || !wanted || shape.rank() < 1 || !fill.known_rank()) {
    return Unimplemented("its shape is no constant, or the rank of its values not known");
  }
  if (static_cast<size_t>(n.num_inputs()) != 3 + kinds->size()) {
    return InvalidArgument("Expected as many row_partition_tensors as row_partition_types, got ",
                           n.num_inputs() - 3, " and ", kinds->size());
  }
  const auto size_of = [&](size_t i) {  // -1: as many as there are
    return l.rank(n.input(0)) == 0 || i >= wanted->size() ? -1 : (*wanted)[i];
  };
  if (size_of(0) >= 0) return Unimplemented("the number of its rows is given");
  std::vector<int64_t> row(shape.dims().begin(), shape.dims().end());
  row[0] = 1;
  OperatorChain c(l);
  Endpoint at;  // rows of the next partition, as many dimensions as there were partitions
  size_t depth = 0;
  for (int next = 0; static_cast<size_t>(next) < kinds->size(); ++depth) {
    ASSIGN_OR_RETURN(RaggedRows rows, RowsOfPartition(n, *kinds, &next, c));
    RETURN_IF_ERROR(c.Done(rows.lengths).status());
    if (depth > 0) {  // behind the last is one of nothing
      const std::vector<int64_t> none = {0};
      rows = {c.Rows(JoinedVectors(rows.starts, l.Ints(none), c), at),
              c.Rows(JoinedVectors(rows.lengths, l.Ints(none), c), at)};
    }
    RETURN_IF_ERROR(c.Done(rows.lengths).status());
    const int64_t given = size_of(depth + 1);
    Endpoint columns = l.Int(given);
    if (given < 0) {
      std::vector<int64_t> axes;
      for (size_t i = 0; i <= depth; ++i) axes.push_back(static_cast<int64_t>(i));
      columns = c.Max(c.Reduce("tfl.reduce_max", rows.lengths, axes, false), 0);
    }
    const Endpoint column = c.CountTo(columns, given);
    const auto as_column = [&](Endpoint e) {
      const PartialShape of = c.shape(e);
      std::vector<int64_t> dims(of.dims().begin(), of.dims().end());
      dims.push_back(1);
      return c.Make("tfl.expand_dims", {e, l.Int(-1)}, {}, {Dtype::kInt32, PartialShape::Of(dims)});
    };
    // How many rows the next partition has, or how many values there are.
    Endpoint behind;
    if (static_cast<size_t>(next) == kinds->size()) {
      ASSIGN_OR_RETURN(behind, SizeOf(values, 0, l));
    } else if ((*kinds)[static_cast<size_t>(next)] == "FIRST_DIM_SIZE") {
      ASSIGN_OR_RETURN(behind, AsInt32(n.input(3 + next), l));
    } else {
      ASSIGN_OR_RETURN(const Endpoint size, SizeOf(n.input(3 + next), 0, l));
      behind = c.Sub(size, 1);
    }
    RETURN_IF_ERROR(c.Done(behind).status());
    const Endpoint there = c.Less(column, as_column(rows.lengths));
    const Endpoint place = c.Add(as_column(rows.starts), column);
    at = c.Select(there, place, behind);
  }
  for (int64_t& d : row) d = std::max<int64_t>(d, -1);
  const LiteOutput one_row = {l.type(values), PartialShape::Of(row)};
  Endpoint default_row;
  if (row.size() == 1) {
    default_row = c.Reshape(n.input(2), {1});
  } else {
    Endpoint sizes = l.Ints(row);
    if (!one_row.shape.fully_known()) {
      const Endpoint whole = c.ShapeOf(values);
      const std::vector<int64_t> one = {1};
      sizes = JoinedVectors(l.Ints(one), WithoutEnd(whole, false, c), c);
    }
    default_row = c.Make("tfl.broadcast_to", {n.input(2), sizes}, {}, one_row);
  }
  row[0] = -1;
  const Endpoint all =
      c.Make("tfl.concatenation", {values, default_row}, Options({{"axis", int64_t{0}}}),
             {l.type(values), PartialShape::Of(row)});
  return c.Done(c.Rows(all, at));
}

// Whole rows, in another order.
LiteEndpoints RaggedRowsPicked(Node& n, Legalizer& l) {
  const int ranks = static_cast<int>(n.Int("PARAMS_RAGGED_RANK"));
  const Endpoint values = n.input(ranks), indices = n.input(ranks + 1);
  if (!Has(kRaggedTypes | Types(Dtype::kString), l.type(values))) {
    return Unimplemented("its operators do not take ", DtypeName(l.type(values)));
  }
  if (l.rank(indices) != 1 || l.rank(values) < 1) {
    return Unimplemented("its indices are not known to be a vector, or the rank of its values");
  }
  OperatorChain c(l);
  ASSIGN_OR_RETURN(Endpoint at, AsInt32(indices, l));
  std::vector<Endpoint> out;
  for (int i = 0; i < ranks; ++i) {
    ASSIGN_OR_RETURN(const Endpoint splits, AsInt32(n.input(i), l));
    const RaggedRows rows = RowsOfSplits(splits, c);
    RETURN_IF_ERROR(c.Done(rows.lengths).status());
    const Endpoint starts = c.Rows(rows.starts, at);
    const SpreadRows spread = Spread(c.Rows(rows.lengths, at), c);
    RETURN_IF_ERROR(c.Done(spread.row).status());
    at = c.Add(c.Rows(starts, spread.row), spread.within);
    out.push_back(c.Cast(spread.splits, n.output_types[static_cast<size_t>(i)]));
  }
  RETURN_IF_ERROR(c.Done(at).status());
  out.push_back(c.Rows(values, at));
  return c.Done(out);
}

// Ranges by ones, one behind the other.
LiteEndpoints Ranges(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kInt32, Dtype::kInt64)));
  const auto steps = l.Integers(n.input(2));
  if (!steps || std::ranges::any_of(*steps, [](int64_t s) { return s != 1; })) {
    return Unimplemented("it does not count by ones");
  }
  const int from = l.rank(n.input(0)), to = l.rank(n.input(1));
  if (from < 0 || to < 0 || (from == 0 && to == 0)) {
    return Unimplemented("the ranks of its inputs are not known");
  }
  OperatorChain c(l);
  ASSIGN_OR_RETURN(const Endpoint lengths, AsInt32(c.Max(c.Sub(n.input(1), n.input(0)), 0), l));
  const SpreadRows spread = Spread(lengths, c);
  RETURN_IF_ERROR(c.Done(spread.row).status());
  const Endpoint within = c.Cast(spread.within, n.input_types[0]);
  const Endpoint first = from == 0 ? n.input(0) : c.Rows(n.input(0), spread.row);
  return c.Done({c.Cast(spread.splits, n.output_types[0]), c.Add(first, within)});
}

constexpr ExportRow kRaggedRows[] = {
    {"RaggedTensorToTensor", ToDense},
    {"RaggedGather", RaggedRowsPicked},
    {"RaggedRange", Ranges},
};

}  // namespace

std::span<const ExportRow> RaggedExport() { return kRaggedRows; }

}  // namespace smelt
