// Reads of variables whose value is there already: another read gave it, or it was just written.
#include <algorithm>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

constexpr OpSet kOnlyReads = {
    "tfl.read_variable",  "tfl.var_handle",     "tfl.hashtable",   "tfl.hashtable_find",
    "tfl.hashtable_size", "tfl.random_uniform", "tfl.multinomial", "tfl.random_standard_normal"};

// The variable that input 0 is the handle of; empty: nobody knows.
std::string VariableOf(const Node& n) {
  if (n.num_inputs() < 1 || !n.input(0).node->Is("tfl.var_handle")) return "";
  const Node& handle = *n.input(0).node;
  return absl::StrCat(handle.String("container"), "/", handle.String("shared_name"));
}

// May it write the variable? Whatever has an effect may, and whatever calls a function.
bool MayWrite(const Node& n, absl::string_view variable) {
  if (n.Is("tfl.assign_variable")) {
    const std::string written = VariableOf(n);
    return written.empty() || written == variable;
  }
  if (n.Is({"_Arg", "_Retval", "NoOp"}) || n.Is(kOnlyReads)) return false;
  bool calls = n.def() == nullptr || n.def()->stateful;
  ForEachFunc(n.attrs(), [&](const FuncAttr&) { calls = true; });
  return calls;
}

// Nodes that run before, or after, whatever else does.
class Ordered {
 public:
  explicit Ordered(const Graph& graph) : seen_(static_cast<size_t>(graph.max_id())) {}
  static Ordered Before(const Node& n, const Graph& graph) {
    Ordered out(graph);
    out.Walk(n, [](const Node& at, auto&& go) {
      for (const Endpoint& e : at.inputs()) go(*e.node);
      for (const Node* before : at.control_inputs()) go(*before);
    });
    return out;
  }
  static Ordered After(const Node& n, const Graph& graph) {
    Ordered out(graph);
    out.Walk(n, [](const Node& at, auto&& go) {
      for (const Use& u : at.uses()) go(*u.node);
    });
    return out;
  }
  bool Has(const Node& n) const { return seen_[static_cast<size_t>(n.id())]; }

 private:
  template <typename Next>
  void Walk(const Node& n, Next next) {
    std::vector<const Node*> todo = {&n};
    while (!todo.empty()) {
      const Node& at = *todo.back();
      todo.pop_back();
      next(at, [&](const Node& node) {
        if (Has(node)) return;
        seen_[static_cast<size_t>(node.id())] = true;
        todo.push_back(&node);
      });
    }
  }

  std::vector<bool> seen_;
};

// The read goes; what has an effect behind it stays behind what the read was behind.
void ReplaceRead(Node& n, Endpoint by, const Ordered& after, Fuser& f) {
  for (Node* node : f.graph().Nodes()) {
    if (node->Is({"_Arg", "_Retval"})) continue;
    const bool has_effect = node->def() != nullptr && node->def()->stateful;
    if (!after.Has(*node) || !(has_effect || MayWrite(*node, ""))) continue;
    for (Node* before : n.control_inputs()) f.graph().AddControlInput(node, before);
  }
  f.graph().ReplaceControlUses(&n, nullptr);
  f.graph().SetControlInputs(&n, {});
  f.Replace(&n, by);
}

StatusOr<bool> FuseRead(Node& n, Fuser& f) {
  const std::string variable = VariableOf(n);
  if (variable.empty()) return false;
  std::vector<Node*> reads, writes;
  for (Node* node : f.graph().Nodes()) {
    if (node != &n && node->Is("tfl.read_variable") && VariableOf(*node) == variable) {
      reads.push_back(node);
    }
    if (MayWrite(*node, variable)) writes.push_back(node);
  }
  if (reads.empty() && writes.empty()) return false;
  const auto same = [&](Endpoint e) {
    return Fuser::type(e) == Fuser::type({&n, 0}) && Fuser::shape(e).known_rank() &&
           Fuser::shape(e) == Fuser::shape({&n, 0});
  };
  const Ordered before = Ordered::Before(n, f.graph()), after = Ordered::After(n, f.graph());
  const auto known = [&](const Node* w) { return before.Has(*w) || after.Has(*w); };
  if (!std::ranges::all_of(writes, known)) {
    return f.Declined(n, "it is not said what of a write and it comes first");
  }
  for (Node* last : writes) {
    if (!before.Has(*last) || !last->Is("tfl.assign_variable") || VariableOf(*last) != variable) {
      continue;
    }
    const Ordered earlier = Ordered::Before(*last, f.graph());
    const bool is_last = std::ranges::all_of(
        writes, [&](const Node* w) { return w == last || earlier.Has(*w) || after.Has(*w); });
    if (!is_last || !same(last->input(1))) continue;
    ReplaceRead(n, last->input(1), after, f);
    return true;
  }
  for (Node* other : reads) {
    if (after.Has(*other) || !same({other, 0})) continue;
    const Ordered earlier = Ordered::Before(*other, f.graph());
    const Ordered later = Ordered::After(*other, f.graph());
    const bool between = std::ranges::any_of(writes, [&](const Node* w) {
      return earlier.Has(*w) != before.Has(*w) || later.Has(*w) != after.Has(*w);
    });
    if (between) continue;
    // A write that waited for this read has to wait for the other one.
    for (Node* w : writes) {
      if (after.Has(*w)) f.graph().AddControlInput(w, other);
    }
    ReplaceRead(n, {other, 0}, after, f);
    return true;
  }
  return false;
}

constexpr Fusion kVariableFusions[] = {
    {"FuseRead",
     {"tfl.read_variable"},
     FuseRead,
     "read_variable after another, or after assign_variable(x), with no write between -> that, x"},
};

}  // namespace

std::span<const Fusion> VariableFusions() { return kVariableFusions; }

}  // namespace smelt
