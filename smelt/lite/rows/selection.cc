// Ops that choose, count and scatter: boxes, buckets, sparse tensors.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "smelt/graph/shape/rules.h"
#include "smelt/lite/common/kernel_ranks.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// The first `count` (a scalar) of a vector.
StatusOr<Endpoint> FirstOf(Endpoint e, Endpoint count, const LiteOutput& out, Legalizer& l) {
  ASSIGN_OR_RETURN(const Endpoint size, l.Add("tfl.expand_dims", {count, l.Int(0)}, {},
                                              {Dtype::kInt32, PartialShape::Of({1})}));
  return l.Add("tfl.slice", {e, l.Ints(std::vector<int64_t>{0}), size}, {}, out);
}

// The operator drops a box whose overlap is the threshold, and TensorFlow one whose overlap is
// more: the next number is the same as that.
Endpoint JustAbove(Endpoint threshold, Legalizer& l) {
  const auto constant = l.Constant(threshold);
  if (!constant || constant->num_elements() != 1) return threshold;
  const float value = constant->flat<float>()[0];
  // Above 1 it is none.
  if (!(value >= 0 && value < 1)) return threshold;
  return l.Floats(std::max(std::nextafter(value, 1.0f), std::numeric_limits<float>::min()));
}

// The operator pads what it selects, and says how many there are.
LiteEndpoints Suppressed(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  for (int i = 3; i < n.num_inputs(); ++i) {
    const Dtype type = n.input_types[static_cast<size_t>(i)];
    if (type != Dtype::kFloat) return Unimplemented("a threshold is ", DtypeName(type));
  }
  const bool soft = n.Is("NonMaxSuppressionV5"), counts = soft || n.Is("NonMaxSuppressionV4");
  std::vector<Endpoint> inputs = {n.input(0), n.input(1), n.input(2)};
  if (n.Is("NonMaxSuppression")) {
    inputs.push_back(l.Floats(n.Float("iou_threshold", 0.5f)));
  } else {
    inputs.push_back(n.input(3));
  }
  inputs.back() = JustAbove(inputs.back(), l);
  // Without a threshold every score is high enough.
  inputs.push_back(n.num_inputs() > 4 ? n.input(4) : l.Floats(-std::numeric_limits<float>::max()));
  if (soft) inputs.push_back(n.input(5));
  const auto most = l.Integers(n.input(2));
  const PartialShape padded = PartialShape::Of({most ? (*most)[0] : -1});
  std::vector<LiteOutput> outputs = {{Dtype::kInt32, padded}};
  if (soft) outputs.push_back({Dtype::kFloat, padded});
  outputs.push_back({Dtype::kInt32, PartialShape::Of({})});
  ASSIGN_OR_RETURN(Node * made, l.AddMany(soft ? OpName("tfl.non_max_suppression_v5")
                                               : OpName("tfl.non_max_suppression_v4"),
                                          inputs, {}, outputs));
  std::vector<Endpoint> out;
  const int valid = soft ? 2 : 1;
  for (int i = 0; i < valid; ++i) {
    Endpoint e = {made, i};
    if (!n.Bool("pad_to_max_output_size")) {
      ASSIGN_OR_RETURN(e, FirstOf(e, {made, valid}, l.OutputOf(n, i), l));
    }
    out.push_back(e);
  }
  if (counts) out.push_back({made, valid});
  return out;
}

LiteEndpoints Bucketize(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kDouble)));
  return One(l.Add("tfl.bucketize", Inputs(n),
                   Options({{"boundaries", n.Get<std::vector<float>>("boundaries", {})}}),
                   l.OutputOf(n)));
}

