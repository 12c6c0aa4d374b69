// Ops that move elements, where they move none.
#include <algorithm>

#include "smelt/optimize/constant/rules.h"

namespace smelt::constant {
namespace {

// Split(axis, x) and SplitV(x, sizes, axis) into one -> x
StatusOr<Rewritten> RemoveSplit(Node& node, Rewriter& r) {
  if (node.Int("num_split") != 1) return r.No("it gives several parts");
  return BecomeIdentity(node, node.Is("Split") ? 1 : 0, r);
}

// Transpose that moves dimensions of one element alone
StatusOr<Rewritten> RemoveTranspose(Node& node, Rewriter& r) {
  const auto permutation = r.Integers(node.input(1));
  if (!permutation) return r.No("the permutation is not constant");
  PartialShape shape = r.shape(node.input(0));
  const auto rank = static_cast<int>(permutation->size());
  // An input of another rank is an error whatever the permutation is.
  if (!shape.known_rank() && rank <= kMaxRank) shape = PartialShape::UnknownOfRank(rank);
  if (shape.rank() != rank) return r.No("the permutation is for another rank");
  std::vector<int64_t> sorted = *permutation;
  std::ranges::sort(sorted);
  for (int i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (sorted[at] != i) return r.No("it is no permutation");
    if (shape[i] != 1 && (*permutation)[at] != i) return r.No("dimensions change places");
  }
  return BecomeIdentity(node, 0, r);
}

StatusOr<Rewritten> RemoveRandomShuffle(Node& node, Rewriter& r) {
  const PartialShape shape = r.shape(node.input(0));
  if (!shape.known_rank() || (shape.rank() > 0 && shape[0] != 1)) {
    return r.No("it may have several rows");
  }
  return BecomeIdentity(node, 0, r);
}

StatusOr<Rewritten> RemoveReverse(Node& node, Rewriter& r) {
  const auto axes = r.Integers(node.input(1));
  if (!axes) return r.No("the axes are not constant");
  const PartialShape shape = r.shape(node.input(0));
  if (!shape.known_rank()) return r.No("the rank of its input is not known");
  for (const int64_t axis : *axes) {
    const int64_t i = axis < 0 ? axis + shape.rank() : axis;
    if (i < 0 || i >= shape.rank()) return r.No("an axis is out of range");
    if (shape[static_cast<int>(i)] != 1) return r.No("a dimension may have several elements");
  }
  return BecomeIdentity(node, 0, r);
}

// Slice of everything
StatusOr<Rewritten> SimplifySlice(Node& node, Rewriter& r) {
  const auto begin = r.Integers(node.input(1)), size = r.Integers(node.input(2));
  if (!begin || !size) return r.No("begin or size is not constant");
  const PartialShape shape = r.shape(node.input(0));
  const auto rank = static_cast<size_t>(std::max(shape.rank(), 0));
  if (!shape.known_rank() || begin->size() != rank || size->size() != rank) {
    return r.No("the rank of its input is not known");
  }
  for (size_t i = 0; i < rank; ++i) {
    const bool whole =
        (*size)[i] == -1 || ((*size)[i] >= 0 && (*size)[i] == shape[static_cast<int>(i)]);
    if ((*begin)[i] != 0 || !whole) return r.No("it may leave elements out");
  }
  return BecomeIdentity(node, 0, r);
}

// For each dimension of the input the entry of begin, end and strides that is about it; -1: the
// ellipsis. Nothing where the entries do not fit the rank.
std::optional<std::vector<int>> StridedSliceEntries(int rank, int entries, int64_t ellipsis_mask) {
  std::vector<int> of;
  bool seen = false;
  for (int i = 0; i < entries; ++i) {
    if (i < 63 && (ellipsis_mask >> i & 1) != 0) {
      if (seen) return std::nullopt;
      seen = true;
      for (int k = rank - (entries - 1); k > 0; --k) of.push_back(-1);
    } else {
      of.push_back(i);
    }
  }
  if (static_cast<int>(of.size()) > rank) return std::nullopt;
  of.resize(static_cast<size_t>(rank), -1);
  return of;
}

StatusOr<Rewritten> SimplifyStridedSlice(Node& node, Rewriter& r) {
  if (node.Int("new_axis_mask") != 0 || node.Int("shrink_axis_mask") != 0) {
    return r.No("it makes or takes dimensions");
  }
  const PartialShape shape = r.shape(node.input(0));
  if (!shape.fully_known()) return r.No("the shape of its input is not known");
  const auto begin = r.Integers(node.input(1)), end = r.Integers(node.input(2)),
             strides = r.Integers(node.input(3));
  if (!begin || !end || !strides || begin->size() != end->size() ||
      begin->size() != strides->size()) {
    return r.No("begin, end or strides are not constant");
  }
  const auto entries =
      StridedSliceEntries(shape.rank(), static_cast<int>(begin->size()), node.Int("ellipsis_mask"));
  if (!entries) return r.No("it has more entries than its input dimensions");
  const int64_t begin_mask = node.Int("begin_mask"), end_mask = node.Int("end_mask");
  for (int dim = 0; dim < shape.rank(); ++dim) {
    const int entry = (*entries)[static_cast<size_t>(dim)];
    if (entry < 0) continue;
    const auto i = static_cast<size_t>(entry);
    const bool from_start = (begin_mask >> i & 1) != 0 || (*begin)[i] == 0;
    const bool to_end = (end_mask >> i & 1) != 0 || (*end)[i] == shape[dim];
    if (!from_start || !to_end || (*strides)[i] != 1) return r.No("it may leave elements out");
  }
  return BecomeIdentity(node, 0, r);
}

// Tile by ones
StatusOr<Rewritten> SimplifyTile(Node& node, Rewriter& r) {
  const auto multiples = r.Integers(node.input(1));
  if (!multiples) return r.No("the multiples are not constant");
  if (std::ranges::any_of(*multiples, [](int64_t m) { return m != 1; })) {
    return r.No("it repeats elements");
  }
  return BecomeIdentity(node, 0, r);
}

// Pad by zeros
StatusOr<Rewritten> SimplifyPad(Node& node, Rewriter& r) {
  const std::optional<Tensor> paddings = r.Constant(node.input(1));
  const bool integers =
      paddings && (paddings->dtype() == Dtype::kInt32 || paddings->dtype() == Dtype::kInt64);
  if (!integers) return r.No("the paddings are not constant");
  for (int64_t i = 0; i < paddings->num_elements(); ++i) {
    if (IndexAt(*paddings, i) != 0) return r.No("it adds elements");
  }
  return BecomeIdentity(node, 0, r);
}

// Squeeze where every dimension has several elements
StatusOr<Rewritten> SimplifySqueeze(Node& node, Rewriter& r) {
  const PartialShape shape = r.shape(node.input(0));
  const bool several =
      shape.known_rank() && std::ranges::all_of(shape.dims(), [](int64_t d) { return d > 1; });
  if (!several) return r.No("a dimension may have one element");
  if (!node.Ints("squeeze_dims").empty()) return r.No("it names dimensions that are not one");
  return BecomeIdentity(node, 0, r);
}

// Pack(x) -> ExpandDims(x, axis)
StatusOr<Rewritten> SimplifyPack(Node& node, Rewriter& r) {
  if (node.num_inputs() != 1) return r.No("it has several inputs");
  const Endpoint x = node.input(0);
  // Waiting for what is fed would run it.
  if (IsFed(*x.node)) return r.No("its input is fed");
  const auto axis = static_cast<int32_t>(node.Int("axis"));
  ASSIGN_OR_RETURN(Node * c, ConstBeside(node, "_const_axis", Tensor::Scalar<int32_t>(axis), x, r));
  AttrMap attrs = node.attrs();
  attrs.Erase("axis");
  attrs.Erase("N");
  attrs.Set("Tdim", Dtype::kInt32);
  r.graph().SetInputs(&node, {x, {c, 0}});
  RETURN_IF_ERROR(r.Become(&node, "ExpandDims", std::move(attrs)));
  return r.InPlace();
}

// Reshape of a known shape to the same
StatusOr<Rewritten> SimplifyReshape(Node& node, Rewriter& r) {
  const auto sizes = r.Integers(node.input(1));
  if (!sizes) return r.No("the shape is not constant");
  const PartialShape shape = r.shape(node.input(0));
  if (!shape.fully_known()) return r.No("the shape of its input is not known");
  const bool same = shape.rank() == static_cast<int>(sizes->size()) &&
                    std::ranges::equal(*sizes, shape.dims(),
                                       [](int64_t a, int64_t b) { return a == -1 || a == b; });
  if (!same) return r.No("it is to another shape");
  return BecomeIdentity(node, 0, r);
}

}  // namespace

const Rule kRemoveSplit = {
    "RemoveSplitOrSplitV", {"Split", "SplitV"}, RemoveSplit, "Split into one -> Identity"};
const Rule kRemoveTranspose = {"RemoveShuffleOrTranspose",
                               {"Transpose"},
                               RemoveTranspose,
                               "Transpose of dimensions of one element -> Identity"};
const Rule kRemoveRandomShuffle = {"RemoveRandomShuffle",
                                   {"RandomShuffle"},
                                   RemoveRandomShuffle,
                                   "RandomShuffle of one row -> Identity"};
const Rule kRemoveReverse = {"RemoveReverse",
                             {"ReverseV2"},
                             RemoveReverse,
                             "ReverseV2 of dimensions of one element -> Identity"};
const Rule kSimplifySlice = {
    "SimplifySlice", {"Slice"}, SimplifySlice, "Slice of everything -> Identity"};
const Rule kSimplifyStridedSlice = {"SimplifyStridedSlice",
                                    {"StridedSlice"},
                                    SimplifyStridedSlice,
                                    "StridedSlice of everything -> Identity"};
const Rule kSimplifyTile = {"SimplifyTile", {"Tile"}, SimplifyTile, "Tile by ones -> Identity"};
const Rule kSimplifyPad = {
    "SimplifyPad", {"Pad", "PadV2"}, SimplifyPad, "Pad by zeros -> Identity"};
const Rule kSimplifySqueeze = {
    "SimplifySqueeze", {"Squeeze"}, SimplifySqueeze, "Squeeze of nothing -> Identity"};
const Rule kSimplifyPack = {"SimplifyPack", {"Pack"}, SimplifyPack, "Pack(x) -> ExpandDims(x)"};
const Rule kSimplifyReshape = {
    "SimplifyReshape", {"Reshape"}, SimplifyReshape, "Reshape to the same shape -> Identity"};

}  // namespace smelt::constant
