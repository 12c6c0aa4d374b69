// Functions of one input that change places with what only moves or chooses elements, or become one
// node.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/arithmetic/rules.h"

namespace smelt::arithmetic {
namespace {

// One input, one output of its shape, computed element by element.
constexpr OpSet kUnary = {"Abs",          "Acos",       "Acosh",        "Asin",
                          "Asinh",        "Atan",       "Atanh",        "Ceil",
                          "Conj",         "Cos",        "Cosh",         "Digamma",
                          "Elu",          "Erf",        "Erfc",         "Exp",
                          "Expm1",        "Floor",      "Inv",          "Invert",
                          "Lgamma",       "Log",        "Log1p",        "LogicalNot",
                          "Neg",          "Reciprocal", "Relu",         "Relu6",
                          "Rint",         "Round",      "Rsqrt",        "Selu",
                          "Sigmoid",      "Sign",       "Sin",          "Sinh",
                          "Softplus",     "Softsign",   "Sqrt",         "Square",
                          "Tan",          "Tanh",

                          "Identity",     "Snapshot",   "StopGradient", "PreventGradient",
                          "CheckNumerics"};

constexpr OpSet kConcats = {"Concat", "ConcatV2"};
constexpr OpSet kRelus = {"Relu", "Relu6"};
constexpr OpSet kFusesWithRelu = {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3",
                                  "BiasAdd", "BiasAddV1"};

// The remapper makes one node of both.
bool IsLeftToRemapper(const Node& n) { return n.Is(kRelus) && n.input(0).node->Is(kFusesWithRelu); }

Use OnlyUse(const Node& n) { return n.uses()[0]; }

// ---- HoistCWiseUnaryChains

// A chain of functions, and the place of the Concat's inputs or the Split's outputs where it is.
struct Chain {
  Node* tail;  // the function that was looked at last
  int place;
};

bool IsSameFunction(const Node& a, const Node& b) {
  if (a.op_name() != b.op_name()) return false;
  return std::ranges::all_of(a.def()->attrs, [&](const AttrDef& def) {
    const Attr *x = a.Find(def.name), *y = b.Find(def.name);
    return x == nullptr ? y == nullptr : y != nullptr && *x == *y;
  });
}

// May all of these functions move to the other side of `root`?
bool MayHoist(const Node& root, const std::vector<Chain>& chains, Rewriter& r) {
  const Node& first = *chains[0].tail;
  if (!first.Is(kUnary)) return false;
  for (const auto& [n, place] : chains) {
    if (n == &root || !IsSameFunction(*n, first)) return false;
    if (n->device != root.device) {
      r.No("the functions are on several devices");
      return false;
    }
    if (IsRoot(*n)) {
      r.No("a function must stay");
      return false;
    }
    if (n->uses().size() != 1 || OnlyUse(*n).is_control()) {
      r.No("others need a function");
      return false;
    }
    if (IsLeftToRemapper(*n)) {
      r.No("the remapper fuses the function with what it reads");
      return false;
    }
  }
  return true;
}

// Concat(f(a), f(b)) -> f(Concat(a, b)), for chains of functions.
StatusOr<Rewritten> HoistBeforeConcat(Node& concat, Rewriter& r) {
  const bool first_is_axis = concat.Is("Concat");
  const int begin = first_is_axis ? 1 : 0;
  const int end = concat.num_inputs() - (first_is_axis ? 0 : 1);
  if (end - begin < 2) return r.No();
  std::vector<Chain> chains;
  absl::flat_hash_set<Node*> tails;
  for (int i = begin; i < end; ++i) {
    // Functions have one output: a node that stands twice has others that need it.
    if (!tails.insert(concat.input(i).node).second) return r.No();
    chains.push_back({concat.input(i).node, i});
  }
  const Node* top = chains[0].tail;
  std::vector<std::vector<Node*>> hoisted(chains.size());
  while (MayHoist(concat, chains, r)) {
    for (size_t i = 0; i < chains.size(); ++i) {
      hoisted[i].push_back(chains[i].tail);
      chains[i].tail = chains[i].tail->input(0).node;
    }
  }
  if (hoisted[0].empty()) return r.No();
  const PartialShape shape = r.shape({&concat, 0});
  const std::vector<Use> readers = concat.OrderedUses();
  for (size_t i = 0; i < chains.size(); ++i) {
    for (Node* n : hoisted[i]) {
      RETURN_IF_ERROR(r.WaitAs(&concat, *n));
      if (i == 0) r.SetShape({n, 0}, shape);
    }
    r.graph().SetInput(&concat, chains[i].place, hoisted[i].back()->input(0));
  }
  for (const Use& use : readers) {
    if (!use.is_control()) {
      r.graph().SetInput(use.node, use.input, {const_cast<Node*>(top), 0});
      r.Visit(use.node);
    }
  }
  r.graph().SetInput(hoisted[0].back(), 0, {&concat, 0});
  for (Node* n : hoisted[0]) r.Visit(n);
  for (int i = begin; i < end; ++i) r.Visit(concat.input(i).node);
  // The other chains are read by nobody.
  for (size_t i = 1; i < hoisted.size(); ++i) {
    for (Node* n : hoisted[i]) {
      if (r.context().fetch_known) r.graph().Remove(n);
    }
  }
  return r.InPlace();
}

// As TensorFlow names a function that moved: after the Split, and without the rule's name.
std::string CopyName(const Node& split, const Node& function, Rewriter& r) {
  const size_t own = split.name().rfind('/') + 1;  // 0 where there is no slash
  return r.graph().FreeName(absl::StrCat(split.name().substr(0, own), "ArithmeticOptimizer/_",
                                         function.name(), "_", split.name().substr(own)));
}

// f(Split(x)) -> Split(f(x)), for chains of functions on every output.
StatusOr<Rewritten> HoistBehindSplit(Node& split, Rewriter& r) {
  if (split.num_outputs() < 2) return r.No();
  std::vector<Use> uses;
  for (const Use& use : split.OrderedUses()) {
    if (!use.is_control()) uses.push_back(use);
  }
  if (uses.size() != static_cast<size_t>(split.num_outputs())) {
    return r.No("not every output is read once");
  }
  std::ranges::sort(uses, {}, &Use::port);
  std::vector<Chain> chains;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].port() != static_cast<int>(i) || uses[i].input != 0) return r.No();
    chains.push_back({uses[i].node, uses[i].port()});
  }
  std::vector<std::vector<Node*>> hoisted(chains.size());
  while (MayHoist(split, chains, r)) {
    for (auto& [n, place] : chains) {
      for (const Node* before : n->control_inputs()) {
        // It could wait for the Split, which is to wait for it.
        if (before->num_inputs() > 0 || HasControlInputs(*before)) {
          return r.No("a function waits for what may wait for the Split");
        }
      }
    }
    for (size_t i = 0; i < chains.size(); ++i) {
      hoisted[i].push_back(chains[i].tail);
      const Use next = OnlyUse(*chains[i].tail);
      chains[i].tail = next.input == 0 ? next.node : &split;
    }
  }
  if (hoisted[0].empty()) return r.No();
  const int value = split.Is("SplitV") ? 0 : 1;
  const Endpoint x = split.input(value);
  Endpoint last = x;
  for (const Node* n : hoisted[0]) {
    AttrMap attrs = n->attrs();
    ASSIGN_OR_RETURN(Node * copy,
                     r.Add(CopyName(split, *n, r), n->op(), {last}, std::move(attrs), *n));
    r.CopyShape(x, {copy, 0});
    if (last == x) {
      for (const std::vector<Node*>& chain : hoisted) {
        for (const Node* of_chain : chain) RETURN_IF_ERROR(r.WaitAs(copy, *of_chain));
      }
    }
    last = {copy, 0};
  }
  r.graph().SetInput(&split, value, last);
  for (size_t i = 0; i < hoisted.size(); ++i) {
    const Use reader = OnlyUse(*hoisted[i].back());
    r.graph().SetInput(reader.node, reader.input, {&split, static_cast<int>(i)});
    r.Visit(reader.node);
    if (!r.context().fetch_known) continue;
    for (auto n = hoisted[i].rbegin(); n != hoisted[i].rend(); ++n) r.graph().Remove(*n);
  }
  return r.InPlace();
}

