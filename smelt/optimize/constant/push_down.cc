// Constants move down to where they meet others, which are then folded.
#include <algorithm>

#include "absl/strings/match.h"
#include "smelt/optimize/constant/rules.h"

namespace smelt::constant {
namespace {

// parent(child(X, Y), C), with the inputs of both in any order: C is constant, X is not.
struct Tree {
  Node* child = nullptr;
  int const_input = 0;  // C's place in the parent
  int y_input = 0;      // Y's place in the child: the constant leaf where there is one
  Endpoint c, x, y;
};

// "": it is one, else what the tree lacks.
absl::string_view FindTree(const Node& node, Rewriter& r, Tree* tree) {
  if (!r.context().fetch_known) return "nobody said what is fetched";
  if (node.num_inputs() != 2) return "it has not two inputs";
  const bool left = IsConstant(node.input(0), r), right = IsConstant(node.input(1), r);
  if (!left && !right) return "no input is constant";
  tree->const_input = left ? 0 : 1;
  tree->c = node.input(tree->const_input);
  Node* child = tree->child = node.input(1 - tree->const_input).node;
  if (child->num_inputs() != 2 || child == tree->c.node) return "the other input is not of two";
  if (node.device != child->device || node.device != tree->c.node->device) {
    return "they are on different devices";
  }
  if (IsRoot(*child)) return "the inner node must stay";
  if (NumDataUses(*child) > 1) return "others read the inner node";
  const Dtype type = node.Type("T");
  if (type == Dtype::kHalf || type == Dtype::kBfloat16)
    return "sums of half precision would change";
  if (std::ranges::find(tree->c.node->control_inputs(), child) !=
      tree->c.node->control_inputs().end()) {
    return "the constant waits for the inner node";
  }
  const bool left_leaf = IsConstant(child->input(0), r),
             right_leaf = IsConstant(child->input(1), r);
  if (left_leaf && right_leaf) return "the inner node is to be folded";
  for (const Endpoint& leaf : child->inputs()) {
    if (leaf.node->device != node.device) return "they are on different devices";
  }
  tree->y_input = left_leaf ? 0 : 1;
  tree->x = child->input(1 - tree->y_input);
  tree->y = child->input(tree->y_input);
  return "";
}

int64_t Elements(const PartialShape& s) {
  int64_t count = 1;
  for (const int64_t d : s.dims()) {
    if (d != 0 && count > std::numeric_limits<int64_t>::max() / d) {
      return std::numeric_limits<int64_t>::max();
    }
    count *= d;
  }
  return count;
}

// Would `c` make what is computed of it and `y` larger than `y` is?
bool Widens(const PartialShape& c, const PartialShape& y) {
  if (c.fully_known() && y.fully_known() && Elements(c) > Elements(y)) return true;
  if (!c.known_rank() || !y.known_rank() || c.rank() == 0) return false;
  for (int i = 0; i < std::min(c.rank(), y.rank()); ++i) {
    if (y[i] >= 0 && c[i] > y[i]) return true;
  }
  return false;
}

constexpr OpSet kAdd = {"Add", "AddV2"};
constexpr OpSet kSumFamily = {"Add", "AddV2", "Sub"};
constexpr OpSet kProductFamily = {"Mul", "Div"};

// The op and inputs of a node: a - b, or a + b.
Status SetTerm(Node* node, absl::string_view op, Endpoint a, Endpoint b, Rewriter& r) {
  r.graph().SetInputs(node, {a, b});
  AttrMap attrs = node->attrs();
  RETURN_IF_ERROR(r.Become(node, op, std::move(attrs)));
  return OkStatus();
}

// C + (X + Y) -> X + (C + Y), and the like with - and /
StatusOr<Rewritten> ConstantPushDown(Node& node, Rewriter& r) {
  Tree t;
  if (const absl::string_view why = FindTree(node, r, &t); !why.empty()) return r.No(why);
  Node* child = t.child;
  const bool sums = node.Is(kSumFamily) && child->Is(kSumFamily);
  if (!sums && !(node.Is(kProductFamily) && child->Is(kProductFamily))) {
    return r.No("the inner node is of another kind");
  }
  const Dtype type = node.Type("T");
  if (type == Dtype::kString) return r.No("texts have an order");
  const bool symmetric = node.Is(kAdd) || node.Is("Mul");
  const bool child_symmetric = child->Is(kAdd) || child->Is("Mul");
  if (!(symmetric && child_symmetric) && !IsFloating(type) && !IsComplex(type)) {
    return r.No("differences and quotients of integers are others");
  }
  if (!IsConstant(t.y, r) && Widens(r.shape(t.c), r.shape(t.y))) {
    return r.No("the constant would make the inner node larger");
  }
  const Endpoint inner = {child, 0};
  if (symmetric && child_symmetric) {
    r.graph().SetInputs(&node, {t.x, inner});
    r.graph().SetInputs(child, {t.c, t.y});
  } else {
    // The sign of each term in the whole, whose own is that of X, Y and C together.
    const auto is_negated = [&](bool right_leaf) {
      return (!child_symmetric && right_leaf) != (!symmetric && t.const_input == 0);
    };
    const bool neg_c = !symmetric && t.const_input == 1;
    const bool neg_x = is_negated(t.y_input == 0), neg_y = is_negated(t.y_input == 1);
    const absl::string_view plus = sums ? "Add" : "Mul", minus = sums ? "Sub" : "Div";
    const bool outer_minus = neg_x || (neg_c && neg_y);
    RETURN_IF_ERROR(
        SetTerm(&node, outer_minus ? minus : plus, neg_x ? inner : t.x, neg_x ? t.x : inner, r));
    RETURN_IF_ERROR(
        SetTerm(child, neg_c != neg_y ? minus : plus, neg_c ? t.y : t.c, neg_c ? t.c : t.y, r));
  }
  // What the inner node computes now has the shape of others.
  r.SetShape(inner, {});
  r.Visit(child);
  return r.InPlace();
}

// Does a factor of this shape scale the channels of the results of a filter?
bool ScalesFilter(const Node& conv, const PartialShape& filter, const PartialShape& factor) {
  const std::string format = conv.String("data_format", conv.Is("Conv3D") ? "NDHWC" : "NHWC");
  if (!factor.fully_known()) return false;
  if (factor.rank() <= static_cast<int>(format.size()) && Elements(factor) == 1) return true;
  if (format != "NHWC" && format != "NDHWC") return false;
  if (!filter.known_rank() || factor.rank() > filter.rank() || factor.rank() == 0) return false;
  for (int i = 0; i + 1 < factor.rank(); ++i) {
    if (factor[i] > 1) return false;
  }
  const int64_t channels = factor[factor.rank() - 1];
  return channels == 1 || channels == filter[filter.rank() - 1];
}

// Conv(X, C1) * C2 -> Conv(X, C1 * C2)
StatusOr<Rewritten> MulConvPushDown(Node& node, Rewriter& r) {
  const bool left = IsConstant(node.input(0), r), right = IsConstant(node.input(1), r);
  if (!left && !right) return r.No("no factor is constant");
  const Endpoint factor = node.input(left ? 0 : 1);
  Node* conv = node.input(left ? 1 : 0).node;
  if (!conv->Is("Conv2D") && !conv->Is("Conv3D")) return r.No();
  if (node.device != conv->device || node.device != factor.node->device) {
    return r.No("they are on different devices");
  }
  if (NumDataUses(*conv) > 1) return r.No("others read the convolution");
  if (IsRoot(*conv)) return r.No("the convolution must stay");
  const bool of_input = IsConstant(conv->input(0), r), of_filter = IsConstant(conv->input(1), r);
  if (of_input == of_filter) return r.No("not one input of the convolution is constant");
  if (!SameSymbolicShape(r.shape({&node, 0}), r.shape({conv, 0}))) {
    return r.No("the factor may widen the result");
  }
  const PartialShape shape = r.shape(factor);
  if (!ScalesFilter(*conv, r.shape(conv->input(1)), shape)) {
    return r.No("the factor does not scale channels");
  }
  // Only the filter has a column for each channel of the result.
  if (of_input && !(shape.fully_known() && Elements(shape) == 1)) {
    return r.No("the factor is of channels, and the filter is not constant");
  }
  const std::string name = absl::StrCat(conv->name(), "/merged_input");
  if (r.graph().Find(name) != nullptr) return r.No("the name of the new node is taken");
  const int place = of_input ? 0 : 1;
  const Endpoint scaled = conv->input(place);
  // The factor may be there for the convolution alone; it is in the same frame as what it scales.
  if (std::ranges::find(factor.node->control_inputs(), conv) !=
      factor.node->control_inputs().end()) {
    r.graph().RemoveControlInput(factor.node, conv);
    RETURN_IF_ERROR(r.Wait(factor.node, scaled));
  }
  // The node becomes the convolution, so that it keeps its name.
  AttrMap attrs = node.attrs();
  attrs.Erase("_root");
  ASSIGN_OR_RETURN(Node * product,
                   r.Add(name, node.op(), {left ? factor : scaled, left ? scaled : factor},
                         std::move(attrs), node));
  RETURN_IF_ERROR(r.WaitAs(product, node));
  if (shape.rank() <= r.shape(scaled).rank()) r.CopyShape(scaled, {product, 0});
  std::vector<Endpoint> inputs(conv->inputs().begin(), conv->inputs().end());
  inputs[static_cast<size_t>(place)] = {product, 0};
  r.graph().SetInputs(&node, inputs);
  r.graph().SetControlInputs(&node, conv->control_inputs());
  AttrMap of_conv = conv->attrs();
  const std::string op(conv->op());
  for (const Use& use : conv->OrderedUses()) {
    if (use.is_control() && use.node != &node && use.node != product) {
      r.graph().AddControlInput(use.node, &node);
    }
    if (use.is_control()) r.graph().RemoveControlInput(use.node, conv);
  }
  RETURN_IF_ERROR(r.Become(&node, op, std::move(of_conv)));
  return r.InPlace();
}

// Sums with biases: the constant changes places with what is no constant.
StatusOr<Rewritten> ConstantPushDownBiasAdd(Node& node, Rewriter& r) {
  Tree t;
  if (const absl::string_view why = FindTree(node, r, &t); !why.empty()) return r.No(why);
  const bool of_bias = node.Is("BiasAdd"), child_of_bias = t.child->Is("BiasAdd");
  if (of_bias && t.const_input == 0) return r.No("the constant is no bias");
  if (!child_of_bias && !t.child->Is(kAdd)) return r.No("the inner node is no sum");
  const PartialShape leaves[] = {r.shape(t.child->input(0)), r.shape(t.child->input(1))};
  const PartialShape constant = r.shape(t.c);
  if (!leaves[0].known_rank() || !leaves[1].known_rank() || !constant.known_rank() ||
      !r.shape({t.child, 0}).known_rank()) {
    return r.No("ranks are not known");
  }
  if (leaves[0].rank() != 1 && leaves[1].rank() != 1) return r.No("nothing is a vector");
  const int vector = leaves[0].rank() == 1 ? 0 : 1, matrix = 1 - vector;
  int swapped = -1;
  if (!of_bias && child_of_bias && constant.rank() == leaves[matrix].rank()) {
    swapped = matrix;
  } else if (constant.rank() == 1) {
    swapped = vector;
  }
  if (swapped < 0) return r.No("the constant is neither a vector nor of the matrix's rank");
  const Endpoint leaf = t.child->input(swapped);
  if (leaf.node->Is("Const")) return r.No("it would change places with a constant");
  r.graph().SetInput(&node, t.const_input, leaf);
  r.graph().SetInput(t.child, swapped, t.c);
  r.Visit(t.child);
  return r.InPlace();
}

}  // namespace

const Rule kConstantPushDown = {"ConstantPushDown",
                                {"Add", "AddV2", "Sub", "Mul", "Div"},
                                ConstantPushDown,
                                "c + (x + y) -> x + (c + y)"};
const Rule kMulConvPushDown = {"MulConvPushDown",
                               {"Mul", "MulNoNan"},
                               MulConvPushDown,
                               "conv(x, c1) * c2 -> conv(x, c1 * c2)",
                               // Sessions scale a filter only where the copy pays (remap/).
                               [](const PassContext& c) { return !c.for_execution; }};
const Rule kConstantPushDownBiasAdd = {"ConstantPushDownBiasAdd",
                                       {"Add", "AddV2", "BiasAdd"},
                                       ConstantPushDownBiasAdd,
                                       "(m + v) + c -> (m + c) + v"};

}  // namespace smelt::constant
