// Ops that look up, count and move what stands at places known before.
#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/match.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kGathered = Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8,
                                     Dtype::kUint8, Dtype::kInt16, Dtype::kBool);
constexpr DtypeSet kPlaceTypes = Types(Dtype::kFloat);

// By shifts, or along axes, that are known when it runs.
LiteEndpoints ComputedRoll(Node& n, const std::vector<int64_t>& axes, Legalizer& l) {
  OperatorChain c(l);
  Endpoint e = n.input(0);
  std::vector<Endpoint> shifts = {c.Cast(n.input(1), Dtype::kInt32)};
  if (axes.size() > 1) shifts = c.Unpack(shifts[0], std::ssize(axes), 0, PartialShape::Of({}));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + l.rank(e) : axes[i];
    if (axis < 0 || axis >= l.rank(e)) return Unimplemented("it has no such axis");
    const int64_t size = std::max<int64_t>(l.shape(e)[static_cast<int>(axis)], -1);
    ASSIGN_OR_RETURN(const Endpoint of_axis,
                     size < 0 ? SizeOf(e, axis, l) : StatusOr<Endpoint>(l.Int(size)));
    std::vector<int64_t> known(static_cast<size_t>(std::max<int64_t>(size, 0)));
    std::iota(known.begin(), known.end(), 0);
    const Endpoint to = size < 0 ? c.CountTo(of_axis, size) : l.Ints(known);
    const Endpoint from = c.Op("tfl.floor_mod", {c.Sub(to, shifts[i]), of_axis});
    e = c.Make("tfl.gather", {e, from}, Options({{"axis", axis}}), l.OutputOf(n));
  }
  return c.Done(e);
}

// What comes out on one side of each axis comes in on the other.
LiteEndpoints Roll(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kGathered));
  const auto shifts = l.Integers(n.input(1)), axes = l.Integers(n.input(2));
  const PartialShape shape = l.shape(n.input(0));
  if (!axes || !shape.known_rank()) return Unimplemented("its axes are not known");
  if (!shifts || shifts->size() != axes->size()) return ComputedRoll(n, *axes, l);
  OperatorChain c(l);
  Endpoint e = n.input(0);
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + shape.rank() : (*axes)[i];
    const int64_t size = axis < 0 || axis >= shape.rank() ? -1 : shape[static_cast<int>(axis)];
    if (size < 0) return ComputedRoll(n, *axes, l);
    const int64_t shift = size == 0 ? 0 : (((*shifts)[i] % size) + size) % size;
    if (shift == 0) continue;
    const auto slice = [&](int64_t from, int64_t count) {
      std::vector<int64_t> begin(static_cast<size_t>(shape.rank())), sizes(begin.size(), -1);
      begin[static_cast<size_t>(axis)] = from;
      sizes[static_cast<size_t>(axis)] = count;
      std::vector<int64_t> dims = StatedDims(shape);
      dims[static_cast<size_t>(axis)] = count;
      return c.Make("tfl.slice", {e, l.Ints(begin), l.Ints(sizes)}, {},
                    {l.type(e), PartialShape::Of(dims)});
    };
    const Endpoint last = slice(size - shift, shift), rest = slice(0, size - shift);
    e = c.Make("tfl.concatenation", {last, rest}, Options({{"axis", axis}}), l.OutputOf(n));
  }
  return c.Done(e);
}

// A mask of the innermost matrices: f(row, column).
template <typename F>
StatusOr<Endpoint> BandMask(const PartialShape& shape, Legalizer& l, F f) {
  const int rank = shape.rank();
  if (rank < 2 || shape[rank - 1] < 0 || shape[rank - 2] < 0) {
    return Unimplemented("the sizes of its matrices are not known");
  }
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  ASSIGN_OR_RETURN(Tensor mask, Tensor::Make(Dtype::kBool, Shape({rows, columns})));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t col = 0; col < columns; ++col) mask.data<bool>()[r * columns + col] = f(r, col);
  }
  return l.Const(mask);
}

