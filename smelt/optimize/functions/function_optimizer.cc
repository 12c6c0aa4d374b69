#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/functions/dead_values.h"
#include "smelt/optimize/functions/frames.h"
#include "smelt/optimize/functions/inline_call.h"
#include "smelt/optimize/functions/lower_control_flow.h"
#include "smelt/optimize/functions/specialize.h"
#include "smelt/optimize/gradients/gradients.h"
#include "smelt/optimize/implementations.h"
#include "smelt/optimize/inline_plan.h"
#include "smelt/optimize/instantiate.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// There before anything runs.
constexpr OpSet kGiven = {"Placeholder", "PlaceholderV2", "_Arg"};
constexpr OpSet kGradient = {"SymbolicGradient"};

struct Call {
  CallKind kind;
  const Function* function;
  const AttrMap* attrs;  // what fills placeholders of the body; may be nullptr
};

class FunctionOptimizer {
 public:
  // `gradients_alone`: other calls stay as they are.
  FunctionOptimizer(Graph& graph, const PassContext& context, bool gradients_alone)
      : graph_(graph),
        context_(context),
        gradients_alone_(gradients_alone),
        left_(context.inlinable_nodes),
        gradients_(*graph.library()),
        plan_([this](const Graph&, const Node& n, std::vector<const Function*>& callees) {
          const std::vector<const Function*> branches = Branches(n);
          callees.insert(callees.end(), branches.begin(), branches.end());
          if (const std::optional<Call> call = CallOf(n)) callees.push_back(call->function);
        }) {}

  Status Run() {
    struct Pending {
      Node* node;
      bool planned;  // it is part of what a call of the graph was planned to become
    };
    const bool sessions = context_.for_execution;
    if (!sessions) {
      frames_.emplace(graph_);
      dead_values_.emplace(graph_);
    }
    std::deque<Pending> todo;
    for (Node* n : sessions ? graph_.Nodes() : ReadyOrder(graph_)) {
      todo.push_back({n, false});
      control_flow_ = control_flow_ || n->Is(kControlFlow);
    }
    while (!todo.empty()) {
      const Pending next = todo.front();
      todo.pop_front();
      // A call that is kept must not change: where some are, only the bodies are chosen.
      if (sessions && !context_.keep_call && !gradients_alone_) {
        SelectImplementations(graph_, next.node, context_.device_type);
      }
      std::vector<Node*> added;
      if (const std::vector<const Function*> branches = Branches(*next.node); !branches.empty()) {
        ASSIGN_OR_RETURN(added, Lower(next.node, branches, next.planned));
      } else if (const std::optional<Call> call = CallOf(*next.node)) {
        ASSIGN_OR_RETURN(added, Inline(next.node, *call, next.planned));
      } else if (next.node->Is(kGradient)) {
        RETURN_IF_ERROR(KeepGradient(*next.node));
      }
      for (Node* n : added) {
        todo.push_back({n, true});
        control_flow_ = control_flow_ || n->Is(kControlFlow);
      }
    }
    return OkStatus();
  }

 private:
  // The function of the name that a call runs, if it has a body. For users' graphs implementations
  // were chosen by device before.
  const Function* Find(absl::string_view name) const {
    const Function* f = graph_.library()->Find(name);
    if (f != nullptr && context_.for_execution) {
      f = ImplementationFor(*graph_.library(), f, context_.device_type);
    }
    // A body that calls its own function is open now.
    return f == nullptr || f->body == nullptr || f->body.get() == &graph_ ? nullptr : f;
  }

  // What the gradient runs.
  StatusOr<Gradients::Gradient> GradientOf(const Node& n) {
    const FuncAttr* f = n.Func("f");
    if (f == nullptr) return InvalidArgument("Attr f is not found");
    const Function* function = graph_.library()->Find(f->name);
    if (function != nullptr && function->body.get() == &graph_) {
      return InvalidArgument("function '", f->name, "' asks for its own gradient");
    }
    return gradients_.Of(*f);
  }

