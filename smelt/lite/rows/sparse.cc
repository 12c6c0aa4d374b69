// Sparse tensors: indices in rows, int64, and values beside them. Places are counted in int64, as
// they are in TensorFlow: hashed and crossed columns are wider than int32.
#include <algorithm>
#include <numeric>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kSparseValues = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8,
                                         Dtype::kUint8, Dtype::kInt16, Dtype::kBool);

Endpoint NumberAt(Endpoint vector, int64_t i, OperatorChain& c) {
  Legalizer& l = c.l();
  return c.Make("tfl.gather", {vector, l.Int(i)}, Options({{"axis", int64_t{0}}}),
                {l.type(vector), PartialShape::Of({})});
}

Endpoint ColumnAt(Endpoint matrix, int64_t i, OperatorChain& c) {
  Legalizer& l = c.l();
  const int64_t rows = c.shape(matrix).rank() == 2 ? std::max<int64_t>(c.shape(matrix)[0], -1) : -1;
  return c.Make("tfl.gather", {matrix, l.Int(i)}, Options({{"axis", int64_t{1}}}),
                {l.type(matrix), PartialShape::Of({rows})});
}

Endpoint Packed(const std::vector<Endpoint>& parts, int64_t axis, const PartialShape& shape,
                OperatorChain& c) {
  if (!c.ok()) return {};
  const auto made =
      c.l().Add("tfl.pack", parts,
                Options({{"values_count", static_cast<int64_t>(parts.size())}, {"axis", axis}}),
                {Dtype::kInt64, shape});
  c.Fail(made.status());
  return made.ok() ? *made : Endpoint();
}

// As many as TensorFlow's tensors have, each of which takes operators here.
constexpr int64_t kMostDimensions = 254;

StatusOr<int64_t> CheckDimensions(int64_t rank) {
  if (rank <= kMostDimensions) return rank;
  return Unimplemented("it has ", rank, " dimensions");
}

// How many dimensions a sparse tensor has, by its indices or its shape.
StatusOr<int64_t> SparseRank(Endpoint indices, Endpoint shape, const Legalizer& l) {
  const PartialShape i = l.shape(indices), s = l.shape(shape);
  if (i.rank() == 2 && i[1] > 0) return CheckDimensions(i[1]);
  if (s.rank() == 1 && s[0] > 0) return CheckDimensions(s[0]);
  return Unimplemented("the number of its dimensions is not known");
}

// The place of each element, rows one behind the other.
Endpoint PlaceOf(Endpoint indices, Endpoint shape, int64_t rank, OperatorChain& c) {
  Endpoint at = ColumnAt(indices, 0, c);
  for (int64_t i = 1; i < rank; ++i) {
    at = c.Add(c.Mul(at, NumberAt(shape, i, c)), ColumnAt(indices, i, c));
  }
  return at;
}

// The order of numbers from the least on; equal ones stay as they are.
Endpoint Ascending(Endpoint numbers, OperatorChain& c) {
  Legalizer& l = c.l();
  if (!c.ok()) return {};
  const auto count = SizeOf(numbers, 0, l);
  c.Fail(count.status());
  if (!c.ok()) return {};
  const PartialShape shape = PartialShape::Of({-1});
  return c.MakeMany("tfl.topk_v2", {c.Op("tfl.neg", {numbers}), *count}, {},
                    {{l.type(numbers), shape}, {Dtype::kInt32, shape}})[1];
}

LiteEndpoints Reordered(Node& n, Legalizer& l) {
  if (!Has(kSparseValues | Types(Dtype::kString), l.type(n.input(1)))) {
    return Unimplemented("its operators do not take ", DtypeName(l.type(n.input(1))));
  }
  ASSIGN_OR_RETURN(const int64_t rank, SparseRank(n.input(0), n.input(2), l));
  OperatorChain c(l);
  const Endpoint order = Ascending(PlaceOf(n.input(0), n.input(2), rank, c), c);
  return c.Done({c.Rows(n.input(0), order), c.Rows(n.input(1), order)});
}