// The same of sizes, or of a band, that are known when it runs; a side without a node has no end.
StatusOr<Endpoint> ComputedBand(Endpoint e, Endpoint lower, Endpoint minus_upper, Legalizer& l) {
  const int rank = l.rank(e);
  const auto places = [&](int64_t axis) -> StatusOr<Endpoint> {
    ASSIGN_OR_RETURN(const Endpoint size, SizeOf(e, axis, l));
    return l.Add("tfl.range", {l.Int(0), size, l.Int(1)}, {},
                 {Dtype::kInt32, PartialShape::Of({-1})});
  };
  ASSIGN_OR_RETURN(const Endpoint columns, places(rank - 1));
  ASSIGN_OR_RETURN(Endpoint rows, places(rank - 2));
  ASSIGN_OR_RETURN(rows, l.Add("tfl.expand_dims", {rows, l.Int(1)}, {},
                               {Dtype::kInt32, PartialShape::Of({-1, 1})}));
  const PartialShape shape = PartialShape::Of({-1, -1});
  ASSIGN_OR_RETURN(const Endpoint below,
                   l.Add("tfl.sub", {rows, columns}, {}, {Dtype::kInt32, shape}));
  Endpoint mask;
  if (lower.node != nullptr) {
    ASSIGN_OR_RETURN(mask, l.Add("tfl.less_equal", {below, lower}, {}, {Dtype::kBool, shape}));
  }
  if (minus_upper.node == nullptr) return mask;
  ASSIGN_OR_RETURN(const Endpoint other,
                   l.Add("tfl.greater_equal", {below, minus_upper}, {}, {Dtype::kBool, shape}));
  if (lower.node == nullptr) return other;
  return l.Add("tfl.logical_and", {mask, other}, {}, {Dtype::kBool, shape});
}

// How far a band reaches, of which a negative number says that there is no end.
StatusOr<Endpoint> ReachOfBand(Endpoint e, bool negated, Legalizer& l) {
  if (const auto known = l.Integers(e)) {
    if (known->size() != 1) return Unimplemented("its band is not two numbers");
    const int64_t reach = known->front();
    return reach < 0 ? Endpoint() : l.Int(negated ? -reach : reach);
  }
  OperatorChain c(l);
  ASSIGN_OR_RETURN(const Endpoint reach, AsInt32(e, l));
  const Endpoint end = l.Int(std::numeric_limits<int32_t>::max());
  const Endpoint bounded = c.Select(c.Less(reach, 0), end, reach);
  const Endpoint out = negated ? c.Sub(0, bounded) : bounded;
  RETURN_IF_ERROR(c.Done(out).status());
  return out;
}

LiteEndpoints BandPart(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kGathered));
  const auto lower = l.Integers(n.input(1)), upper = l.Integers(n.input(2));
  const PartialShape shape = l.shape(n.input(0));
  const int rank = shape.rank();
  if (rank < 2) return Unimplemented("the rank of its input is not known");
  Endpoint mask;
  if (!lower || !upper || shape[rank - 1] < 0 || shape[rank - 2] < 0) {
    ASSIGN_OR_RETURN(const Endpoint below, ReachOfBand(n.input(1), false, l));
    ASSIGN_OR_RETURN(const Endpoint above, ReachOfBand(n.input(2), true, l));
    if (below.node == nullptr && above.node == nullptr) return std::vector<Endpoint>{n.input(0)};
    ASSIGN_OR_RETURN(mask, ComputedBand(n.input(0), below, above, l));
  } else {
    ASSIGN_OR_RETURN(mask, BandMask(shape, l, [&](int64_t row, int64_t column) {
                       return ((*lower)[0] < 0 || row - column <= (*lower)[0]) &&
                              ((*upper)[0] < 0 || column - row <= (*upper)[0]);
                     }));
  }
  ASSIGN_OR_RETURN(const Tensor zero, Tensor::Zeros(BaseType(n.output_types[0]), Shape()));
  return One(l.Add("tfl.select_v2", {mask, n.input(0), l.Const(zero)}, {}, l.OutputOf(n)));
}