  // A gradient that nobody knows. No kernel computes it.
  Status KeepGradient(const Node& n) {
    const Status why = GradientOf(n).status();
    if (context_.for_execution) return Prefix(why, absl::StrCat("Node '", n.name(), "': "));
    context_.Declined("Inline", n, why.message());
    return OkStatus();
  }

  std::optional<Call> CallOf(const Node& n) {
    Call call = {CallKind::kDirect, nullptr, &n.attrs()};
    if (n.Is(kGradient)) {
      const StatusOr<Gradients::Gradient> gradient = GradientOf(n);
      if (!gradient.ok()) return std::nullopt;
      return Call{CallKind::kDirect, gradient->function, gradient->attrs};
    }
    if (gradients_alone_) return std::nullopt;
    if (IsPartitionedCall(n)) {
      const FuncAttr* f = n.Func("f");
      if (f == nullptr) return std::nullopt;
      call = {CallKind::kPartitioned, Find(f->name), f->attrs.get()};
    } else {
      if (BoolAttr(n.attrs(), kBranchCall)) call.kind = CallKind::kBranch;
      call.function = Find(n.op());
    }
    if (call.function == nullptr) return std::nullopt;
    if (context_.for_execution && MayKeep(*call.function)) return std::nullopt;
    return call;
  }

  // The functions of an If, Case or While that asks to be lowered; none where it does not, or where
  // it does not say enough. Sessions run these as they are, which is faster than Switch and Merge.
  std::vector<const Function*> Branches(const Node& n) const {
    if (context_.for_execution || !n.Is(kFunctionalControlFlow) ||
        !BoolAttr(n.attrs(), "_lower_using_switch_merge")) {
      return {};
    }
    std::vector<const Function*> branches;
    for (const FuncAttr* f : BranchesOf(n)) {
      branches.push_back(Find(f->name));
      if (branches.back() == nullptr) return {};
    }
    return branches;
  }

  bool MayKeep(const Function& f) const { return context_.keep_call && context_.keep_call(f); }

  // Whether nodes of the functions may be added; they are booked then.
  bool Afford(const std::vector<const Function*>& functions, bool planned) {
    int64_t nodes = 0;
    for (const Function* f : functions) {
      if (plan_.StaysCall(*f)) return false;
      nodes += plan_.Nodes(*f);
    }
    if (planned) return true;
    if (nodes > left_) return false;
    left_ -= nodes;
    return true;
  }

  // May somebody ask for what the node gives, by its name?
  bool Asked(const Node& node) const { return IsRoot(node) && !context_.is_body; }

  // Calls with a condition in front have one input more than arguments.
  static bool TakesOtherTypes(const Function& f, const Node& node) {
    const int front = node.num_inputs() - static_cast<int>(f.args.size());
    for (int i = std::max(front, 0); i < node.num_inputs(); ++i) {
      const Node& arg = *f.args[static_cast<size_t>(i - front)];
      const Dtype wanted = arg.output_types.empty() ? Dtype::kInvalid : arg.output_types[0];
      const Dtype given = TypeOf(node.input(i));
      if (wanted != Dtype::kInvalid && given != Dtype::kInvalid &&
          BaseType(wanted) != BaseType(given)) {
        return true;
      }
    }
    return false;
  }

  // Why the call stays one; empty: it does not. In sessions nothing that a body does is lost, but a
  // dead value would be an error of the call alone.
  std::string WhyNot(const Node& node, const Call& call, bool planned) {
    std::string why;
    if (context_.for_execution) {
      if (policy_.MayReturnDead(*call.function)) why = "a dead value may leave the body";
    } else {
      why = policy_.WhyNotInlined(node, call.kind, *call.function, context_);
      if (MayKeep(*call.function)) why = "others call the function as well";
      if (std::ranges::count(node.inputs(), Dtype::kInvalid, TypeOf) > 0) {
        why = "the type of an argument is not known";
      }
      if (TakesOtherTypes(*call.function, node)) why = "the function takes other types";
      if (why.empty()) {
        why = std::string(instantiable_.Check(*call.function, call.attrs).message());
      }
    }
    if (why.empty() && !Afford({call.function}, planned)) why = "it would grow too large";
    return why;
  }

