// Operators of one element at a time, whose operands may broadcast.
#include <algorithm>
#include <array>
#include <bit>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/kernel_ranks.h"
#include "smelt/lite/fit/fit.h"
#include "smelt/lite/fit/sizes.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

// A dimension of the result.
struct BroadcastDim {
  uint32_t from = 0;    // bit i: operand i has more than one there, or may have
  bool certain = true;  // false: of several one may be what broadcasts
};

// The size of an operand along a dimension of the result, which has `rank`.
int64_t SizeAlong(const PartialShape& operand, int d, int rank) {
  const int at = d - rank + operand.rank();
  return at < 0 ? 1 : operand[at];
}

std::vector<BroadcastDim> DimsOf(const std::vector<PartialShape>& shapes, int rank) {
  std::vector<BroadcastDim> out(static_cast<size_t>(rank));
  for (int d = 0; d < rank; ++d) {
    BroadcastDim& dim = out[static_cast<size_t>(d)];
    bool free = false;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const int64_t size = SizeAlong(shapes[i], d, rank);
      if (size != 1) dim.from |= uint32_t{1} << i;
      free = free || size < 0;
    }
    dim.certain = !free || std::has_single_bit(dim.from);
  }
  return out;
}

// Neighbors that the same operands have.
DimRuns Alike(const std::vector<BroadcastDim>& dims, std::vector<BroadcastDim>* merged) {
  DimRuns runs;
  for (size_t d = 0; d < dims.size(); ++d) {
    BroadcastDim* last = merged->empty() ? nullptr : &merged->back();
    const bool joins = last != nullptr && last->certain && dims[d].certain &&
                       (last->from == dims[d].from || last->from == 0 || dims[d].from == 0);
    if (joins) {
      ++runs.back().count;
      last->from |= dims[d].from;
    } else {
      runs.push_back({static_cast<int>(d), 1});
      merged->push_back(dims[d]);
    }
  }
  return runs;
}

// The operand with one size for each run, but for those in front that other operands have, and
// with its last `tail` dimensions, which `rank` does not count.
StatusOr<Endpoint> MergedOperand(Endpoint e, const DimRuns& runs,
                                 const std::vector<BroadcastDim>& dims, int rank, Legalizer& l,
                                 int tail = 0) {
  const LiteSizes sizes = SizesOf(e, l);
  if (sizes.empty()) return e;
  const int missing = rank - (static_cast<int>(sizes.size()) - tail);
  LiteSizes merged;
  for (size_t r = 0; r < runs.size(); ++r) {
    LiteSize product;
    for (int d = runs[r].first; d < runs[r].first + runs[r].count; ++d) {
      if (d >= missing) product *= sizes[static_cast<size_t>(d - missing)];
    }
    const bool one = product.is_known() && product.known == 1;
    const bool others = one && dims[r].from != 0 && r + 1 < runs.size();
    if (!others || !merged.empty()) merged.push_back(product);
  }
  merged.insert(merged.end(), sizes.end() - tail, sizes.end());
  return WithSizes(e, merged, l);
}

// All operands with the sizes of the result, one for each run.
Status BroadcastOperands(std::vector<Endpoint>& operands, const std::vector<BroadcastDim>& dims,
                         Legalizer& l) {
  PartialShape whole = l.shape(operands[0]);
  for (const Endpoint& e : operands) {
    const std::vector<PartialShape> both = {whole, l.shape(e)};
    const int rank = std::max(both[0].rank(), both[1].rank());
    std::vector<int64_t> sizes;
    for (int d = 0; d < rank; ++d) {
      const int64_t a = SizeAlong(both[0], d, rank), b = SizeAlong(both[1], d, rank);
      sizes.push_back(a == 1 ? b : b == 1 ? a : std::max(a, b));
    }
    whole = PartialShape::Of(sizes);
  }
  Endpoint to;
  if (whole.fully_known()) {
    to = l.Ints(whole.dims());
  } else {
    for (const Endpoint& e : operands) {
      const int64_t rank = l.rank(e);
      if (rank == 0) continue;
      ASSIGN_OR_RETURN(const Endpoint shape, SizesVector(SizesOf(e, l), l));
      const LiteOutput sizes = {Dtype::kInt32, PartialShape::Of({whole.rank()})};
      if (to.node == nullptr) {
        to = shape;
      } else {
        ASSIGN_OR_RETURN(to, l.Add("tfl.broadcast_args", {to, shape}, {}, sizes));
      }
    }
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    Endpoint& e = operands[i];
    const bool has_all =
        l.rank(e) == whole.rank() && std::ranges::all_of(dims, [&](const BroadcastDim& d) {
          return d.certain && (d.from == 0 || (d.from >> i & 1) != 0);
        });
    if (has_all) continue;
    if (l.type(e) == Dtype::kString) return Unimplemented("no operator broadcasts texts");
    ASSIGN_OR_RETURN(e, l.Add("tfl.broadcast_to", {e, to}, {}, {l.type(e), whole}));
  }
  return OkStatus();
}

