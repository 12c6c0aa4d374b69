// Transpositions, joins, reductions and products: dimensions that an operator does not tell apart
// are one.
#include <algorithm>
#include <numeric>

#include "smelt/lite/common/kernel_ranks.h"
#include "smelt/lite/fit/fit.h"
#include "smelt/lite/fit/sizes.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

int MostOf(const Node& n) { return KernelRanksOf(n.op_name()).most; }

// ---- transpositions

// Neighbors that stay neighbors, and dimensions of one, which may be anywhere: the runs of the
// input, and the order that these take.
DimRuns StayTogether(const PartialShape& x, const std::vector<int64_t>& order,
                     std::vector<int64_t>* of_runs) {
  std::vector<int64_t> moved;  // without those of one
  for (const int64_t d : order) {
    if (x[static_cast<int>(d)] != 1) moved.push_back(d);
  }
  std::vector<int64_t> kept = moved;
  std::ranges::sort(kept);
  const auto place = [&](int64_t d) { return std::ranges::find(kept, d) - kept.begin(); };
  std::vector<int64_t> firsts;  // the first dimension of each run, in the order of the result
  for (size_t i = 0; i < moved.size(); ++i) {
    if (i == 0 || place(moved[i]) != place(moved[i - 1]) + 1) firsts.push_back(moved[i]);
  }
  std::vector<int64_t> sorted = firsts;
  std::ranges::sort(sorted);
  for (const int64_t d : firsts) {
    of_runs->push_back(std::ranges::find(sorted, d) - sorted.begin());
  }
  DimRuns runs;
  for (size_t r = 0; r < sorted.size(); ++r) {
    const auto end = r + 1 < sorted.size() ? sorted[r + 1] : int64_t{x.rank()};
    const auto begin = r == 0 ? 0 : sorted[r];
    runs.push_back({static_cast<int>(begin), static_cast<int>(end - begin)});
  }
  return runs;
}

StatusOr<Endpoint> Transposed(Endpoint e, LiteSizes& sizes, const std::vector<int64_t>& order,
                              Legalizer& l) {
  ASSIGN_OR_RETURN(e, WithSizes(e, sizes, l));
  LiteSizes to;
  for (const int64_t d : order) to.push_back(sizes[static_cast<size_t>(d)]);
  sizes = to;
  return l.Add("tfl.transpose", {e, l.Ints(order)}, {}, {l.type(e), ShapeOfSizes(sizes)});
}

LiteEndpoints FitTranspose(Node& n, Legalizer& l);

// Of types that some kernels do not take, by those that hold their values.
LiteEndpoints TransposeWide(Node& n, Legalizer& l) {
  const Dtype type = n.output_types[0];
  const Dtype wide = type == Dtype::kHalf     ? Dtype::kFloat
                     : type == Dtype::kUint16 ? Dtype::kInt32
                                              : Dtype::kInt64;
  OperatorChain c(l);
  const Endpoint moved = c.Make("tfl.transpose", {c.Cast(n.input(0), wide), n.input(1)},
                                OptionsOf(n), {wide, l.shape({&n, 0})});
  RETURN_IF_ERROR(c.Done(moved).status());
  ASSIGN_OR_RETURN(const std::vector<Endpoint> fitted, FitTranspose(*moved.node, l));
  return c.Done(c.Cast(fitted.empty() ? moved : fitted[0], type));
}

LiteEndpoints FitTranspose(Node& n, Legalizer& l) {
  if (Has(Types(Dtype::kHalf, Dtype::kUint16, Dtype::kUint32), n.output_types[0])) {
    return TransposeWide(n, l);
  }
  const PartialShape x = l.shape(n.input(0));
  const int most = MostOf(n), rank = x.rank();
  if (rank <= most) return std::vector<Endpoint>();
  const auto order = l.Integers(n.input(1));
  if (!order || static_cast<int>(order->size()) != rank) {
    return Unimplemented("its operator takes no ", rank,
                         " dimensions, and their order is no constant");
  }
  const LiteSizes each = SizesOf(n.input(0), l);
  LiteSizes result;
  for (const int64_t d : *order) result.push_back(each[static_cast<size_t>(d)]);
  std::vector<int64_t> moves;
  const DimRuns runs = StayTogether(x, *order, &moves);
  LiteSizes sizes = MergedSizes(each, runs);
  Endpoint e = n.input(0);
  // Too many: what is to come first is moved there, one by one, and is one with what stands there
  // before it.
  size_t done = 0;
  while (moves.size() - done + (done == 0 ? 0 : 1) > static_cast<size_t>(most)) {
    const size_t at = static_cast<size_t>(moves[done]);  // among those that did not move
    const auto product = [&](size_t from, size_t count) {
      const DimRun run = {static_cast<int>(from), static_cast<int>(count)};
      return MergedSizes(sizes, {&run, 1})[0];
    };
    LiteSizes four = {product(0, done), product(done, at), sizes[done + at],
                      product(done + at + 1, sizes.size() - done - at - 1)};
    ASSIGN_OR_RETURN(e, Transposed(e, four, {0, 2, 1, 3}, l));
    std::rotate(sizes.begin() + static_cast<std::ptrdiff_t>(done),
                sizes.begin() + static_cast<std::ptrdiff_t>(done + at),
                sizes.begin() + static_cast<std::ptrdiff_t>(done + at + 1));
    for (size_t i = done + 1; i < moves.size(); ++i) {
      if (moves[i] > moves[done]) --moves[i];
    }
    ++done;
  }
  std::vector<int64_t> rest;
  LiteSizes last;
  if (done > 0) {
    const DimRun run = {0, static_cast<int>(done)};
    last = MergedSizes(sizes, {&run, 1});
    rest.push_back(0);
  }
  for (size_t i = done; i < moves.size(); ++i) {
    last.push_back(sizes[i]);
    rest.push_back(moves[i] + (done > 0 ? 1 : 0));
  }
  if (!std::ranges::is_sorted(rest)) {
    ASSIGN_OR_RETURN(e, Transposed(e, last, rest, l));
  }
  return One(WithSizes(e, result, l));
}

