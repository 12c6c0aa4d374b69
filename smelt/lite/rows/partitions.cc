// Ops that part, count and join rows by numbers.
#include <algorithm>
#include <limits>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kPartTypes = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8,
                                      Dtype::kUint8, Dtype::kInt16, Dtype::kBool);
constexpr DtypeSet kSegmentTypes = Types(Dtype::kFloat, Dtype::kInt32);

// What is read of the rows that each part has.
LiteEndpoints DynamicPartition(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPartTypes));
  const PartialShape data = l.shape(n.input(0)), parts = l.shape(n.input(1));
  if (!data.known_rank() || !parts.known_rank()) {
    return Unimplemented("the ranks of its inputs are not known");
  }
  if (parts.rank() > data.rank())
    return InvalidArgument("its data has fewer dimensions than parts");
  OperatorChain c(l);
  Endpoint rows = n.input(0), numbers = n.input(1);
  std::vector<int64_t> dims = StatedDims(data);
  if (parts.rank() != 1) {
    dims.erase(dims.begin(), dims.begin() + parts.rank());
    dims.insert(dims.begin(), -1);
    rows = c.Reshape(rows, dims);
    numbers = c.Reshape(numbers, {-1});
  }
  dims[0] = -1;
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) {
    const Endpoint mine = c.Equal(numbers, i);
    const Endpoint at = c.Make("tfl.where", {mine}, {}, {Dtype::kInt64, PartialShape::Of({-1, 1})});
    const Endpoint places = c.Reshape(at, {-1});
    out.push_back(c.Make("tfl.gather", {rows, places}, Options({{"axis", int64_t{0}}}),
                         {l.type(rows), PartialShape::Of(dims)}));
  }
  return c.Done(out);
}

// The values in the order in which they are first seen; which one each is; how often it is there.
LiteEndpoints Uniques(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPartTypes & ~Types(Dtype::kBool)));
  if (l.rank(n.input(0)) != 1) return Unimplemented("the rank of its input is not known to be 1");
  const LiteOutput values = l.OutputOf(n, 0), places = l.OutputOf(n, 1);
  ASSIGN_OR_RETURN(Node * made, l.AddMany("tfl.unique", std::vector<Endpoint>{n.input(0)},
                                          Options({{"idx_out_type", places.type}}),
                                          std::vector<LiteOutput>{values, places}));
  std::vector<Endpoint> out = {{made, 0}, {made, 1}};
  if (n.num_outputs() < 3) return out;
  OperatorChain c(l);
  ASSIGN_OR_RETURN(const Endpoint index, AsInt32(out[1], l));
  const Endpoint ones = c.Add(c.Op("tfl.zeros_like", {index}), 1);
  const Endpoint size = c.ShapeOf(out[0]);
  const Endpoint count =
      c.Make("tfl.squeeze", {size}, Options({{"squeeze_dims", std::vector<int64_t>{0}}}),
             {Dtype::kInt32, PartialShape::Of({})});
  const Endpoint sums = c.Make("tfl.unsorted_segment_sum", {ones, index, count}, {},
                               {Dtype::kInt32, l.shape({&n, 2})});
  out.push_back(c.Cast(sums, n.output_types[2]));
  return c.Done(out);
}

// One more than the last of sorted numbers.
Endpoint SegmentCount(Endpoint segments, OperatorChain& c) {
  Legalizer& l = c.l();
  const std::vector<int64_t> last = {-1}, end = {0}, step = {1};
  return c.Add(c.Make("tfl.strided_slice", {segments, l.Ints(last), l.Ints(end), l.Ints(step)},
                      Options({{"end_mask", int64_t{1}}, {"shrink_axis_mask", int64_t{1}}}),
                      {Dtype::kInt32, PartialShape::Of({})}),
               1);
}

// SEGMENT_SUM refuses numbers that do not begin at 0 or leave one out.
bool LeavesNoneOut(const std::vector<int64_t>& segments) {
  int64_t last = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i] != last && (i == 0 || segments[i] != last + 1)) return false;
    last = segments[i];
  }
  return true;
}

LiteEndpoints SegmentSum(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kSegmentTypes));
  const std::optional<std::vector<int64_t>> numbers = l.Integers(n.input(1));
  ASSIGN_OR_RETURN(const Endpoint segments, AsInt32(n.input(1), l));
  if (numbers && LeavesNoneOut(*numbers)) {
    return One(l.Add("tfl.segment_sum", {n.input(0), segments}, {}, l.OutputOf(n)));
  }
  OperatorChain c(l);
  const Endpoint count = numbers ? l.Int(numbers->back() + 1) : SegmentCount(segments, c);
  return c.Done(
      c.Make("tfl.unsorted_segment_sum", {n.input(0), segments, count}, {}, l.OutputOf(n)));
}

