// TensorFlow's auto_parallel: a step of training becomes several, each of which takes its own batch
// from the queue, and every gradient is divided by their number before it is applied. Variables and
// what fills the queue stay one.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "smelt/graph/copy_node.h"
#include "smelt/optimize/graph_item.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr absl::string_view kParallelName = "AutoParallel";
constexpr absl::string_view kParallelRule = "AutoParallel";
constexpr absl::string_view kColocated = "loc:@";

// The ops that change a variable by a gradient, and which input that is. Those of resource
// variables ("Resource" before the name) have it at the same place.
struct GradientInput {
  absl::string_view op;
  int input;
};
constexpr GradientInput kGradientInputs[] = {
    {"ApplyGradientDescent", 2},
    {"ApplyProximalGradientDescent", 4},
    {"ApplyAdadelta", 6},
    {"ApplyAdagrad", 3},
    {"ApplyProximalAdagrad", 5},
    {"ApplyAdagradDA", 3},
    {"ApplyFtrl", 3},
    {"ApplyMomentum", 3},
    {"ApplyAdam", 9},
    {"ApplyRMSProp", 7},
    {"ApplyCenteredRMSProp", 8},
};
constexpr OpSet kTrainedVariables = {"Variable",       "VariableV2",    "VarHandleOp",
                                     "ReadVariableOp", "_VarHandlesOp", "_ReadVariablesOp"};
constexpr OpSet kDequeues = {"QueueDequeue",       "QueueDequeueV2",   "QueueDequeueMany",
                             "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2"};
constexpr OpSet kFrameStarts = {"Enter", "RefEnter"};

using NodeSet = absl::flat_hash_set<const Node*>;

int GradientOf(const Node& n) {
  const auto* row =
      std::ranges::find(kGradientInputs, absl::StripPrefix(n.op(), "Resource"), &GradientInput::op);
  return row == std::end(kGradientInputs) || row->input >= n.num_inputs() ? -1 : row->input;
}

// The nodes and all that they read or wait for.
NodeSet FanIn(std::vector<const Node*> todo) {
  NodeSet seen(todo.begin(), todo.end());
  const auto visit = [&](const Node* n) {
    if (seen.insert(n).second) todo.push_back(n);
  };
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    for (const Endpoint& e : n->inputs()) visit(e.node);
    for (const Node* c : n->control_inputs()) visit(c);
  }
  return seen;
}

// Makes state that all who name it share, as a variable or a queue: a copy would be other state.
bool HoldsState(const Node& n) {
  return n.inputs().empty() && std::ranges::any_of(n.output_types, [](Dtype t) {
           return IsRef(t) || t == Dtype::kResource;
         });
}

class Parallelizer {
 public:
  Parallelizer(Graph& graph, const PassContext& context, const GraphItem& item)
      : graph_(graph),
        context_(context),
        item_(item),
        replicas_(context.config.auto_parallel_replicas) {
    gpus_ = std::ranges::count(context.devices, "GPU", &DeviceProperties::type);
  }

  Status Run() {
    if (item_.fetches.empty()) return InvalidArgument("No fetch nodes provided.");
    const NodeSet started = FanIn(NodesOf(item_.init_ops));
    const auto trained = [](const Node* n) { return n->Is(kTrainedVariables); };
    if (std::ranges::none_of(started, trained)) return InvalidArgument("No variables provided.");
    if (replicas_ < 2) {
      return InvalidArgument("auto_parallel needs num_replicas of 2 or more, not ", replicas_);
    }
    const std::vector<const Node*> fetched = NodesOf(item_.fetches);
    const NodeSet steps = FanIn(fetched);
    const NodeSet shared = Shared(steps, started);
    std::vector<Node*> replicated;
    for (Node* n : graph_.Nodes()) {
      if (steps.contains(n) && !shared.contains(n)) replicated.push_back(n);
    }
    if (!MayReplicate(fetched, shared, replicated)) return OkStatus();
    if (static_cast<int64_t>(replicated.size()) > context_.inlinable_nodes / replicas_) {
      return ResourceExhausted(replicas_, " replicas of ", replicated.size(),
                               " nodes are more than a graph may grow by");
    }
    RETURN_IF_ERROR(DivideGradients(replicated));
    for (int i = 0; i < replicas_; ++i) RETURN_IF_ERROR(AddReplica(i, replicated));
    return EndSteps(fetched, replicated);
  }