// ---- joins

// What is before a dimension, it, and what is behind.
LiteSizes Around(const LiteSizes& sizes, size_t axis) {
  const DimRun runs[] = {{0, static_cast<int>(axis)},
                         {static_cast<int>(axis), 1},
                         {static_cast<int>(axis) + 1, static_cast<int>(sizes.size() - axis) - 1}};
  return MergedSizes(sizes, runs);
}

// What has the sizes of `like`, but along the dimension, where its own is the middle one of three.
LiteSizes Apart(const LiteSizes& like, size_t axis, const PartialShape& to, Endpoint three) {
  LiteSizes out = like;
  out[axis] = {};
  if (to.known_rank() && to[static_cast<int>(axis)] >= 0) {
    out[axis].known = to[static_cast<int>(axis)];
  } else {
    out[axis].free = {{three, 1}};
  }
  return out;
}

LiteEndpoints FitConcatenation(Node& n, Legalizer& l) {
  const PartialShape to = l.shape({&n, 0});
  const int rank = to.rank();
  if (rank <= MostOf(n)) return std::vector<Endpoint>();
  const auto axis = static_cast<size_t>(n.Int("axis") + (n.Int("axis") < 0 ? rank : 0));
  std::vector<Endpoint> inputs;
  for (const Endpoint& e : n.inputs()) {
    if (l.rank(e) != rank) return std::vector<Endpoint>();
    ASSIGN_OR_RETURN(inputs.emplace_back(), WithSizes(e, Around(SizesOf(e, l), axis), l));
  }
  const LiteSizes first = SizesOf(n.input(0), l);
  const LiteSizes joined = Around(Apart(first, axis, to, Endpoint()), axis);
  AttrMap options = OptionsOf(n);
  options.Set("axis", int64_t{1});
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("tfl.concatenation", inputs, std::move(options),
                                           {n.output_types[0], ShapeOfSizes(joined)}));
  return One(WithSizes(e, Apart(first, axis, to, e), l));
}

LiteEndpoints FitSplit(Node& n, Legalizer& l) {
  const bool sized = n.Is("tfl.split_v");
  const int at = sized ? 0 : 1;
  const Endpoint x = n.input(at);
  const int rank = l.rank(x);
  if (rank <= MostOf(n)) return std::vector<Endpoint>();
  const auto given = l.Integers(n.input(sized ? 2 : 0));
  if (!given || given->size() != 1) {
    return Unimplemented("its operator takes no ", rank,
                         " dimensions, and its axis is no constant");
  }
  const auto axis = static_cast<size_t>((*given)[0] + ((*given)[0] < 0 ? rank : 0));
  const LiteSizes sizes = SizesOf(x, l);
  ASSIGN_OR_RETURN(const Endpoint three, WithSizes(x, Around(sizes, axis), l));
  std::vector<Endpoint> inputs(n.inputs().begin(), n.inputs().end());
  inputs[static_cast<size_t>(at)] = three;
  inputs[sized ? 2 : 0] = l.Int(1);
  std::vector<LiteOutput> parts;
  for (int i = 0; i < n.num_outputs(); ++i) {
    const PartialShape to = l.shape({&n, i});
    parts.push_back({l.type(x), ShapeOfSizes(Around(Apart(sizes, axis, to, Endpoint()), axis))});
  }
  ASSIGN_OR_RETURN(Node * made, l.AddMany(n.op_name(), inputs, OptionsOf(n), parts));
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) {
    ASSIGN_OR_RETURN(out.emplace_back(),
                     WithSizes({made, i}, Apart(sizes, axis, l.shape({&n, i}), {made, i}), l));
  }
  return out;
}

// ---- reductions