LiteEndpoints Reshaped(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(const int64_t rank, SparseRank(n.input(0), n.input(1), l));
  const PartialShape wanted = l.shape(n.input(2));
  if (wanted.rank() != 1 || wanted[0] < 1) {
    return Unimplemented("the number of dimensions that it gives is not known");
  }
  RETURN_IF_ERROR(CheckDimensions(wanted[0]).status());
  OperatorChain c(l);
  // A size of -1 is what is left of the elements.
  Endpoint all = NumberAt(n.input(1), 0, c), given = l.Const(Tensor::Scalar(int64_t{-1}));
  for (int64_t i = 1; i < rank; ++i) all = c.Mul(all, NumberAt(n.input(1), i, c));
  std::vector<Endpoint> sizes;
  const auto constant = l.Integers(n.input(2));
  const bool infers = !constant || std::ranges::find(*constant, -1) != constant->end();
  for (int64_t i = 0; i < wanted[0]; ++i) {
    sizes.push_back(NumberAt(n.input(2), i, c));
    given = i == 0 && !infers ? given : c.Mul(given, sizes.back());
  }
  if (infers) {
    // Their product is that of the others, where one is -1; no size is divided by where none is.
    const Endpoint rest = WholeQuotient(all, c.Max(given, 1), c);
    for (Endpoint& size : sizes) size = c.Select(c.Less(size, 0), rest, size);
  }
  Endpoint at = PlaceOf(n.input(0), n.input(1), rank, c);
  std::vector<Endpoint> columns(sizes.size());
  for (size_t i = sizes.size() - 1; i > 0; --i) {
    const Endpoint size = c.Max(sizes[i], 1);
    columns[i] = c.Op("tfl.floor_mod", {at, size});
    at = WholeQuotient(at, size, c);
  }
  columns[0] = at;
  return c.Done({Packed(columns, 1, PartialShape::Of({-1, wanted[0]}), c),
                 Packed(sizes, 0, PartialShape::Of({wanted[0]}), c)});
}

// Rows of nothing get an element of the first column. The elements come by rows then.
LiteEndpoints FilledRows(Node& n, Legalizer& l) {
  const Endpoint indices = n.input(0), values = n.input(1);
  if (!Has(kSparseValues, l.type(values))) {
    return Unimplemented("its operators do not take ", DtypeName(l.type(values)));
  }
  ASSIGN_OR_RETURN(const int64_t rank, SparseRank(indices, n.input(2), l));
  OperatorChain c(l);
  const PartialShape many = PartialShape::Of({-1});
  const auto joined = [&](Endpoint a, Endpoint b, const PartialShape& shape) {
    return c.Make("tfl.concatenation", {a, b}, Options({{"axis", int64_t{0}}}), {l.type(a), shape});
  };
  const Endpoint row = c.Cast(ColumnAt(indices, 0, c), Dtype::kInt32);
  const Endpoint count = c.Cast(NumberAt(n.input(2), 0, c), Dtype::kInt32);
  const Endpoint there =
      c.Make("tfl.unsorted_segment_sum", {c.Add(c.Op("tfl.zeros_like", {row}), 1), row, count}, {},
             {Dtype::kInt32, many});
  const Endpoint empty = c.Equal(there, 0);
  const Endpoint missing =
      c.Make("tfl.where", {empty}, {}, {Dtype::kInt64, PartialShape::Of({-1, 1})});
  Endpoint filled = missing;
  if (rank > 1) {
    filled = c.Make("tfl.pad", {missing, l.IntPairs(std::vector<int64_t>{0, 0, 0, rank - 1})}, {},
                    {Dtype::kInt64, PartialShape::Of({-1, rank})});
  }
  const Endpoint lost = c.Reshape(missing, {-1});
  const Endpoint rows = joined(row, c.Cast(lost, Dtype::kInt32), many);
  RETURN_IF_ERROR(c.Done(rows).status());
  const Endpoint shape_of_lost = c.ShapeOf(lost);
  const Endpoint defaults =
      c.Make("tfl.fill", {shape_of_lost, n.input(3)}, {}, {l.type(values), many});
  const Endpoint order = Ascending(rows, c);
  RETURN_IF_ERROR(c.Done(order).status());
  std::vector<Endpoint> out = {c.Rows(joined(indices, filled, PartialShape::Of({-1, rank})), order),
                               c.Rows(joined(values, defaults, many), order), empty};
  // Where each of the elements that were there went: the order of the order.
  const Endpoint places = Ascending(order, c);
  const Endpoint own = c.ShapeOf(row);
  const Endpoint kept = c.Make("tfl.slice", {places, l.Ints(std::vector<int64_t>{0}), own}, {},
                               {Dtype::kInt32, many});
  out.push_back(c.Cast(kept, Dtype::kInt64));
  return c.Done(out);
}