// The elements of each innermost matrix that stand at these places, one behind the other.
LiteEndpoints AtPlaces(Node& n, Legalizer& l, const std::vector<int64_t>& places) {
  OperatorChain c(l);
  std::vector<int64_t> dims = StatedDims(l.shape(n.input(0)));
  const int64_t flat = dims[dims.size() - 1] * dims[dims.size() - 2];
  dims.pop_back();
  dims.back() = flat;
  const Endpoint rows = c.Reshape(n.input(0), dims);
  return c.Done(c.Make("tfl.gather", {rows, l.Ints(places)},
                       Options({{"axis", static_cast<int64_t>(dims.size()) - 1}}), l.OutputOf(n)));
}

// Diagonals [lowest, highest] from the highest on, each a row: shorter ones are padded.
LiteEndpoints Diagonals(Node& n, Legalizer& l, int64_t rows, int64_t columns, int64_t lowest,
                        int64_t highest) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  const int64_t longest =
      std::min(rows + std::min<int64_t>(highest, 0), columns - std::max<int64_t>(lowest, 0));
  constexpr int64_t kMostPlaces = int64_t{1} << 20;  // a constant that is still worth its bytes
  if (longest > 0 && highest - lowest + 1 > kMostPlaces / longest) {
    return Unimplemented("it takes more elements than a table of places should have");
  }
  const std::string align =
      n.Is("MatrixDiagPartV3") ? n.String("align", "RIGHT_LEFT") : "LEFT_LEFT";
  const bool above_left = absl::StartsWith(align, "LEFT"),
             below_left = absl::EndsWith(align, "LEFT");
  const int64_t padding = rows * columns;  // one element behind the matrix
  std::vector<int64_t> places;
  for (int64_t k = highest; k >= lowest; --k) {
    const int64_t row = std::max<int64_t>(-k, 0), column = std::max<int64_t>(k, 0);
    const int64_t length = std::min(rows - row, columns - column);
    const bool left = (k >= 0 && above_left) || (k <= 0 && below_left);
    const int64_t first = left ? 0 : longest - length;
    for (int64_t i = 0; i < longest; ++i) {
      const int64_t at = i - first;
      const bool outside = at < 0 || at >= length;
      places.push_back(outside ? padding : (row + at) * columns + column + at);
    }
  }
  OperatorChain c(l);
  std::vector<int64_t> dims = StatedDims(l.shape(n.input(0)));
  dims.pop_back();
  dims.back() = padding;
  Endpoint flat = c.Reshape(n.input(0), dims);
  if (std::ranges::find(places, padding) != places.end()) {
    std::vector<int64_t> pads(2 * dims.size());
    pads.back() = 1;
    dims.back() = padding + 1;
    flat = c.Make("tfl.padv2", {flat, l.IntPairs(pads), n.input(2)}, {},
                  {n.output_types[0], PartialShape::Of(dims)});
  }
  dims.back() = static_cast<int64_t>(places.size());
  const Endpoint taken = c.Make("tfl.gather", {flat, l.Ints(places)},
                                Options({{"axis", static_cast<int64_t>(dims.size()) - 1}}),
                                {n.output_types[0], PartialShape::Of(dims)});
  dims.back() = highest - lowest + 1;
  dims.push_back(longest);
  return c.Done(c.Reshape(taken, dims));
}