LiteEndpoints SparseToDense(Node& n, Legalizer& l) {
  constexpr DtypeSet kValues =
      Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8, Dtype::kUint8);
  if (!Has(kValues, n.output_types[0])) {
    return Unimplemented("its operator does not take ", DtypeName(n.output_types[0]));
  }
  ASSIGN_OR_RETURN(Endpoint indices, AsInt32(n.input(0), l));
  ASSIGN_OR_RETURN(Endpoint shape, AsInt32(n.input(1), l));
  OperatorChain c(l);
  const PartialShape at = l.shape(indices), of_values = l.shape(n.input(2));
  if (!at.known_rank() || !of_values.known_rank()) {
    return Unimplemented("the ranks of its indices and values are not known");
  }
  if (at.rank() == 0) indices = c.Reshape(indices, {1});
  const int64_t count = at.rank() == 0 ? 1 : std::max<int64_t>(at[0], -1);
  // One value for all of them: kernels want as many as there are indices.
  Endpoint values = n.input(2);
  if (of_values.rank() == 0) {
    Endpoint number = l.Ints(std::vector<int64_t>{count});
    if (count < 0) {
      ASSIGN_OR_RETURN(number, SizeOf(indices, 0, l));
      number = c.Reshape(number, {1});
    }
    values = c.Make("tfl.broadcast_to", {values, number}, {},
                    {l.type(values), PartialShape::Of({count})});
  }
  LiteOutput out = l.OutputOf(n);
  const int rank = static_cast<int>(l.shape(shape).rank() == 1 ? l.shape(shape)[0] : -1);
  const bool flat = rank > KernelRanksOf("tfl.sparse_to_dense").most;
  if (flat) {
    // By the places that elements have one behind the other.
    const auto sizes = l.Integers(shape);
    if (!sizes) return Unimplemented("its operator makes no ", rank, " dimensions");
    std::vector<int64_t> strides(sizes->size(), 1);
    for (size_t i = sizes->size() - 1; i-- > 0;) strides[i] = strides[i + 1] * (*sizes)[i + 1];
    if (strides[0] * (*sizes)[0] > INT32_MAX) return Unimplemented("it makes too many elements");
    indices = c.Reduce("tfl.sum", c.Mul(indices, l.Ints(strides)), {1}, false);
    shape = l.Ints(std::vector<int64_t>{strides[0] * (*sizes)[0]});
    out.shape = PartialShape::Of({strides[0] * (*sizes)[0]});
  }
  const Endpoint dense = c.Make("tfl.sparse_to_dense", {indices, shape, values, n.input(3)},
                                Options({{"validate_indices", false}}), out);
  const PartialShape to = l.shape({&n, 0});
  return c.Done(flat ? c.Reshape(dense, {to.dims().begin(), to.dims().end()}) : dense);
}

// Are all elements different: of what counts, moved by one number, or part of it?
bool Counts(Endpoint e, const Legalizer& l) {
  const Node& n = *e.node;
  const auto is_one = [&](Endpoint x) {
    const PartialShape s = l.shape(x);
    return s.rank() == 0 || (s.rank() == 1 && s[0] == 1);
  };
  if (n.Is({"tfl.range", "tfl.where"})) return true;
  if (n.Is({"tfl.reshape", "tfl.expand_dims", "tfl.cast", "tfl.squeeze", "tfl.strided_slice",
            "tfl.slice"})) {
    return Counts(n.input(0), l);
  }
  if (!n.Is({"tfl.add", "tfl.sub"})) return false;
  return (is_one(n.input(1)) && Counts(n.input(0), l)) ||
         (is_one(n.input(0)) && Counts(n.input(1), l));
}

// Are all rows of these indices different, whatever a request says?
bool RowsDiffer(Endpoint e, Legalizer& l) {
  const PartialShape shape = l.shape(e);
  if (shape.rank() < 1) return false;
  int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows = shape[i] < 0 || rows < 0 ? -1 : rows * shape[i];
  if (rows == 0 || rows == 1) return true;
  if (const auto value = l.Constant(e)) {
    const int64_t width = shape[shape.rank() - 1];
    std::set<std::vector<int64_t>> seen;
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<int64_t> row;
      for (int64_t i = 0; i < width; ++i) row.push_back(IndexAt(*value, r * width + i));
      if (!seen.insert(row).second) return false;
    }
    return true;
  }
  const Node& n = *e.node;
  if (n.Is("tfl.where")) return true;
  if (n.Is("tfl.cast") && !n.input(0).node->Is("tfl.cast")) return RowsDiffer(n.input(0), l);
  // A column that counts tells rows apart.
  if (shape.rank() == 2 && shape[1] == 1 && Counts(e, l)) return true;
  const bool columns =
      shape.rank() == 2 && n.Is({"tfl.pack", "tfl.concatenation"}) && n.Int("axis") == 1;
  return columns && std::ranges::any_of(n.inputs(), [&](Endpoint column) {
           const PartialShape s = l.shape(column);
           return (s.rank() == 1 || s[1] == 1) && Counts(column, l);
         });
}

StatusOr<Endpoint> Scattered(Node& n, Legalizer& l, Endpoint indices, Endpoint updates) {
  const PartialShape to = l.shape(n.input(0));
  Endpoint shape;
  if (to.fully_known()) {
    shape = l.Ints(std::vector<int64_t>(to.dims().begin(), to.dims().end()));
  } else {
    ASSIGN_OR_RETURN(shape, l.ShapeOf(n.input(0)));
  }
  return l.Add("tfl.scatter_nd", {indices, updates, shape}, {}, {l.type(updates), to});
}