  StatusOr<std::vector<Node*>> Inline(Node* node, const Call& call, bool planned) {
    const Function& f = *call.function;
    if (const std::string why = WhyNot(*node, call, planned); !why.empty()) {
      context_.Declined("Inline", *node, why);
      if (node->Is(kGradient) && context_.for_execution) {
        return Unimplemented("Node '", node->name(), "': the gradient of '", node->Func("f")->name,
                             "' is not part of the graph: ", why);
      }
      RETURN_IF_ERROR(KeepCall(node, f));
      return std::vector<Node*>();
    }
    // The caller was verified as it was before its calls became bodies.
    if (context_.for_execution) RETURN_IF_ERROR(instantiable_.Check(f, call.attrs));
    context_.Fired("Inline", *node);
    if (!context_.for_execution) RETURN_IF_ERROR(WaitAsCall(node, &f));
    const bool together = !node->control_inputs().empty();
    const InlineOptions options = {.kind = call.kind,
                                   .of_graph = !planned,
                                   .asked = Asked(*node),
                                   .for_execution = context_.for_execution,
                                   .control_flow = control_flow_};
    auto body = InlineCall(graph_, node, f, call.attrs, options, names_);
    if (!body.ok()) return Prefix(body.status(), absl::StrCat("In function '", f.name(), "': "));
    if (dead_values_) dead_values_->AddBody(*body, together);
    return body;
  }

  // A call that stays: by an op that other passes know, too, where a function is used as an op.
  Status KeepCall(Node* call, const Function& f) {
    if (!context_.for_execution || IsPartitionedCall(*call) || context_.keep_call) {
      return OkStatus();
    }
    FuncAttr callee;
    callee.name = f.name();
    callee.attrs = std::make_shared<const AttrMap>(call->attrs());
    AttrMap attrs;
    attrs.Set("f", std::move(callee));
    attrs.Set("Tin", DtypeVector(call->input_types));
    attrs.Set("Tout", DtypeVector(call->output_types));
    for (const auto& [name, attr] : call->attrs()) {
      if (absl::StartsWith(name, "_")) attrs.Set(name, attr);
    }
    call->AttrsToChange() = std::move(attrs);
    graph_.SetOp(call, f.signature.stateful ? "StatefulPartitionedCall" : "PartitionedCall");
    return graph_.ResolveTypes(call);
  }

  StatusOr<std::vector<Node*>> Lower(Node* node, const std::vector<const Function*>& branches,
                                     bool planned) {
    std::string why = WhyNotLowered(*node, branches);
    if (why.empty() && !Afford(branches, planned)) why = "it would grow too large";
    if (why.empty()) {
      RETURN_IF_ERROR(WaitAsCall(node, nullptr));
      ASSIGN_OR_RETURN(std::vector<Node*> calls,
                       LowerControlFlow(graph_, node, Asked(*node), names_));
      if (!calls.empty()) {
        context_.Fired("Lower", *node);
        return calls;
      }
      why = "its functions do not fit it";
    }
    context_.Declined("Lower", *node, why);
    return std::vector<Node*>();
  }

  std::string WhyNotLowered(const Node& node, const std::vector<const Function*>& branches) {
    if (!context_.config.lower_control_flow) return "who runs the graph wants it as it is";
    if (!context_.lower_control_flow) return "XLA compiles the function that it is in";
    if (IsFed(node)) return "requests feed it";
    if (IsForXla(node.attrs())) return "XLA compiles it";
    const bool loop = node.Is({"While", "StatelessWhile"});
    const bool two = loop || node.Is({"If", "StatelessIf"});
    if (two && branches.size() != 2) return "it lacks a function";
    if (node.Is({"If", "StatelessIf"}) && TypeOf(node.input(0)) != Dtype::kBool) {
      return "its predicate is no bool";
    }
    bool effects = false;
    for (const Function* f : branches) {
      if (MayKeep(*f)) return "others call its functions as well";
      effects = effects || ChangesState(*f);
    }
    if (loop && !UnorderedEffects(*branches[0], /*by_results=*/true).empty()) {
      return "the condition has effects that its result does not wait for";
    }
    const bool waited = IsRoot(node) || std::ranges::any_of(node.uses(), [](const Use& use) {
                          return use.is_control();
                        });
    if (effects && !waited) return "nobody waits for it, so that its effects might be lost";
    return "";
  }