LiteEndpoints DiagonalOf(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kGathered));
  const PartialShape shape = l.shape(n.input(0));
  const int rank = shape.rank();
  if (rank < 2 || shape[rank - 1] < 0 || shape[rank - 2] < 0) {
    return Unimplemented("the sizes of its matrices are not known");
  }
  if (n.Is("DiagPart") && rank != 2) return Unimplemented("it takes more than one matrix");
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  int64_t k = 0;
  if (n.num_inputs() > 1) {
    const auto given = l.Integers(n.input(1));
    if (!given || given->empty()) return Unimplemented("its diagonals are no constants");
    if (given->front() != given->back()) {
      return Diagonals(n, l, rows, columns, given->front(), given->back());
    }
    k = given->front();
  }
  std::vector<int64_t> places;
  for (int64_t r = 0; r < rows; ++r) {
    if (r + k >= 0 && r + k < columns) places.push_back(r * columns + r + k);
  }
  return AtPlaces(n, l, places);
}

// How many of each sorted row are less than a value, or not greater.
LiteEndpoints BoundOf(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  if (l.rank(n.input(0)) != 2 || l.rank(n.input(1)) != 2) {
    return Unimplemented("the ranks of its inputs are not known");
  }
  OperatorChain c(l);
  std::vector<int64_t> sorted = StatedDims(l.shape(n.input(0))),
                       values = StatedDims(l.shape(n.input(1)));
  sorted.insert(sorted.begin() + 1, 1);
  values.push_back(1);
  const Endpoint row = c.Make("tfl.expand_dims", {n.input(0), l.Int(1)}, {},
                              {l.type(n.input(0)), PartialShape::Of(sorted)});
  const Endpoint column = c.Make("tfl.expand_dims", {n.input(1), l.Int(2)}, {},
                                 {l.type(n.input(1)), PartialShape::Of(values)});
  const Endpoint below = n.Is("LowerBound") ? c.Less(row, column) : c.LessEqual(row, column);
  return c.Done(c.Reduce("tfl.sum", c.Cast(below, n.output_types[0]), {2}, false));
}

// A tensor of parts whose places are constants: all of them one behind the other, sorted.
LiteEndpoints Stitched(Node& n, Legalizer& l) {
  const int parts = n.num_inputs() / 2;
  const Dtype type = n.output_types[0];
  if (!Has(kGathered, type)) return Unimplemented("its operator does not take ", DtypeName(type));
  OperatorChain c(l);
  std::vector<int64_t> last;  // where what stands at each place is among the parts
  int64_t count = 0;
  std::vector<Endpoint> rows;
  for (int i = 0; i < parts; ++i) {
    const auto places = l.Integers(n.input(i));
    const PartialShape value = l.shape(n.input(parts + i));
    const int rank = l.rank(n.input(i));
    if (!places || rank < 0 || !value.known_rank()) return StitchedAnywhere(n, l);
    for (const int64_t p : *places) {
      if (p < 0) return InvalidArgument("a place is negative");
      if (static_cast<size_t>(p) >= last.size()) last.resize(static_cast<size_t>(p) + 1, -1);
      last[static_cast<size_t>(p)] = count++;
    }
    std::vector<int64_t> dims = {static_cast<int64_t>(places->size())};
    for (int k = rank; k < value.rank(); ++k) dims.push_back(value[k]);
    rows.push_back(rank == 1 ? n.input(parts + i) : c.Reshape(n.input(parts + i), dims));
  }
  if (std::ranges::find(last, -1) != last.end()) {
    return Unimplemented("nothing is written to some of its places");
  }
  std::vector<int64_t> dims = StatedDims(l.shape({&n, 0}));
  if (dims.empty()) return Unimplemented("the shape that it gives is not known");
  RETURN_IF_ERROR(c.Done(Endpoint()).status());
  Endpoint all = rows[0];
  if (rows.size() > 1) {
    dims[0] = count;
    ASSIGN_OR_RETURN(all, l.Add("tfl.concatenation", rows, Options({{"axis", int64_t{0}}}),
                                {type, PartialShape::Of(dims)}));
  }
  return c.Done(
      c.Make("tfl.gather", {all, l.Ints(last)}, Options({{"axis", int64_t{0}}}), l.OutputOf(n)));
}