// The sizes of the result, of which `tail` are behind these: `merged` has those of which nobody
// knows who gives them.
LiteSizes SizesOfResult(const Node& n, const std::vector<BroadcastDim>& dims, const DimRuns& runs,
                        Endpoint merged, const Legalizer& l, int tail = 0) {
  const PartialShape to = l.shape({const_cast<Node*>(&n), 0});
  const int rank = static_cast<int>(dims.size());
  LiteSizes out(dims.size());
  for (int d = 0; d < rank; ++d) {
    LiteSize& size = out[static_cast<size_t>(d)];
    const BroadcastDim& dim = dims[static_cast<size_t>(d)];
    if (to.rank() == rank + tail && to[d] >= 0) {
      size.known = to[d];
    } else if (dim.certain && dim.from != 0) {
      const Endpoint e = n.input(std::countr_zero(dim.from));
      const int at = d - rank + l.rank(e) - tail;
      size = SizesOf(e, l)[static_cast<size_t>(at)];
    } else if (!dim.certain) {
      const auto run = std::ranges::find_if(runs, [&](const DimRun& r) { return r.first == d; });
      size.free = {{merged, static_cast<int>(run - runs.begin())}};
    }
  }
  return out;
}

// Where nobody knows the rank of an operand: all get the sizes of the result when it runs, if
// `rank` of the others is more than the operator broadcasts. They come to it as vectors of a
// length that is computed: XNNPACK takes operators of what has no rank in the file, RESHAPE to
// [-1] among them, and ends the process where it then has more than six dimensions.
LiteEndpoints FitUnknownRank(Node& n, int rank, Legalizer& l) {
  if (rank <= KernelRanksOf(n.op_name()).broadcast) return std::vector<Endpoint>();
  if (rank > kMostLiteDims) {
    return Unimplemented("its operator takes no ", rank, " dimensions");
  }
  Endpoint to;
  for (const Endpoint& e : n.inputs()) {
    if (l.type(e) == Dtype::kString) return Unimplemented("no operator broadcasts texts");
    if (l.rank(e) == 0) continue;
    ASSIGN_OR_RETURN(const Endpoint shape, l.ShapeOf(e));
    if (to.node == nullptr) {
      to = shape;
    } else {
      ASSIGN_OR_RETURN(to, l.Add("tfl.broadcast_args", {to, shape}, {},
                                 {Dtype::kInt32, PartialShape::Of({-1})}));
    }
  }
  ASSIGN_OR_RETURN(const Endpoint count,
                   l.Add("tfl.reduce_prod", {to, l.Ints(std::array<int64_t, 1>{0})},
                         Options({{"keep_dims", true}}), {Dtype::kInt32, PartialShape::Of({1})}));
  std::vector<Endpoint> operands;
  for (const Endpoint& e : n.inputs()) {
    ASSIGN_OR_RETURN(const Endpoint all,
                     l.Add("tfl.broadcast_to", {e, to}, {}, {l.type(e), PartialShape()}));
    ASSIGN_OR_RETURN(const Endpoint flat,
                     l.Add("tfl.reshape", {all, count}, {}, {l.type(e), PartialShape::Of({-1})}));
    operands.push_back(flat);
  }
  ASSIGN_OR_RETURN(const Endpoint flat, l.Add(n.op_name(), operands, OptionsOf(n),
                                              {n.output_types[0], PartialShape::Of({-1})}));
  flat.node->AttrsToChange().Set(kSameShapes, true);
  return One(l.Add("tfl.reshape", {flat, to}, {}, l.OutputOf(n)));
}

