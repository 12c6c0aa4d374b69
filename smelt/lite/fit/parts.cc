// What takes a part of each dimension, or adds to it: slices and pads. Dimensions that stay whole
// are merged; where the others are too many for one operator, a few take turns.
#include <algorithm>
#include <bit>
#include <functional>

#include "smelt/lite/common/kernel_ranks.h"
#include "smelt/lite/fit/fit.h"
#include "smelt/lite/fit/sizes.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

// What one operator does: dimensions that change are runs of their own.
struct PartTurn {
  Endpoint e;  // has one dimension for each run
  DimRuns runs;
  std::vector<bool> now;  // the dimensions that change
  PartialShape result;

  bool changes(const DimRun& run) const { return now[static_cast<size_t>(run.first)]; }
};

// What each dimension becomes.
struct PartPlan {
  std::vector<bool> changes;
  std::vector<bool> goes;       // of those that change
  std::vector<int64_t> result;  // sizes of those that change, where they are known; else -1
};

// As many dimensions, none of which changes.
PartPlan AllStay(int rank, const PartialShape& to) {
  const auto count = static_cast<size_t>(rank);
  PartPlan out = {std::vector<bool>(count), std::vector<bool>(count), {}};
  for (int d = 0; d < rank; ++d) out.result.push_back(to.rank() == rank ? to[d] : -1);
  return out;
}

DimRuns RunsBetween(const std::vector<bool>& alone) {
  DimRuns runs;
  for (size_t d = 0; d < alone.size(); ++d) {
    if (d > 0 && !alone[d] && !alone[d - 1]) {
      ++runs.back().count;
    } else {
      runs.push_back({static_cast<int>(d), 1});
    }
  }
  return runs;
}

// The tensor after all turns, and its sizes, 1 where a dimension went.
StatusOr<Endpoint> InTurns(Endpoint e, const PartPlan& plan, int most, Legalizer& l,
                           LiteSizes* sizes,
                           const std::function<StatusOr<Endpoint>(const PartTurn&)>& make) {
  *sizes = SizesOf(e, l);
  for (size_t d = 0; d < plan.changes.size();) {
    PartTurn turn;
    turn.now.assign(plan.changes.size(), false);
    for (; d < plan.changes.size(); ++d) {
      if (!plan.changes[d]) continue;
      turn.now[d] = true;
      if (static_cast<int>(RunsBetween(turn.now).size()) > most) {
        turn.now[d] = false;
        break;
      }
    }
    if (std::ranges::find(turn.now, true) == turn.now.end()) continue;
    turn.runs = RunsBetween(turn.now);
    ASSIGN_OR_RETURN(turn.e, WithSizes(e, MergedSizes(*sizes, turn.runs), l));
    LiteSizes result;
    std::vector<std::pair<size_t, int>> measured;  // dimensions, and where they are in the result
    for (const DimRun& run : turn.runs) {
      const auto at = static_cast<size_t>(run.first);
      if (!turn.changes(run)) {
        result.push_back(MergedSizes(*sizes, {&run, 1})[0]);
        continue;
      }
      LiteSize& size = (*sizes)[at] = {};
      if (plan.goes[at]) continue;
      if (plan.result[at] >= 0) {
        size.known = plan.result[at];
      } else {
        size.free = {{Endpoint(), 0}};
        measured.emplace_back(at, static_cast<int>(result.size()));
      }
      result.push_back(size);
    }
    turn.result = ShapeOfSizes(result);
    ASSIGN_OR_RETURN(e, make(turn));
    for (const auto& [at, axis] : measured) (*sizes)[at].free = {{e, axis}};
  }
  return e;
}

// ---- numbers among operands

struct PartNumber {
  int64_t known = 0;
  Endpoint computed;  // a scalar, where it is known when it runs

  bool is(int64_t value) const { return computed.node == nullptr && known == value; }
};
using PartNumbers = std::vector<PartNumber>;

std::optional<PartNumbers> NumbersOf(Endpoint e, const Legalizer& l) {
  PartNumbers out;
  if (const auto known = l.Integers(e)) {
    for (const int64_t v : *known) out.push_back({v, {}});
    return out;
  }
  if (!e.node->Is("tfl.pack") || l.rank(e) != 1) return std::nullopt;
  for (const Endpoint& element : e.node->inputs()) {
    const auto known = l.Integers(element);
    out.push_back(known && known->size() == 1 ? PartNumber{known->front(), {}}
                                              : PartNumber{0, element});
  }
  return out;
}

StatusOr<Endpoint> NumbersVector(const PartNumbers& numbers, Legalizer& l) {
  std::vector<int64_t> known;
  std::vector<Endpoint> scalars;
  for (const PartNumber& n : numbers) {
    if (n.computed.node == nullptr) known.push_back(n.known);
  }
  if (known.size() == numbers.size()) return l.Ints(known);
  for (const PartNumber& n : numbers) {
    scalars.push_back(n.computed.node == nullptr ? l.Int(n.known) : n.computed);
  }
  const auto count = static_cast<int64_t>(numbers.size());
  return l.Add("tfl.pack", scalars, Options({{"values_count", count}}),
               {Dtype::kInt32, PartialShape::Of({count})});
}