LiteEndpoints EuclideanNorm(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPlaceTypes));
  ASSIGN_OR_RETURN(const Endpoint axes, AsInt32(n.input(1), l));
  OperatorChain c(l);
  const Endpoint sum = c.Make("tfl.sum", {c.Mul(n.input(0), n.input(0)), axes},
                              Options({{"keep_dims", n.Bool("keep_dims")}}), l.OutputOf(n));
  return c.Done(c.Op("tfl.sqrt", {sum}));
}

LiteEndpoints BiasGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPlaceTypes));
  const int rank = l.rank(n.input(0));
  if (rank < 1) return Unimplemented("the rank of its input is not known");
  const int channels = n.String("data_format", "NHWC") == "NHWC" ? rank - 1 : 1;
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) {
    if (i != channels) axes.push_back(i);
  }
  OperatorChain c(l);
  return c.Done(c.Reduce("tfl.sum", n.input(0), axes, false));
}

// The sums of sorted segments, of as many as are said. SEGMENT_SUM refuses numbers of segments that
// leave one out.
Endpoint SegmentSums(Endpoint rows, Endpoint segments, const LiteOutput& out, OperatorChain& c,
                     std::optional<Endpoint> count = std::nullopt) {
  const std::vector<int64_t> last = {-1}, end = {0}, step = {1};
  Legalizer& l = c.l();
  if (!count) {
    const Endpoint number =
        c.Make("tfl.strided_slice", {segments, l.Ints(last), l.Ints(end), l.Ints(step)},
               Options({{"end_mask", int64_t{1}}, {"shrink_axis_mask", int64_t{1}}}),
               {Dtype::kInt32, PartialShape::Of({})});
    count = c.Add(number, 1);
  }
  return c.Make("tfl.unsorted_segment_sum", {rows, segments, *count}, {}, out);
}

// What lookups give, summed by the segment that each is of.
LiteEndpoints SegmentsOfRows(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPlaceTypes));
  std::optional<Endpoint> number_of;
  if (n.num_inputs() > 3) {
    ASSIGN_OR_RETURN(number_of, AsInt32(n.input(3), l));
  }
  ASSIGN_OR_RETURN(const Endpoint indices, AsInt32(n.input(1), l));
  ASSIGN_OR_RETURN(const Endpoint segments, AsInt32(n.input(2), l));
  OperatorChain c(l);
  std::vector<int64_t> dims = StatedDims(l.shape(n.input(0)));
  if (dims.empty()) return Unimplemented("the rank of its input is not known");
  const PartialShape count = l.shape(indices);
  dims[0] = count.rank() == 1 ? std::max<int64_t>(count[0], -1) : -1;
  const Endpoint rows =
      c.Make("tfl.gather", {n.input(0), indices}, {}, {Dtype::kFloat, PartialShape::Of(dims)});
  const Endpoint sum = SegmentSums(rows, segments, l.OutputOf(n), c, number_of);
  if (n.Is({"SparseSegmentSum", "SparseSegmentSumWithNumSegments"})) return c.Done(sum);
  // A column of ones counts; a segment of nothing is zero.
  std::vector<int64_t> ones(dims.size(), 1);
  ones[0] = dims[0];
  const Endpoint number = c.Cast(segments, Dtype::kFloat);
  const Endpoint one = c.Add(c.Make("tfl.zeros_like", {number}, {}, {Dtype::kFloat, count}), 1);
  const Endpoint column = dims.size() == 1 ? one : c.Reshape(one, ones);
  ones[0] = -1;
  Endpoint size =
      SegmentSums(column, segments, {Dtype::kFloat, PartialShape::Of(ones)}, c, number_of);
  size = c.Max(size, 1);
  if (n.Is({"SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments"}))
    size = c.Op("tfl.sqrt", {size});
  return c.Done(c.Div(sum, size));
}