constexpr DtypeSet kScattered = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64);

LiteEndpoints ScatterSum(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kScattered));
  ASSIGN_OR_RETURN(const Endpoint indices, AsInt32(n.input(1), l));
  ASSIGN_OR_RETURN(const Endpoint sums, Scattered(n, l, indices, n.input(2)));
  return One(l.Add(l.row().lite, {n.input(0), sums}, {}, l.OutputOf(n)));
}

// So many numbers of a kind may stand in the file.
constexpr int64_t kMostStated = 1024;

// Numbers from `first` on.
Endpoint Counting(int64_t first, int64_t count, Legalizer& l) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return l.Ints(numbers);
}

PartialShape RowsShape(int64_t count, const std::vector<int64_t>& inner) {
  std::vector<int64_t> dims = {count};
  for (const int64_t d : inner) dims.push_back(std::max<int64_t>(d, -1));
  return PartialShape::Of(dims);
}

// Rows of the last dimensions of another tensor.
Endpoint AsRowsOf(Endpoint e, Endpoint of, const std::vector<int64_t>& inner, OperatorChain& c) {
  Legalizer& l = c.l();
  if (c.shape(e).rank() == static_cast<int>(inner.size()) + 1) return e;
  std::vector<int64_t> sizes = {-1};
  sizes.insert(sizes.end(), inner.begin(), inner.end());
  if (std::ranges::count_if(sizes, [](int64_t s) { return s < 0; }) == 1)
    return c.Reshape(e, sizes);
  const auto rank = static_cast<int64_t>(c.shape(of).rank());
  const auto count = static_cast<int64_t>(inner.size());
  const Endpoint whole = c.ShapeOf(of);
  const std::vector<int64_t> begin = {rank - count}, size = {count}, free = {-1};
  const Endpoint last = c.Make("tfl.slice", {whole, l.Ints(begin), l.Ints(size)}, {},
                               {Dtype::kInt32, PartialShape::Of({count})});
  const Endpoint shape =
      c.Make("tfl.concatenation", {l.Ints(free), last}, Options({{"axis", int64_t{0}}}),
             {Dtype::kInt32, PartialShape::Of({count + 1})});
  return c.Make("tfl.reshape", {e, shape}, {}, {l.type(e), RowsShape(-1, inner)});
}

// What is written last to each place: the greatest number of the updates there, which are counted
// behind the places themselves, picks it, or what was there.
LiteEndpoints LastWritten(Node& n, Endpoint indices, Legalizer& l) {
  const PartialShape to = l.shape(n.input(0)), at = l.shape(indices);
  const int depth = at.rank() < 1 ? -1 : static_cast<int>(at[at.rank() - 1]);
  if (depth < 1 || to.rank() < depth) return Unimplemented("the shape of its indices is not known");
  const std::vector<int64_t> inner(to.dims().begin() + depth, to.dims().end());
  OperatorChain c(l);
  // From the last dimension on: how many places an index there reaches over.
  std::vector<Endpoint> strides(static_cast<size_t>(depth));
  Endpoint places = l.Int(1);
  int64_t known = 1;
  for (int i = depth - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = places;
    if (to[i] > INT32_MAX) return Unimplemented("it writes among too many places");
    known = known < 0 || to[i] < 0 ? -1 : known * to[i];
    if (known > INT32_MAX) return Unimplemented("it writes among too many places");
    if (known >= 0) {
      places = l.Int(known);
    } else {
      ASSIGN_OR_RETURN(const Endpoint size, SizeOf(n.input(0), i, l));
      places = i == depth - 1 ? size : c.Mul(places, size);
    }
  }
  Endpoint index = indices;
  if (depth > 1) {
    RETURN_IF_ERROR(c.Done(places).status());
    ASSIGN_OR_RETURN(
        const Endpoint each,
        l.Add("tfl.pack", strides, Options({{"values_count", static_cast<int64_t>(depth)}}),
              {Dtype::kInt32, PartialShape::Of({depth})}));
    index = c.Reduce("tfl.sum", c.Mul(index, each), {at.rank() - 1}, false);
  }
  if (c.shape(index).rank() != 1) {
    int64_t count = 1;
    for (int i = 0; i < at.rank() - 1; ++i) count = count < 0 || at[i] < 0 ? -1 : count * at[i];
    index = c.Reshape(index, {count});
  }
  RETURN_IF_ERROR(c.Done(index).status());
  const Endpoint all = c.Make(
      "tfl.concatenation",
      {AsRowsOf(n.input(0), n.input(0), inner, c), AsRowsOf(n.input(2), n.input(0), inner, c)},
      Options({{"axis", int64_t{0}}}), {n.input_types[0], RowsShape(-1, inner)});
  RETURN_IF_ERROR(c.Done(all).status());
  const int64_t count = c.shape(index)[0];
  Endpoint order;
  if (known >= 0 && count >= 0 && count <= kMostStated) {
    order = Counting(known, count, l);
  } else {
    // One behind the last of them is the number of rows of both.
    ASSIGN_OR_RETURN(const Endpoint end, SizeOf(all, 0, l));
    order = c.Make("tfl.range", {places, end, l.Int(1)}, {},
                   {Dtype::kInt32, PartialShape::Of({count})});
  }
  const LiteOutput each_place = {Dtype::kInt32, PartialShape::Of({known})};
  const Endpoint last = c.Make("tfl.unsorted_segment_max", {order, index, places}, {}, each_place);
  const Endpoint own =
      known >= 0 && known <= kMostStated ? Counting(0, known, l) : c.CountTo(places, known);
  const Endpoint rows =
      c.Make("tfl.gather", {all, c.Max(last, own)}, Options({{"axis", int64_t{0}}}),
             {n.input_types[0], RowsShape(known, inner)});
  if (depth == 1) return c.Done(rows);
  if (to.fully_known()) return c.Done(c.Reshape(rows, {to.dims().begin(), to.dims().end()}));
  const Endpoint shape = c.ShapeOf(n.input(0));
  return c.Done(c.Make("tfl.reshape", {rows, shape}, {}, l.OutputOf(n)));
}

