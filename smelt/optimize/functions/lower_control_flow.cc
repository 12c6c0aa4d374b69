#include "smelt/optimize/functions/lower_control_flow.h"

#include <algorithm>
#include <array>

#include "smelt/graph/infer_attrs.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr OpSet kIfOps = {"If", "StatelessIf"};
constexpr OpSet kCaseOps = {"Case", "StatelessCase"};
constexpr OpSet kWhileOps = {"While", "StatelessWhile"};

class Lowering {
 public:
  Lowering(Graph& graph, Node* node, bool asked, NumberedNames& names)
      : graph_(graph),
        node_(node),
        asked_(asked),
        names_(names),
        controls_(node->control_inputs()),
        inputs_(node->inputs().begin(), node->inputs().end()) {}

 protected:
  std::string NameOf(absl::string_view what) {
    return names_.Next(absl::StrCat(node_->name(), "/", what));
  }

  StatusOr<Node*> Add(absl::string_view device, absl::string_view what, absl::string_view op,
                      std::span<const Endpoint> inputs, AttrMap attrs = {},
                      std::vector<Node*> controls = {}) {
    return AddOn(graph_, device, NameOf(what), op, inputs, std::move(attrs), std::move(controls));
  }

  static AttrMap OfType(Dtype t) {
    AttrMap attrs;
    attrs.Set("T", t);
    return attrs;
  }

  // A call of `f` on `inputs`, which stand for what it gets in the end and say what types it is of.
  StatusOr<Node*> AddCall(absl::string_view what, const FuncAttr& f,
                          std::span<const Endpoint> inputs) {
    AttrMap attrs = f.attrs == nullptr ? AttrMap() : *f.attrs;
    attrs.Set(kBranchCall, true);
    ASSIGN_OR_RETURN(Node * call, graph_.AddNode(graph_.FreeName(NameOf(what)), f.name));
    call->AttrsToChange() = std::move(attrs);
    call->device = node_->device;
    graph_.SetInputs(call, inputs);
    calls_.push_back(call);
    RETURN_IF_ERROR(InferAttrs(call));
    if (!graph_.ResolveTypes(call).ok()) resolved_ = false;
    return call;
  }

  static bool SameTypes(const DtypeVector& a, const DtypeVector& b) {
    return std::ranges::equal(a, b, [](Dtype x, Dtype y) { return BaseType(x) == BaseType(y); });
  }

  // Does the call take the inputs and give these types?
  bool Fits(const Node& call, std::span<const Endpoint> inputs, const DtypeVector& outputs) const {
    DtypeVector given;
    for (const Endpoint& e : inputs) given.push_back(TypeOf(e));
    return resolved_ && SameTypes(call.input_types, given) && SameTypes(call.output_types, outputs);
  }

  void DropCalls() {
    for (Node* call : calls_) graph_.Remove(call);
    calls_.clear();
  }

  // Readers of the node read `outputs`, who waits for it waits for `after`; it stays under its name
  // for who asks for it, or for its values.
  Status Replace(const std::vector<Endpoint>& outputs, Node* after) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      graph_.ReplaceAllUses({node_, static_cast<int>(i)}, outputs[i]);
    }
    graph_.ReplaceControlUses(node_, after);
    const bool passes = asked_ && !outputs.empty();
    AttrMap attrs;
    if (passes) attrs.Set("T", DtypeVector(node_->output_types));
    SetAttrsButMarks(node_, std::move(attrs));
    graph_.SetOp(node_, passes ? "IdentityN" : "NoOp");
    graph_.SetInputs(node_,
                     passes ? std::span<const Endpoint>(outputs) : std::span<const Endpoint>());
    graph_.SetControlInputs(node_, {after});
    return graph_.ResolveTypes(node_);
  }

  Graph& graph_;
  Node* const node_;
  const bool asked_;
  NumberedNames& names_;
  const std::vector<Node*> controls_;
  const std::vector<Endpoint> inputs_;
  std::vector<Node*> calls_;
  bool resolved_ = true;  // the types of the calls
};

// Both If, which has two sides of a Switch, and Case, which has as many as branches.
class BranchLowering : public Lowering {
 public:
  using Lowering::Lowering;

