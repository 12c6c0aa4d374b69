// From the results of a function back to its arguments, in TensorFlow's order and with its names.
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/gradients/gradients.h"
#include "smelt/optimize/gradients/rows.h"
#include "smelt/optimize/instantiate.h"

namespace smelt {
namespace {

class Backward {
 public:
  explicit Backward(std::unique_ptr<Function> f) : f_(std::move(f)), graph_(*f_->body) {}

  StatusOr<std::unique_ptr<Function>> Run() {
    const std::vector<Endpoint> arguments = f_->FlatArguments();
    const std::vector<Endpoint> results = f_->FlatResults();
    for (const Endpoint& x : arguments) stops_.insert(x.node);
    FindNodesBehind(results);
    for (const Endpoint& x : arguments) gradients_[Slot(x)];
    ASSIGN_OR_RETURN(const std::vector<Endpoint> given, AddGradientArguments(results));
    for (size_t i = 0; i < results.size(); ++i) Give(results[i], given[i]);
    while (!ready_.empty()) {
      Node* n = ready_.front();
      ready_.pop_front();
      ++done_;
      if (!stops_.contains(n)) RETURN_IF_ERROR(PassBack(n));
    }
    if (done_ != pending_.size()) {
      return InvalidArgument("function '", f_->name(), "': a cycle between arguments and results");
    }
    std::vector<std::vector<Endpoint>> outputs;
    for (const Endpoint& x : arguments) {
      ASSIGN_OR_RETURN(const Endpoint sum, Sum(x));
      outputs.push_back({sum});
    }
    SetSignature(arguments, results, std::move(outputs));
    DropUnneeded();
    return std::move(f_);
  }

 private:
  using Key = std::pair<Node*, int>;
  static Key Slot(Endpoint e) { return {e.node, e.port}; }

  // What results come from, and how many gradients each node waits for.
  void FindNodesBehind(const std::vector<Endpoint>& results) {
    std::deque<Node*> todo;
    const auto read = [&](Endpoint e) {
      const auto [it, first] = pending_.try_emplace(e.node, 0);
      ++it->second;
      if (!first) return;
      todo.push_back(e.node);
      for (int port = 0; port < e.node->num_outputs(); ++port) gradients_[{e.node, port}];
    };
    for (const Endpoint& e : results) read(e);
    while (!todo.empty()) {
      const Node* n = todo.front();
      todo.pop_front();
      for (const Endpoint& e : n->inputs()) read(e);
    }
  }

  std::string NextName() {
    std::string name;
    do name = absl::StrCat("Func/_", next_++);
    while (graph_.Find(name) != nullptr);
    return name;
  }

  StatusOr<std::vector<Endpoint>> AddGradientArguments(const std::vector<Endpoint>& results) {
    std::vector<Endpoint> given;
    auto index = static_cast<int64_t>(f_->FlatArguments().size());
    for (const Endpoint& y : results) {
      AttrMap attrs;
      attrs.Set("T", BaseType(y.node->output_types[static_cast<size_t>(y.port)]));
      attrs.Set("index", index++);
      ASSIGN_OR_RETURN(Node * dy, graph_.Add(NextName(), "_Arg", {}, std::move(attrs)));
      f_->args.push_back(dy);
      given.push_back({dy, 0});
    }
    return given;
  }

  // One gradient of what `to` is read for; {nullptr, 0}: none.
  void Give(Endpoint to, Endpoint gradient) {
    if (gradient.node != nullptr) gradients_[Slot(to)].push_back(gradient);
    if (--pending_.at(to.node) == 0) ready_.push_back(to.node);
  }

  StatusOr<Endpoint> Sum(Endpoint of) {
    const std::vector<Endpoint>& parts = gradients_.at(Slot(of));
    const Dtype type = BaseType(of.node->output_types[static_cast<size_t>(of.port)]);
    if (parts.size() == 1 && type != Dtype::kBool) return parts[0];
    AttrMap attrs;
    attrs.Set("T", type == Dtype::kResource ? Dtype::kFloat : type);
    if (parts.size() > 1 && type != Dtype::kBool) {
      attrs.Set("N", static_cast<int64_t>(parts.size()));
      ASSIGN_OR_RETURN(Node * sum, graph_.Add(NextName(), "AddN", parts, std::move(attrs)));
      return Endpoint{sum, 0};
    }
    // What a variable would be multiplied by must have its shape.
    if (type == Dtype::kResource) {
      AttrMap read;
      read.Set("dtype", Dtype::kFloat);
      ASSIGN_OR_RETURN(Node * value, graph_.Add("Read", "ReadVariableOp", {of}, std::move(read)));
      of = {value, 0};
    }
    ASSIGN_OR_RETURN(Node * zeros, graph_.Add(NextName(), "ZerosLike", {of}, std::move(attrs)));
    return Endpoint{zeros, 0};
  }

