#include "smelt/optimize/functions/inline_call.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/instantiate.h"
#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt {
namespace {

constexpr absl::string_view kColocation = "loc:@";
constexpr OpSet kEnterOps = {"Enter", "RefEnter"};

class CallInliner {
 public:
  CallInliner(Graph& graph, Node* call, const Function& f, const AttrMap* attrs,
              const InlineOptions& options, NumberedNames& names)
      : graph_(graph),
        call_(call),
        options_(options),
        several_devices_(options.kind != CallKind::kDirect),
        f_(f),
        attrs_(attrs),
        names_(names),
        results_(f.FlatResults()) {}

  StatusOr<std::vector<Node*>> Run() {
    RETURN_IF_ERROR(Check());
    RETURN_IF_ERROR(options_.for_execution ? TakeInputs() : AddInputs());
    ASSIGN_OR_RETURN(std::vector<Node*> body, CopyBody());
    RETURN_IF_ERROR(options_.for_execution ? GiveOutputs() : AddOutputs());
    RETURN_IF_ERROR(ReplaceCall());
    return body;
  }

 private:
  Status Check() const {
    if (static_cast<int>(results_.size()) != call_->num_outputs()) {
      return InvalidArgument("call '", call_->name(), "' has ", call_->num_outputs(),
                             " outputs, function '", f_.name(), "' ", results_.size());
    }
    int arguments = 0;
    for (const Node* a : f_.args) arguments += a->num_outputs();
    if (arguments != call_->num_inputs()) {
      return InvalidArgument("Function '", f_.name(), "' takes ", arguments, " argument(s) but ",
                             call_->num_inputs(), " argument(s) were passed by '", call_->name(),
                             "'");
    }
    for (const Endpoint& e : call_->inputs()) {
      if (e.node == call_) return InvalidArgument("call '", call_->name(), "' reads itself");
    }
    return OkStatus();
  }

  std::string NameOf(absl::string_view what) {
    return names_.Next(absl::StrCat("Func/", call_->name(), "/", what));
  }

  // An Identity of `e` beside the call. Where a function may use several devices it stands with
  // what it passes on.
  StatusOr<Node*> Passing(absl::string_view what, Endpoint e, absl::string_view device) {
    AttrMap attrs;
    attrs.Set("T", TypeOf(e));
    ASSIGN_OR_RETURN(Node * n,
                     AddOn(graph_, several_devices_ ? device : absl::string_view(call_->device),
                           NameOf(what), "Identity", std::array{e}, std::move(attrs), {}));
    if (several_devices_) ColocateWith(n, e);
    return n;
  }

  Status AddInputs() {
    // What starts with the graph starts with one node.
    if (!call_->control_inputs().empty() || (options_.of_graph && call_->inputs().empty())) {
      ASSIGN_OR_RETURN(before_, AddOn(graph_, call_->device, NameOf("input_control_node"), "NoOp",
                                      {}, {}, call_->control_inputs()));
    }
    for (int i = 0; i < call_->num_inputs(); ++i) {
      const Endpoint e = call_->input(i);
      ASSIGN_OR_RETURN(Node * n, Passing("input", e, e.node->device));
      if (before_ != nullptr) graph_.AddControlInput(n, before_);
      inputs_.push_back({n, 0});
    }
    return OkStatus();
  }

  // A session's body reads what the call read. It starts when what the call waited for is done:
  // its control inputs and, where these may be dead or there many times, its arguments.
  Status TakeInputs() {
    inputs_.assign(call_->inputs().begin(), call_->inputs().end());
    std::vector<Node*> waited = call_->control_inputs();
    if (options_.control_flow && std::ranges::any_of(f_.body->Nodes(), Starts)) {
      for (const Endpoint& e : inputs_) {
        ASSIGN_OR_RETURN(Node * n, WaitableNode(graph_, e));
        waited.push_back(n);
      }
    }
    if (waited.empty()) return OkStatus();
    constexpr size_t kFew = 64;
    after_effects_ =
        std::ranges::any_of(waited, [](const Node* n) { return OrdersEffect(n, kFew); });
    ASSIGN_OR_RETURN(before_, AddOn(graph_, call_->device, call_->name() + "/_start", "NoOp", {},
                                    {}, std::move(waited)));
    return OkStatus();
  }