// One for each run: `whole` for those that stay.
PartNumbers ForRuns(const PartNumbers& each, const PartTurn& turn, int64_t whole) {
  PartNumbers out;
  for (const DimRun& run : turn.runs) {
    out.push_back(turn.changes(run) ? each[static_cast<size_t>(run.first)] : PartNumber{whole, {}});
  }
  return out;
}

Status NotConstant(int rank, absl::string_view what) {
  return Unimplemented("its operator takes no ", rank, " dimensions, and its ", what,
                       " no constants");
}

// ---- slices

LiteEndpoints FitSlice(Node& n, Legalizer& l) {
  const PartialShape x = l.shape(n.input(0)), to = l.shape({&n, 0});
  const int most = KernelRanksOf(n.op_name()).most, rank = x.rank();
  if (rank <= most) return std::vector<Endpoint>();
  const auto begin = NumbersOf(n.input(1), l), size = NumbersOf(n.input(2), l);
  if (!begin || !size || static_cast<int>(begin->size()) != rank || size->size() != begin->size()) {
    return NotConstant(rank, "begin and size are");
  }
  PartPlan plan = AllStay(rank, to);
  for (int d = 0; d < rank; ++d) {
    const auto k = static_cast<size_t>(d);
    const PartNumber &b = (*begin)[k], &s = (*size)[k];
    plan.changes[k] = !(b.is(0) && (s.is(-1) || (x[d] >= 0 && s.is(x[d]))));
  }
  LiteSizes sizes;
  ASSIGN_OR_RETURN(
      const Endpoint e,
      InTurns(n.input(0), plan, most, l, &sizes, [&](const PartTurn& turn) -> StatusOr<Endpoint> {
        ASSIGN_OR_RETURN(const Endpoint at, NumbersVector(ForRuns(*begin, turn, 0), l));
        ASSIGN_OR_RETURN(const Endpoint of, NumbersVector(ForRuns(*size, turn, -1), l));
        return l.Add("tfl.slice", {turn.e, at, of}, {}, {l.type(turn.e), turn.result});
      }));
  return One(WithSizes(e, sizes, l));
}

// A strided slice with one entry for each dimension of its input.
struct PlainStrides {
  PartNumbers begin, end;
  std::vector<int64_t> stride;
  std::vector<bool> from_first, to_last, goes;
  std::vector<int> result;  // dimensions of the input, and -1 where one is new
  int added = 0;
  // The place of an ellipsis that stands for no dimension: kernels take it for one.
  int empty_ellipsis = -1;
};

std::optional<PlainStrides> StridesOf(const Node& n, int rank, const Legalizer& l) {
  const auto begin = NumbersOf(n.input(1), l), end = NumbersOf(n.input(2), l);
  const auto stride = l.Integers(n.input(3));
  if (!begin || !end || !stride || begin->size() != end->size() ||
      begin->size() != stride->size()) {
    return std::nullopt;
  }
  const auto bit = [&](absl::string_view mask, size_t i) { return (n.Int(mask) >> i & 1) != 0; };
  int used = 0;
  for (size_t i = 0; i < begin->size(); ++i) {
    if (!bit("ellipsis_mask", i) && !bit("new_axis_mask", i)) ++used;
  }
  PlainStrides out;
  const auto whole = [&] {
    out.result.push_back(static_cast<int>(out.begin.size()));
    out.begin.emplace_back();
    out.end.emplace_back();
    out.stride.push_back(1);
    out.from_first.push_back(true);
    out.to_last.push_back(true);
    out.goes.push_back(false);
  };
  for (size_t i = 0; i < begin->size(); ++i) {
    if (bit("ellipsis_mask", i)) {
      if (rank == used) out.empty_ellipsis = static_cast<int>(i);
      for (int k = used; k < rank; ++k) whole();
    } else if (bit("new_axis_mask", i)) {
      out.result.push_back(-1);
      ++out.added;
    } else {
      whole();
      out.begin.back() = (*begin)[i];
      out.end.back() = (*end)[i];
      out.stride.back() = (*stride)[i];
      out.from_first.back() = bit("begin_mask", i);
      out.to_last.back() = bit("end_mask", i);
      out.goes.back() = bit("shrink_axis_mask", i);
      if (out.goes.back()) out.result.pop_back();
    }
  }
  while (static_cast<int>(out.begin.size()) < rank) whole();
  if (static_cast<int>(out.begin.size()) != rank) return std::nullopt;
  return out;
}

bool MayHaveEmptyEllipsis(const Node& n, int rank, const Legalizer& l) {
  const auto ellipsis = static_cast<uint64_t>(n.Int("ellipsis_mask"));
  if (ellipsis == 0) return false;
  const PartialShape entries = l.shape(n.input(1));
  if (entries.rank() != 1 || entries[0] < 0) return true;
  const uint64_t others = ellipsis | static_cast<uint64_t>(n.Int("new_axis_mask"));
  return entries[0] - std::popcount(others) >= rank;
}

