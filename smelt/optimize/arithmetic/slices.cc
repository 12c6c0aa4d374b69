// Slices that take apart what was stacked.
#include "smelt/optimize/arithmetic/common.h"
#include "smelt/optimize/arithmetic/rules.h"

namespace smelt::arithmetic {
namespace {

// One place along the axis of a stack, and nothing less of the others.
struct Part {
  int64_t index;
  bool keeps_axis;  // as a dimension of one
};

// `dims`: of the stack, the axis known.
std::optional<Part> PartOfSlice(const Node& slice, const PartialShape& dims, int axis,
                                Rewriter& r) {
  const auto begin = r.Integers(slice.input(1)), size = r.Integers(slice.input(2));
  const auto rank = static_cast<size_t>(dims.rank());
  if (!begin || !size || begin->size() != rank || size->size() != rank) return std::nullopt;
  for (int i = 0; i < dims.rank(); ++i) {
    const int64_t b = (*begin)[static_cast<size_t>(i)], s = (*size)[static_cast<size_t>(i)];
    if (i == axis) {
      if (s != 1) return std::nullopt;
    } else if (b != 0 || (s != -1 && s != dims[i])) {
      return std::nullopt;
    }
  }
  return Part{(*begin)[static_cast<size_t>(axis)], true};
}

std::optional<Part> PartOfStridedSlice(const Node& slice, const PartialShape& dims, int axis,
                                       Rewriter& r) {
  const auto begin = r.Integers(slice.input(1)), end = r.Integers(slice.input(2)),
             strides = r.Integers(slice.input(3));
  if (!begin || !end || !strides) return std::nullopt;
  const size_t n = begin->size();
  if (end->size() != n || strides->size() != n || n > static_cast<size_t>(dims.rank()) ||
      static_cast<size_t>(axis) >= n || slice.Int("ellipsis_mask") != 0 ||
      slice.Int("new_axis_mask") != 0) {
    return std::nullopt;
  }
  std::optional<Part> part;
  for (int i = 0; i < static_cast<int>(n); ++i) {
    const auto at = static_cast<size_t>(i);
    const auto has = [&](absl::string_view mask) { return (slice.Int(mask) >> i & 1) != 0; };
    if ((*strides)[at] != 1) return std::nullopt;
    const bool from_first = has("begin_mask"), to_last = has("end_mask");
    const int64_t size = dims[i];
    if (i != axis) {
      const bool whole = !has("shrink_axis_mask") && (from_first || (*begin)[at] == 0) &&
                         (to_last || (size >= 0 && (*end)[at] >= size));
      if (!whole) return std::nullopt;
      continue;
    }
    int64_t b = (*begin)[at], e = (*end)[at];
    if (b < 0) b += size;
    if (e < 0) e += size;
    if (has("shrink_axis_mask")) {
      if (from_first) return std::nullopt;
      part = Part{b, false};
      continue;
    }
    if (from_first) b = 0;
    if (to_last || e > size) e = size;
    if (e - b != 1) return std::nullopt;
    part = Part{b, true};
  }
  return part;
}

// stack(a, b, ...)[1] -> b
StatusOr<Rewritten> RemoveStackSliceSameAxis(Node& node, Rewriter& r) {
  if (IsRoot(node)) return r.No();
  Node* pack = Producer(node.input(0), "Pack");
  if (pack == nullptr) return r.No();
  PartialShape dims = r.shape({pack, 0});
  if (!dims.known_rank()) return r.No("the rank of the stack is not known");
  int64_t axis = pack->Int("axis");
  if (axis < 0) axis += dims.rank();
  if (axis < 0 || axis >= dims.rank()) return r.No("the stack has no such axis");
  dims.Set(static_cast<int>(axis), pack->num_inputs());
  const std::optional<Part> part = node.Is("Slice")
                                       ? PartOfSlice(node, dims, static_cast<int>(axis), r)
                                       : PartOfStridedSlice(node, dims, static_cast<int>(axis), r);
  if (!part || part->index < 0 || part->index >= pack->num_inputs()) {
    return r.No("it does not take one whole part of the stack");
  }
  if (r.HasControlFlow()) return r.No("another part of the stack may never come");
  const Endpoint value = pack->input(static_cast<int>(part->index));
  if (GivesReference(value)) return r.No("the value is read by reference");
  AttrMap attrs;
  attrs.Set("T", node.Type("T"));
  const std::string name = r.Name(node);
  std::vector<Endpoint> inputs = {value};
  if (part->keeps_axis) {
    ASSIGN_OR_RETURN(Node * at,
                     AddConstBeside(r.Name(node, "", "Axis_"),
                                    Tensor::Scalar(static_cast<int32_t>(axis)), node, value, r));
    inputs.push_back({at, 0});
    attrs.Set("Tdim", Dtype::kInt32);
  }
  ASSIGN_OR_RETURN(Node * taken, r.Add(name, part->keeps_axis ? "ExpandDims" : "Identity", inputs,
                                       std::move(attrs), node));
  RETURN_IF_ERROR(r.WaitAs(taken, node));
  RETURN_IF_ERROR(r.WaitAs(taken, *pack));
  for (int i = 1; i < node.num_inputs(); ++i) RETURN_IF_ERROR(r.WaitAs(taken, *node.input(i).node));
  r.CopyShape({&node, 0}, {taken, 0});
  return r.ReplaceBy({taken, 0});
}

}  // namespace

// Named as TensorFlow's stage is, for the names of new nodes.
const Rule kRemoveStackSliceSameAxis = {"RemoveStackStridedSliceSameAxis",
                                        {"Slice", "StridedSlice"},
                                        RemoveStackSliceSameAxis,
                                        "stack(a, b)[1] -> b"};

}  // namespace smelt::arithmetic
