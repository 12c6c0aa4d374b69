// Sums, and trees of sums or products of several shapes.
#include <algorithm>
#include <deque>
#include <map>

#include "smelt/optimize/arithmetic/rules.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt::arithmetic {
namespace {

constexpr OpSet kAdds = {"Add", "AddV2"};
constexpr OpSet kAddsAndAddN = {"Add", "AddV2", "AddN"};
constexpr OpSet kAggregates = {"Add", "AddV2", "AddN", "AccumulateNV2"};
constexpr OpSet kAssociative = {"Add", "AddV2", "Mul"};
// Division by one number distributes over sums: FloorDiv and TruncateDiv round.
constexpr OpSet kExactDivisions = {"Div", "RealDiv", "DivNoNan", "Xdivy"};

// Nodes that a rewrite has been at; TensorFlow's names, as graphs keep them.
constexpr absl::string_view kAddOpsTag = "_grappler_ArithmeticOptimizer_AddOpsRewriteStage";
constexpr absl::string_view kBroadcastsTag = "_grappler_ArithmeticOptimizer_MinimizeBroadcasts";

bool Broadcasts(const PartialShape& a, const PartialShape& b) {
  if (!IsSymbolic(a) || !IsSymbolic(b)) return false;
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const int64_t x = a[a.rank() - i], y = b[b.rank() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

// The shape of both together. REQUIRES: Broadcasts(a, b).
PartialShape Broadcast(const PartialShape& a, const PartialShape& b) {
  const PartialShape& longer = a.rank() >= b.rank() ? a : b;
  const PartialShape& shorter = a.rank() >= b.rank() ? b : a;
  PartialShape both = longer;
  for (int i = 1; i <= shorter.rank(); ++i) {
    if (both[both.rank() - i] == 1) both.Set(both.rank() - i, shorter[shorter.rank() - i]);
  }
  return both;
}

bool InputsBroadcast(const Node& n, Rewriter& r) {
  const PartialShape shape = r.shape({const_cast<Node*>(&n), 0});
  return std::ranges::all_of(n.inputs(),
                             [&](const Endpoint& e) { return Broadcasts(shape, r.shape(e)); });
}

// Is `a` smaller than `b`, whatever its symbols stand for? One symbol more counts as larger than
// any number.
bool IsSmaller(const PartialShape& a, const PartialShape& b) {
  const auto size = [](const PartialShape& s) {
    std::pair<int, double> symbols_and_elements = {0, 1};
    for (const int64_t d : s.dims()) {
      if (d < 0) {
        ++symbols_and_elements.first;
      } else {
        symbols_and_elements.second *= static_cast<double>(d);
      }
    }
    return symbols_and_elements;
  };
  return size(a) < size(b);
}

struct Summand {
  Endpoint value;
  PartialShape shape;
};

// A tree of nodes that compute one sum or product: its root, the other nodes in the order of a walk
// from the root, and what they add up.
struct Group {
  Node* root;
  std::vector<Node*> absorbed;
  std::vector<Summand> inputs;
};

template <typename F>
Group Collect(Node& root, Rewriter& r, F absorbs) {
  Group group = {&root, {}, {}};
  std::vector<Endpoint> todo(root.inputs().rbegin(), root.inputs().rend());
  while (!todo.empty()) {
    const Endpoint e = todo.back();
    todo.pop_back();
    if (absorbs(*e.node)) {
      group.absorbed.push_back(e.node);
      todo.insert(todo.end(), e.node->inputs().rbegin(), e.node->inputs().rend());
    } else {
      group.inputs.push_back({e, r.shape(e)});
    }
  }
  return group;
}

void Tag(const Group& group, absl::string_view tag) {
  group.root->AttrsToChange().Set(tag, true);
  for (Node* n : group.absorbed) n->AttrsToChange().Set(tag, true);
}

// The inputs by shape, smaller shapes first; of one shape in the order of the group.
std::vector<std::vector<Summand>> ByShape(const Group& group) {
  std::map<std::vector<int64_t>, size_t> place;
  std::vector<std::vector<Summand>> by_shape;
  for (const Summand& input : group.inputs) {
    const std::vector<int64_t> dims(input.shape.dims().begin(), input.shape.dims().end());
    const auto [it, is_new] = place.emplace(dims, by_shape.size());
    if (is_new) by_shape.emplace_back();
    by_shape[it->second].push_back(input);
  }
  std::ranges::stable_sort(
      by_shape, [](const auto& a, const auto& b) { return IsSmaller(a[0].shape, b[0].shape); });
  return by_shape;
}

AttrMap TypeAndTag(Dtype type, absl::string_view tag) {
  AttrMap attrs;
  attrs.Set("T", type);
  attrs.Set(tag, true);
  return attrs;
}

// ---- AddOpsRewrite

StatusOr<Summand> AddUp(std::vector<Summand> of_one_shape, absl::string_view name, const Node& root,
                        Rewriter& r) {
  if (of_one_shape.size() == 1) return of_one_shape[0];
  AttrMap attrs = TypeAndTag(root.Type("T"), kAddOpsTag);
  attrs.Set("N", static_cast<int64_t>(of_one_shape.size()));
  std::vector<Endpoint> inputs;
  for (const Summand& s : of_one_shape) inputs.push_back(s.value);
  ASSIGN_OR_RETURN(Node * sum, r.Add(name, "AddN", inputs, std::move(attrs), root));
  r.SetShape({sum, 0}, of_one_shape[0].shape);
  return Summand{{sum, 0}, of_one_shape[0].shape};
}

// A tree of sums becomes an AddN for each shape, and sums of those, the smallest first.
StatusOr<Rewritten> AddOpsRewrite(Node& node, Rewriter& r) {
  const auto is_sum = [](const Endpoint& e) { return e.node->Is(kAddsAndAddN); };
  if (std::ranges::none_of(node.inputs(), is_sum)) return r.No();
  const auto may_go = [](const Node& n) {
    return n.Is(kAddsAndAddN) && !IsRoot(n) && n.Find(kAddOpsTag) == nullptr && IsOutOfOrder(n);
  };
  // Strings are joined, which has an order.
  if (node.Find(kAddOpsTag) != nullptr || node.Type("T") == Dtype::kString) return r.No();
  if (IsRoot(node)) return r.No("the sum must stay");
  if (!may_go(node)) return r.No("the sum waits, or others wait for it");
  if (!InputsBroadcast(node, r)) return r.No("the shapes of its inputs are not known");
  const Group group = Collect(node, r, [&](const Node& n) {
    return may_go(n) && n.device == node.device && NumDataUses(n) == 1 && InputsBroadcast(n, r);
  });
  if (group.absorbed.empty()) return r.No("others need the inner sum, or its order");
  const std::vector<std::vector<Summand>> by_shape = ByShape(group);
  const Dtype type = node.Type("T");
  const bool adds_several =
      std::ranges::any_of(by_shape, [](const auto& inputs) { return inputs.size() > 1; });
  if ((adds_several && !TakesType("AddN", type)) ||
      (by_shape.size() > 1 && !TakesType("AddV2", type))) {
    return r.No("no op adds several of this type");
  }
  Tag(group, kAddOpsTag);
  if (by_shape.size() == 1) {
    ASSIGN_OR_RETURN(const Summand sum, AddUp(by_shape[0], r.Name(node), node, r));
    return r.ReplaceBy(sum.value);
  }
  Summand sum;
  for (size_t i = 0; i < by_shape.size(); ++i) {
    const std::string name = r.Name(node, "", absl::StrCat("Leaf_", i, "_"));
    ASSIGN_OR_RETURN(const Summand leaf, AddUp(by_shape[i], name, node, r));
    if (i == 0) {
      sum = leaf;
      continue;
    }
    const bool last = i + 1 == by_shape.size();
    const std::string before = last ? "" : absl::StrCat("Internal_", i - 1, "_");
    ASSIGN_OR_RETURN(Node * both, r.Add(r.Name(node, "", before), "AddV2", {sum.value, leaf.value},
                                        TypeAndTag(type, kAddOpsTag), node));
    sum = {{both, 0}, Broadcast(sum.shape, leaf.shape)};
    r.SetShape(sum.value, sum.shape);
  }
  return r.ReplaceBy(sum.value);
}

// ---- MinimizeBroadcasts

// The nodes of a tree of one op compute in another order: what has one shape in pairs, then the
// smaller shapes before the larger.
StatusOr<Rewritten> MinimizeBroadcasts(Node& node, Rewriter& r) {
  const auto is_done = [](const Node& n) {
    return n.Find(kBroadcastsTag) != nullptr || n.Find(kAddOpsTag) != nullptr;
  };
  const auto is_same = [&](const Endpoint& e) { return e.node->op_name() == node.op_name(); };
  // Strings are joined, which has an order.
  if (is_done(node) || node.Type("T") == Dtype::kString) return r.No();
  if (std::ranges::none_of(node.inputs(), is_same)) return r.No();
  if (HasControlInputs(node)) return r.No("it waits");
  if (!InputsBroadcast(node, r)) return r.No("the shapes of its inputs are not known");
  const Group group = Collect(node, r, [&](const Node& n) {
    return n.op_name() == node.op_name() && !IsRoot(n) && !is_done(n) && IsOutOfOrder(n) &&
           n.device == node.device && NumDataUses(n) == 1 && InputsBroadcast(n, r);
  });
  if (group.absorbed.empty()) return r.No("others need the inner node, or its order");
  Tag(group, kBroadcastsTag);
  std::vector<std::vector<Summand>> by_shape = ByShape(group);
  if (by_shape.size() == 1) return r.No("all inputs are of one shape");
  std::vector<Node*> free = {&node};
  free.insert(free.end(), group.absorbed.begin(), group.absorbed.end());
  const auto combine = [&](const Summand& a, const Summand& b) {
    Node* n = free.back();
    free.pop_back();
    r.graph().SetInputs(n, {a.value, b.value});
    const Summand both = {{n, 0}, Broadcast(a.shape, b.shape)};
    r.SetShape(both.value, both.shape);
    r.Visit(n);
    return both;
  };
  // Inner nodes first lose their old places, so that none reads itself on the way.
  for (Node* n : free) r.graph().SetInputs(n, {});
  std::optional<Summand> result;
  for (std::vector<Summand>& level : by_shape) {
    while (level.size() > 1) {
      std::vector<Summand> next;
      for (size_t i = 0; i + 1 < level.size(); i += 2) {
        next.push_back(combine(level[i], level[i + 1]));
      }
      if (level.size() % 2 == 1) next.push_back(level.back());
      level = std::move(next);
    }
    result = result ? combine(*result, level[0]) : level[0];
  }
  return r.InPlace();
}

// ---- HoistCommonFactorOutOfAggregation

bool HasInput(const Node& n, Endpoint e) { return n.input(0) == e || n.input(1) == e; }

// x*a + x*b -> x * (a+b), a/x + b/x -> (a+b) / x
StatusOr<Rewritten> HoistCommonFactor(Node& node, Rewriter& r) {
  if (node.num_inputs() < 2) return r.No();
  const Node& first = *node.input(0).node;
  const bool quotient = first.Is(kExactDivisions);
  if (!quotient && !first.Is("Mul")) return r.No();
  const Dtype type = node.Type("T");
  if (quotient && type != Dtype::kFloat && type != Dtype::kDouble) {
    return r.No("quotients of this type are rounded");
  }
  for (const Endpoint& e : node.inputs()) {
    const bool fits = quotient ? e.node->op_name() == first.op_name() : e.node->Is("Mul");
    if (!fits) return r.No("not all summands are products, or all are quotients");
  }
  std::vector<Endpoint> common;
  const auto consider = [&](Endpoint x) {
    if (!common.empty() && common[0] == x) return;
    const bool in_all = std::ranges::all_of(node.inputs(), [&](const Endpoint& e) {
      return quotient ? e.node->input(1) == x : HasInput(*e.node, x);
    });
    if (in_all) common.push_back(x);
  };
  if (!quotient) consider(first.input(0));
  consider(first.input(1));
  if (common.size() != 1) return r.No("there is not one common factor");
  const Endpoint x = common[0];
  std::vector<Endpoint> others;
  for (const Endpoint& e : node.inputs()) {
    const int other = quotient ? 0 : e.node->input(0) == x ? 1 : 0;
    others.push_back(e.node->input(other));
  }
  if (!node.Is(kAdds)) {
    // Only Add takes inputs of several shapes, and AccumulateNV2 states the one of its result.
    const PartialShape shape = node.Is("AccumulateNV2") ? r.shape({&node, 0}) : r.shape(others[0]);
    for (const Endpoint& e : others) {
      if (!SameSymbolicShape(shape, r.shape(e))) {
        return r.No("the other factors have several shapes");
      }
    }
  }
  const std::string outer_name = r.Name(node, "", quotient ? "Div_" : "Mul_");
  ASSIGN_OR_RETURN(Node * inner, r.Copy(node, r.Name(node, "", "AddV2_")));
  for (const Endpoint& e : node.inputs()) RETURN_IF_ERROR(r.WaitAs(inner, *e.node));
  r.graph().SetInputs(inner, others);
  // Of the sum of the others no shape is known: in a broadcast they may be smaller than the result.
  r.SetShape({inner, 0}, PartialShape::Unknown());
  r.Visit(inner);
  ASSIGN_OR_RETURN(Node * outer, r.Copy(first, outer_name));
  outer->device = node.device;
  r.graph().SetInputs(outer, quotient ? std::vector<Endpoint>{{inner, 0}, x}
                                      : std::vector<Endpoint>{x, {inner, 0}});
  r.CopyShape({&node, 0}, {outer, 0});
  return r.ReplaceBy({outer, 0});
}

bool IsAggressive(const PassContext& context) {
  return context.config.arithmetic_optimization == Toggle::kAggressive;
}

// ---- SimplifyAggregation

// The sum of one is that one; x + x + x -> 3 * x.
StatusOr<Rewritten> SimplifyAggregation(Node& node, Rewriter& r) {
  const Dtype type = node.Type("T");
  if (node.num_inputs() == 0 || type == Dtype::kVariant || type == Dtype::kString) return r.No();
  const Endpoint x = node.input(0);
  if (node.num_inputs() == 1) return r.ReplaceBy(x);
  if (!std::ranges::all_of(node.inputs(), [&](const Endpoint& e) { return e == x; })) {
    return r.No();
  }
  if (!TakesType("Mul", type)) return r.No("no product is of this type");
  const auto n = static_cast<double>(node.num_inputs());
  const StatusOr<Attr> value = UniformTensor(type, Shape(), n);
  const bool exact =
      value.ok() && UniformValue(**value->get<std::shared_ptr<const TensorValue>>()) == n;
  if (!exact) return r.No("the type does not have the number of summands");
  AttrMap of_constant;
  of_constant.Set("dtype", type);
  of_constant.Set("value", *value);
  ASSIGN_OR_RETURN(Node * count,
                   r.Add(r.Name(node, "", "Const_"), "Const", {}, std::move(of_constant), node));
  // So that it runs in the frame of the sum.
  RETURN_IF_ERROR(r.Wait(count, x));
  r.SetShape({count, 0}, Shape());
  AttrMap attrs;
  attrs.Set("T", type);
  ASSIGN_OR_RETURN(Node * product,
                   r.Add(r.Name(node, "", "Mul_"), "Mul", {{count, 0}, x}, std::move(attrs), node));
  RETURN_IF_ERROR(r.WaitAs(product, node));
  r.CopyShape({&node, 0}, {product, 0});
  return r.ReplaceBy({product, 0});
}

}  // namespace

const Rule kAddOpsRewrite = {"AddOpsRewrite", kAddsAndAddN, AddOpsRewrite,
                             "a + b + c -> AddN(a, b, c), smaller shapes first"};
const Rule kHoistCommonFactor = {"HoistCommonFactor", kAggregates, HoistCommonFactor,
                                 "x*a + x*b -> x * (a + b)", IsAggressive};
const Rule kMinimizeBroadcasts = {"MinimizeBroadcasts", kAssociative, MinimizeBroadcasts,
                                  "(small * large) * small -> (small * small) * large"};
const Rule kSimplifyAggregation = {"SimplifyAggregation", kAggregates, SimplifyAggregation,
                                   "x + x -> 2 * x"};

}  // namespace smelt::arithmetic