// Sums along constant axes: elements that stand at the same place of what is left add up.
LiteEndpoints SparseSum(Node& n, Legalizer& l) {
  const Endpoint indices = n.input(0), values = n.input(1);
  const Dtype type = l.type(values);
  if (!Has(Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64), type)) {
    return Unimplemented("its operators do not take ", DtypeName(type));
  }
  ASSIGN_OR_RETURN(const int64_t rank, SparseRank(indices, n.input(2), l));
  const auto axes = l.Integers(n.input(3));
  if (!axes) return Unimplemented("its axes are no constants");
  std::vector<bool> summed(static_cast<size_t>(rank), false);
  for (const int64_t a : *axes) {
    if (a < -rank || a >= rank) {
      return InvalidArgument("Invalid reduction dimension ", a, ", for input with ", rank,
                             " dimensions.");
    }
    summed[static_cast<size_t>(a < 0 ? a + rank : a)] = true;
  }
  std::vector<int64_t> kept, sizes, dims;
  for (int64_t i = 0; i < rank; ++i) {
    if (!summed[static_cast<size_t>(i)]) kept.push_back(i);
    if (!summed[static_cast<size_t>(i)]) dims.push_back(-1);
  }
  OperatorChain c(l);
  const bool keep = n.Bool("keep_dims");
  if (kept.empty()) {
    const Endpoint sum = c.Reduce("tfl.sum", values, {0}, false);
    return c.Done(keep ? c.Reshape(sum, std::vector<int64_t>(static_cast<size_t>(rank), 1)) : sum);
  }
  const auto count = static_cast<int64_t>(kept.size());
  ASSIGN_OR_RETURN(const Endpoint at, AsInt32(indices, l));
  ASSIGN_OR_RETURN(const Endpoint whole, AsInt32(n.input(2), l));
  const Endpoint places = c.Make("tfl.gather", {at, l.Ints(kept)}, Options({{"axis", int64_t{1}}}),
                                 {Dtype::kInt32, PartialShape::Of({-1, count})});
  const Endpoint left = c.Make("tfl.gather", {whole, l.Ints(kept)}, Options({{"axis", int64_t{0}}}),
                               {Dtype::kInt32, PartialShape::Of({count})});
  Endpoint sum =
      c.Make("tfl.scatter_nd", {places, values, left}, {}, {type, PartialShape::Of(dims)});
  for (int64_t i = 0; keep && i < rank; ++i) {
    if (!summed[static_cast<size_t>(i)]) continue;
    const PartialShape narrow = c.shape(sum);
    std::vector<int64_t> wider(narrow.dims().begin(), narrow.dims().end());
    wider.insert(wider.begin() + i, 1);
    sum = c.Make("tfl.expand_dims", {sum, l.Int(i)}, {}, {type, PartialShape::Of(wider)});
  }
  return c.Done(sum);
}

// Of int64, of which no operator makes quotients.
LiteEndpoints FloorQuotient(Node& n, Legalizer& l) {
  if (n.input_types[0] == Dtype::kInt64) {
    OperatorChain c(l);
    return c.Done(WholeQuotient(n.input(0), n.input(1), c));
  }
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt8, Dtype::kInt16)));
  return One(l.Add("tfl.floor_div", Inputs(n), {}, l.OutputOf(n)));
}