// Segments of sorted rows; where there are none the result is 0, of products 1.
LiteEndpoints SortedSegments(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kSegmentTypes));
  const PartialShape shape = l.shape(n.input(0));
  if (shape.rank() < 1) return Unimplemented("the rank of its input is not known");
  ASSIGN_OR_RETURN(const Endpoint segments, AsInt32(n.input(1), l));
  OperatorChain c(l);
  const Endpoint count = SegmentCount(segments, c);
  const LiteOutput out = l.OutputOf(n);
  const Endpoint value = c.Make(l.row().lite, {n.input(0), segments, count}, {}, out);
  if (n.Is("SegmentProd")) return c.Done(value);
  std::vector<int64_t> column(static_cast<size_t>(shape.rank()), 1);
  column[0] = -1;
  Endpoint ones = c.Add(c.Op("tfl.zeros_like", {segments}), 1);
  if (column.size() > 1) ones = c.Reshape(ones, column);
  const Endpoint there = c.Make("tfl.unsorted_segment_sum", {ones, segments, count}, {},
                                {Dtype::kInt32, PartialShape::Of(column)});
  return c.Done(c.Select(c.Less(0, there), value, 0));
}

// The rows that elements of a sparse matrix stand for, summed by the element's row.
LiteEndpoints SparseProduct(Node& n, Legalizer& l) {
  if (n.input_types[1] != Dtype::kFloat) {
    return Unimplemented("its operators do not multiply ", DtypeName(n.input_types[1]));
  }
  const PartialShape dense = l.shape(n.input(3)), values = l.shape(n.input(1));
  if (dense.rank() != 2) return Unimplemented("the rank of its matrix is not known");
  const bool from_columns = n.Bool("adjoint_a");
  const int64_t count = values.rank() == 1 ? std::max<int64_t>(values[0], -1) : -1;
  ASSIGN_OR_RETURN(const Endpoint indices, AsInt32(n.input(0), l));
  ASSIGN_OR_RETURN(const Endpoint sizes, AsInt32(n.input(2), l));
  OperatorChain c(l);
  const auto index = [&](int64_t k) {
    return c.Make("tfl.gather", {indices, l.Int(k)}, Options({{"axis", int64_t{1}}}),
                  {Dtype::kInt32, PartialShape::Of({count})});
  };
  const Endpoint to = index(from_columns ? 1 : 0), from = index(from_columns ? 0 : 1);
  Endpoint matrix = n.input(3);
  if (n.Bool("adjoint_b")) matrix = c.Transpose(matrix, {1, 0});
  const int64_t width = n.Bool("adjoint_b") ? dense[0] : dense[1];
  const Endpoint rows =
      c.Make("tfl.gather", {matrix, from}, Options({{"axis", int64_t{0}}}),
             {Dtype::kFloat, PartialShape::Of({count, std::max<int64_t>(width, -1)})});
  const Endpoint scaled = c.Mul(rows, c.Reshape(n.input(1), {-1, 1}));
  const Endpoint size =
      c.Make("tfl.gather", {sizes, l.Int(from_columns ? 1 : 0)}, Options({{"axis", int64_t{0}}}),
             {Dtype::kInt32, PartialShape::Of({})});
  return c.Done(c.Make("tfl.unsorted_segment_sum", {scaled, to, size}, {}, l.OutputOf(n)));
}

// The n-th of each sorted row.
LiteEndpoints NthElement(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kSegmentTypes));
  const auto place = l.Integers(n.input(1));
  const PartialShape shape = l.shape(n.input(0));
  if (!place || place->size() != 1 || (*place)[0] < 0 || shape.rank() < 1) {
    return Unimplemented("its number is no constant");
  }
  OperatorChain c(l);
  const bool reverse = n.Bool("reverse");
  const Endpoint from = reverse ? n.input(0) : c.Op("tfl.neg", {n.input(0)});
  std::vector<int64_t> dims = StatedDims(shape);
  dims.back() = (*place)[0] + 1;
  const LiteOutput values = {l.type(from), PartialShape::Of(dims)};
  const LiteOutput places = {Dtype::kInt32, values.shape};
  ASSIGN_OR_RETURN(Node * top,
                   l.AddMany("tfl.topk_v2", std::vector<Endpoint>{from, l.Int((*place)[0] + 1)}, {},
                             std::vector<LiteOutput>{values, places}));
  const Endpoint value = c.Make("tfl.gather", {{top, 0}, l.Int((*place)[0])},
                                Options({{"axis", int64_t{shape.rank()} - 1}}), l.OutputOf(n));
  return c.Done(reverse ? value : c.Op("tfl.neg", {value}));
}