 private:
  std::vector<const Node*> NodesOf(const std::vector<std::string>& tensors) const {
    std::vector<const Node*> nodes;
    for (const std::string& name : tensors) {
      const absl::string_view node = absl::StripPrefix(name, "^");
      const Node* n = graph_.Find(node.substr(0, node.find(':')));
      if (n != nullptr && std::ranges::find(nodes, n) == nodes.end()) nodes.push_back(n);
    }
    return nodes;
  }

  // Of the nodes of a step those that stay one.
  NodeSet Shared(const NodeSet& steps, const NodeSet& started) const {
    NodeSet shared;
    std::vector<const Node*> fills;
    const absl::flat_hash_set<std::string> fetches(item_.fetches.begin(), item_.fetches.end());
    const std::vector<const Node*> init_ops = NodesOf(item_.init_ops);
    shared.insert(init_ops.begin(), init_ops.end());
    for (const Node* n : steps) {
      if (n->Is(kDequeues)) {
        for (const Endpoint& e : n->inputs()) fills.push_back(e.node);
        fills.insert(fills.end(), n->control_inputs().begin(), n->control_inputs().end());
      }
      const bool variable = n->Is(kTrainedVariables) && started.contains(n);
      // What requests feed or name must be there under its name.
      const bool named = IsRoot(*n) && !fetches.contains(n->name());
      if (variable || HoldsState(*n) || named) shared.insert(n);
    }
    for (const Node* n : FanIn(std::move(fills))) {
      if (!n->Is(kDequeues)) shared.insert(n);
    }
    return shared;
  }

  bool MayReplicate(const std::vector<const Node*>& fetched, const NodeSet& shared,
                    const std::vector<Node*>& replicated) const {
    for (const std::string& name : item_.fetches) {
      // In place of what is fetched stands a node without a value.
      if (absl::StrContains(name, ':')) {
        return context_.Declined(kParallelRule, *NodesOf({name})[0], "it is fetched for its value");
      }
    }
    for (const Node* n : fetched) {
      if (shared.contains(n)) {
        return context_.Declined(kParallelRule, *n, "what is fetched is not part of a step");
      }
    }
    for (const Node* n : replicated) {
      const int gradient = GradientOf(*n);
      if (gradient >= 0 && n->input_types[static_cast<size_t>(gradient)] != Dtype::kFloat) {
        return context_.Declined(kParallelRule, *n, "its gradient is not of float");
      }
    }
    return true;
  }

  Status DivideGradients(std::vector<Node*>& replicated) {
    Node* count = nullptr;
    for (size_t i = 0, end = replicated.size(); i < end; ++i) {
      Node* apply = replicated[i];
      const int gradient = GradientOf(*apply);
      if (gradient < 0) continue;
      if (count == nullptr) {
        count = graph_.AddConst(absl::StrCat(kParallelName, "-Div-Const"),
                                Tensor::Scalar(static_cast<float>(replicas_)));
        replicated.push_back(count);
      }
      AttrMap attrs;
      attrs.Set("T", Dtype::kFloat);
      ASSIGN_OR_RETURN(Node * divided,
                       graph_.Add(absl::StrCat(kParallelName, "-Div-", apply->name()), "RealDiv",
                                  {apply->input(gradient), {count, 0}}, std::move(attrs)));
      replicated.push_back(divided);
      graph_.SetInput(apply, gradient, {divided, 0});
    }
    return OkStatus();
  }

  static std::string Prefix(int number) {
    return absl::StrCat(kParallelName, "-Replica-", number, "/");
  }

