// Ops that move elements: shapes, slices, lookups.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "smelt/analysis/rows/rules.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"

namespace smelt {
namespace {

constexpr char kNoFollow[] = "has a shape that does not follow the number of rows";
constexpr char kTakesSome[] = "takes some of the rows, or moves them";
constexpr char kUnknownAxis[] = "may work along the dimension that the rows are in";
constexpr char kValueOfRows[] = "takes its sizes or places from rows";
constexpr char kAgainstRows[] = "puts rows against rows";

// Sizes and places, inputs from `from` on, do not depend on what rows hold.
bool PlacesKnown(const RowNode& n, int from) {
  for (int i = from; i < n.inputs(); ++i) {
    if (!n.whole(i) && !n.sizes(i)) return false;
  }
  return true;
}
// Elements keep their order: the rows are where as many elements come before and after each as did.
std::string Reshapes(RowNode& n) {
  if (!n.rows(0) || !PlacesKnown(n, 1)) return kValueOfRows;
  const RowState& in = n.in(0);
  const Endpoint from = n.input(0), to = n.output(0);
  const auto product = [&](Endpoint e, int first, int last) {
    int64_t out = 1;
    for (int d = first; d < last; ++d) {
      const int64_t size = n.Dim(e, d);
      if (size < 0) return int64_t{-1};
      out *= size;
    }
    return out;
  };
  if (n.rank(from) < 0 || n.rank(to) < 0) return "has a shape of unknown rank";
  // How many elements come before those of one row, and how many are in it.
  const int64_t before = product(from, 0, in.axis) * in.outer;
  const int64_t behind = product(from, in.axis + 1, n.rank(from)) * in.inner;
  if (before < 0) return "reshapes dimensions of unknown size before the rows";
  int at = 0;
  while (at < n.rank(to) && n.Dim(to, at) >= 0) ++at;
  if (at == n.rank(to)) return kNoFollow;
  const int64_t passed = product(to, 0, at), rest = product(to, at + 1, n.rank(to));
  int64_t each = n.PerRow(to, at);
  const std::vector<int64_t> none;
  const std::vector<int64_t>& stated = n.inputs() > 1 ? n.in(1).per_row : none;
  if (each == 0 && at < std::ssize(stated) && stated[at] > 0) each = stated[at];
  if (each == 0 && behind > 0 && passed > 0 && rest > 0 && before * behind % (passed * rest) == 0) {
    each = before * behind / (passed * rest);
  }
  if (each == 0 || passed == 0 || before % passed != 0 || each % (before / passed) != 0) {
    return kNoFollow;
  }
  const int64_t outer = before / passed;
  n.Set(0, RowState::Rows(at, outer, each / outer));
  return "";
}

std::string Squeezes(RowNode& n) {
  if (!n.rows(0)) return kValueOfRows;
  const int rank = n.rank(0), axis = n.in(0).axis;
  const std::vector<int64_t> dims = n.node().Ints("squeeze_dims");
  if (dims.empty() && n.in(0).outer * n.in(0).inner == 1) {
    return "would take the dimension of a single row away";
  }
  int before = 0;
  for (int d = 0; d <= axis; ++d) {
    const bool named =
        std::ranges::any_of(dims, [&](int64_t a) { return RowDimension(a, rank) == d; });
    const bool gone = dims.empty() ? d != axis && n.Dim(n.input(0), d) == 1 : named;
    if (rank < 0 || (d == axis && gone)) return kUnknownAxis;
    before += gone ? 1 : 0;
  }
  n.Set(0, n.in(0).At(axis - before));
  return "";
}

std::string ExpandsDims(RowNode& n) {
  const auto at = n.Ints(1);
  if (!n.rows(0) || !at || at->size() != 1 || n.rank(0) < 0) return kUnknownAxis;
  const int64_t d = RowDimension((*at)[0], n.rank(0) + 1);
  n.Set(0, n.in(0).At(n.in(0).axis + (d <= n.in(0).axis ? 1 : 0)));
  return "";
}

std::string Reorders(RowNode& n) {
  const auto order = n.Ints(1);
  if (!n.rows(0) || !order) return kUnknownAxis;
  const auto at = std::ranges::find(*order, n.in(0).axis);
  if (at == order->end()) return kUnknownAxis;
  n.Set(0, n.in(0).At(static_cast<int>(at - order->begin())));
  return "";
}

// Inputs [from, to), all with rows at one place, side by side along dimension `d`.
std::string SideBySide(RowNode& n, int from, int to, int64_t d) {
  for (int i = from; i < to; ++i) {
    if (!n.rows(i)) return "puts other values among the rows";
    if (!(n.in(i) == n.in(from))) return kAgainstRows;
  }
  if (d == n.in(from).axis) return "puts rows behind rows";
  n.SetAll(n.in(from));
  return "";
}
std::string Joins(RowNode& n) {
  const int last = n.inputs() - 1;
  const auto axis = n.Ints(last);
  if (!axis || axis->size() != 1 || n.rank(0) < 0) return kUnknownAxis;
  return SideBySide(n, 0, last, RowDimension((*axis)[0], n.rank(0)));
}
std::string JoinsOld(RowNode& n) {
  const auto axis = n.Ints(0);
  if (!axis || axis->size() != 1 || n.rank(1) < 0) return kUnknownAxis;
  return SideBySide(n, 1, n.inputs(), RowDimension((*axis)[0], n.rank(1)));
}
std::string Stacks(RowNode& n) {
  if (n.rank(0) < 0) return kUnknownAxis;
  const int64_t d = RowDimension(n.node().Int("axis"), n.rank(0) + 1);
  if (const std::string why = SideBySide(n, 0, n.inputs(), -1); !why.empty()) return why;
  n.SetAll(n.in(0).At(n.in(0).axis + (d <= n.in(0).axis ? 1 : 0)));
  return "";
}
std::string Unstacks(RowNode& n) {
  if (!n.rows(0) || n.rank(0) < 0) return kUnknownAxis;
  const int64_t d = RowDimension(n.node().Int("axis"), n.rank(0));
  if (d == n.in(0).axis) return kTakesSome;
  n.SetAll(n.in(0).At(n.in(0).axis - (d < n.in(0).axis ? 1 : 0)));
  return "";
}
std::string SplitsAt(RowNode& n, int value, int axis_input) {
  const auto axis = n.Ints(axis_input);
  if (!n.rows(value) || !axis || axis->size() != 1 || n.rank(value) < 0) return kUnknownAxis;
  if (RowDimension((*axis)[0], n.rank(value)) == n.in(value).axis) return kTakesSome;
  n.SetAll(n.in(value));
  return "";
}
std::string Splits(RowNode& n) { return SplitsAt(n, 1, 0); }
std::string SplitsBySizes(RowNode& n) { return n.whole(1) ? SplitsAt(n, 0, 2) : kValueOfRows; }

// The element of a vector of places for dimension `d`, known or given by a Pack of scalars.
std::optional<int64_t> PlaceOf(const RowNode& n, int i, int d) {
  if (const auto all = n.Ints(i); all && d < std::ssize(*all)) return (*all)[d];
  const Endpoint e = n.input(i);
  if (!e.node->Is("Pack") || d >= e.node->num_inputs()) return std::nullopt;
  const auto t = ConstantTensor(*BehindIdentities(e.node->inputs()[d]).node);
  if (!t || t->num_elements() != 1) return std::nullopt;
  return IndexAt(*t, 0);
}
// Element d of the vector of sizes says as many as there are rows at that dimension of `rows`.
bool AllOfRows(const RowNode& n, int i, size_t d, const RowState& rows) {
  const auto& per_row = n.in(i).per_row;
  return n.sizes(i) && d < per_row.size() && per_row[d] == rows.outer * rows.inner;
}
std::string Slices(RowNode& n) {
  if (!n.rows(0) || !PlacesKnown(n, 1)) return kValueOfRows;
  const RowState& in = n.in(0);
  const bool all =
      PlaceOf(n, 1, in.axis) == 0 &&
      (PlaceOf(n, 2, in.axis) == -1 || AllOfRows(n, 2, static_cast<size_t>(in.axis), in) ||
       n.PerRow(n.output(0), in.axis) == in.outer * in.inner);
  n.Set(0, in);
  return all ? "" : kTakesSome;
}
std::string SlicesWithStrides(RowNode& n) {
  if (!n.rows(0) || !PlacesKnown(n, 1)) return kValueOfRows;
  const Node& node = n.node();
  const int rank = n.rank(0);
  int entries = -1;
  if (n.rank(1) == 1) entries = static_cast<int>(n.Dim(n.input(1), 0));
  if (rank < 0 || entries < 0) return kUnknownAxis;
  const auto bit = [&](const char* mask, int i) { return (node.Int(mask) >> i & 1) != 0; };
  int named = 0;  // dimensions of the input that entries stand for, but for the ellipsis
  for (int i = 0; i < entries; ++i) {
    named += bit("ellipsis_mask", i) || bit("new_axis_mask", i) ? 0 : 1;
  }
  int in = 0, out = 0;  // dimensions before the entry
  const int axis = n.in(0).axis;
  for (int i = 0; i < entries && in <= axis; ++i) {
    if (bit("ellipsis_mask", i)) {
      const int hidden = rank - named;
      if (axis < in + hidden) break;
      in += hidden;
      out += hidden;
      continue;
    }
    if (bit("new_axis_mask", i)) {
      ++out;
      continue;
    }
    if (in == axis) {
      const bool first = bit("begin_mask", i) || PlaceOf(n, 1, i) == 0;
      const bool last = bit("end_mask", i) || AllOfRows(n, 2, static_cast<size_t>(i), n.in(0)) ||
                        n.PerRow(n.output(0), out) == n.in(0).outer * n.in(0).inner;
      if (bit("shrink_axis_mask", i) || !first || !last || PlaceOf(n, 3, i) != 1) {
        return kTakesSome;
      }
      break;
    }
    ++in;
    out += bit("shrink_axis_mask", i) ? 0 : 1;
  }
  n.Set(0, n.in(0).At(out + axis - in));
  return "";
}

std::string Pads(RowNode& n) {
  if (!n.rows(0) || !PlacesKnown(n, 1)) return kValueOfRows;
  if (n.inputs() > 2 && !n.whole(2)) return "computes with the number of rows";
  n.Set(0, n.in(0));
  const size_t at = 2 * static_cast<size_t>(n.in(0).axis);
  const auto paddings = n.Ints(1);
  if (paddings && at + 1 < paddings->size()) {
    return (*paddings)[at] == 0 && (*paddings)[at + 1] == 0 ? ""
                                                            : "puts other values among the rows";
  }
  return n.PerRow(n.output(0), n.in(0).axis) == n.in(0).outer * n.in(0).inner
             ? ""
             : "may put other values among the rows";
}

std::string Picks(RowNode& n, int64_t axis) {
  const int64_t batch = n.node().Int("batch_dims");
  if (n.rank(0) < 0 || n.rank(1) < 0) return "has an input of unknown rank";
  for (int i : {0, 1}) {
    if (!n.rows(i) && !n.whole(i)) return absl::StrCat("looks up by ", RowStateText(n.in(i)));
  }
  axis = RowDimension(axis, n.rank(0));
  const int64_t batches = batch < 0 ? batch + n.rank(1) : batch;
  if (n.rows(0) && n.rows(1)) {
    if (!(n.in(0) == n.in(1)) || n.in(0).axis >= batches) return "looks up rows in rows";
    n.Set(0, n.in(0));
  } else if (n.rows(1)) {
    if (n.in(1).axis < batches) return "looks up rows in other values for each row";
    n.Set(0, n.in(1).At(static_cast<int>(axis - batches) + n.in(1).axis));
  } else if (n.rows(0)) {
    const int mine = n.in(0).axis;
    if (mine == axis) return "picks some of the rows, or moves them";
    if (mine < batches) return kAgainstRows;
    const int more = n.rank(1) - static_cast<int>(batches) - 1;
    n.Set(0, n.in(0).At(mine + (mine > axis ? more : 0)));
  } else {
    return kValueOfRows;
  }
  return "";
}
std::string PicksAlong(RowNode& n) {
  const auto axis = n.Ints(2);
  if (!axis || axis->size() != 1) return kUnknownAxis;
  return Picks(n, (*axis)[0]);
}
std::string PicksFirst(RowNode& n) { return Picks(n, 0); }
std::string LooksUp(RowNode& n) {
  if (!n.whole(0) || !n.rows(1) || n.node().Int("batch_dims") != 0) return kAgainstRows;
  n.Set(0, n.in(1));
  return "";
}
std::string PicksPoints(RowNode& n) {
  if (!n.whole(0) || !n.rows(1)) return "looks up rows in rows";
  n.Set(0, n.in(1));
  return n.rank(1) >= 0 && n.in(1).axis != n.rank(1) - 1 ? "" : kUnknownAxis;
}
std::string Marks(RowNode& n) {
  if (!n.rows(0) || !n.WholeFrom(1)) return kValueOfRows;
  const int64_t axis = n.node().Int("axis", -1);
  n.Set(0, n.in(0).At(n.in(0).axis + (axis >= 0 && axis <= n.in(0).axis ? 1 : 0)));
  return "";
}

std::string Repeats(RowNode& n) {
  const Endpoint out = n.output(0);
  if (!PlacesKnown(n, 1)) return kValueOfRows;
  if (n.whole(0)) {
    // A copy for each row, of one element in that dimension or of more.
    n.Set(0, RepeatedForRows(n, out, n.in(1)));
    return "";
  }
  if (n.sizes(0)) {
    n.SetAll(RowState::Sizes());
    return "";
  }
  if (!n.rows(0)) return kValueOfRows;
  const RowState& in = n.in(0);
  const auto times = PlaceOf(n, 1, in.axis);
  const int64_t each = n.PerRow(out, in.axis), own = in.outer * in.inner;
  const int64_t count = times ? *times : each % own == 0 ? each / own : 0;
  if (count <= 0) return kNoFollow;
  n.Set(0, RowState::Rows(in.axis, in.outer * count, in.inner));
  return "";
}
std::string Fills(RowNode& n) {
  if (!PlacesKnown(n, 0)) return kValueOfRows;
  n.Set(0, n.whole(1) ? RepeatedForRows(n, n.output(0), n.in(0)) : RowState::Sizes());
  return "";
}
std::string Broadcasts(RowNode& n) {
  const Endpoint out = n.output(0);
  if (!PlacesKnown(n, n.rows(0) ? 1 : 0) || n.rank(out) < 0 || n.rank(0) < 0) return kValueOfRows;
  const int more = n.rank(out) - n.rank(0);
  if (n.rows(0)) {
    const RowState to = n.in(0).At(n.in(0).axis + more);
    n.Set(0, to);
    return n.PerRow(out, to.axis) == to.outer * to.inner ? "" : kNoFollow;
  }
  RowState to = n.whole(0) ? RepeatedForRows(n, out, n.in(1)) : RowState::Sizes();
  if (to.kind == RowKind::kRows && to.axis >= more && n.Dim(n.input(0), to.axis - more) != 1) {
    to = RowState::Sizes();
  }
  n.Set(0, to);
  return "";
}

// The product of a constant vector's elements; 0: unknown.
int64_t ProductOfInts(const RowNode& n, int i) {
  const auto values = n.Ints(i);
  int64_t out = values ? 1 : 0;
  for (int64_t v : values.value_or(std::vector<int64_t>())) out *= std::max<int64_t>(v, 0);
  return out;
}
// Blocks of places become whole batches, one behind the other.
std::string SpaceToBatch(RowNode& n) {
  const int64_t blocks = ProductOfInts(n, 1);
  if (!n.rows(0) || n.in(0).axis != 0 || blocks == 0 || !n.WholeFrom(1)) return kUnknownAxis;
  n.Set(0, RowState::Rows(0, n.in(0).outer * blocks, n.in(0).inner));
  return "";
}
std::string BatchToSpace(RowNode& n) {
  const int64_t blocks = ProductOfInts(n, 1);
  if (!n.rows(0) || n.in(0).axis != 0 || blocks == 0 || !n.WholeFrom(1) ||
      n.in(0).outer % blocks != 0) {
    return "puts together what is of several rows";
  }
  n.Set(0, RowState::Rows(0, n.in(0).outer / blocks, n.in(0).inner));
  return "";
}

std::string ShapesOf(RowNode& n) {
  for (int i = 0; i < n.inputs(); ++i) {
    std::vector<int64_t> per_row;
    const RowState& in = n.in(i);
    if (n.node().Is("Size")) {
      per_row.push_back(n.whole(i) ? 0 : -1);
    } else {
      for (int d = 0; d < n.rank(i); ++d) {
        const bool here = n.rows(i) ? d == in.axis : !n.whole(i) && n.Dim(n.input(i), d) < 0;
        per_row.push_back(!here ? 0 : n.rows(i) ? in.outer * in.inner : -1);
      }
    }
    n.Set(i, RowState::Sizes(std::move(per_row)));
  }
  return "";
}
std::string AddsToRows(RowNode& n) {
  const int width = n.rank(1) == 2 ? static_cast<int>(n.Dim(n.input(1), 1)) : -1;
  // Whole index vectors below the dimension of the rows: updates are whole slices, each of which
  // holds all rows.
  if (!n.whole(1) || width < 0 || !n.rows(0) || !n.rows(2)) return "writes at places of rows";
  if (n.in(0).axis < width) return kTakesSome;
  n.Set(0, n.in(0));
  return n.in(2) == n.in(0).At(n.in(0).axis - width + 1) ? "" : kAgainstRows;
}
std::string TakesWhere(RowNode&) { return "keeps a number of rows that their values decide"; }

constexpr RowRule kMovementRows[] = {
    {"Reshape", Reshapes},
    {"Squeeze", Squeezes},
    {"ExpandDims", ExpandsDims},
    {"Transpose", Reorders},
    {"ConjugateTranspose", Reorders},
    {"ConcatV2", Joins},
    {"Concat", JoinsOld},
    {"Pack", Stacks},
    {"Unpack", Unstacks},
    {"Split", Splits},
    {"SplitV", SplitsBySizes},
    {"Slice", Slices},
    {"StridedSlice", SlicesWithStrides},
    {"Pad", Pads},
    {"PadV2", Pads},
    {"MirrorPad", Pads},
    {"GatherV2", PicksAlong},
    {"Gather", PicksFirst},
    {"ResourceGather", LooksUp},
    {"GatherNd", PicksPoints},
    {"ResourceGatherNd", PicksPoints},
    {"TensorScatterUpdate", AddsToRows},
    {"TensorScatterAdd", AddsToRows},
    {"OneHot", Marks},
    {"Tile", Repeats, true},
    {"Fill", Fills, true},
    {"BroadcastTo", Broadcasts, true},
    {"SpaceToBatchND", SpaceToBatch},
    {"BatchToSpaceND", BatchToSpace},
    {"Shape", ShapesOf, true},
    {"ShapeN", ShapesOf, true},
    {"Size", ShapesOf, true},
    {"Where", TakesWhere},
    {"DynamicPartition", TakesWhere},
};

}  // namespace

extern const std::span<const RowRule> kMovementRowRules;
constinit const std::span<const RowRule> kMovementRowRules = kMovementRows;

}  // namespace smelt