// Moved by so many places along an axis of known size, `fill` coming in; `back`: to the front.
Endpoint MovedAlong(Endpoint e, int64_t axis, int64_t by, bool back, Endpoint fill,
                    OperatorChain& c) {
  Legalizer& l = c.l();
  const PartialShape shape = l.shape(e);
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> dims = StatedDims(shape), begin(dims.size()), sizes(dims.size(), -1);
  begin[at] = back ? by : 0;
  dims[at] -= by;
  sizes[at] = dims[at];
  const Endpoint part = c.Make("tfl.slice", {e, l.Ints(begin), l.Ints(sizes)}, {},
                               {l.type(e), PartialShape::Of(dims)});
  std::vector<int64_t> pads(2 * dims.size());
  pads[2 * at + (back ? 1 : 0)] = by;
  return c.Make("tfl.padv2", {part, l.IntPairs(pads), fill}, {}, {l.type(e), shape});
}

// Products of all that is before.
LiteEndpoints Cumprod(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  const auto given = l.Integers(n.input(1));
  const PartialShape shape = l.shape(n.input(0));
  if (!given || given->size() != 1 || !shape.known_rank()) {
    return Unimplemented("its axis is no constant");
  }
  const int64_t axis = (*given)[0] < 0 ? (*given)[0] + shape.rank() : (*given)[0];
  const int64_t size = axis < 0 || axis >= shape.rank() ? -1 : shape[static_cast<int>(axis)];
  if (size < 0 || size > kMostRunning) {
    return Unimplemented("the size of what it multiplies is not known, or too large");
  }
  const bool reverse = n.Bool("reverse");
  ASSIGN_OR_RETURN(const Tensor one, FilledTensor(n.output_types[0], Shape(), 1));
  OperatorChain c(l);
  Endpoint e = n.input(0);
  if (n.Bool("exclusive") && size > 0) e = MovedAlong(e, axis, 1, reverse, l.Const(one), c);
  return c.Done(Running("tfl.mul", e, axis, reverse, l.Const(one), c));
}

// The logarithm of the running sum of exponentials, each row less its greatest.
LiteEndpoints CumulativeLogSum(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const PartialShape shape = l.shape(n.input(0));
  const auto given = l.Integers(n.input(1));
  if (shape.rank() < 1 || !given || given->size() != 1) {
    return Unimplemented("its axis is no constant, or the rank of its input not known");
  }
  const int64_t axis = (*given)[0] < 0 ? (*given)[0] + shape.rank() : (*given)[0];
  if (axis < 0 || axis >= shape.rank()) {
    return InvalidArgument("Expected scan axis in the range [", -shape.rank(), ", ", shape.rank(),
                           "), but got ", (*given)[0]);
  }
  const int64_t size = shape[static_cast<int>(axis)];
  // All pairs are compared.
  constexpr int64_t kMost = 4096;
  if (size < 1 || size > kMost) return Unimplemented("it adds up ", size, " numbers");
  const bool exclusive = n.Bool("exclusive"), reverse = n.Bool("reverse");
  ASSIGN_OR_RETURN(Tensor mask, Tensor::Zeros(Dtype::kFloat, Shape({size, size})));
  for (int64_t to = 0; to < size; ++to) {
    for (int64_t from = 0; from < size; ++from) {
      const int64_t before = reverse ? from - to : to - from;
      const bool counts = exclusive ? before > 0 : before >= 0;
      if (!counts) mask.data<float>()[to * size + from] = std::numeric_limits<float>::lowest();
    }
  }
  OperatorChain c(l);
  std::vector<int64_t> order;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  const bool moves = axis != shape.rank() - 1;
  const Endpoint x = moves ? c.Transpose(n.input(0), order) : n.input(0);
  std::vector<int64_t> dims = StatedDims(c.shape(x));
  dims.insert(dims.end() - 1, 1);
  const Endpoint row =
      c.Make("tfl.expand_dims", {x, l.Int(-2)}, {}, {Dtype::kFloat, PartialShape::Of(dims)});
  // The least number stands for nothing, and for its logarithm.
  const Endpoint all = c.Max(c.Add(row, l.Const(mask)), std::numeric_limits<float>::lowest());
  const auto last = static_cast<int64_t>(dims.size()) - 1;
  const Endpoint most = c.Reduce("tfl.reduce_max", all, {last}, true);
  const Endpoint sum = c.Reduce("tfl.sum", c.Op("tfl.exp", {c.Sub(all, most)}), {last}, true);
  dims.pop_back();
  dims.back() = size;
  Endpoint result = c.Make("tfl.squeeze", {c.Add(c.Op("tfl.log", {sum}), most)},
                           Options({{"squeeze_dims", std::vector<int64_t>{last}}}),
                           {Dtype::kFloat, PartialShape::Of(dims)});
  if (moves) {
    std::vector<int64_t> back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    result = c.Transpose(result, back);
  }
  return c.Done(result);
}

