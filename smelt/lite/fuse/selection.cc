// Parts of tensors: slices that say what other operators spell, and numbers compared with a count.
#include <algorithm>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/common/kernel_ranks.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

bool IsSliced(Dtype type) {
  return type == Dtype::kFloat || type == Dtype::kInt32 || type == Dtype::kInt64 ||
         type == Dtype::kInt16 || type == Dtype::kInt8 || type == Dtype::kUint8 ||
         type == Dtype::kBool;
}

// What is taken of each dimension; -1: all behind `begin`.
struct Part {
  std::vector<int64_t> begin, size;
};

// Of a slice or of a strided slice by ones that keeps all dimensions, by constants; nothing where
// it is not known before it runs, or empty.
std::optional<Part> PartOf(const Node& n) {
  const PartialShape x = Fuser::shape(n.input(0));
  const auto begin = IntsOf(n.input(1)), end = IntsOf(n.input(2));
  if (!x.known_rank() || !begin || !end || begin->size() != end->size()) return std::nullopt;
  if (static_cast<int>(begin->size()) > x.rank()) return std::nullopt;
  if (n.Is("tfl.slice")) return Part{*begin, *end};
  const auto strides = IntsOf(n.input(3));
  if (!strides || strides->size() != begin->size() || n.Int("ellipsis_mask") != 0 ||
      n.Int("new_axis_mask") != 0 || n.Int("shrink_axis_mask") != 0 || n.Bool("offset") ||
      std::ranges::any_of(*strides, [](int64_t s) { return s != 1; })) {
    return std::nullopt;
  }
  Part out;
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    const bool said = k < begin->size();
    const bool from_first = !said || (n.Int("begin_mask") >> i & 1) != 0 || (*begin)[k] == 0;
    const bool to_last = !said || (n.Int("end_mask") >> i & 1) != 0;
    if (x[i] < 0 && !(from_first && to_last)) return std::nullopt;
    const auto place = [&](int64_t at) {
      return std::clamp(at < 0 ? at + x[i] : at, int64_t{0}, x[i]);
    };
    const int64_t first = from_first ? 0 : place((*begin)[k]);
    const int64_t size = to_last ? (from_first ? -1 : x[i] - first) : place((*end)[k]) - first;
    if (size == 0 || size < -1) return std::nullopt;
    out.begin.push_back(first);
    out.size.push_back(size);
  }
  return out;
}

// A strided slice that only adds dimensions, of all elements.
bool OnlyAddsDimensions(const Node& n) {
  const auto strides = IntsOf(n.input(3));
  if (!strides || n.Int("new_axis_mask") == 0 || n.Int("ellipsis_mask") != 0 ||
      n.Int("shrink_axis_mask") != 0) {
    return false;
  }
  for (size_t i = 0; i < strides->size(); ++i) {
    const auto masked = [&](const char* mask) { return (n.Int(mask) >> i & 1) != 0; };
    if (masked("new_axis_mask")) continue;
    if ((*strides)[i] != 1 || !masked("begin_mask") || !masked("end_mask")) return false;
  }
  return true;
}

StatusOr<bool> FuseStridedSlice(Node& n, Fuser& f) {
  if (!IsSliced(Fuser::type(n.input(0)))) return false;
  const PartialShape to = Fuser::shape({&n, 0});
  if (OnlyAddsDimensions(n) && to.known_rank()) return f.ReplaceByReshape(&n, n.input(0));
  const auto part = PartOf(n);
  const int most = KernelRanksOf("tfl.slice").most;
  if (!part || static_cast<int>(part->begin.size()) > most) return false;
  ASSIGN_OR_RETURN(
      const Endpoint by,
      f.Add("tfl.slice", {n.input(0), IntsConst(part->begin, n, f), IntsConst(part->size, n, f)},
            {}, n));
  f.Replace(&n, by);
  return true;
}

// A gather of neighbors, in their order.
StatusOr<bool> FuseGatherIntoSlice(Node& n, Fuser& f) {
  const bool nd = n.Is("tfl.gather_nd");
  const PartialShape x = Fuser::shape(n.input(0)), at = Fuser::shape(n.input(1));
  const auto indices = IntsOf(n.input(1));
  if (!indices || indices->empty() || !x.known_rank() || x.rank() < 1 || x.rank() > 5) return false;
  if (!IsSliced(Fuser::type(n.input(0)))) return false;
  if (nd ? at.rank() != 2 || at[1] != 1 : at.rank() != 1 || n.Int("batch_dims") != 0) return false;
  int64_t axis = nd ? 0 : n.Int("axis");
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis >= x.rank() || x[static_cast<int>(axis)] < 0) return false;
  for (size_t i = 0; i < indices->size(); ++i) {
    if ((*indices)[i] != (*indices)[0] + static_cast<int64_t>(i)) {
      return f.Declined(n, "it gathers others than neighbors, in their order");
    }
  }
  if ((*indices)[0] < 0 || indices->back() >= x[static_cast<int>(axis)]) return false;
  std::vector<int64_t> begin(static_cast<size_t>(x.rank()), 0), size(begin.size(), -1);
  begin[static_cast<size_t>(axis)] = (*indices)[0];
  size[static_cast<size_t>(axis)] = static_cast<int64_t>(indices->size());
  ASSIGN_OR_RETURN(
      const Endpoint by,
      f.Add("tfl.slice", {n.input(0), IntsConst(begin, n, f), IntsConst(size, n, f)}, {}, n));
  f.Replace(&n, by);
  return true;
}