  StatusOr<std::vector<Node*>> Run() {
    const bool is_if = node_->Is(kIfOps);
    const std::vector<const FuncAttr*> functions = BranchesOf(*node_);
    const Endpoint chosen = inputs_[0];
    const std::vector<Endpoint> arguments(inputs_.begin() + 1, inputs_.end());
    for (size_t i = 0; i < functions.size(); ++i) {
      const std::string what = is_if ? (i == 0 ? "then" : "else") : absl::StrCat("branch", i);
      ASSIGN_OR_RETURN(const Node* call, AddCall(what, *functions[i], arguments));
      if (!Fits(*call, arguments, node_->output_types)) {
        DropCalls();
        return std::vector<Node*>();
      }
    }
    sides_ = static_cast<int>(functions.size());
    ASSIGN_OR_RETURN(Node * choice,
                     AddSwitch(node_->device, is_if ? "switch_pred" : "branch_index", chosen));
    graph_.SetControlInputs(choice, controls_);
    RETURN_IF_ERROR(AddPivots(choice));
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Endpoint e = arguments[i];
      ASSIGN_OR_RETURN(Node * s, AddSwitch(e.node->device, e.node->name(), e));
      if (is_if) ColocateWith(s, e);
      for (int side = 0; side < sides_; ++side) {
        graph_.SetInput(calls_[static_cast<size_t>(side)], static_cast<int>(i), {s, PortOf(side)});
      }
    }
    for (size_t side = 0; side < calls_.size(); ++side) {
      graph_.SetControlInputs(calls_[side], {pivots_[side]});
    }
    std::vector<Endpoint> outputs;
    for (int i = 0; i < node_->num_outputs(); ++i) {
      std::vector<Endpoint> results;
      for (Node* call : calls_) results.push_back({call, i});
      ASSIGN_OR_RETURN(Node * m, AddMerge(is_if ? "output" : "merge", results, {}));
      outputs.push_back({m, 0});
    }
    std::vector<Endpoint> sides;
    for (Node* pivot : pivots_) sides.push_back({pivot, 0});
    ASSIGN_OR_RETURN(Node * executed, AddMerge("branch_executed", sides, calls_));
    RETURN_IF_ERROR(Replace(outputs, executed));
    return std::move(calls_);
  }

 private:
  // The output of a Switch that goes to a branch: then, the first, is what a true predicate takes.
  int PortOf(int side) const { return node_->Is(kIfOps) ? 1 - side : side; }

  StatusOr<Node*> AddSwitch(absl::string_view device, absl::string_view what, Endpoint e) {
    AttrMap attrs = OfType(TypeOf(e));
    if (!node_->Is(kIfOps)) attrs.Set("num_outs", sides_);
    return Add(device, what, node_->Is(kIfOps) ? "Switch" : "_SwitchN", std::array{e, inputs_[0]},
               std::move(attrs));
  }

  // Nodes that run with each branch.
  Status AddPivots(Node* choice) {
    pivots_.resize(static_cast<size_t>(sides_));
    for (int port = 0; port < sides_; ++port) {
      const std::string what =
          node_->Is(kIfOps) ? (port == 0 ? "pivot_f" : "pivot_t") : absl::StrCat("pivot_", port);
      const Endpoint e = {choice, port};
      ASSIGN_OR_RETURN(pivots_[static_cast<size_t>(PortOf(port))],
                       Add(node_->device, what, "Identity", std::array{e}, OfType(TypeOf(e))));
    }
    return OkStatus();
  }

  StatusOr<Node*> AddMerge(absl::string_view what, const std::vector<Endpoint>& inputs,
                           std::vector<Node*> controls) {
    AttrMap attrs = OfType(TypeOf(inputs[0]));
    attrs.Set("N", sides_);
    return Add(node_->device, what, "Merge", inputs, std::move(attrs), std::move(controls));
  }

  int sides_ = 0;
  std::vector<Node*> pivots_;  // by branch
};

class WhileLowering : public Lowering {
 public:
  using Lowering::Lowering;

