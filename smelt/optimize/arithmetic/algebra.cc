// Nodes that undo or repeat each other, and signs.
#include <algorithm>

#include "smelt/graph/op_facts.h"
#include "smelt/optimize/arithmetic/rules.h"

namespace smelt::arithmetic {
namespace {

// Every element of the result is an element of input 0, in whatever order, and nothing else is:
// padding is not.
constexpr OpSet kPermutes = {
    "Identity",     "Snapshot",       "StopGradient",   "PreventGradient",  "CheckNumerics",
    "Print",

    "Reshape",      "Squeeze",        "ExpandDims",     "Reverse",          "ReverseV2",
    "Roll",         "Transpose",      "DepthToSpace",   "SpaceToDepth",     "BatchToSpace",
    "SpaceToBatch", "BatchToSpaceND", "SpaceToBatchND", "InvertPermutation"};

// Follows what only moves elements, from the node's first input on, as long as nothing else reads
// and no order is kept by it. Sets `last` to the last that was passed.
Node* BehindPermutations(const Node& node, Node** last) {
  *last = nullptr;
  Node* inner = node.input(0).node;
  while (inner->Is(kPermutes) && NumDataUses(*inner) == 1 && IsOutOfOrder(*inner) &&
         !IsRoot(*inner) && !HasEffect(*inner)) {
    *last = inner;
    inner = inner->input(0).node;
  }
  return inner;
}

// f(f(x)) -> x, also with a chain of moves in between.
StatusOr<Rewritten> RemoveInvolution(Node& node, Rewriter& r) {
  Node* last = nullptr;
  Node* inner = BehindPermutations(node, &last);
  if (inner->op_name() != node.op_name()) return r.No();
  const Endpoint x = inner->input(0);
  if (IsRef(x.node->output_types[static_cast<size_t>(x.port)])) {
    return r.No("the value is read by reference");
  }
  if (last == nullptr) {
    RETURN_IF_ERROR(r.WaitAs(&node, *inner));
    return r.ReplaceBy(x);
  }
  if (NumDataUses(*inner) != 1 || IsRoot(*inner) || !IsOutOfOrder(*inner)) {
    return r.No("others need the inner node");
  }
  r.graph().SetInput(last, 0, x);
  r.Visit(last);
  return r.ReplaceBy(node.input(0));
}

constexpr OpSet kSums = {"Add", "AddV2"};
constexpr OpSet kNeg = {"Neg"};

// a - (-b) -> a + b, a + (-b) -> a - b, (-a) + b -> b - a.
StatusOr<Rewritten> RemoveNegation(Node& node, Rewriter& r) {
  const Endpoint a = node.input(0), b = node.input(1);
  const bool sum = node.Is(kSums);
  const bool of_b = b.node->Is("Neg"), of_a = sum && a.node->Is("Neg");
  if (!of_b && !of_a) return r.No();
  const Node* neg = of_b ? b.node : a.node;
  AttrMap attrs;
  attrs.Set("T", node.Type("T"));
  std::vector<Endpoint> inputs =
      of_b ? std::vector{a, neg->input(0)} : std::vector{b, neg->input(0)};
  Node* waits = b.node->Is("Neg") ? b.node : a.node;
  RETURN_IF_ERROR(r.WaitAs(&node, *waits));
  const absl::string_view op = sum ? "Sub" : node.Type("T") == Dtype::kString ? "Add" : "AddV2";
  r.graph().SetInputs(&node, inputs);
  RETURN_IF_ERROR(r.Become(&node, op, std::move(attrs)));
  return r.InPlace();
}

// x * x -> Square(x)
StatusOr<Rewritten> ReplaceMulWithSquare(Node& node, Rewriter& r) {
  if (!(node.input(0) == node.input(1))) return r.No();
  const Dtype t = node.Type("T");
  const bool complex = t == Dtype::kComplex64 || t == Dtype::kComplex128;
  const bool cpu = r.OnCpu(node);
  if (complex && !cpu) return r.No("no kernel for complex numbers is known for its device");
  AttrMap attrs;
  attrs.Set("T", t);
  ASSIGN_OR_RETURN(Node * square,
                   r.Add(r.Name(node), "Square", {node.input(0)}, std::move(attrs), node));
  RETURN_IF_ERROR(r.WaitAs(square, node));
  r.CopyShape({&node, 0}, {square, 0});
  return r.ReplaceBy({square, 0});
}

struct Opposite {
  OpName op, opposite;
};
constexpr Opposite kOpposites[] = {
    {"Equal", "NotEqual"},    {"NotEqual", "Equal"},    {"Less", "GreaterEqual"},
    {"LessEqual", "Greater"}, {"Greater", "LessEqual"}, {"GreaterEqual", "Less"},
};

// Not(a < b) -> a >= b. Of comparisons with NaN this is not true, as TensorFlow accepts.
StatusOr<Rewritten> RemoveLogicalNot(Node& node, Rewriter& r) {
  Node* compare = node.input(0).node;
  const auto* row = std::ranges::find(kOpposites, compare->op_name(), &Opposite::op);
  if (row == std::end(kOpposites)) return r.No();
  if (IsRoot(*compare)) return r.No("the comparison must stay");
  if (NumDataUses(*compare) != 1 || HasControlUses(*compare)) {
    return r.No("others need the comparison");
  }
  AttrMap attrs = compare->attrs();
  RETURN_IF_ERROR(r.Become(compare, row->opposite.text(), std::move(attrs)));
  RETURN_IF_ERROR(r.WaitAs(compare, node));
  return r.ReplaceBy({compare, 0});
}

constexpr OpSet kIdempotent = {"Identity",        "Snapshot",      "StopGradient",
                               "PreventGradient", "CheckNumerics", "Print"};

// f(f(x)) -> f(x) for f that gives what it is given.
StatusOr<Rewritten> RemoveIdempotent(Node& node, Rewriter& r) {
  Node* inner = node.input(0).node;
  if (inner->op_name() != node.op_name() || HasEffect(node)) return r.No();
  if (node.num_inputs() != 1) return r.No();
  if (inner->device != node.device) return r.No("they are on different devices");
  if (IsRef(inner->input_types[0])) return r.No("the value is read by reference");
  return r.ReplaceBy(node.input(0));
}

}  // namespace

const Rule kRemoveInvolution = {"RemoveInvolution", kInvolutions, RemoveInvolution,
                                "f(f(x)) -> x for Conj, Invert, LogicalNot, Neg, Reciprocal"};
const Rule kRemoveNegation = {
    "RemoveNegation", {"Add", "AddV2", "Sub"}, RemoveNegation, "a - (-b) -> a + b"};
const Rule kReplaceMulWithSquare = {
    "ReplaceMulWithSquare", {"Mul"}, ReplaceMulWithSquare, "x * x -> Square(x)"};
const Rule kRemoveLogicalNot = {
    "RemoveLogicalNot", {"LogicalNot"}, RemoveLogicalNot, "Not(a < b) -> a >= b"};
const Rule kRemoveIdempotent = {"RemoveIdempotent", kIdempotent, RemoveIdempotent,
                                "f(f(x)) -> f(x)"};

}  // namespace smelt::arithmetic