StatusOr<Rewritten> HoistCWiseUnaryChains(Node& node, Rewriter& r) {
  if (IsRoot(node)) return r.No();
  return node.Is(kConcats) ? HoistBeforeConcat(node, r) : HoistBehindSplit(node, r);
}

// ---- OptimizeMaxOrMinOfMonotonic

constexpr OpSet kNonDecreasing = {"Acosh", "Asin", "Asinh",    "Atan",     "Atanh", "Ceil",
                                  "Elu",   "Erf",  "Exp",      "Expm1",    "Floor", "Log",
                                  "Log1p", "Relu", "Relu6",    "Rint",     "Selu",  "Sigmoid",
                                  "Sign",  "Sinh", "Softsign", "Softplus", "Sqrt",  "Tanh"};
constexpr OpSet kNonIncreasing = {"Acos", "Erfc", "Neg", "Rsqrt"};
// Of several arguments one value: which of them is the first to have the largest is lost.
constexpr OpSet kWithPlateaus = {"Ceil", "Floor", "Relu", "Relu6", "Rint", "Sign"};
constexpr OpSet kPools = {"MaxPool", "MaxPoolV2", "MaxPool3D"};
constexpr OpSet kArgs = {"ArgMax", "ArgMin"};

absl::string_view Opposite(const Node& n) {
  if (n.Is("Max")) return "Min";
  if (n.Is("Min")) return "Max";
  return n.Is("ArgMax") ? "ArgMin" : "ArgMax";
}

