#include "smelt/convert/function_wrapper.h"

namespace smelt {

std::vector<Dtype> TypesOf(const std::vector<Endpoint>& endpoints) {
  std::vector<Dtype> types;
  for (const Endpoint& e : endpoints) types.push_back(BaseType(e.node->output_types[e.port]));
  return types;
}

StatusOr<FunctionWrapper> FunctionWrapper::Around(Function& f) {
  FunctionWrapper w(f);
  w.graph_ = std::make_unique<Graph>(f.body->library());
  for (const Node* a : f.args) {
    ASSIGN_OR_RETURN(Node * arg, w.graph_->AddNode(a->name(), a->op()));
    arg->AttrsToChange() = a->attrs();
    arg->SetOutputTypes(a->output_types);
    arg->extra = a->extra;
    w.args_.push_back(arg);
  }
  w.result_types_ = TypesOf(f.FlatResults());
  return w;
}

std::vector<Endpoint> FunctionWrapper::Arguments() const {
  std::vector<Endpoint> all;
  for (size_t i = 0; i < args_.size(); ++i) {
    for (const Endpoint& e : Argument(i)) all.push_back(e);
  }
  return all;
}

std::vector<Endpoint> FunctionWrapper::Argument(size_t i) const {
  std::vector<Endpoint> ports;
  for (int port = 0; port < args_[i]->num_outputs(); ++port) ports.push_back({args_[i], port});
  return ports;
}

Status FunctionWrapper::Finish(Node* call, const std::vector<Endpoint>& results) && {
  std::vector<std::vector<Endpoint>> nested;
  size_t index = 0;
  for (const auto& r : function_->results) {
    auto& out = nested.emplace_back();
    for (size_t i = 0; i < r.size(); ++i) out.push_back(results[index++]);
  }
  // Each control output is a node of its own: TensorFlow refuses one node under two names.
  for (auto& [name, node] : function_->control_results) {
    ASSIGN_OR_RETURN(node, graph_->Add("done", "NoOp", {}));
    graph_->SetControlInputs(node, {call});
  }
  function_->body = std::move(graph_);
  function_->args = std::move(args_);
  function_->results = std::move(nested);
  function_->signature.stateful = true;
  return OkStatus();
}

}  // namespace smelt