// Where something is scattered, that, else what was there.
LiteEndpoints ScatterUpdate(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kScattered));
  ASSIGN_OR_RETURN(const Endpoint indices, AsInt32(n.input(1), l));
  if (!RowsDiffer(indices, l)) return LastWritten(n, indices, l);
  const PartialShape sizes = l.shape(n.input(2));
  ASSIGN_OR_RETURN(const Endpoint values, Scattered(n, l, indices, n.input(2)));
  const bool stated = sizes.fully_known() && NumElements(sizes) <= kMostStated;
  ASSIGN_OR_RETURN(const Tensor one,
                   FilledTensor(n.input_types[0], stated ? Shape(sizes.dims()) : Shape(), 1));
  Endpoint ones = l.Const(one);
  if (!stated) {
    ASSIGN_OR_RETURN(const Endpoint zeros,
                     l.Add("tfl.zeros_like", {n.input(2)}, {}, {n.input_types[0], sizes}));
    ASSIGN_OR_RETURN(ones, l.Add("tfl.add", {zeros, ones}, {}, {n.input_types[0], sizes}));
  }
  ASSIGN_OR_RETURN(const Endpoint counts, Scattered(n, l, indices, ones));
  ASSIGN_OR_RETURN(const Tensor zero, Tensor::Zeros(n.input_types[0], Shape()));
  ASSIGN_OR_RETURN(const Endpoint written, l.Add("tfl.not_equal", {counts, l.Const(zero)}, {},
                                                 {Dtype::kBool, l.shape(n.input(0))}));
  return One(l.Add("tfl.select_v2", {written, values, n.input(0)}, {}, l.OutputOf(n)));
}

LiteEndpoints UpdateSlice(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(
      CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kBool, Dtype::kInt8)));
  // Computed places may be of int64.
  Endpoint start = n.input(2);
  if (l.Constant(start)) {
    ASSIGN_OR_RETURN(start, AsInt32(start, l));
  }
  return One(l.Add("tfl.dynamic_update_slice", {n.input(0), n.input(1), start}, {}, l.OutputOf(n)));
}

constexpr ExportRow kSelectionRows[] = {
    {"NonMaxSuppression", Suppressed},
    {"NonMaxSuppressionV2", Suppressed},
    {"NonMaxSuppressionV3", Suppressed},
    {"NonMaxSuppressionV4", Suppressed},
    {"NonMaxSuppressionV5", Suppressed},
    {"Bucketize", Bucketize},
    {"SparseToDense", SparseToDense},
    {"TensorScatterAdd", ScatterSum, "tfl.add"},
    {"ScatterNdNonAliasingAdd", ScatterSum, "tfl.add"},
    {"TensorScatterSub", ScatterSum, "tfl.sub"},
    {"TensorScatterUpdate", ScatterUpdate},
    {"XlaDynamicUpdateSlice", UpdateSlice},
};

}  // namespace

std::span<const ExportRow> SelectionExport() { return kSelectionRows; }

}  // namespace smelt