LiteEndpoints FitBroadcast(Node& n, Legalizer& l) {
  const KernelRanks& takes = KernelRanksOf(n.op_name());
  std::vector<Endpoint> operands(n.inputs().begin(), n.inputs().end());
  std::vector<PartialShape> shapes;
  int rank = 0;
  bool same = true, known = true;
  for (const Endpoint& e : operands) {
    shapes.push_back(l.shape(e));
    known = known && shapes.back().known_rank();
    rank = std::max(rank, shapes.back().rank());
    same = same && shapes.back() == shapes[0];
  }
  if (!known) {
    return n.Bool(kSameShapes) ? std::vector<Endpoint>() : FitUnknownRank(n, rank, l);
  }
  std::vector<BroadcastDim> dims = DimsOf(shapes, rank);
  if (n.Bool(kSameShapes)) {
    for (BroadcastDim& d : dims) d = {(uint32_t{1} << operands.size()) - 1, true};
  }
  // Kernels of some versions end the process where there is nothing to compute.
  const PartialShape to = l.shape({&n, 0});
  const bool empty = to.fully_known() && std::ranges::find(to.dims(), 0) != to.dims().end();
  const bool broadcasts = !same || std::ranges::any_of(dims, [](auto& d) { return !d.certain; });
  const bool fits = rank <= (broadcasts ? takes.broadcast : takes.most);
  if (empty && (!fits || takes.broadcast == 0)) {
    ASSIGN_OR_RETURN(const Tensor nothing, Tensor::Make(n.output_types[0], to.ToShape()));
    return std::vector<Endpoint>{l.Const(nothing)};
  }
  if (fits) return std::vector<Endpoint>();

  std::vector<BroadcastDim> merged;
  const DimRuns runs = Alike(dims, &merged);
  const bool merges = !broadcasts || static_cast<int>(runs.size()) <= takes.broadcast;
  if (!merges) {
    if (rank > kMostLiteDims) {
      return Unimplemented("its operands broadcast along ", runs.size(), " dimensions in turn");
    }
    RETURN_IF_ERROR(BroadcastOperands(operands, dims, l));
    return One(l.Add(n.op_name(), operands, OptionsOf(n), {n.output_types[0], to}));
  }
  for (Endpoint& e : operands) {
    ASSIGN_OR_RETURN(e, MergedOperand(e, runs, merged, rank, l));
  }
  const LiteSizes sizes = MergedSizes(SizesOfResult(n, dims, runs, {}, l), runs);
  ASSIGN_OR_RETURN(const Endpoint result, l.Add(n.op_name(), operands, OptionsOf(n),
                                                {n.output_types[0], ShapeOfSizes(sizes)}));
  return One(WithSizes(result, SizesOfResult(n, dims, runs, result, l), l));
}

// Products of matrices, whose batches broadcast.
LiteEndpoints FitBatchMatMul(Node& n, Legalizer& l) {
  constexpr int kMatrix = 2;
  const int most = KernelRanksOf(n.op_name()).most;
  std::vector<Endpoint> operands(n.inputs().begin(), n.inputs().end());
  std::vector<PartialShape> batches;
  int rank = 0;
  for (const Endpoint& e : operands) {
    const PartialShape shape = l.shape(e);
    if (shape.rank() < kMatrix) return std::vector<Endpoint>();
    batches.push_back(PartialShape::Of(shape.dims().first(shape.dims().size() - kMatrix)));
    rank = std::max(rank, batches.back().rank());
  }
  if (rank + kMatrix <= most) return std::vector<Endpoint>();
  const std::vector<BroadcastDim> dims = DimsOf(batches, rank);
  std::vector<BroadcastDim> merged;
  DimRuns runs = Alike(dims, &merged);
  const LiteSizes batch = SizesOfResult(n, dims, runs, {}, l, kMatrix);
  const bool merges = static_cast<int>(runs.size()) + kMatrix <= most;
  if (!merges) {
    // The batch as a whole.
    if (!ShapeOfSizes(batch).fully_known() || rank + kMatrix > kMostLiteDims) {
      return Unimplemented("its batches broadcast along ", runs.size(), " dimensions in turn");
    }
    runs = {{0, rank}};
  }
  LiteSizes sizes = MergedSizes(batch, runs);
  for (Endpoint& e : operands) {
    if (merges) {
      ASSIGN_OR_RETURN(e, MergedOperand(e, runs, merged, rank, l, kMatrix));
      continue;
    }
    const LiteSizes own = SizesOf(e, l);
    LiteSizes to = batch;
    to.insert(to.end(), own.end() - kMatrix, own.end());
    if (!(l.shape(e) == ShapeOfSizes(to))) {
      ASSIGN_OR_RETURN(const Endpoint shape, SizesVector(to, l));
      ASSIGN_OR_RETURN(e, l.Add("tfl.broadcast_to", {e, shape}, {}, {l.type(e), ShapeOfSizes(to)}));
    }
    to.erase(to.begin(), to.end() - kMatrix);
    to.insert(to.begin(), sizes[0]);
    ASSIGN_OR_RETURN(e, WithSizes(e, to, l));
  }
  const LiteSizes x = SizesOf(n.input(0), l), y = SizesOf(n.input(1), l);
  const LiteSize rows = x[x.size() - (n.Bool("adj_x") ? 1 : 2)],
                 columns = y[y.size() - (n.Bool("adj_y") ? 2 : 1)];
  sizes.push_back(rows);
  sizes.push_back(columns);
  ASSIGN_OR_RETURN(const Endpoint e, l.Add("tfl.batch_matmul", operands, OptionsOf(n),
                                           {n.output_types[0], ShapeOfSizes(sizes)}));
  LiteSizes result = SizesOfResult(n, dims, runs, e, l, kMatrix);
  result.push_back(rows);
  result.push_back(columns);
  return One(WithSizes(e, result, l));
}

