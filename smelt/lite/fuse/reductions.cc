// Reductions: those that reduce nothing, that follow each other, and reshapes of their results.
#include <algorithm>

#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

constexpr OpSet kReductionReshapes = {"tfl.reshape", "tfl.squeeze", "tfl.expand_dims"};

// The shape of a reduction of `x` with the other keep_dims; unknown where its axes are.
PartialShape OtherReduced(const Node& reduction) {
  const PartialShape x = Fuser::shape(reduction.input(0));
  const auto axes = IntsOf(reduction.input(1));
  if (!x.known_rank() || !axes) return {};
  std::vector<bool> gone(static_cast<size_t>(x.rank()));
  for (const int64_t a : *axes) {
    const int64_t at = a < 0 ? a + x.rank() : a;
    if (at < 0 || at >= x.rank()) return {};
    gone[static_cast<size_t>(at)] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!gone[static_cast<size_t>(i)]) {
      dims.push_back(x[i]);
    } else if (!reduction.Bool("keep_dims")) {
      dims.push_back(1);
    }
  }
  return PartialShape::Of(dims);
}

StatusOr<bool> FuseReshapeIntoReduction(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  if (!e.node->Is(kLiteReductions)) return false;
  const PartialShape to = Fuser::shape({&n, 0});
  if (!SameWhenEqualElements(OtherReduced(*e.node), to)) {
    return f.Declined(n, "the reshape does more than keep what is reduced");
  }
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  AttrMap options;
  options.Set("keep_dims", !e.node->Bool("keep_dims"));
  ASSIGN_OR_RETURN(const Endpoint by, f.Add(e.node->op_name(), {e.node->input(0), e.node->input(1)},
                                            std::move(options), n));
  f.Replace(&n, by);
  return true;
}

// The axes as dimensions of `x`, in order and once; nothing where one is out of range.
std::optional<std::vector<int64_t>> DimsOf(Endpoint axes, const PartialShape& x) {
  const auto given = IntsOf(axes);
  if (!given || !x.known_rank()) return std::nullopt;
  std::vector<int64_t> out;
  for (const int64_t a : *given) {
    const int64_t at = a < 0 ? a + x.rank() : a;
    if (at < 0 || at >= x.rank()) return std::nullopt;
    out.push_back(at);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// A reduction over no axis, or over dimensions of one element.
StatusOr<bool> RemoveReduction(Node& n, Fuser& f) {
  const PartialShape x = Fuser::shape(n.input(0)), to = Fuser::shape({&n, 0});
  const auto dims = DimsOf(n.input(1), x);
  if (!dims) return false;
  const bool nothing =
      std::ranges::all_of(*dims, [&](int64_t d) { return x[static_cast<int>(d)] == 1; });
  if (!nothing) return false;
  if (dims->empty() || n.Bool("keep_dims")) {
    f.Replace(&n, n.input(0));
    return true;
  }
  if (!to.known_rank()) return false;
  return f.ReplaceByReshape(&n, n.input(0));
}

// reduce(reduce(x)) is one over the axes of both. Of means only where all sizes are the same for
// every mean, as they are in a tensor.
StatusOr<bool> FuseReductions(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  if (!e.node->Is(n.op_name()) || !n.Is(kLiteReductions)) return false;
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  const Node& inner = *e.node;
  const PartialShape x = Fuser::shape(inner.input(0));
  const auto first = DimsOf(inner.input(1), x), second = DimsOf(n.input(1), Fuser::shape(e));
  if (!first || !second) return f.Declined(n, "the axes of both are not known");
  if (inner.Bool("keep_dims") != n.Bool("keep_dims")) {
    return f.Declined(n, "one of both keeps its dimensions, and the other does not");
  }
  std::vector<int64_t> kept;  // dimensions of x as the second sees them
  for (int64_t d = 0; d < x.rank(); ++d) {
    const bool gone = std::ranges::find(*first, d) != first->end();
    if (inner.Bool("keep_dims") || !gone) kept.push_back(d);
  }
  std::vector<int64_t> axes = *first;
  for (const int64_t d : *second) axes.push_back(kept[static_cast<size_t>(d)]);
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  ASSIGN_OR_RETURN(const Endpoint by,
                   f.Add(n.op_name(), {inner.input(0), IntsConst(axes, n, f)}, OptionsOf(n), n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kReductionFusions[] = {
    {"FuseReshapeIntoReduction", kReductionReshapes, FuseReshapeIntoReduction,
     "reshape(sum(x)) -> sum(x) with keep_dims, or without"},
    {"RemoveReduction", kLiteReductions, RemoveReduction,
     "sum(x) over no axis, or dimensions of one -> x, or reshape(x)"},
    {"FuseReductions", kLiteReductions, FuseReductions, "sum(sum(x)) -> sum(x) over both"},
};

}  // namespace

std::span<const Fusion> ReductionFusions() { return kReductionFusions; }

}  // namespace smelt
