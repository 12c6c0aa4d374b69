#include "smelt/optimize/function_item.h"

#include "smelt/optimize/passes.h"

namespace smelt {

Status FunctionItem::Open(const std::vector<std::string>& keep) {
  ASSIGN_OR_RETURN(copy_, function_.Clone(function_.name()));
  Graph& body = *copy_->body;
  ClearMarks(body);
  for (Node* arg : copy_->args) MarkFed(arg);
  for (const std::string& name : keep) {
    if (Node* n = body.Find(name)) AddRoot(n);
    asked_for_.insert(name);
  }
  for (const auto& [name, node] : copy_->control_results) {
    AddRoot(node);
    controls_.emplace_back(name, node->name());
    asked_for_.insert(node->name());
  }
  for (Node* n : body.Nodes()) {
    if (n->def() == nullptr || n->def()->stateful) AddRoot(n);
  }
  int index = 0;
  for (size_t i = 0; i < copy_->results.size(); ++i) {
    results_.push_back(copy_->results[i].size());
    for (const Endpoint& e : copy_->results[i]) {
      AttrMap attrs;
      attrs.Set("T", BaseType(e.node->output_types[static_cast<size_t>(e.port)]));
      attrs.Set("index", index++);
      const std::string name = function_.signature.outputs[i].name + "_RetVal";
      RETURN_IF_ERROR(body.Add(name, "_Retval", {e}, std::move(attrs)).status());
    }
  }
  return OkStatus();
}

Status FunctionItem::Close() {
  Graph& body = *copy_->body;
  const auto gone = [&](absl::string_view what, absl::string_view name) {
    return Internal("function '", function_.name(), "' lost ", what, " '", name, "'");
  };
  std::vector<Node*> args(function_.signature.inputs.size());
  std::vector<Node*> returned;
  for (Node* n : body.Nodes()) {
    const auto index = static_cast<size_t>(n->Int("index", -1));
    if (n->Is("_Arg") && index < args.size()) args[index] = n;
    if (!n->Is("_Retval")) continue;
    if (index >= returned.size()) returned.resize(index + 1);
    returned[index] = n;
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == nullptr) return gone("argument", function_.signature.inputs[i].name);
  }
  function_.args = std::move(args);
  size_t next = 0;
  for (size_t i = 0; i < results_.size(); ++i) {
    function_.results[i].clear();
    for (size_t k = 0; k < results_[i]; ++k, ++next) {
      Node* n = next < returned.size() ? returned[next] : nullptr;
      if (n == nullptr) return gone("result", function_.signature.outputs[i].name);
      function_.results[i].push_back(n->input(0));
      body.Remove(n);
    }
  }
  function_.control_results.clear();
  for (const auto& [name, node] : controls_) {
    Node* n = body.Find(node);
    if (n == nullptr) return gone("control result", name);
    function_.control_results.emplace_back(name, n);
  }
  ClearMarks(body);
  ReassignColocation(body);
  function_.body = std::move(copy_->body);
  return OkStatus();
}

}  // namespace smelt