  StatusOr<std::vector<Node*>> Run() {
    const std::vector<const FuncAttr*> functions = BranchesOf(*node_);
    ASSIGN_OR_RETURN(Node * cond, AddCall("cond", *functions[0], inputs_));
    ASSIGN_OR_RETURN(Node * body, AddCall("body", *functions[1], inputs_));
    FindConstants(*graph_.library()->Find(functions[1]->name));
    const bool goes_around = std::ranges::find(constant_, false) != constant_.end();
    if (!goes_around || !Fits(*cond, inputs_, {Dtype::kBool}) ||
        !Fits(*body, inputs_, node_->output_types)) {
      DropCalls();
      return std::vector<Node*>();
    }
    RETURN_IF_ERROR(AddEnters());
    RETURN_IF_ERROR(AddMerges());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      graph_.SetInput(cond, static_cast<int>(i), constant_[i] ? enters_[i] : merges_[i]);
    }
    graph_.SetControlInputs(cond, {FirstOf(merges_)});
    ASSIGN_OR_RETURN(Node * goes_on,
                     Add(node_->device, "LoopCond", "LoopCond", std::array{Endpoint{cond, 0}}));
    RETURN_IF_ERROR(AddSwitches(goes_on));
    const Endpoint first = {FirstOf(switches_), 1};
    ASSIGN_OR_RETURN(Node * control, Add(node_->device, "loop_body_control", "Identity",
                                         std::array{first}, OfType(TypeOf(first))));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      graph_.SetInput(body, static_cast<int>(i),
                      constant_[i] ? enters_[i] : Endpoint{switches_[i].node, 1});
    }
    graph_.SetControlInputs(body, {control});
    ASSIGN_OR_RETURN(Node * executed, AddExits());
    RETURN_IF_ERROR(AddNextIterations(body));
    RETURN_IF_ERROR(Replace(outputs_, executed));
    return std::move(calls_);
  }

 private:
  // Resources that the body returns as it got them do not go around.
  void FindConstants(const Function& body) {
    const std::vector<Endpoint> arguments = body.FlatArguments();
    const std::vector<Endpoint> results = body.FlatResults();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      constant_.push_back(TypeOf(inputs_[i]) == Dtype::kResource && i < arguments.size() &&
                          i < results.size() && BehindIdentities(results[i]) == arguments[i]);
    }
  }

  // That of the first variable that goes around.
  Node* FirstOf(const std::vector<Endpoint>& nodes) const {
    return nodes[static_cast<size_t>(std::ranges::find(constant_, false) - constant_.begin())].node;
  }

  Status AddEnters() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      AttrMap attrs = OfType(TypeOf(inputs_[i]));
      attrs.Set("frame_name", node_->name());
      attrs.Set("is_constant", static_cast<bool>(constant_[i]));
      attrs.Set("parallel_iterations", node_->Int("parallel_iterations", 10));
      ASSIGN_OR_RETURN(Node * n, Add(inputs_[i].node->device, "enter", "Enter",
                                     std::array{inputs_[i]}, std::move(attrs)));
      enters_.push_back({n, 0});
    }
    if (controls_.empty()) return OkStatus();
    ASSIGN_OR_RETURN(Node * before,
                     Add(node_->device, "LoopControlInputs", "NoOp", {}, {}, controls_));
    for (const Endpoint& e : enters_) graph_.AddControlInput(e.node, before);
    return OkStatus();
  }

  Status AddMerges() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (constant_[i]) {
        merges_.emplace_back();
        continue;
      }
      AttrMap attrs = OfType(TypeOf(inputs_[i]));
      attrs.Set("N", 2);
      // The second input is what comes around.
      ASSIGN_OR_RETURN(Node * n, Add(inputs_[i].node->device, "merge", "Merge",
                                     std::array{enters_[i], enters_[i]}, std::move(attrs)));
      merges_.push_back({n, 0});
    }
    return OkStatus();
  }

  Status AddSwitches(Node* goes_on) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (constant_[i]) {
        switches_.emplace_back();
        continue;
      }
      ASSIGN_OR_RETURN(
          Node * n,
          Add(inputs_[i].node->device, absl::StrCat(inputs_[i].node->name(), "_switch"), "Switch",
              std::array{merges_[i], Endpoint{goes_on, 0}}, OfType(TypeOf(inputs_[i]))));
      switches_.push_back({n, 0});
    }
    return OkStatus();
  }

  StatusOr<Node*> AddExits() {
    std::vector<Node*> exits;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (constant_[i]) {
        outputs_.push_back(inputs_[i]);
        continue;
      }
      ASSIGN_OR_RETURN(Node * n, Add(inputs_[i].node->device, "exit", "Exit",
                                     std::array{switches_[i]}, OfType(TypeOf(inputs_[i]))));
      outputs_.push_back({n, 0});
      exits.push_back(n);
    }
    return Add(node_->device, "LoopExecuted", "NoOp", {}, {}, std::move(exits));
  }

  Status AddNextIterations(Node* body) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (constant_[i]) continue;
      const Endpoint e = {body, static_cast<int>(i)};
      ASSIGN_OR_RETURN(Node * n, Add(inputs_[i].node->device, "next_iteration", "NextIteration",
                                     std::array{e}, OfType(TypeOf(e)), {body}));
      graph_.SetInput(merges_[i].node, 1, {n, 0});
    }
    return OkStatus();
  }

  std::vector<bool> constant_;                                  // by variable
  std::vector<Endpoint> enters_, merges_, switches_, outputs_;  // by variable
};

}  // namespace

constinit const OpSet kFunctionalControlFlow = {"If",    "StatelessIf",   "Case", "StatelessCase",
                                                "While", "StatelessWhile"};

std::vector<const FuncAttr*> BranchesOf(const Node& node) {
  std::vector<const FuncAttr*> functions;
  const auto add = [&](absl::string_view name) {
    if (const FuncAttr* f = node.Func(name)) functions.push_back(f);
  };
  if (node.Is(kIfOps)) {
    add("then_branch");
    add("else_branch");
  } else if (node.Is(kWhileOps)) {
    add("cond");
    add("body");
  } else if (node.Is(kCaseOps)) {
    const Attr* branches = node.Find("branches");
    const auto* list = branches == nullptr ? nullptr : branches->get<std::vector<FuncAttr>>();
    if (list == nullptr) return functions;
    for (const FuncAttr& f : *list) functions.push_back(&f);
  }
  return functions;
}

StatusOr<std::vector<Node*>> LowerControlFlow(Graph& graph, Node* node, bool asked,
                                              NumberedNames& names) {
  if (node->Is(kWhileOps)) return WhileLowering(graph, node, asked, names).Run();
  return BranchLowering(graph, node, asked, names).Run();
}

}  // namespace smelt