// max(f(x)) -> f(max(x)), argmax(f(x)) -> argmax(x); min for max where f decreases.
StatusOr<Rewritten> OptimizeMaxOrMinOfMonotonic(Node& node, Rewriter& r) {
  Node* f = node.input(0).node;
  const bool decreases = f->Is(kNonIncreasing);
  if (!decreases && !f->Is(kNonDecreasing)) return r.No();
  if (IsRoot(node)) return r.No("the reduction must stay");
  if (IsRoot(*f)) return r.No("the function must stay");
  if (f->uses().size() != 1) return r.No("others need the function");
  if (decreases && node.Is(kPools)) return r.No("there is no pool of minima");
  if (node.Is(kArgs) && f->Is(kWithPlateaus)) {
    return r.No("elements that differ before the function are the same after it");
  }
  if (IsLeftToRemapper(*f)) {
    return r.No("the remapper fuses the function with what it reads");
  }
  const Endpoint x = f->input(0);
  const PartialShape of_x = r.shape(x);
  if (std::ranges::find(of_x.dims(), 0) != of_x.dims().end()) {
    return r.No("the result of no elements would go through the function");
  }
  const std::vector<Use> readers = node.OrderedUses();
  r.graph().SetInput(&node, 0, x);
  r.graph().SetInput(f, 0, {&node, 0});
  for (const Use& use : readers) {
    if (use.is_control() || use.port() != 0) continue;
    r.graph().SetInput(use.node, use.input, {f, 0});
    r.Visit(use.node);
  }
  // The function may have waited for what they wait for.
  r.graph().ReplaceControlUses(&node, f);
  r.CopyShape({&node, 0}, {f, 0});
  if (decreases) {
    AttrMap attrs = node.attrs();
    RETURN_IF_ERROR(r.Become(&node, Opposite(node), std::move(attrs)));
  }
  if (node.Is("ArgMax") || node.Is("ArgMin")) {
    AttrMap attrs;
    attrs.Set("T", node.Type("output_type"));
    RETURN_IF_ERROR(r.Become(f, "Identity", std::move(attrs)));
  }
  r.Visit(f);
  r.Visit(x.node);
  return r.InPlace();
}