LiteEndpoints SegmentMean(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPlaceTypes));
  ASSIGN_OR_RETURN(const Endpoint segments, AsInt32(n.input(1), l));
  const PartialShape shape = l.shape(n.input(0));
  if (shape.rank() < 1) return Unimplemented("the rank of its input is not known");
  OperatorChain c(l);
  std::vector<int64_t> ones(static_cast<size_t>(shape.rank()), 1);
  ones[0] = -1;
  const Endpoint sum = SegmentSums(n.input(0), segments, l.OutputOf(n), c);
  const Endpoint number = c.Cast(segments, Dtype::kFloat);
  const Endpoint one =
      c.Add(c.Make("tfl.zeros_like", {number}, {}, {Dtype::kFloat, l.shape(segments)}), 1);
  const Endpoint column = ones.size() == 1 ? one : c.Reshape(one, ones);
  const Endpoint size = SegmentSums(column, segments, {Dtype::kFloat, PartialShape::Of(ones)}, c);
  return c.Done(c.Div(sum, c.Max(size, 1)));
}

// Is the target among the k largest? All that are greater come before it.
LiteEndpoints InTopK(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPlaceTypes));
  const PartialShape shape = l.shape(n.input(0));
  if (shape.rank() != 2) return Unimplemented("the rank of its input is not known");
  std::optional<std::vector<int64_t>> k =
      n.Is("InTopK") ? std::vector<int64_t>{n.Int("k")} : l.Integers(n.input(2));
  if (!k || k->size() != 1) return Unimplemented("its number is no constant");
  OperatorChain c(l);
  const int64_t rows = std::max<int64_t>(shape[0], -1);
  ASSIGN_OR_RETURN(Endpoint target, AsInt32(n.input(1), l));
  target = c.Make("tfl.expand_dims", {target, l.Int(1)}, {},
                  {Dtype::kInt32, PartialShape::Of({rows, 1})});
  const Endpoint value = c.Make("tfl.gather", {n.input(0), target},
                                Options({{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}}),
                                {Dtype::kFloat, PartialShape::Of({rows, 1})});
  const Endpoint greater = c.Cast(c.Less(value, n.input(0)), Dtype::kFloat);
  const Endpoint before = c.Reduce("tfl.sum", greater, {1}, false);
  return c.Done(c.Less(before, static_cast<double>((*k)[0])));
}

LiteEndpoints OldBlocks(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kGathered));
  ASSIGN_OR_RETURN(const Endpoint pads, AsInt32(n.input(1), l));
  const int64_t size = n.Int("block_size");
  return One(l.Add(l.row().lite, {n.input(0), l.Ints(std::vector<int64_t>{size, size}), pads}, {},
                   l.OutputOf(n)));
}

LiteEndpoints OldTopK(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  const std::vector<Endpoint> inputs = {n.input(0), l.Int(n.Int("k"))};
  return Many(l.AddMany("tfl.topk_v2", inputs, {}, AllOutputs(n, l)));
}

LiteEndpoints ApproxTopK(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kPlaceTypes));
  const int rank = l.rank(n.input(0));
  const int64_t axis = n.Int("reduction_dimension", -1);
  if (rank < 1 || (axis != -1 && axis != rank - 1)) {
    return Unimplemented("it looks along another dimension than the last");
  }
  if (!n.Bool("is_max_k", true)) return Unimplemented("it looks for the smallest");
  if (!n.Bool("aggregate_to_topk", true)) return Unimplemented("it gives more than it looks for");
  const std::vector<Endpoint> inputs = {n.input(0), l.Int(n.Int("k"))};
  return Many(l.AddMany("tfl.topk_v2", inputs, {}, AllOutputs(n, l)));
}

LiteEndpoints ShapesOf(Node& n, Legalizer& l) {
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) {
    ASSIGN_OR_RETURN(const Endpoint e,
                     l.Add("tfl.shape", {n.input(i)}, Options({{"out_type", n.output_types[0]}}),
                           l.OutputOf(n, i)));
    out.push_back(e);
  }
  return out;
}