constexpr ExportRow kSparseRows[] = {
    {"SparseReorder", Reordered},        {"SparseReshape", Reshaped},
    {"SparseFillEmptyRows", FilledRows}, {"SparseReduceSum", SparseSum},
    {"FloorDiv", FloorQuotient},
};

}  // namespace

// Three floats, each of what those before left, have all digits of a quotient; the last is of what
// the divisor divides.
Endpoint WholeQuotient(Endpoint a, Endpoint b, OperatorChain& c) {
  constexpr double kMost = 9223371487098961920.0;  // the last float before 2^63
  const Endpoint divisor = c.Cast(b, Dtype::kFloat);
  Endpoint rest = a, quotient;
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 2) rest = c.Sub(rest, c.Op("tfl.floor_mod", {rest, b}));
    Endpoint part = c.Op("tfl.round", {c.Div(c.Cast(rest, Dtype::kFloat), divisor)});
    if (turn == 0) part = c.Max(c.Min(part, kMost), -kMost);
    part = c.Cast(part, Dtype::kInt64);
    quotient = turn == 0 ? part : c.Add(quotient, part);
    if (turn < 2) rest = c.Sub(rest, c.Mul(part, b));
  }
  return quotient;
}

// Parts whose places are computed: what is last at each.
LiteEndpoints StitchedAnywhere(Node& n, Legalizer& l) {
  const int parts = n.num_inputs() / 2;
  const Dtype type = n.output_types[0];
  if (!Has(kSparseValues, type)) {
    return Unimplemented("its operators do not take ", DtypeName(type));
  }
  std::vector<Endpoint> places, rows;
  std::vector<int64_t> dims;
  OperatorChain c(l);
  for (int i = 0; i < parts; ++i) {
    const PartialShape at = l.shape(n.input(i)), value = l.shape(n.input(parts + i));
    if (!at.known_rank() || !value.known_rank()) {
      return Unimplemented("the ranks of its inputs are not known");
    }
    dims = {-1};
    for (int k = at.rank(); k < value.rank(); ++k) dims.push_back(value[k]);
    if (std::ranges::any_of(dims.begin() + 1, dims.end(), [](int64_t d) { return d < 0; })) {
      return Unimplemented("the shape of what stands at a place is not known");
    }
    ASSIGN_OR_RETURN(const Endpoint index, AsInt32(n.input(i), l));
    places.push_back(at.rank() == 1 ? index : c.Reshape(index, {-1}));
    rows.push_back(at.rank() == 1 ? n.input(parts + i) : c.Reshape(n.input(parts + i), dims));
  }
  RETURN_IF_ERROR(c.Done(Endpoint()).status());
  Endpoint index = places[0], all = rows[0];
  if (parts > 1) {
    ASSIGN_OR_RETURN(index, l.Add("tfl.concatenation", places, Options({{"axis", int64_t{0}}}),
                                  {Dtype::kInt32, PartialShape::Of({-1})}));
    ASSIGN_OR_RETURN(all, l.Add("tfl.concatenation", rows, Options({{"axis", int64_t{0}}}),
                                {type, PartialShape::Of(dims)}));
  }
  ASSIGN_OR_RETURN(const Endpoint count, SizeOf(index, 0, l));
  const PartialShape many = PartialShape::Of({-1});
  const Endpoint size = c.Add(c.Max(c.Reduce("tfl.reduce_max", index, {0}, false), -1), 1);
  const Endpoint order = c.CountTo(count, -1);
  const Endpoint last =
      c.Make("tfl.unsorted_segment_max", {order, index, size}, {}, {Dtype::kInt32, many});
  return c.Done(c.Rows(all, c.Max(last, 0)));
}

std::span<const ExportRow> SparseExport() { return kSparseRows; }

}  // namespace smelt