  // Gradients of all outputs are there: on to the inputs.
  Status PassBack(Node* n) {
    const bool constant = gradients::IsConstantForGradients(*n);
    if (n->inputs().empty() && !constant) return OkStatus();
    std::vector<Endpoint> inputs(n->inputs().begin(), n->inputs().end());
    std::vector<Dtype> in, out;
    for (const Dtype t : n->input_types) {
      in.push_back(BaseType(t));
      out.push_back(BaseType(t) == Dtype::kResource ? Dtype::kFloat : BaseType(t));
    }
    for (int port = 0; port < n->num_outputs(); ++port) {
      ASSIGN_OR_RETURN(const Endpoint sum, Sum({n, port}));
      inputs.push_back(sum);
      in.push_back(BaseType(sum.node->output_types[static_cast<size_t>(sum.port)]));
    }
    if (constant) {
      for (const Endpoint& e : n->inputs()) Give(e, {});
      return OkStatus();
    }
    FuncAttr f;
    if (const FuncAttr* callee = IsPartitionedCall(*n) ? n->Func("f") : nullptr) {
      f = *callee;
    } else {
      f = {std::string(n->op()), std::make_shared<const AttrMap>(n->attrs())};
    }
    AttrMap attrs;
    attrs.Set("Tin", std::move(in));
    attrs.Set("Tout", std::move(out));
    attrs.Set("f", std::move(f));
    ASSIGN_OR_RETURN(Node * gradient,
                     graph_.Add(NextName(), "SymbolicGradient", inputs, std::move(attrs)));
    for (int i = 0; i < n->num_inputs(); ++i) Give(n->input(i), {gradient, i});
    return OkStatus();
  }

  void SetSignature(const std::vector<Endpoint>& arguments, const std::vector<Endpoint>& results,
                    std::vector<std::vector<Endpoint>> outputs) {
    OpDef& signature = f_->signature;
    const auto arg = [](std::string name, Endpoint e) {
      ArgDef def;
      def.name = std::move(name);
      def.type = BaseType(e.node->output_types[static_cast<size_t>(e.port)]);
      return def;
    };
    for (size_t i = 0; i < results.size(); ++i) {
      signature.inputs.push_back(
          arg(absl::StrCat("dy", i), {f_->args[f_->args.size() - results.size() + i], 0}));
    }
    signature.outputs.clear();
    for (size_t i = 0; i < arguments.size(); ++i) {
      signature.outputs.push_back(arg(absl::StrCat("dx", i), outputs[i][0]));
    }
    f_->results = std::move(outputs);
  }

  // Gradients of what is no argument were made as well. Effects stay.
  void DropUnneeded() {
    std::vector<Node*> roots = f_->args;
    for (const Endpoint& e : f_->FlatResults()) roots.push_back(e.node);
    for (const auto& [name, node] : f_->control_results) roots.push_back(node);
    for (Node* n : graph_.Nodes()) {
      if (HasEffect(*n)) roots.push_back(n);
    }
    graph_.Prune(roots);
  }

  std::unique_ptr<Function> f_;
  Graph& graph_;
  int next_ = 0;
  size_t done_ = 0;
  std::deque<Node*> ready_;
  absl::flat_hash_set<Node*> stops_;
  absl::flat_hash_map<Node*, int> pending_;
  absl::flat_hash_map<Key, std::vector<Endpoint>> gradients_;
};

}  // namespace

StatusOr<std::unique_ptr<Function>> GradientOfFunction(const Function& f, const AttrMap* attrs) {
  ASSIGN_OR_RETURN(std::unique_ptr<Function> copy, f.Clone(f.name()));
  if (HasPlaceholders(*copy->body)) {
    const AttrMap none;
    RETURN_IF_ERROR(FillBody(*copy->body, attrs == nullptr ? none : *attrs, f.name()));
  }
  for (Node* n : copy->body->Nodes()) {
    if (n->Is(kControlFlow)) {
      return InvalidArgument("No gradient defined for op: ", n->op(), " (node '", n->name(),
                             "' of function '", f.name(), "')");
    }
  }
  return Backward(std::move(copy)).Run();
}

}  // namespace smelt
