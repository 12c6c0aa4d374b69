// TensorFlow's model_pruner: what no root needs goes, then what only passes its input on.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt {
namespace {

constexpr OpSet kStopsGradient = {"StopGradient", "PreventGradient"};
constexpr OpSet kSwitches = {"Switch", "RefSwitch", "_SwitchN"};
constexpr OpSet kMerges = {"Merge", "RefMerge"};

class Pruner {
 public:
  Pruner(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  Status Run() {
    const std::vector<Node*> roots = Roots(graph_);
    if (roots.empty() || !context_.fetch_known) return OkStatus();
    graph_.Prune(roots);
    ASSIGN_OR_RETURN(const bool shrunk, ShrinkIdentityNs());
    if (shrunk) graph_.Prune(roots);
    for (Node* n : graph_.Nodes()) {
      if (!IsRoot(*n) && IsTrivial(*n) && (WithoutUse(*n) || MayBypass(*n))) Bypass(n);
    }
    for (Node* n : graph_.Nodes()) DropNeedlessWaits(graph_, n);
    return OkStatus();
  }

 private:
  // But for what it reads.
  static bool WaitsForNothingElse(const Node& n) {
    return std::ranges::all_of(n.control_inputs(), [&](const Node* c) { return Reads(n, *c); });
  }
  static bool Reads(const Node& n, const Node& from) {
    return std::ranges::any_of(n.inputs(), [&](const Endpoint& e) { return e.node == &from; });
  }

  // An IdentityN passes on what is read alone. True where one does less than before.
  StatusOr<bool> ShrinkIdentityNs() {
    bool shrunk = false;
    for (Node* n : graph_.Nodes()) {
      if (!n->Is("IdentityN") || IsRoot(*n)) continue;
      std::vector<Endpoint> kept;
      std::vector<Dtype> types;
      std::vector<int> place(static_cast<size_t>(n->num_outputs()), -1);
      for (int i = 0; i < n->num_outputs(); ++i) {
        if (n->NumUses(i) == 0) continue;
        place[static_cast<size_t>(i)] = static_cast<int>(kept.size());
        kept.push_back(n->input(i));
        types.push_back(n->output_types[static_cast<size_t>(i)]);
      }
      if (kept.empty() || kept.size() == n->inputs().size()) continue;
      for (const Use& use : n->OrderedUses()) {
        if (use.is_control()) continue;
        const int port = place[static_cast<size_t>(use.port())];
        graph_.SetInput(use.node, use.input, {n, port});
      }
      context_.Fired("IdentityN", *n);
      graph_.SetInputs(n, kept);
      n->AttrsToChange().Set("T", std::move(types));
      RETURN_IF_ERROR(graph_.ResolveTypes(n));
      shrunk = true;
    }
    return shrunk;
  }

  static bool IsTrivial(const Node& n) {
    if (n.Is(kStopsGradient)) return true;
    if (n.Is("Identity") || (n.Is("IdentityN") && n.num_inputs() == 1)) {
      // Dead values end at a Merge: an Identity in between may be what is waited for instead.
      return !n.input(0).node->Is(kSwitches) && WaitsForNothingElse(n) && !HasControlUses(n) &&
             std::ranges::none_of(n.uses(), [](const Use& use) { return use.node->Is(kMerges); });
    }
    if (n.Is("NoOp") && n.control_inputs().empty()) return true;
    if (n.Is("Const") && n.control_inputs().empty() && NumDataUses(n) == 0) return true;
    return n.Is("AddN") && n.num_inputs() <= 1;
  }

  static bool WithoutUse(const Node& n) {
    if (n.Is("NoOp")) return n.control_inputs().empty() || n.uses().empty();
    return n.Is("Const") && n.control_inputs().empty() && NumDataUses(n) == 0;
  }

  bool MayBypass(const Node& n) const {
    const auto in = n.inputs().size() + n.control_inputs().size();
    const auto out = n.uses().size();
    if (in * out > in + out) return Declined(n, "there would be more edges than before");
    const FunctionLibrary& library = *graph_.library();
    for (const Endpoint& e : n.inputs()) {
      if (e.node->device != n.device) return Declined(n, "its input is on another device");
      if (IsRef(e.node->output_types[static_cast<size_t>(e.port)])) {
        return Declined(n, "its input is a reference");
      }
      if (library.Find(e.node->op()) != nullptr) return Declined(n, "its input is a function call");
    }
    for (const Use& use : n.uses()) {
      if (library.Find(use.node->op()) != nullptr) {
        return Declined(n, "a function call reads it");
      }
    }
    return true;
  }

  // Readers read what the node reads, and wait for what it waits for; who waits for it waits for
  // both.
  void Bypass(Node* n) {
    context_.Fired(n->op(), *n);
    const std::vector<Node*> waits = n->control_inputs();
    for (const Use& use : n->OrderedUses()) {
      if (use.is_control()) {
        graph_.RemoveControlInput(use.node, n);
        for (const Endpoint& e : n->inputs()) AddWait(graph_, use.node, e.node);
      } else {
        graph_.SetInput(use.node, use.input, n->input(0));
      }
      for (Node* before : waits) AddWait(graph_, use.node, before);
    }
    graph_.Remove(n);
  }

  bool Declined(const Node& n, absl::string_view why) const {
    return context_.Declined(n.op(), n, why);
  }

  Graph& graph_;
  const PassContext& context_;
};

}  // namespace

Status PruneModel(Graph& graph, const PassContext& context) { return Pruner(graph, context).Run(); }

}  // namespace smelt