// Where each number stands.
LiteEndpoints InversePlaces(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kInt32)));
  const PartialShape shape = l.shape(n.input(0));
  const int64_t size = shape.rank() == 1 ? std::max<int64_t>(shape[0], -1) : -1;
  OperatorChain c(l);
  const Endpoint of = c.ShapeOf(n.input(0));
  const Endpoint count =
      c.Make("tfl.squeeze", {of}, Options({{"squeeze_dims", std::vector<int64_t>{0}}}),
             {Dtype::kInt32, PartialShape::Of({})});
  const Endpoint all = c.CountTo(count, size);
  const Endpoint places = c.Make("tfl.expand_dims", {n.input(0), l.Int(1)}, {},
                                 {Dtype::kInt32, PartialShape::Of({size, 1})});
  return c.Done(c.Make("tfl.scatter_nd", {places, all, of}, {}, l.OutputOf(n)));
}

// Places in a tensor of constant dims by their numbers in order: the last dimension runs fastest.
LiteEndpoints Unraveled(Node& n, Legalizer& l) {
  const auto dims = l.Integers(n.input(1));
  const PartialShape numbers = l.shape(n.input(0));
  if (!dims || dims->empty()) return Unimplemented("its dims are no constant");
  if (!numbers.known_rank()) return Unimplemented("the rank of its indices is not known");
  OperatorChain c(l);
  std::vector<Endpoint> rows(dims->size());
  Endpoint rest = n.input(0);
  for (size_t i = dims->size(); i-- > 1;) {
    const auto by = static_cast<double>((*dims)[i]);
    rows[i] = c.Op("tfl.floor_mod", {rest, by});
    if (l.type(rest) != Dtype::kInt64) {
      rest = c.Op("tfl.floor_div", {rest, by});
      continue;
    }
    ASSIGN_OR_RETURN(Tensor size, Tensor::Make(Dtype::kInt64, Shape()));
    size.data<int64_t>()[0] = (*dims)[i];
    rest = WholeQuotient(rest, l.Const(size), c);
  }
  rows[0] = rest;  // an index that is too large is an error in TensorFlow
  RETURN_IF_ERROR(c.Done(rest).status());
  return One(
      l.Add("tfl.pack", rows,
            Options({{"values_count", static_cast<int64_t>(rows.size())}, {"axis", int64_t{0}}}),
            l.OutputOf(n)));
}

constexpr ExportRow kPlaceRows[] = {
    {"Roll", Roll},
    {"MatrixBandPart", BandPart},
    {"MatrixDiagPart", DiagonalOf},
    {"MatrixDiagPartV2", DiagonalOf},
    {"MatrixDiagPartV3", DiagonalOf},
    {"DiagPart", DiagonalOf},
    {"LowerBound", BoundOf},
    {"UpperBound", BoundOf},
    {"DynamicStitch", Stitched},
    {"ParallelDynamicStitch", Stitched},
    {"EuclideanNorm", EuclideanNorm},
    {"BiasAddGrad", BiasGrad},
    {"SparseSegmentSum", SegmentsOfRows},
    {"SparseSegmentMean", SegmentsOfRows},
    {"SparseSegmentSqrtN", SegmentsOfRows},
    {"SparseSegmentSumWithNumSegments", SegmentsOfRows},
    {"SparseSegmentMeanWithNumSegments", SegmentsOfRows},
    {"SparseSegmentSqrtNWithNumSegments", SegmentsOfRows},
    {"SegmentMean", SegmentMean},
    {"InTopK", InTopK},
    {"InTopKV2", InTopK},
    {"SpaceToBatch", OldBlocks, "tfl.space_to_batch_nd"},
    {"BatchToSpace", OldBlocks, "tfl.batch_to_space_nd"},
    {"TopK", OldTopK},
    {"ApproxTopK", ApproxTopK},
    {"ShapeN", ShapesOf},
    {"InvertPermutation", InversePlaces},
    {"UnravelIndex", Unraveled},
};

}  // namespace

std::span<const ExportRow> PlacesExport() { return kPlaceRows; }

}  // namespace smelt
