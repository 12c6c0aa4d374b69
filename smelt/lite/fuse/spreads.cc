// Operands that repeat what they read, or one number, though the operator that reads them
// broadcasts itself.
#include <algorithm>
#include <cmath>

#include "smelt/graph/constant.h"
#include "smelt/graph/shape/rules.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/kernel_ranks.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt {
namespace {

constexpr OpSet kSpreads = {"tfl.tile", "tfl.broadcast_to", "tfl.fill"};
constexpr OpSet kSpreadBinary = {
    "tfl.add",         "tfl.sub",       "tfl.mul",        "tfl.div",
    "tfl.maximum",     "tfl.minimum",   "tfl.pow",        "tfl.squared_difference",
    "tfl.floor_div",   "tfl.floor_mod", "tfl.equal",      "tfl.not_equal",
    "tfl.less",        "tfl.greater",   "tfl.less_equal", "tfl.greater_equal",
    "tfl.logical_and", "tfl.logical_or"};
constexpr OpSet kSpreadSelects = {"tfl.select", "tfl.select_v2"};

// Dimension `axis` of a tensor when it runs, and where it is one that another tensor has, of that.
struct RunSize {
  Endpoint of;
  int64_t axis;
  bool operator==(const RunSize&) const = default;
};

RunSize OriginOf(RunSize s) {
  // Over operators that leave the size.
  while (s.of.node->Is(kLiteUnary)) s.of = s.of.node->input(0);
  return s;
}

// What element `i` of a vector of sizes is: a number, or the size of a tensor.
struct SizeElement {
  std::optional<int64_t> number;
  std::optional<RunSize> size;
};

SizeElement ScalarOf(Endpoint e) {
  while (e.node->Is({"tfl.cast", "tfl.reshape", "tfl.squeeze", "tfl.expand_dims"})) {
    e = e.node->input(0);
  }
  const auto number = IntsOf(e);
  if (number && number->size() == 1) return {(*number)[0], std::nullopt};
  const Node& n = *e.node;
  if (!n.Is({"tfl.gather", "tfl.strided_slice", "tfl.slice"})) return {};
  const Node& shape = *n.input(0).node;
  const auto at = IntsOf(n.input(1));
  if (!shape.Is("tfl.shape") || !at || at->size() != 1) return {};
  const int rank = Fuser::shape(shape.input(0)).rank();
  const int64_t axis = (*at)[0] < 0 ? (*at)[0] + rank : (*at)[0];
  const bool plain =
      !n.Is("tfl.strided_slice") || (n.Int("begin_mask") == 0 && n.Int("ellipsis_mask") == 0 &&
                                     n.Int("new_axis_mask") == 0 && n.Int("shrink_axis_mask") == 1);
  if (rank < 0 || axis < 0 || axis >= rank || !plain) return {};
  return {std::nullopt, RunSize{shape.input(0), axis}};
}

SizeElement ElementOf(Endpoint sizes, int64_t i) {
  while (sizes.node->Is("tfl.cast")) sizes = sizes.node->input(0);
  const Node& n = *sizes.node;
  if (const auto numbers = IntsOf(sizes)) {
    if (i < static_cast<int64_t>(numbers->size())) return {(*numbers)[static_cast<size_t>(i)], {}};
    return {};
  }
  if (n.Is("tfl.shape")) return {std::nullopt, RunSize{n.input(0), i}};
  if (n.Is("tfl.pack") && n.Int("axis") == 0 && i < n.num_inputs()) {
    return ScalarOf(n.input(static_cast<int>(i)));
  }
  return {};
}

int64_t SizeAt(const PartialShape& s, int i, int rank) {
  const int at = i - rank + s.rank();
  return at < 0 ? 1 : s[at];
}

// Is dimension `i` of the result the same where operand `spread` is what it repeats?
bool SizeStays(const Node& n, int spread, const PartialShape& repeated, int i, int operands) {
  const PartialShape to = Fuser::shape({const_cast<Node*>(&n), 0});
  const int rank = to.rank();
  const int64_t size = to[i], own = SizeAt(repeated, i, rank);
  const Endpoint e = n.input(spread);
  const int in_spread = i - rank + Fuser::shape(e).rank();
  if (in_spread < 0 || (size >= 0 && own == size)) return true;
  if (own != 1) return false;
  for (int k = 0; k < operands; ++k) {
    const PartialShape other = Fuser::shape(n.input(k));
    if (k == spread) continue;
    const int64_t given = SizeAt(other, i, rank);
    if (size >= 0 && given == size) return true;
    if (size >= 0 || given >= 0 || !e.node->Is({"tfl.fill", "tfl.broadcast_to"})) continue;
    // A size that is free: that of the other operand is the one which is asked for.
    const Endpoint sizes = e.node->input(e.node->Is("tfl.fill") ? 0 : 1);
    const SizeElement wanted = ElementOf(sizes, in_spread);
    const RunSize there = {n.input(k), i - rank + other.rank()};
    if (wanted.size && OriginOf(*wanted.size) == OriginOf(there)) return true;
  }
  return size < 0 && SizeAt(Fuser::shape(e), i, rank) == 1;
}

// What an operand repeats: nothing where it is no such operator.
struct Spread {
  Endpoint of;
  std::optional<Tensor> number;  // of a constant whose elements are all that: `of` is not made yet
  PartialShape shape;
};

// Constants of more elements are made a number; of a choice all are.
constexpr int64_t kFewElements = 256;

std::optional<Spread> SpreadOf(Endpoint e, bool any_size) {
  const Node& n = *e.node;
  if (n.Is(kSpreads) && !n.Bool(kVariableOutputs)) {
    const Endpoint of = n.input(n.Is("tfl.fill") ? 1 : 0);
    return Spread{of, std::nullopt, Fuser::shape(of)};
  }
  const TensorValue* stated = StatedConstant(n);
  if (stated == nullptr || Fuser::shape(e).rank() == 0) return std::nullopt;
  const int64_t count = NumElements(Fuser::shape(e));
  if (count < 2 || (!any_size && count <= kFewElements)) return std::nullopt;
  const auto number = UniformValue(*stated);
  // Integers beyond it are not told apart there.
  constexpr double kMostExact = 9007199254740992.0;
  if (!number || (IsInteger(stated->dtype) && std::abs(*number) > kMostExact)) return std::nullopt;
  auto value = FilledTensor(stated->dtype, Shape(), *number);
  if (!value.ok()) return std::nullopt;
  return Spread{{}, *std::move(value), PartialShape::Of({})};
}

StatusOr<bool> RemoveSpreadOperand(Node& n, Fuser& f) {
  const PartialShape to = Fuser::shape({&n, 0});
  const bool select = n.Is(kSpreadSelects);
  const int operands = select ? 3 : 2;
  // Of those that choose, select_v2 broadcasts.
  const OpName broadcasts = select ? OpName("tfl.select_v2") : n.op_name();
  if (!to.known_rank() || to.rank() > KernelRanksOf(broadcasts).broadcast) return false;
  if (n.Is("tfl.select") && Fuser::shape(n.input(0)).rank() != to.rank()) return false;
  for (int i = 0; i < operands; ++i) {
    const Endpoint e = n.input(i);
    const auto spread = SpreadOf(e, select);
    if (!spread || !spread->shape.known_rank()) continue;
    bool stays = spread->shape.rank() <= to.rank();
    for (int d = 0; stays && d < to.rank(); ++d) {
      stays = SizeStays(n, i, spread->shape, d, operands);
    }
    if (!stays) {
      if (spread->number) continue;
      f.Declined(n, absl::StrCat("without '", e.node->name(), "' the result would be smaller"));
      continue;
    }
    const Endpoint of = spread->number ? f.Const(*spread->number, n) : spread->of;
    if (!n.Is("tfl.select")) {
      f.SetInput(&n, i, of);
      return true;
    }
    // This one broadcasts.
    std::vector<Endpoint> inputs(n.inputs().begin(), n.inputs().end());
    inputs[static_cast<size_t>(i)] = of;
    ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.select_v2", inputs, {}, n));
    f.Replace(&n, by);
    return true;
  }
  return false;
}

// Matrices that are repeated for each of a batch.
StatusOr<bool> RemoveSpreadMatrices(Node& n, Fuser& f) {
  const PartialShape to = Fuser::shape({&n, 0});
  if (!to.known_rank() || to.rank() > KernelRanksOf(n.op_name()).most) return false;
  for (const int i : {0, 1}) {
    const Endpoint e = n.input(i);
    if (!e.node->Is({"tfl.tile", "tfl.broadcast_to"}) || e.node->Bool(kVariableOutputs)) continue;
    const Endpoint of = e.node->input(0);
    const PartialShape x = Fuser::shape(of), whole = Fuser::shape(e);
    const PartialShape other = Fuser::shape(n.input(1 - i));
    if (x.rank() < 2 || whole.rank() < 2 || other.rank() < 2) continue;
    bool stays = true;
    for (int d = 1; d <= 2; ++d) {
      const int64_t size = x[x.rank() - d];
      stays = stays && size >= 0 && size == whole[whole.rank() - d];
    }
    for (int d = 0; stays && d < to.rank() - 2; ++d) {
      const int64_t own = SizeAt(x, d, to.rank()), given = SizeAt(other, d, to.rank());
      stays = to[d] >= 0 && (own == to[d] || (own == 1 && given == to[d]));
    }
    if (!stays) {
      f.Declined(n, absl::StrCat("without '", e.node->name(), "' the result would be smaller"));
      continue;
    }
    f.SetInput(&n, i, of);
    return true;
  }
  return false;
}

// Operators of one element at a time before their operand is repeated: of fewer elements.
StatusOr<bool> MoveSpread(Node& n, Fuser& f) {
  const bool unary = n.Is(kLiteUnary);
  for (int i = 0; i < (unary ? 1 : 2); ++i) {
    const Endpoint e = n.input(i);
    if (!e.node->Is("tfl.broadcast_to") || e.node->Bool(kVariableOutputs)) continue;
    const Endpoint of = e.node->input(0);
    const PartialShape x = Fuser::shape(of), to = Fuser::shape({&n, 0});
    if (!x.fully_known() || !(Fuser::shape(e) == to)) continue;
    std::vector<Endpoint> inputs(n.inputs().begin(), n.inputs().end());
    inputs[static_cast<size_t>(i)] = of;
    if (!unary) {
      // The other operand must not make it larger.
      const PartialShape other = Fuser::shape(n.input(1 - i));
      bool fits = other.fully_known() && other.rank() <= x.rank();
      for (int d = 0; fits && d < other.rank(); ++d) {
        fits = other[d] == 1 || other[d] == x[d - other.rank() + x.rank()];
      }
      if (!fits) continue;
    }
    if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
    ASSIGN_OR_RETURN(const Endpoint made,
                     f.AddShaped(n.op_name(), inputs, OptionsOf(n), n.output_types[0], x, n));
    ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.broadcast_to", {made, e.node->input(1)}, {}, n));
    f.Replace(&n, by);
    return true;
  }
  return false;
}

// The sizes of a tensor, one by one and all of them.
StatusOr<bool> FusePackedShape(Node& n, Fuser& f) {
  const Endpoint sizes = {&n, 0};
  std::optional<Endpoint> of;
  for (int i = 0; i < n.num_inputs(); ++i) {
    const SizeElement e = ElementOf(sizes, i);
    if (!e.size) continue;
    if (e.size->axis != i || (of && !(*of == e.size->of))) return false;
    of = e.size->of;
  }
  if (!of || n.Int("axis") != 0) return false;
  const PartialShape x = Fuser::shape(*of);
  if (x.rank() != n.num_inputs()) return f.Declined(n, "it is of some of the sizes");
  for (int i = 0; i < n.num_inputs(); ++i) {
    const SizeElement e = ElementOf(sizes, i);
    if (!e.size && (!e.number || *e.number < 0 || *e.number != x[i])) {
      return f.Declined(n, "it is of other sizes");
    }
  }
  AttrMap options;
  options.Set("out_type", n.output_types[0]);
  ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.shape", {*of}, std::move(options), n));
  f.Replace(&n, by);
  return true;
}

constexpr OpSet kSpreadMoves = Union({kLiteUnary, kLiteBinary});
constexpr OpSet kSpreadReaders = Union({kSpreadBinary, kSpreadSelects});

constexpr Fusion kSpreadFusions[] = {
    {"RemoveSpreadOperand", kSpreadReaders, RemoveSpreadOperand,
     "less(broadcast_to(x), y) -> less(x, y), and fill, tile, a constant of one number; select "
     "too"},
    {"RemoveSpreadMatrices",
     {"tfl.batch_matmul"},
     RemoveSpreadMatrices,
     "batch_matmul(x, broadcast_to(y)) -> batch_matmul(x, y)"},
    {"FusePackedShape",
     {"tfl.pack"},
     FusePackedShape,
     "pack(shape(x)[0], shape(x)[1], 8) of all sizes of x -> shape(x)"},
    {"MoveSpread", kSpreadMoves, MoveSpread,
     "abs(broadcast_to(x)) -> broadcast_to(abs(x)), which is of fewer elements"},
};

}  // namespace

std::span<const Fusion> SpreadFusions() { return kSpreadFusions; }

}  // namespace smelt