  // Has the function, or one that it calls, an effect?
  bool ChangesState(const Function& root) {
    const auto known = changes_state_.find(&root);
    if (known != changes_state_.end()) return known->second;
    absl::flat_hash_set<const Function*> seen = {&root};
    std::vector<const Function*> todo = {&root};
    bool found = false;
    while (!todo.empty() && !found) {
      const Function* f = todo.back();
      todo.pop_back();
      for (const Node* n : f->body->Nodes()) {
        bool calls = false;
        ForEachCallee(*graph_.library(), *n, [&](absl::string_view name) {
          const Function* callee = Find(name);
          if (callee == nullptr) return;
          calls = true;
          if (seen.insert(callee).second) todo.push_back(callee);
        });
        found = found || (!calls && !MayBeLost(*n));
      }
    }
    changes_state_[&root] = found;
    if (!found) {
      for (const Function* f : seen) changes_state_[f] = false;
    }
    return found;
  }

  // A call runs when all that it reads is there and alive, a body node by node: the difference
  // matters where a resource is read, where a loop must start what has no inputs, and where a
  // result does not need an argument that may be dead. `f`: the body; nullptr: several.
  Status WaitAsCall(Node* node, const Function* f) {
    const bool waits = !node->control_inputs().empty();
    bool resource = false, constant_enter = false;
    std::vector<int> dying;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint e = node->input(i);
      resource = resource || TypeOf(e) == Dtype::kResource;
      constant_enter = constant_enter || (e.node->Is("Enter") && e.node->Bool("is_constant"));
      if (dead_values_->MayDie(e) && !BoolAttr(node->attrs(), kBranchCall)) dying.push_back(i);
    }
    if ((resource && !waits) || constant_enter) {
      for (const Endpoint& e : node->inputs()) {
        if (!e.node->Is(kGiven)) graph_.AddControlInput(node, e.node);
      }
    }
    if (f != nullptr && !dying.empty()) dying = NotNeededByAll(*f, dying);
    for (const int i : dying) {
      ASSIGN_OR_RETURN(Node * waited, WaitableNode(graph_, node->input(i)));
      graph_.AddControlInput(node, waited);
    }
    if (node->control_inputs().empty()) {
      if (Node* start = frames_->StartOf(*node)) graph_.AddControlInput(node, start);
    }
    return OkStatus();
  }

  Graph& graph_;
  const PassContext& context_;
  const bool gradients_alone_;
  // Of users' graphs.
  std::optional<Frames> frames_;
  std::optional<DeadValues> dead_values_;
  bool control_flow_ = false;  // of version 1, in the graph so far
  int64_t left_;               // nodes that may be added
  Gradients gradients_;
  InlinePlan plan_;
  InlinePolicy policy_;
  NumberedNames names_;
  Instantiable instantiable_;
  absl::flat_hash_map<const Function*, bool> changes_state_;
};

}  // namespace

Status OpenGradients(Graph& graph, const PassContext& context) {
  if (std::ranges::none_of(graph.Nodes(), [](const Node* n) { return n->Is(kGradient); })) {
    return OkStatus();
  }
  return FunctionOptimizer(graph, context, /*gradients_alone=*/true).Run();
}

Status OptimizeFunctions(Graph& graph, const PassContext& context) {
  if (graph.library()->Functions().empty() &&
      std::ranges::none_of(graph.Nodes(), [](const Node* n) { return n->Is(kGradient); })) {
    return OkStatus();
  }
  RETURN_IF_ERROR(FunctionOptimizer(graph, context, /*gradients_alone=*/false).Run());
  return context.for_execution ? OkStatus() : SpecializeFunctions(graph, context);
}

}  // namespace smelt