  // Runs as soon as the graph does.
  static bool Starts(const Node* n) {
    return !n->Is("_Arg") && n->inputs().empty() && n->control_inputs().empty();
  }

  // Does a copy of the body's node wait for what the call waited for?
  bool WaitsAsCall(const Node& old) const {
    if (before_ == nullptr) return false;
    const bool calls = IsPartitionedCall(old) || graph_.library()->Find(old.op()) != nullptr;
    if (!options_.for_execution) {
      // Nothing of the body runs where the call would not have run; calls pass that on to what
      // their own bodies start with.
      return Starts(&old) || (calls && old.control_inputs().empty());
    }
    // A constant is there from the start, unless it must die with its branch.
    if (old.Is("Const")) return options_.control_flow && Starts(&old);
    if (Starts(&old) || calls || HasEffect(old) || TakesReference(old)) return true;
    // What only reads a state minds what changes it.
    return after_effects_ &&
           std::ranges::find(old.input_types, Dtype::kResource) != old.input_types.end();
  }

  StatusOr<std::vector<Node*>> CopyBody() {
    const std::string prefix = call_->name() + "/";
    ASSIGN_OR_RETURN(map_, graph_.CopyFrom(*f_.body, prefix));
    absl::flat_hash_set<const Node*> arguments;
    size_t index = 0;
    for (const Node* a : f_.args) {
      Node* copy = map_.Of(a);
      arguments.insert(a);
      for (int port = 0; port < a->num_outputs(); ++port) {
        graph_.ReplaceAllUses({copy, port}, inputs_[index + static_cast<size_t>(port)]);
      }
      Node* waited = before_;
      if (a->num_outputs() > 0 && HasControlUses(*copy)) {
        ASSIGN_OR_RETURN(waited, WaitableNode(graph_, inputs_[index]));
      }
      graph_.ReplaceControlUses(copy, waited);
      first_input_[a] = index;
      index += static_cast<size_t>(a->num_outputs());
    }
    const bool fill = attrs_ != nullptr && HasPlaceholders(*f_.body);
    std::vector<Node*> body;
    for (const Node* old : options_.for_execution ? f_.body->Nodes() : ReadyOrder(*f_.body)) {
      if (arguments.contains(old)) continue;
      Node* n = map_.Of(old);
      if (fill) {
        RETURN_IF_ERROR(FillPlaceholders(n->AttrsToChange(), *attrs_, f_.name()));
        RETURN_IF_ERROR(graph_.ResolveTypes(n));
      }
      if (!options_.for_execution) {
        n->device = several_devices_ ? MergeDevices(old->device, call_->device) : call_->device;
      } else if (n->device.empty()) {
        n->device = call_->device;
      }
      PrefixNames(n, *old, prefix);
      if (WaitsAsCall(*old)) graph_.AddControlInput(n, before_);
      body.push_back(n);
    }
    for (const Node* a : f_.args) graph_.Remove(map_.Of(a));
    return body;
  }

  // What names other nodes of the body, loops of it and its resources.
  void PrefixNames(Node* n, const Node& old, const std::string& prefix) const {
    if (n->Is(kEnterOps)) n->AttrsToChange().Set("frame_name", prefix + old.String("frame_name"));
    if (Attr* attr = n->AttrsToChange().FindToChange("_class")) {
      if (const auto* classes = attr->get<std::vector<std::string>>()) {
        std::vector<std::string> renamed = *classes;
        for (std::string& c : renamed) {
          if (!absl::StartsWith(c, kColocation)) continue;
          const Node* with = f_.body->Find(absl::string_view(c).substr(kColocation.size()));
          if (with == nullptr) continue;
          const auto argument = first_input_.find(with);
          const Node* now = argument == first_input_.end() ? map_.Of(with)
                            : with->num_outputs() > 0      ? inputs_[argument->second].node
                                                           : with;
          c = absl::StrCat(kColocation, now->name());
        }
        *attr = std::move(renamed);
      }
    }
    // A resource without a name of its own is known by its node's, whoever calls the function.
    if (n->def() != nullptr && n->def()->FindAttr("shared_name") != nullptr &&
        n->String("shared_name").empty()) {
      n->AttrsToChange().Set("shared_name", old.name());
    }
  }