// What none of the others equals, and where it stands.
LiteEndpoints Difference(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kString)));
  OperatorChain c(l);
  const auto sized = [&](int i) {
    const PartialShape s = l.shape(n.input(i));
    return s.rank() == 1 ? std::max<int64_t>(s[0], -1) : -1;
  };
  const Dtype type = n.input_types[0];
  const Endpoint column = c.Make("tfl.expand_dims", {n.input(0), l.Int(1)}, {},
                                 {type, PartialShape::Of({sized(0), 1})});
  const Endpoint row = c.Make("tfl.expand_dims", {n.input(1), l.Int(0)}, {},
                              {type, PartialShape::Of({1, sized(1)})});
  const Endpoint found = c.Make("tfl.reduce_any", {c.Equal(column, row), l.Int(1)}, {},
                                {Dtype::kBool, PartialShape::Of({sized(0)})});
  const Endpoint left = c.Op("tfl.logical_not", {found});
  const Endpoint at = c.Make("tfl.where", {left}, {}, {Dtype::kInt64, PartialShape::Of({-1, 1})});
  const Endpoint places = c.Cast(c.Reshape(at, {-1}), Dtype::kInt32);
  const Endpoint values = c.Make("tfl.gather", {n.input(0), places},
                                 Options({{"axis", int64_t{0}}}), {type, PartialShape::Of({-1})});
  return c.Done({values, c.Cast(places, n.output_types[1])});
}

// Of a type that no shift takes: products by powers of two. Of more bits than there are TensorFlow
// leaves open what comes.
LiteEndpoints TimesPowers(Node& n, Legalizer& l) {
  constexpr int64_t kBits = 32;
  ASSIGN_OR_RETURN(Tensor powers, Tensor::Make(Dtype::kInt32, Shape{kBits}));
  for (int i = 0; i < kBits; ++i) powers.data<int32_t>()[i] = static_cast<int32_t>(1u << i);
  OperatorChain c(l);
  const Endpoint bits = c.Max(c.Min(c.Cast(n.input(1), Dtype::kInt32), kBits - 1), 0);
  const Endpoint factors = c.Rows(l.Const(powers), bits);
  return c.Done(c.Mul(n.input(0),
                      c.Make("tfl.bitcast", {factors}, {}, {Dtype::kUint32, l.shape(n.input(1))})));
}

LiteEndpoints ShiftedLeft(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kUint32)));
  if (l.rank(n.input(0)) < 0 || l.rank(n.input(1)) < 0) {
    return Unimplemented(
        "its operator does not broadcast, and the ranks of its inputs are unknown");
  }
  if (n.input_types[0] == Dtype::kUint32) return TimesPowers(n, l);
  return One(l.Add("tfl.stablehlo_shift_left", Inputs(n), {}, l.OutputOf(n)));
}

// A vector as the diagonal of a matrix.
LiteEndpoints VectorDiagonal(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPartTypes & ~Types(Dtype::kBool)));
  if (l.rank(n.input(0)) != 1) return Unimplemented("its input is not known to be a vector");
  return One(l.Add("tfl.matrix_diag", {n.input(0)}, {}, l.OutputOf(n)));
}

// A size that is a constant, or bounded so that it is one: min(n, max(n, x)).
std::optional<int64_t> KnownSize(Endpoint e, const Legalizer& l) {
  const auto one = [&](Endpoint v) {
    const auto given = l.Integers(v);
    return given && given->size() == 1 ? std::optional((*given)[0]) : std::nullopt;
  };
  if (const auto size = one(e)) return size;
  if (!e.node->Is("tfl.minimum")) return std::nullopt;
  for (const int i : {0, 1}) {
    const auto most = one(e.node->input(i));
    const Node& other = *e.node->input(1 - i).node;
    if (!most || !other.Is("tfl.maximum")) continue;
    for (const int k : {0, 1}) {
      const auto least = one(other.input(k));
      if (least && *least >= *most) return most;
    }
  }
  return std::nullopt;
}