LiteEndpoints FitReduction(Node& n, Legalizer& l) {
  const Endpoint x = n.input(0);
  const int rank = l.rank(x), most = MostOf(n);
  const auto axes = l.Integers(n.input(1));
  if (rank <= most || !axes) return std::vector<Endpoint>();
  std::vector<bool> goes(static_cast<size_t>(rank));
  for (const int64_t a : *axes) goes[static_cast<size_t>(a < 0 ? a + rank : a)] = true;
  const LiteSizes each = SizesOf(x, l);
  LiteSizes result;
  DimRuns runs;
  std::vector<bool> run_goes;
  for (int d = 0; d < rank; ++d) {
    const bool gone = goes[static_cast<size_t>(d)];
    if (!gone || n.Bool("keep_dims")) {
      result.push_back(gone ? LiteSize() : each[static_cast<size_t>(d)]);
    }
    if (d > 0 && gone == run_goes.back()) {
      ++runs.back().count;
    } else {
      runs.push_back({d, 1});
      run_goes.push_back(gone);
    }
  }
  LiteSizes sizes = MergedSizes(each, runs);
  AttrMap options = OptionsOf(n);
  options.Set("keep_dims", false);
  Endpoint e = x;
  const auto reduce = [&](std::vector<int64_t> at) -> Status {
    ASSIGN_OR_RETURN(e, WithSizes(e, sizes, l));
    for (size_t i = at.size(); i-- > 0;) {
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at[i]));
      run_goes.erase(run_goes.begin() + static_cast<std::ptrdiff_t>(at[i]));
    }
    ASSIGN_OR_RETURN(
        e, l.Add(n.op_name(), {e, l.Ints(at)}, options, {l.type(x), ShapeOfSizes(sizes)}));
    return OkStatus();
  };
  while (static_cast<int>(sizes.size()) > most) {
    // Means of means of as many are the mean, but for integers, which round.
    if (n.Is("tfl.mean") && l.type(x) != Dtype::kFloat) return std::vector<Endpoint>();
    // The last that goes, and all behind it: what is before is one.
    size_t last = run_goes.size();
    while (!run_goes[--last]) {
    }
    LiteSizes before = sizes;
    const std::vector<bool> kinds = run_goes;
    sizes = Around(before, last);
    run_goes = {false, true, false};
    RETURN_IF_ERROR(reduce({1}));
    sizes = before;
    run_goes = kinds;
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(last));
    run_goes.erase(run_goes.begin() + static_cast<std::ptrdiff_t>(last));
    if (last < sizes.size()) {  // what stood on both sides of it
      sizes[last - 1] *= sizes[last];
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(last));
      run_goes.erase(run_goes.begin() + static_cast<std::ptrdiff_t>(last));
    }
  }
  std::vector<int64_t> at;
  for (size_t i = 0; i < run_goes.size(); ++i) {
    if (run_goes[i]) at.push_back(static_cast<int64_t>(i));
  }
  if (!at.empty()) RETURN_IF_ERROR(reduce(at));
  return One(WithSizes(e, result, l));
}

// ---- products

// Rows of however many dimensions.
LiteEndpoints FitSoftmax(Node& n, Legalizer& l) {
  const int rank = l.rank(n.input(0));
  if (rank <= MostOf(n)) return std::vector<Endpoint>();
  const LiteSizes sizes = SizesOf(n.input(0), l);
  const DimRun runs[] = {{0, rank - 1}, {rank - 1, 1}};
  ASSIGN_OR_RETURN(const Endpoint rows, WithSizes(n.input(0), MergedSizes(sizes, runs), l));
  ASSIGN_OR_RETURN(const Endpoint e,
                   l.Add(n.op_name(), {rows}, OptionsOf(n), {n.output_types[0], l.shape(rows)}));
  return One(WithSizes(e, sizes, l));
}

LiteEndpoints FitFullyConnected(Node& n, Legalizer& l) {
  const int rank = l.rank(n.input(0));
  if (rank <= MostOf(n) || !n.Bool("keep_num_dims")) return std::vector<Endpoint>();
  LiteSizes sizes = SizesOf(n.input(0), l);
  const DimRun runs[] = {{0, rank - 1}, {rank - 1, 1}};
  const LiteSizes rows = MergedSizes(sizes, runs);
  std::vector<Endpoint> inputs(n.inputs().begin(), n.inputs().end());
  ASSIGN_OR_RETURN(inputs[0], WithSizes(inputs[0], rows, l));
  sizes.back() = SizesOf(n.input(1), l)[0];
  AttrMap options = OptionsOf(n);
  options.Set("keep_num_dims", false);
  ASSIGN_OR_RETURN(const Endpoint e,
                   l.Add("tfl.fully_connected", inputs, std::move(options),
                         {n.output_types[0], ShapeOfSizes({rows[0], sizes.back()})}));
  return One(WithSizes(e, sizes, l));
}

constexpr FitRow kOrderFit[] = {
    {{"tfl.transpose"}, FitTranspose},
    {{"tfl.concatenation"}, FitConcatenation},
    {{"tfl.split", "tfl.split_v"}, FitSplit},
    {kLiteReductions, FitReduction},
    {{"tfl.softmax", "tfl.log_softmax"}, FitSoftmax},
    {{"tfl.fully_connected"}, FitFullyConnected},
};

}  // namespace

std::span<const FitRow> OrderFit() { return kOrderFit; }

}  // namespace smelt
