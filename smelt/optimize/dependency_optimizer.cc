// TensorFlow's dependency_optimizer: what only keeps an order goes where the order stays without
// it.
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt {
namespace {

constexpr int kRounds = 2;
// Nodes that looking for a longer path visits, for each node of the graph: the search stays linear.
constexpr int64_t kSearchedPerNode = 64;
// Visits that simplifying has, for each node: what it changes is visited again.
constexpr int64_t kVisitsPerNode = 64;

constexpr OpSet kUsersIdentities = {"Identity", "IdentityN"};
constexpr OpSet kSwitchesAndMerges = {"Switch", "RefSwitch", "Merge", "RefMerge"};
constexpr OpSet kOfFrames = {"Enter",   "RefEnter",      "Exit",
                             "RefExit", "NextIteration", "RefNextIteration"};
constexpr OpSet kMergeOps = {"Merge", "RefMerge"};
// Stateful by definition, yet nothing is lost where nobody reads what they read.
constexpr OpSet kReadOnly = {"ReadVariableOp", "_ReadVariablesOp", "Gather",          "GatherV2",
                             "GatherNd",       "ResourceGather",   "ResourceGatherNd"};
constexpr OpSet kNeverNoOp = {
    "Assert",         "CheckNumerics", "_Retval",   "_Arg", "_ParallelConcatUpdate",
    "ControlTrigger", "TPUExecute",    "TPUCompile"};
constexpr OpSet kVariables = {"Variable", "VariableV2", "VarHandleOp", "_VarHandlesOp"};
constexpr OpSet kReceives = {"_Recv", "_HostRecv"};
// Give the same from the start, whatever their definitions say of state.
constexpr OpSet kThereFromTheStart = {"_Arg", "VarHandleOp", "Placeholder"};

// Most nodes have few on either side.
using FewNodes = absl::InlinedVector<Node*, 8>;

// The nodes that read the node or wait for it, each once, in the order of their ids.
FewNodes Consumers(const Node& n) {
  FewNodes out;
  for (const Use& use : n.uses()) out.push_back(use.node);
  std::ranges::sort(out, {}, &Node::id);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

FewNodes Sources(const Node& n) {
  FewNodes out;
  for (const Endpoint& e : n.inputs()) out.push_back(e.node);
  out.insert(out.end(), n.control_inputs().begin(), n.control_inputs().end());
  return out;
}

// Is an Identity of a reference: the read of its value, whose place in the order counts.
bool ReadsReferences(const Node& n) { return std::ranges::any_of(n.inputs(), GivesReference); }

class DependencyOptimizer {
 public:
  DependencyOptimizer(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context) {}

  Status Run() {
    for (int round = 0; round < kRounds; ++round) {
      const int64_t version = graph_.version();
      // What inlining left waits for hundreds of reads: bypassed first, there is less to search.
      if (round > 0 || !context_.for_execution) RETURN_IF_ERROR(ReduceTransitively());
      RETURN_IF_ERROR(OptimizeNodes());
      if (!context_.for_execution) {
        for (Node* n : graph_.Nodes()) DropNeedlessWaits(graph_, n);
        RETURN_IF_ERROR(GroupControlEdges(false));
        RETURN_IF_ERROR(GroupControlEdges(true));
      }
      if (graph_.version() == version) break;
    }
    if (context_.for_execution) graph_.Prune(Roots(graph_));
    return OkStatus();
  }

 private:
  // Gives each input as the output of the same number. In a user's graph gradients, devices or
  // tools may hang on the others.
  bool IsIdentity(const Node& n) const {
    if (!context_.for_execution) return n.Is(kUsersIdentities);
    if (ReadsReferences(n)) return false;
    return n.Is(kIdentityOps) || n.Is("PlaceholderWithDefault") ||
           (n.Is("TPUReplicatedInput") && n.num_inputs() == 1) ||
           (n.Is("TPUReplicatedOutput") && n.num_outputs() == 1);
  }

  // There from the start: nobody need wait for it.
  bool IsThere(const Node& n) const {
    if (!n.inputs().empty() || !n.control_inputs().empty()) return false;
    if (n.Is("Const") || !context_.for_execution) return n.Is("Const");
    return n.Is(kThereFromTheStart) || (!HasEffect(n) && IsFreeOfSideEffect(n));
  }

  // ---- edges that another path makes superfluous

  Status ReduceTransitively() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    place_.assign(static_cast<size_t>(graph_.max_id()), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      place_[static_cast<size_t>(order[i]->id())] = static_cast<int>(i);
    }
    seen_.assign(place_.size(), 0);
    searches_ = 0;
    left_ = kSearchedPerNode * static_cast<int64_t>(order.size());
    for (Node* n : order) {
      if (n->control_inputs().empty() || n->inputs().size() + n->control_inputs().size() < 2) {
        continue;
      }
      std::vector<Node*> waits = n->control_inputs();
      std::ranges::sort(waits, {}, [&](const Node* w) { return -Place(w); });
      for (Node* from : waits) {
        if (from->Is(kMergeOps) || from->Is(kOfFrames) || from->def() == nullptr) continue;
        if (!ReachedOtherwise(from, *n)) continue;
        graph_.RemoveControlInput(n, from);
        context_.Fired("TransitiveReduction", *n);
      }
    }
    return OkStatus();
  }

  int Place(const Node* n) const { return place_[static_cast<size_t>(n->id())]; }

  // Does a path of two edges or more lead from `from` to `to`?
  bool ReachedOtherwise(const Node* from, const Node& to) {
    ++searches_;
    std::vector<const Node*> todo;
    const auto push_one = [&](const Node* source) {
      // What stands before `from` in the order is not reached from it.
      if (Place(source) <= Place(from) && source != from) return;
      int& mark = seen_[static_cast<size_t>(source->id())];
      if (mark == searches_) return;
      mark = searches_;
      todo.push_back(source);
    };
    const auto push = [&](const Node& reader) {
      for (const Endpoint& e : reader.inputs()) push_one(e.node);
      for (const Node* source : reader.control_inputs()) push_one(source);
    };
    for (const Node* source : Sources(to)) {
      if (source != from) push_one(source);
    }
    while (!todo.empty() && left_-- > 0) {
      const Node* n = todo.back();
      todo.pop_back();
      if (n == from) return true;
      // These do not wait for all that they read.
      if (n->Is(kMergeOps) || n->Is(kOfFrames)) continue;
      push(*n);
    }
    return false;
  }

  // ---- nodes

  Status OptimizeNodes() {
    for (Node* n : graph_.Nodes()) {
      if (n->Is("NoOp") || IsIdentity(*n) || IsThere(*n) || MayBecomeNoOp(*n)) Push(n);
    }
    int64_t visits = kVisitsPerNode * graph_.max_id();
    while (!todo_.empty() && visits-- > 0) {
      Node* n = graph_.NodeOf(todo_.back());
      queued_.erase(todo_.back());
      todo_.pop_back();
      if (n != nullptr) RETURN_IF_ERROR(OptimizeNode(n));
    }
    return OkStatus();
  }

  void Push(Node* n) {
    if (queued_.insert(n->id()).second) todo_.push_back(n->id());
  }

  Status OptimizeNode(Node* n) {
    if (!n->Is("NoOp") && IsThere(*n)) {
      FreeWaiters(n);
      return OkStatus();
    }
    if (!n->Is("NoOp") && MayBecomeNoOp(*n)) return BecomeNoOp(n);
    const bool noop = n->Is("NoOp") && !IsRoot(*n);
    if ((noop || (IsIdentity(*n) && MayGo(*n))) && IsWorthBypassing(*n)) Bypass(n);
    return OkStatus();
  }

  void FreeWaiters(Node* n) {
    for (const Use& use : n->OrderedUses()) {
      if (!use.is_control()) continue;
      graph_.RemoveControlInput(use.node, n);
      Push(use.node);
      context_.Fired("Const", *n);
    }
    if (n->Is("Const") && n->uses().empty() && context_.fetch_known && !IsRoot(*n)) {
      graph_.Remove(n);
    }
  }

  bool MayBecomeNoOp(const Node& n) const {
    if (NumDataUses(n) > 0 || !context_.fetch_known || IsRoot(n)) return false;
    if (n.Is(kSwitchesAndMerges) || n.Is(kOfFrames) || n.Is(kNeverNoOp)) return false;
    if (!n.Is(kReadOnly) && !IsFreeOfSideEffect(n)) return false;
    if (n.def() == nullptr || n.def()->outputs.empty()) return false;
    if (context_.for_execution && ReadsReferences(n)) return false;
    return !IsIdentity(n) || MayGo(n);
  }

  Status BecomeNoOp(Node* n) {
    context_.Fired("ToNoOp", *n);
    const Node::Inputs inputs = n->inputs();
    graph_.SetInputs(n, {});
    for (const Endpoint& e : inputs) {
      ASSIGN_OR_RETURN(Node * before, WaitableNode(graph_, e));
      AddWait(graph_, n, before);
      Push(e.node);
    }
    SetAttrsButMarks(n, {});
    n->extra.clear();  // with it the type of what it gave
    graph_.SetOp(n, "NoOp");
    RETURN_IF_ERROR(graph_.ResolveTypes(n));
    Push(n);
    return OkStatus();
  }

  // May the Identity go, as far as what it stands between is concerned?
  bool MayGo(const Node& n) const {
    if (IsRoot(n)) return false;
    if (!context_.fetch_known || n.num_inputs() < 1) return false;
    const Node& source = *n.input(0).node;
    if (source.Is(kVariables) || source.Is(kReceives)) {
      return Declined(n, "it reads a variable or what is received");
    }
    const bool several =
        !n.control_inputs().empty() || (n.inputs().size() > 1 && !context_.for_execution);
    for (const Use& use : n.uses()) {
      if (several && (use.node->Is("_Retval") || use.node->Is(kMergeOps))) {
        return Declined(n, "a result or a Merge reads it, and it has several inputs");
      }
      if (use.is_control() && (source.Is("Switch") || source.Is("RefSwitch"))) {
        return Declined(n, "others wait for this side of a Switch");
      }
    }
    return true;
  }

  static int64_t EdgesIfBypassed(const Node& n, size_t consumers) {
    const auto data = static_cast<int64_t>(n.inputs().size());
    const auto waits = static_cast<int64_t>(n.control_inputs().size());
    if (n.num_inputs() <= 1) {
      return (data + waits) * static_cast<int64_t>(consumers);
    }
    int64_t edges = data + waits * static_cast<int64_t>(consumers);
    for (const Use& use : n.uses()) edges += use.is_control() ? data + waits : 1;
    return edges;
  }

  bool IsWorthBypassing(const Node& n) const {
    const FewNodes sources = Sources(n), consumers = Consumers(n);
    const size_t in = sources.size(), out = consumers.size();
    if (EdgesIfBypassed(n, out) > static_cast<int64_t>(in + out)) {
      return Declined(n, "there would be more edges than before");
    }
    if (context_.for_execution) return true;
    if ((in == 1 && out > 1 && sources[0]->device != n.device) ||
        (in > 1 && out == 1 && consumers[0]->device != n.device)) {
      return Declined(n, "more edges would lead from device to device");
    }
    const auto crosses = [](const std::string& device) {
      return [&device](const Node* other) { return other->device != device; };
    };
    const auto crossing_in = std::ranges::count_if(sources, crosses(n.device));
    const auto crossing_out = std::ranges::count_if(consumers, crosses(n.device));
    int64_t after = 0;
    for (const Node* source : sources) {
      after += std::ranges::count_if(consumers, crosses(source->device));
    }
    if (after > crossing_in + crossing_out) {
      return Declined(n, "more edges would lead from device to device");
    }
    // What follows a crossing may follow a _Recv once the graph is cut.
    if (n.Is(kUsersIdentities) && crossing_in > 0 && crossing_out > 0 && after > 0) {
      return Declined(n, "it stands between two devices");
    }
    return true;
  }

  // Readers read what it reads; they, and who waits for it, wait for all that it waits for.
  void Bypass(Node* n) {
    context_.Fired(n->op(), *n);
    const std::vector<Node*> waits = n->control_inputs();
    const bool passes = IsIdentity(*n);
    for (Node* consumer : Consumers(*n)) {
      bool waited = false;
      for (int i = 0; i < consumer->num_inputs(); ++i) {
        const Endpoint e = consumer->input(i);
        if (e.node == n) graph_.SetInput(consumer, i, n->input(e.port));
      }
      if (std::ranges::find(consumer->control_inputs(), n) != consumer->control_inputs().end()) {
        graph_.RemoveControlInput(consumer, n);
        waited = true;
      }
      for (const Endpoint& e : n->inputs()) {
        if (waited && passes) AddWait(graph_, consumer, e.node);
        Push(e.node);
      }
      for (Node* before : waits) {
        AddWait(graph_, consumer, before);
        Push(before);
      }
      Push(consumer);
    }
    if (context_.fetch_known) graph_.Remove(n);
  }

  // ---- edges between devices

  // Control edges of a node that come from one other device (or host) meet in one NoOp there.
  Status GroupControlEdges(bool by_host) {
    for (Node* n : graph_.Nodes()) {
      if (n->device.empty() || n->control_inputs().size() < 2) continue;
      const std::string own(by_host ? TaskOfDevice(n->device) : absl::string_view(n->device));
      std::map<std::string, std::vector<Node*>> by_place;
      for (Node* from : n->control_inputs()) {
        if (from->device.empty()) continue;
        std::string place(by_host ? TaskOfDevice(from->device) : absl::string_view(from->device));
        if (place != own) by_place[std::move(place)].push_back(from);
      }
      for (auto& [place, nodes] : by_place) {
        if (nodes.size() < 2) continue;
        std::string name;
        for (int i = 0; name.empty() || graph_.Find(name) != nullptr; ++i) {
          name = absl::StrCat("GroupCrossDeviceControlEdges_", i, "/", n->name());
        }
        ASSIGN_OR_RETURN(Node * group, graph_.Add(name, "NoOp", {}));
        std::ranges::sort(nodes, {}, &Node::id);
        group->device = nodes.back()->device;
        for (Node* from : nodes) {
          graph_.AddControlInput(group, from);
          graph_.RemoveControlInput(n, from);
        }
        graph_.AddControlInput(n, group);
        context_.Fired("GroupCrossDeviceControlEdges", *n);
      }
    }
    return OkStatus();
  }

  bool Declined(const Node& n, absl::string_view why) const {
    return context_.Declined(n.op(), n, why);
  }

  Graph& graph_;
  const PassContext& context_;
  std::vector<int> place_;  // in the topological order, by id
  std::vector<int> seen_;   // by id, the search that saw it last
  int searches_ = 0;
  int64_t left_ = 0;  // nodes that searches may visit still
  std::vector<int> todo_;
  absl::flat_hash_set<int> queued_;
};

}  // namespace

Status OptimizeDependencies(Graph& graph, const PassContext& context) {
  return DependencyOptimizer(graph, context).Run();
}

}  // namespace smelt