  Status AddReplica(int number, const std::vector<Node*>& replicated) {
    absl::flat_hash_map<const Node*, Node*> copies;
    absl::flat_hash_map<absl::string_view, const Node*> copied;  // by the name of the original
    for (const Node* n : replicated) {
      ASSIGN_OR_RETURN(Node * copy, AddCopy(graph_, *n, absl::StrCat(Prefix(number), n->name())));
      copy->EraseAttr("_root");
      if (gpus_ > 0) copy->device = absl::StrCat("/gpu:", number % gpus_);
      copies[n] = copy;
      copied[n->name()] = copy;
    }
    const auto copy_of = [&](Node* n) {
      const auto it = copies.find(n);
      return it == copies.end() ? n : it->second;
    };
    for (const Node* n : replicated) {
      Node* copy = copies[n];
      Node::Inputs inputs = n->inputs();
      for (Endpoint& e : inputs) e.node = copy_of(e.node);
      graph_.SetInputs(copy, inputs);
      std::vector<Node*> before = n->control_inputs();
      std::ranges::transform(before, before.begin(), copy_of);
      graph_.SetControlInputs(copy, std::move(before));
      Colocate(copy, copied);
      if (copy->Is(kFrameStarts)) {
        // Loops of one name would be one loop.
        copy->AttrsToChange().Set("frame_name", Prefix(number) + copy->String("frame_name"));
      }
    }
    if (number == 0) first_ = std::move(copies);
    last_.push_back({});
    for (const Node* n : NodesOf(item_.fetches)) {
      last_.back().push_back(number == 0 ? first_[n] : copies[n]);
    }
    return OkStatus();
  }

  // A copy stands beside the copies of the same replica.
  static void Colocate(Node* copy,
                       const absl::flat_hash_map<absl::string_view, const Node*>& copied) {
    auto classes = copy->Get<std::vector<std::string>>("_class", {});
    if (classes.empty()) return;
    for (std::string& c : classes) {
      const auto it = copied.find(absl::StripPrefix(c, kColocated));
      if (it != copied.end()) c = absl::StrCat(kColocated, it->second->name());
    }
    copy->AttrsToChange().Set("_class", std::move(classes));
  }

  // Who asks for a step waits for all of them; other readers of a step's nodes read the first
  // one's.
  Status EndSteps(const std::vector<const Node*>& fetched, const std::vector<Node*>& replicated) {
    ASSIGN_OR_RETURN(Node * all,
                     graph_.Add(absl::StrCat(kParallelName, "-Control-Fetch"), "NoOp", {}));
    std::vector<Node*> ends;
    for (const auto& of_replica : last_)
      ends.insert(ends.end(), of_replica.begin(), of_replica.end());
    graph_.SetControlInputs(all, std::move(ends));
    const NodeSet in_steps(replicated.begin(), replicated.end());
    for (Node* n : replicated) {
      Node* first = first_[n];
      for (const Use& use : n->OrderedUses()) {
        if (in_steps.contains(use.node)) continue;
        if (use.is_control()) {
          graph_.RemoveControlInput(use.node, n);
          graph_.AddControlInput(use.node, first);
        } else {
          graph_.SetInput(use.node, use.input, {first, use.port()});
        }
      }
    }
    for (Node* n : replicated) {
      graph_.SetInputs(n, {});
      graph_.SetControlInputs(n, {});
    }
    std::vector<Node*> gone;
    for (Node* n : replicated) {
      if (std::ranges::find(fetched, n) == fetched.end()) {
        gone.push_back(n);
        continue;
      }
      SetAttrsButMarks(n, {});
      graph_.SetOp(n, "NoOp");
      n->extra.clear();
      n->device.clear();
      RETURN_IF_ERROR(graph_.ResolveTypes(n));
      graph_.AddControlInput(n, all);
      context_.Fired(kParallelRule, *n);
    }
    graph_.Remove(gone);
    return OkStatus();
  }

  Graph& graph_;
  const PassContext& context_;
  const GraphItem& item_;
  const int replicas_;
  int64_t gpus_ = 0;
  absl::flat_hash_map<const Node*, Node*> first_;  // of replica 0, by the original
  std::vector<std::vector<Node*>> last_;           // of each replica: what is fetched
};

}  // namespace

Status ParallelizeSteps(Graph& graph, const PassContext& context) {
  if (context.item == nullptr) return OkStatus();
  return Parallelizer(graph, context, *context.item).Run();
}

}  // namespace smelt