// Its kernel computes nothing of 16 bits; EQUAL's does.
LiteEndpoints FitNotEqual(Node& n, Legalizer& l) {
  if (l.type(n.input(0)) != Dtype::kInt16) return FitBroadcast(n, l);
  const LiteOutput out = l.OutputOf(n);
  ASSIGN_OR_RETURN(const Endpoint equal, l.Add("tfl.equal", n.inputs(), OptionsOf(n), out));
  l.Begin(*equal.node, l.row());
  ASSIGN_OR_RETURN(const std::vector<Endpoint> fitted, FitBroadcast(*equal.node, l));
  return One(l.Add("tfl.logical_not", {fitted.empty() ? equal : fitted[0]}, {}, out));
}

// The difference of the same operands, in any order, that is there already; nothing where none is.
Endpoint DifferenceBeside(const Node& n) {
  for (const Use& u : n.input(0).node->uses()) {
    const Node& d = *u.node;
    if (u.is_control() || !d.Is("tfl.sub") || HasActivation(d)) continue;
    if ((d.input(0) == n.input(0) && d.input(1) == n.input(1)) ||
        (d.input(0) == n.input(1) && d.input(1) == n.input(0))) {
      return {u.node, 0};
    }
  }
  return {};
}

// A difference takes more dimensions, and is often there beside it. Its square is a product, which
// kernels compute of integers too.
LiteEndpoints FitSquaredDifference(Node& n, Legalizer& l) {
  const PartialShape x = l.shape(n.input(0)), y = l.shape(n.input(1)), to = l.shape({&n, 0});
  const int rank = std::max(x.rank(), y.rank());
  const bool same = x == y && (x.fully_known() || n.Bool(kSameShapes));
  const bool empty = std::ranges::find(to.dims(), 0) != to.dims().end();
  if (same || empty || !x.known_rank() || !y.known_rank() ||
      rank <= KernelRanksOf(n.op_name()).broadcast ||
      rank > KernelRanksOf(OpName("tfl.sub")).broadcast || l.type(n.input(0)) != Dtype::kFloat) {
    return FitBroadcast(n, l);
  }
  const LiteOutput out = l.OutputOf(n);
  Endpoint difference = DifferenceBeside(n);
  if (difference.node == nullptr) {
    ASSIGN_OR_RETURN(difference, l.Add("tfl.sub", n.inputs(), {}, out));
  }
  return One(l.Add("tfl.mul", {difference, difference}, {}, out));
}

constexpr FitRow kBroadcastFit[] = {
    {{"tfl.squared_difference"}, FitSquaredDifference},
    {{"tfl.not_equal"}, FitNotEqual},
    {{"tfl.batch_matmul"}, FitBatchMatMul},
    {{"tfl.add",           "tfl.sub",
      "tfl.mul",           "tfl.div",
      "tfl.maximum",       "tfl.minimum",
      "tfl.select_v2",     "tfl.equal",
      "tfl.less",          "tfl.less_equal",
      "tfl.greater",       "tfl.greater_equal",
      "tfl.floor_div",     "tfl.floor_mod",
      "tfl.pow",           "tfl.logical_and",
      "tfl.logical_or",    "tfl.bitwise_xor",
      "tfl.right_shift",   "tfl.atan2",
      "tfl.stablehlo_and", "tfl.stablehlo_shift_left"},
     FitBroadcast},
};

}  // namespace

std::span<const FitRow> BroadcastFit() { return kBroadcastFit; }

}  // namespace smelt