// How often each number below the size stands in a row; or that it does.
LiteEndpoints Bincounts(Node& n, Legalizer& l) {
  const bool dense = n.Is("DenseBincount");
  const Endpoint values = n.input(0);
  const Dtype type = n.output_types[0];
  if (!Has(Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64), type)) {
    return Unimplemented("its operators do not count in ", DtypeName(type));
  }
  const int rank = l.rank(values);
  if (rank < 1) return Unimplemented("the rank of its input is not known");
  const auto size = KnownSize(n.input(1), l);
  if (size && *size < 0) return InvalidArgument("its size is ", *size);
  Endpoint depth;
  if (size) {
    depth = l.Int(*size);
  } else {
    ASSIGN_OR_RETURN(depth, AsInt32(n.input(1), l));
  }
  const PartialShape weights = l.shape(n.input(2));
  const bool weighted = !(weights.rank() == 1 && weights[0] == 0);
  const bool present = n.Bool("binary_output");
  if (weighted && !present && weights.rank() != rank) {
    return Unimplemented("the shape of its weights is not known");
  }
  OperatorChain c(l);
  Endpoint in = values;
  std::vector<int64_t> dims = StatedDims(l.shape(values));
  if (!dense && rank != 1) {
    in = c.Reshape(in, {-1});
    dims = {-1};
  }
  dims.push_back(size.value_or(-1));
  const auto number = [&](int64_t v) -> Endpoint {
    const auto value = FilledTensor(type, Shape(), static_cast<double>(v));
    c.Fail(value.status());
    return value.ok() ? l.Const(*value) : Endpoint();
  };
  const Endpoint one = number(1), none = number(0);
  Endpoint hot = c.Make("tfl.one_hot", {in, depth, one, none}, Options({{"axis", int64_t{-1}}}),
                        {type, PartialShape::Of(dims)});
  if (weighted && !present) {
    std::vector<int64_t> column(dims.begin(), dims.end() - 1);
    column.push_back(1);
    const Endpoint flat = !dense && rank != 1 ? c.Reshape(n.input(2), {-1}) : n.input(2);
    const Endpoint each =
        c.Make("tfl.expand_dims", {flat, l.Int(-1)}, {}, {type, PartialShape::Of(column)});
    hot = c.Mul(hot, each);
  }
  const auto axis = static_cast<int64_t>(dims.size()) - 2;
  if (!present) return c.Done(c.Reduce("tfl.sum", hot, {axis}, false));
  const Endpoint most = c.Reduce("tfl.reduce_max", hot, {axis}, false);
  // Of no values the operator gives the least number.
  return c.Done(dims[static_cast<size_t>(axis)] > 0 ? most : c.Max(most, none));
}

constexpr ExportRow kPartitionRows[] = {
    {"DynamicPartition", DynamicPartition},
    {"UniqueV2", Uniques},
    {"UniqueWithCounts", Uniques},
    {"UniqueWithCountsV2", Uniques},
    {"SegmentSum", SegmentSum},
    {"SegmentMax", SortedSegments, "tfl.unsorted_segment_max"},
    {"SegmentMin", SortedSegments, "tfl.unsorted_segment_min"},
    {"SegmentProd", SortedSegments, "tfl.unsorted_segment_prod"},
    {"SparseTensorDenseMatMul", SparseProduct},
    {"Bincount", Bincounts},
    {"DenseBincount", Bincounts},
    {"NthElement", NthElement},
    {"Cumprod", Cumprod},
    {"LeftShift", ShiftedLeft},
    {"Diag", VectorDiagonal},
    {"CumulativeLogsumexp", CumulativeLogSum},
    {"ListDiff", Difference},
};

}  // namespace

Endpoint Running(OpName op, Endpoint e, int64_t axis, bool reverse, Endpoint neutral,
                 OperatorChain& c) {
  const int64_t size = c.l().shape(e)[static_cast<int>(axis)];
  for (int64_t reach = 1; reach < size && c.ok(); reach *= 2) {
    e = c.Op(op, {e, MovedAlong(e, axis, reach, reverse, neutral, c)});
  }
  return e;
}

std::span<const ExportRow> PartitionExport() { return kPartitionRows; }

}  // namespace smelt