// How many of the first of the last dimension the node takes of the results of a topk_v2; nothing
// where it takes others.
std::optional<int64_t> FirstOfLast(const Node& n) {
  const auto part = PartOf(n);
  const PartialShape x = Fuser::shape(n.input(0));
  if (!part || part->begin.size() != static_cast<size_t>(x.rank())) return std::nullopt;
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    if (part->begin[k] != 0) return std::nullopt;
    if (i + 1 < x.rank() && part->size[k] != -1 && part->size[k] != x[i]) return std::nullopt;
  }
  const int64_t last = part->size.back();
  return last > 0 ? std::optional(last) : std::nullopt;
}

StatusOr<bool> FuseSliceIntoTopK(Node& n, Fuser& f) {
  Node& top = *n.input(0).node;
  if (!top.Is("tfl.topk_v2") || top.num_outputs() != 2) return false;
  const auto count = FirstOfLast(n);
  if (!count) return f.Declined(n, "it takes others than the first");
  std::vector<Node*> slices;
  for (const Use& use : top.uses()) {
    const bool alike = !use.is_control() && use.node->Is({"tfl.slice", "tfl.strided_slice"}) &&
                       use.input == 0 && FirstOfLast(*use.node) == count;
    if (!alike) return f.Declined(n, absl::StrCat("others read '", top.name(), "'"));
    slices.push_back(use.node);
  }
  f.SetInput(&top, 1, f.Const(Tensor::Scalar(static_cast<int32_t>(*count)), top));
  const PartialShape to = Fuser::shape({&n, 0});
  top.AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{to, to});
  const int id = n.id();
  for (Node* slice : slices) {
    if (slice->id() != id) f.Replace(slice, slice->input(0));
  }
  f.Replace(&n, n.input(0));
  return true;
}

// ---- one_hot

// 0, 1, 2... along the last of its dimensions; 0: it is not that.
int64_t CountOf(Endpoint e) {
  const PartialShape s = Fuser::shape(e);
  const auto numbers = IntsOf(e);
  if (!numbers || s.rank() < 1 || s[s.rank() - 1] != static_cast<int64_t>(numbers->size()))
    return 0;
  for (size_t i = 0; i < numbers->size(); ++i) {
    if ((*numbers)[i] != static_cast<int64_t>(i)) return 0;
  }
  return static_cast<int64_t>(numbers->size());
}

StatusOr<bool> FuseOneHot(Node& n, Fuser& f) {
  for (const int c : {1, 0}) {
    const int64_t depth = CountOf(n.input(c));
    const Endpoint e = n.input(1 - c);
    if (!e.node->Is({"tfl.reshape", "tfl.expand_dims"})) continue;
    if (depth < 2) {
      if (IntsOf(n.input(c))) f.Declined(n, "it does not compare with 0, 1, 2...");
      continue;
    }
    Endpoint x = e.node->input(0);
    const PartialShape from = Fuser::shape(x), column = Fuser::shape(e);
    if (!from.known_rank() || column.rank() < 1 || column[column.rank() - 1] != 1) continue;
    if (Fuser::shape(n.input(c)).rank() > column.rank()) continue;
    std::vector<int64_t> dims;
    for (int i = 0; i < from.rank(); ++i) dims.push_back(from[i]);
    dims.push_back(1);
    if (!SameWhenEqualElements(PartialShape::Of(dims), column)) {
      // A reshape that does more leads to one dimension less.
      dims = StatedSizes(column);
      dims.pop_back();
      if (!CanReshapeTo(dims) || !Fuser::ReadOnce(e)) continue;
      ASSIGN_OR_RETURN(x, f.Reshape(x, dims, n));
    }
    AttrMap options;
    options.Set("axis", int64_t{-1});
    ASSIGN_OR_RETURN(const Endpoint by,
                     f.Add("tfl.one_hot",
                           {x, f.Const(Tensor::Scalar(static_cast<int32_t>(depth)), n),
                            f.Const(Tensor::Scalar(true), n), f.Const(Tensor::Scalar(false), n)},
                           std::move(options), n));
    f.Replace(&n, by);
    return true;
  }
  return false;
}