  Endpoint Copied(Endpoint e) const {
    const auto argument = first_input_.find(e.node);
    if (argument == first_input_.end()) return {map_.Of(e.node), e.port};
    return inputs_[argument->second + static_cast<size_t>(e.port)];
  }

  Status AddOutputs() {
    for (const Endpoint& e : results_) {
      ASSIGN_OR_RETURN(Node * n, Passing("output", Copied(e), ""));
      outputs_.push_back({n, 0});
    }
    if (!HasControlUses(*call_) && !IsRoot(*call_)) return OkStatus();
    std::vector<Node*> waits;
    if (several_devices_) {
      for (const auto& [name, node] : f_.control_results) {
        const auto argument = first_input_.find(node);
        if (argument == first_input_.end()) {
          waits.push_back(map_.Of(node));
        } else if (node->num_outputs() > 0) {
          waits.push_back(inputs_[argument->second].node);
        }
      }
    } else {
      for (const Endpoint& e : outputs_) waits.push_back(e.node);
    }
    // Effects that the function does not order run as well.
    for (const Node* n : UnorderedEffects(f_, !several_devices_)) waits.push_back(map_.Of(n));
    if (waits.empty() && before_ != nullptr) waits.push_back(before_);
    ASSIGN_OR_RETURN(after_, AddOn(graph_, call_->device, NameOf("output_control_node"), "NoOp", {},
                                   {}, std::move(waits)));
    return OkStatus();
  }

  // What waits for the call waits for its effects and its results. Effects are roots: they run
  // where nobody waits.
  Status GiveOutputs() {
    for (const Endpoint& e : results_) outputs_.push_back(Copied(e));
    std::vector<Node*> waits;
    for (const auto& [name, node] : f_.control_results) {
      if (first_input_.contains(node)) continue;
      // What has no effect need not run, as in a call of its own; reads that count are in results.
      Node* n = map_.Of(node);
      if (!OrdersEffect(node)) continue;
      waits.push_back(n);
      AddRoot(n);
    }
    if (!HasControlUses(*call_)) return OkStatus();
    for (const Endpoint& e : outputs_) {
      ASSIGN_OR_RETURN(Node * n, WaitableNode(graph_, e));
      waits.push_back(n);
    }
    if (before_ != nullptr) waits.push_back(before_);
    ASSIGN_OR_RETURN(after_, AddOn(graph_, call_->device, call_->name() + "/_end", "NoOp", {}, {},
                                   std::move(waits)));
    return OkStatus();
  }

  Status ReplaceCall() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      graph_.ReplaceAllUses({call_, static_cast<int>(i)}, outputs_[i]);
    }
    graph_.ReplaceControlUses(call_, after_);
    if (options_.for_execution || !IsRoot(*call_)) {
      graph_.Remove(call_);
      return OkStatus();
    }
    const bool passes = options_.asked && !outputs_.empty();
    AttrMap attrs;
    if (passes) attrs.Set("T", DtypeVector(call_->output_types));
    SetAttrsButMarks(call_, std::move(attrs));
    graph_.SetOp(call_, passes ? "IdentityN" : "NoOp");
    graph_.SetInputs(call_,
                     passes ? std::span<const Endpoint>(outputs_) : std::span<const Endpoint>());
    graph_.SetControlInputs(call_, {after_});
    return graph_.ResolveTypes(call_);
  }

  Graph& graph_;
  Node* const call_;
  const InlineOptions options_;
  const bool several_devices_;
  const Function& f_;
  const AttrMap* const attrs_;
  NumberedNames& names_;
  const std::vector<Endpoint> results_;
  NodeCopies map_;                                        // of the body's nodes
  absl::flat_hash_map<const Node*, size_t> first_input_;  // by argument
  std::vector<Endpoint> inputs_, outputs_;
  Node* before_ = nullptr;
  bool after_effects_ = false;  // before_ waits for some, in a session
  Node* after_ = nullptr;
};

}  // namespace

StatusOr<std::vector<Node*>> InlineCall(Graph& graph, Node* call, const Function& function,
                                        const AttrMap* attrs, const InlineOptions& options,
                                        NumberedNames& names) {
  return CallInliner(graph, call, function, attrs, options, names).Run();
}

}  // namespace smelt