LiteEndpoints FitStridedSlice(Node& n, Legalizer& l) {
  const PartialShape x = l.shape(n.input(0)), to = l.shape({&n, 0});
  const int most = KernelRanksOf(n.op_name()).most, rank = x.rank();
  if (rank < 0) return std::vector<Endpoint>();
  const auto strides = StridesOf(n, rank, l);
  const int added = std::popcount(static_cast<uint64_t>(n.Int("new_axis_mask")));
  if (!strides && rank + added > most) {
    return NotConstant(rank + added, "begin, end and strides are");
  }
  if (!strides && MayHaveEmptyEllipsis(n, rank, l)) {
    return Unimplemented("its ellipsis may stand for no dimension, and its begin, end and strides ",
                         "are no constants");
  }
  if (!strides || (rank + strides->added <= most && strides->empty_ellipsis < 0)) {
    return std::vector<Endpoint>();
  }
  PartPlan plan;
  plan.goes = strides->goes;
  plan.result.assign(static_cast<size_t>(rank), -1);
  for (size_t k = 0; k < strides->result.size(); ++k) {
    const bool known = to.rank() == static_cast<int>(strides->result.size());
    const int d = strides->result[k];
    if (known && d >= 0) plan.result[static_cast<size_t>(d)] = to[static_cast<int>(k)];
  }
  for (size_t d = 0; d < strides->stride.size(); ++d) {
    plan.changes.push_back(!(strides->from_first[d] && strides->to_last[d] &&
                             strides->stride[d] == 1 && !strides->goes[d]));
  }
  LiteSizes sizes;
  ASSIGN_OR_RETURN(
      const Endpoint e,
      InTurns(n.input(0), plan, most, l, &sizes, [&](const PartTurn& turn) -> StatusOr<Endpoint> {
        ASSIGN_OR_RETURN(const Endpoint begin, NumbersVector(ForRuns(strides->begin, turn, 0), l));
        ASSIGN_OR_RETURN(const Endpoint end, NumbersVector(ForRuns(strides->end, turn, 0), l));
        std::vector<int64_t> steps;
        int64_t from_first = 0, to_last = 0, goes = 0;
        for (size_t r = 0; r < turn.runs.size(); ++r) {
          const auto d = static_cast<size_t>(turn.runs[r].first);
          const bool changes = turn.changes(turn.runs[r]);
          steps.push_back(changes ? strides->stride[d] : 1);
          from_first |= int64_t{!changes || strides->from_first[d]} << r;
          to_last |= int64_t{!changes || strides->to_last[d]} << r;
          goes |= int64_t{changes && strides->goes[d]} << r;
        }
        return l.Add(
            "tfl.strided_slice", {turn.e, begin, end, l.Ints(steps)},
            Options(
                {{"begin_mask", from_first}, {"end_mask", to_last}, {"shrink_axis_mask", goes}}),
            {l.type(turn.e), turn.result});
      }));
  LiteSizes result;
  for (const int d : strides->result) {
    result.push_back(d < 0 ? LiteSize() : sizes[static_cast<size_t>(d)]);
  }
  return One(WithSizes(e, result, l));
}

// ---- pads

LiteEndpoints FitPad(Node& n, Legalizer& l) {
  const PartialShape x = l.shape(n.input(0)), to = l.shape({&n, 0});
  const int most = KernelRanksOf(n.op_name()).most, rank = x.rank();
  if (rank <= most) return std::vector<Endpoint>();
  const auto pads = l.Integers(n.input(1));
  if (!pads || static_cast<int>(pads->size()) != 2 * rank) return NotConstant(rank, "pads are");
  PartPlan plan = AllStay(rank, to);
  for (size_t d = 0; d < plan.changes.size(); ++d) {
    plan.changes[d] = (*pads)[2 * d] != 0 || (*pads)[2 * d + 1] != 0;
  }
  LiteSizes sizes;
  ASSIGN_OR_RETURN(
      const Endpoint e,
      InTurns(n.input(0), plan, most, l, &sizes, [&](const PartTurn& turn) -> StatusOr<Endpoint> {
        std::vector<int64_t> each;
        for (const DimRun& run : turn.runs) {
          const auto k = static_cast<size_t>(2 * run.first);
          for (const size_t side : {k, k + 1}) {
            each.push_back(turn.changes(run) ? (*pads)[side] : 0);
          }
        }
        std::vector<Endpoint> inputs = {turn.e, l.IntPairs(each)};
        if (n.num_inputs() > 2) inputs.push_back(n.input(2));
        return l.Add(n.op_name(), inputs, {}, {l.type(turn.e), turn.result});
      }));
  return One(WithSizes(e, sizes, l));
}

constexpr FitRow kPartFit[] = {
    {{"tfl.slice"}, FitSlice},
    {{"tfl.strided_slice"}, FitStridedSlice},
    {{"tfl.pad", "tfl.padv2"}, FitPad},
};

}  // namespace

std::span<const FitRow> PartFit() { return kPartFit; }

}  // namespace smelt
