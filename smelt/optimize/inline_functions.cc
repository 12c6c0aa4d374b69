#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/verify.h"
#include "smelt/optimize/implementations.h"
#include "smelt/optimize/inline_plan.h"
#include "smelt/optimize/instantiate.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// The function that the node calls, or nullptr.
const Function* Callee(const Graph& graph, const Node& node, const AttrMap** attrs) {
  *attrs = nullptr;
  if (IsPartitionedCall(node)) {
    const FuncAttr* f = node.Func("f");
    if (f == nullptr) return nullptr;
    *attrs = f->attrs.get();
    return graph.library()->Find(f->name);
  }
  *attrs = &node.attrs();
  return graph.library()->Find(node.op());
}

struct PendingCall {
  Node* node;
  bool planned;  // it is part of what a call of the graph was planned to become
};

class Inliner {
 public:
  Inliner(Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        plan_([this](const Graph& g, const Node& n, std::vector<const Function*>& callees) {
          const AttrMap* attrs = nullptr;
          if (const Function* f = Inlinable(g, n, &attrs)) callees.push_back(f);
        }) {}

  Status Run() {
    std::vector<PendingCall> calls;
    const auto add = [&](Node* n, bool planned) {
      calls.push_back({n, planned});
      control_flow_ = control_flow_ || n->Is(kControlFlow);
    };
    for (Node* n : graph_.Nodes()) add(n, false);
    int64_t left = kMaxInlinedNodes;
    while (!calls.empty()) {
      const PendingCall call = calls.back();
      calls.pop_back();
      // A call that is kept must not change: where some are, only the bodies are chosen.
      if (!context_.keep_call) {
        SelectImplementations(graph_, call.node, context_.device_type);
      }
      const AttrMap* attrs = nullptr;
      const Function* f = Inlinable(graph_, *call.node, &attrs);
      if (f == nullptr) continue;
      const int64_t nodes = call.planned ? 0 : plan_.Nodes(*f);
      if (plan_.StaysCall(*f) || nodes > left) {
        RETURN_IF_ERROR(KeepCall(call.node, *f));
        continue;
      }
      left -= nodes;
      // The caller was verified as it was before its calls became bodies.
      if (verified_.insert(f).second) RETURN_IF_ERROR(VerifyFunction(*f));
      context_.Fired("Inline", *call.node);
      std::vector<Node*> added;
      Status s = InlineOne(call.node, *f, attrs, &added);
      if (!s.ok()) return Prefix(s, absl::StrCat("In function '", f->name(), "': "));
      for (Node* n : added) add(n, true);
    }
    Redirect();
    graph_.Remove(dead_);
    return OkStatus();
  }

 private:
  // The function whose body may take the place of the node, and the attributes for it.
  const Function* Inlinable(const Graph& graph, const Node& node, const AttrMap** attrs) const {
    const Function* f = Callee(graph, node, attrs);
    if (f == nullptr) return nullptr;
    f = ImplementationFor(*graph.library(), f, context_.device_type);
    if (f->body == nullptr || (context_.keep_call && context_.keep_call(*f))) return nullptr;
    return f;
  }

  // A call that stays: a function that is used as an op has no kernel, so that an op calls it.
  Status KeepCall(Node* call, const Function& f) {
    if (IsPartitionedCall(*call) || context_.keep_call) return OkStatus();
    FuncAttr callee;
    callee.name = f.name();
    callee.attrs = std::make_shared<const AttrMap>(call->attrs());
    AttrMap attrs;
    attrs.Set("f", std::move(callee));
    attrs.Set("Tin", call->input_types);
    attrs.Set("Tout", call->output_types);
    for (const auto& [name, attr] : call->attrs()) {
      if (absl::StartsWith(name, "_")) attrs.Set(name, attr);
    }
    call->attrs() = std::move(attrs);
    graph_.SetOp(call, f.signature.stateful ? "StatefulPartitionedCall" : "PartitionedCall");
    return graph_.ResolveTypes(call);
  }

  // Nodes that the call waits for and its body might not: its control inputs, and where version 1
  // control flow may make the call dead or run it many times, its arguments.
  StatusOr<std::vector<Node*>> WaitedFor(const Node& call, const Function& f,
                                         const std::string& prefix) {
    std::vector<Node*> waited = call.control_inputs();
    const bool starts = std::ranges::any_of(f.body->Nodes(), [](const Node* n) {
      return !n->Is("_Arg") && n->inputs().empty() && n->control_inputs().empty();
    });
    if (!control_flow_ || !starts) return waited;
    for (int i = 0; i < call.num_inputs(); ++i) {
      // Who waits for a Switch does so whichever way it went; who reads an output does not.
      AttrMap attrs;
      attrs.Set("T", BaseType(call.input_types[static_cast<size_t>(i)]));
      ASSIGN_OR_RETURN(Node * n, graph_.Add(absl::StrCat(prefix, "_input_", i), "Identity",
                                            {call.input(i)}, std::move(attrs)));
      waited.push_back(n);
    }
    return waited;
  }

  Status InlineOne(Node* call, const Function& f, const AttrMap* attrs, std::vector<Node*>* added) {
    const std::vector<Endpoint> results = f.FlatResults();
    if (static_cast<int>(results.size()) != call->num_outputs()) {
      return InvalidArgument("call '", call->name(), "' has ", call->num_outputs(),
                             " outputs, the function ", results.size());
    }
    int arg_count = 0;
    for (const Node* a : f.args) arg_count += a->num_outputs();
    if (arg_count != call->num_inputs()) {
      return InvalidArgument("Function takes ", arg_count, " argument(s) but ", call->num_inputs(),
                             " argument(s) were passed by '", call->name(), "'");
    }
    const bool fill = HasPlaceholders(*f.body);
    const std::string prefix = call->name() + "/";
    ASSIGN_OR_RETURN(auto map, graph_.CopyFrom(*f.body, prefix));
    // Stands for what the call waits for: body nodes without inputs must not run before it.
    Node* before = nullptr;
    ASSIGN_OR_RETURN(std::vector<Node*> waited, WaitedFor(*call, f, prefix));
    if (!waited.empty()) {
      ASSIGN_OR_RETURN(before, graph_.Add(prefix + "_start", "NoOp", {}));
      graph_.SetControlInputs(before, std::move(waited));
    }
    absl::flat_hash_map<const Node*, std::pair<int, const Node*>> arg_of;
    int index = 0;
    for (const Node* a : f.args) {
      arg_of[map[a]] = {index, a};
      index += a->num_outputs();
    }
    auto resolve = [&](Endpoint e) {
      auto it = arg_of.find(e.node);
      return it == arg_of.end() ? e : call->inputs()[it->second.first + e.port];
    };
    for (const Node* old_node : f.body->Nodes()) {
      Node* n = map[old_node];
      if (arg_of.contains(n)) continue;
      if (fill && attrs) RETURN_IF_ERROR(FillPlaceholders(n->attrs(), *attrs, f.name()));
      for (int i = 0; i < n->num_inputs(); ++i) graph_.SetInput(n, i, resolve(n->input(i)));
      // Waiting for an argument is waiting for what computed it, or for the call's own inputs.
      std::vector<Node*> controls;
      for (Node* c : n->control_inputs()) {
        auto it = arg_of.find(c);
        controls.push_back(it == arg_of.end() ? c : call->inputs()[it->second.first].node);
      }
      const bool starts = n->inputs().empty() && controls.empty();
      // A constant is there from the start, unless it must die with its branch.
      if (before && starts && (control_flow_ || !n->Is("Const"))) controls.push_back(before);
      graph_.SetOrderedControlInputs(n, std::move(controls));
      if (n->device.empty()) n->device = call->device;
      // A resource without a name of its own is known by its node's, whoever calls the function.
      if (n->def() && n->def()->FindAttr("shared_name") && n->String("shared_name").empty()) {
        n->attrs().Set("shared_name", old_node->name());
      }
      added->push_back(n);
    }
    if (fill) {
      for (Node* n : *added) RETURN_IF_ERROR(graph_.ResolveTypes(n));
    }
    auto& outputs = replaced_[call];
    for (Endpoint e : results) outputs.ports.push_back(resolve({map[e.node], e.port}));
    // What waits for the call waits for its effects and its results.
    ASSIGN_OR_RETURN(outputs.after, graph_.Add(prefix + "_end", "NoOp", {}));
    std::vector<Node*> waits;
    for (const auto& [name, node] : f.control_results) {
      Node* n = map[node];
      if (arg_of.contains(n)) continue;
      waits.push_back(n);
      if (OrdersEffect(n)) AddRoot(n);
    }
    for (Endpoint e : outputs.ports) waits.push_back(e.node);
    if (before) waits.push_back(before);
    graph_.SetOrderedControlInputs(outputs.after, std::move(waits));
    for (const Node* a : f.args) dead_.push_back(map[a]);
    dead_.push_back(call);
    return OkStatus();
  }

  struct Replacement {
    std::vector<Endpoint> ports;
    Node* after = nullptr;
  };

  // Each link that was followed leads to the end from then on: calls may return their arguments.
  Endpoint Final(Endpoint e) {
    std::vector<Endpoint*> followed;
    for (auto it = replaced_.find(e.node); it != replaced_.end(); it = replaced_.find(e.node)) {
      followed.push_back(&it->second.ports[static_cast<size_t>(e.port)]);
      e = *followed.back();
    }
    for (Endpoint* link : followed) *link = e;
    return e;
  }

  // Points every reader of an inlined call at the body's nodes.
  void Redirect() {
    for (Node* n : graph_.Nodes()) {
      for (int i = 0; i < n->num_inputs(); ++i) graph_.SetInput(n, i, Final(n->input(i)));
      std::vector<Node*> controls = n->control_inputs();
      for (Node*& c : controls) {
        if (auto it = replaced_.find(c); it != replaced_.end()) c = it->second.after;
      }
      graph_.SetOrderedControlInputs(n, std::move(controls));
    }
  }

  Graph& graph_;
  const PassContext& context_;
  InlinePlan plan_;
  bool control_flow_ = false;  // of version 1, in the graph so far
  absl::flat_hash_set<const Function*> verified_;
  absl::flat_hash_map<const Node*, Replacement> replaced_;
  std::vector<Node*> dead_;
};

}  // namespace

Status InlineFunctions(Graph& graph, const PassContext& context) {
  return Inliner(graph, context).Run();
}

}  // namespace smelt