StatusOr<bool> FuseCastIntoOneHot(Node& n, Fuser& f) {
  const Endpoint e = n.input(0);
  if (!e.node->Is("tfl.one_hot")) return false;
  const Dtype from = Fuser::type(e), to = n.output_types[0];
  if (!IsSliced(to) || to == Dtype::kInt16) return false;  // kernels give no int16
  const auto on = Fuser::Constant(e.node->input(2)), off = Fuser::Constant(e.node->input(3));
  if (!on || !off) return f.Declined(n, "its values are no constants");
  if (!Fuser::ReadOnce(e)) return f.Declined(n, "others read what it follows");
  std::vector<Endpoint> inputs = {e.node->input(0), e.node->input(1)};
  for (const Tensor& value : {*on, *off}) {
    AttrMap attrs;
    attrs.Set("SrcT", from);
    attrs.Set("DstT", to);
    ASSIGN_OR_RETURN(const auto cast, Evaluate("Cast", {value}, std::move(attrs)));
    inputs.push_back(f.Const(cast[0], n));
  }
  ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.one_hot", inputs, OptionsOf(*e.node), n));
  f.Replace(&n, by);
  return true;
}

// ---- operands that broadcast by themselves

constexpr OpSet kBroadcasts = {"tfl.add", "tfl.sub",     "tfl.mul",
                               "tfl.div", "tfl.maximum", "tfl.minimum"};

// Are x and y broadcast of the shape `to`, all of whose sizes are known?
bool BroadcastTo(const PartialShape& x, const PartialShape& y, const PartialShape& to) {
  if (!x.known_rank() || !y.known_rank() || !to.known_rank()) return false;
  if (std::max(x.rank(), y.rank()) != to.rank()) return false;
  for (int i = 0; i < to.rank(); ++i) {
    const auto size = [&](const PartialShape& s) {
      const int k = i - to.rank() + s.rank();
      return k < 0 ? 1 : s[k];
    };
    const int64_t a = size(x), b = size(y);
    if (to[i] < 0 || a < 0 || b < 0 || (a != 1 && a != to[i]) || (b != 1 && b != to[i]))
      return false;
    if (a != to[i] && b != to[i]) return false;
  }
  return true;
}

StatusOr<bool> RemoveBroadcastBefore(Node& n, Fuser& f) {
  const PartialShape to = Fuser::shape({&n, 0});
  if (!to.known_rank() || to.rank() > KernelRanksOf(n.op_name()).broadcast) return false;
  for (const int i : {0, 1}) {
    const Endpoint e = n.input(i);
    if (!e.node->Is({"tfl.tile", "tfl.broadcast_to"})) continue;
    if (!BroadcastTo(Fuser::shape(e.node->input(0)), Fuser::shape(n.input(1 - i)), to)) {
      f.Declined(n, absl::StrCat("without '", e.node->name(), "' the result would be smaller"));
      continue;
    }
    f.SetInput(&n, i, e.node->input(0));
    return true;
  }
  return false;
}

// A broadcast to the shape that it has. One that writes a variable is not what it reads.
StatusOr<bool> RemoveBroadcast(Node& n, Fuser& f) {
  if (n.Bool(kVariableOutputs)) return false;
  const PartialShape x = Fuser::shape(n.input(0)), to = Fuser::shape({&n, 0});
  if (!(x == to) || !BroadcastTo(x, x, to)) return false;
  f.Replace(&n, n.input(0));
  return true;
}

constexpr Fusion kSelectionFusions[] = {
    {"RemoveBroadcast",
     {"tfl.broadcast_to", "tfl.tile"},
     RemoveBroadcast,
     "broadcast_to(x), tile(x) to the shape that it has -> x"},
    {"RemoveBroadcastBefore", kBroadcasts, RemoveBroadcastBefore,
     "add(tile(x), y) -> add(x, y), and broadcast_to"},
    {"FuseOneHot", {"tfl.equal"}, FuseOneHot, "expand_dims(x) == [0, 1, 2...] -> one_hot(x)"},
    {"FuseCastIntoOneHot",
     {"tfl.cast"},
     FuseCastIntoOneHot,
     "cast(one_hot(x)) -> one_hot(x) of that type"},
    {"FuseSliceIntoTopK",
     {"tfl.slice", "tfl.strided_slice"},
     FuseSliceIntoTopK,
     "slice(topk_v2(x, 8)) of the first 3 -> topk_v2(x, 3)"},
    {"FuseStridedSlice",
     {"tfl.strided_slice"},
     FuseStridedSlice,
     "strided_slice(x) by ones -> slice(x); that adds dimensions -> reshape(x)"},
    {"FuseGatherIntoSlice",
     {"tfl.gather", "tfl.gather_nd"},
     FuseGatherIntoSlice,
     "gather(x, [3, 4, 5]) -> slice(x)"},
};

}  // namespace

std::span<const Fusion> SelectionFusions() { return kSelectionFusions; }

}  // namespace smelt