// ---- UnaryOpsComposition

// What the kernel of _UnaryOpsComposition computes (kernels/elementwise/composition.cc).
constexpr OpSet kComposed = {"Abs",  "Acos",   "Acosh", "Asin", "Asinh",      "Atan",  "Atanh",
                             "Ceil", "Cos",    "Cosh",  "Elu",  "Exp",        "Expm1", "Floor",
                             "Inv",  "Log",    "Log1p", "Neg",  "Reciprocal", "Relu",  "Relu6",
                             "Rint", "Round",  "Rsqrt", "Selu", "Sigmoid",    "Sin",   "Sinh",
                             "Sqrt", "Square", "Tan",   "Tanh"};
constexpr OpSet kNotOfHalf = {"Acos",  "Acosh", "Asin", "Asinh", "Atan",
                              "Atanh", "Cosh",  "Rint", "Sinh",  "Tan"};

bool MayCompose(const Node& n, const PassContext& context) {
  const Dtype t = n.Type("T");
  const bool has_kernel =
      (t == Dtype::kFloat || t == Dtype::kDouble || (t == Dtype::kHalf && !n.Is(kNotOfHalf))) &&
      n.Is(kComposed);
  const bool cpu = context.for_execution || absl::StrContains(n.device, "CPU:");
  return has_kernel && cpu && !IsRoot(n) && IsOutOfOrder(n);
}

std::string CompositionName(const Node& n) { return n.name() + "/unary_ops_composition"; }

// A chain of functions becomes one node, which reads and writes memory once.
StatusOr<Rewritten> UnaryOpsComposition(Node& node, Rewriter& r) {
  if (!MayCompose(node, r.context())) return r.No();
  if (r.graph().Find(CompositionName(node)) != nullptr) return r.No();
  for (const Use& use : node.uses()) {
    // Where nothing may go, what became part of a longer chain is still there.
    if (r.graph().Find(CompositionName(*use.node)) != nullptr) return r.No();
  }
  std::vector<std::string> names = {std::string(node.op())};
  const Node* last = &node;
  for (const Node* n = node.input(0).node;
       MayCompose(*n, r.context()) && NumDataUses(*n) == 1 && n->Type("T") == node.Type("T");
       n = n->input(0).node) {
    names.emplace_back(n->op());
    last = n;
  }
  if (names.size() == 1) return r.No();
  std::ranges::reverse(names);
  AttrMap attrs;
  attrs.Set("T", node.Type("T"));
  attrs.Set("op_names", std::move(names));
  ASSIGN_OR_RETURN(Node * composed, r.Add(CompositionName(node), "_UnaryOpsComposition",
                                          {last->input(0)}, std::move(attrs), node));
  r.CopyShape({&node, 0}, {composed, 0});
  return r.ReplaceBy({composed, 0});
}

}  // namespace

const Rule kHoistCWiseUnaryChains = {"HoistCWiseUnaryChains",
                                     {"Concat", "ConcatV2", "Split", "SplitV"},
                                     HoistCWiseUnaryChains,
                                     "Concat(f(a), f(b)) -> f(Concat(a, b)); so for Split"};
const Rule kOptimizeMaxOrMinOfMonotonic = {
    "OptimizeMaxOrMinOfMonotonic",
    {"Max", "Min", "ArgMax", "ArgMin", "MaxPool", "MaxPoolV2", "MaxPool3D"},
    OptimizeMaxOrMinOfMonotonic,
    "max(f(x)) -> f(max(x)) for f that keeps the order"};
const Rule kUnaryOpsComposition = {
    "UnaryOpsComposition", kComposed, UnaryOpsComposition, "f(g(x)) -> _UnaryOpsComposition(x)",
    // In a session it would only hide activations from what fuses them.
    [](const PassContext& context) {
      return context.allow_non_differentiable_rewrites && !context.for_execution;
    }};

}  // namespace smelt::arithmetic
