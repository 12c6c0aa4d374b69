#include "smelt/convert/place/outline.h"

#include "smelt/convert/function_wrapper.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/verify.h"

namespace smelt {

FunctionOutline::FunctionOutline(Graph& graph, std::string name) : graph_(graph) {
  function_ = std::make_unique<Function>();
  function_->signature.name = std::move(name);
  function_->body = std::make_unique<Graph>(graph_.library());
}

Status FunctionOutline::AddArg(Endpoint e) {
  if (IsArg(e)) return OkStatus();
  const Dtype t = e.node->output_types[e.port];
  if (t == Dtype::kInvalid) {
    return Unimplemented("node '", e.node->name(), "' is of unknown op ", e.node->op());
  }
  ArgDef arg;
  arg.name = absl::StrCat("input_", arg_order_.size());
  arg.type = BaseType(t);
  AttrMap attrs;
  attrs.Set("T", arg.type);
  attrs.Set("index", static_cast<int64_t>(arg_order_.size()));
  ASSIGN_OR_RETURN(Node * node, function_->body->Add(arg.name, "_Arg", {}, std::move(attrs)));
  function_->args.push_back(node);
  function_->signature.inputs.push_back(std::move(arg));
  args_[{e.node, e.port}] = node;
  if (IsRef(t)) {  // the call gets the value
    AttrMap read;
    read.Set("T", BaseType(t));
    ASSIGN_OR_RETURN(Node * value, graph_.Add(e.node->name() + "/value", "Identity", {e}, read));
    e = {value, 0};
  }
  arg_order_.push_back(e);
  return OkStatus();
}

Endpoint FunctionOutline::InBody(Endpoint e) const {
  if (auto arg = args_.find({e.node, e.port}); arg != args_.end()) return {arg->second, 0};
  return {copies_.at(e.node), e.port};
}

Status FunctionOutline::Copy(const std::vector<Node*>& inside) {
  Graph& body = *function_->body;
  for (const Node* n : inside) {
    ASSIGN_OR_RETURN(Node * copy, AddCopy(body, *n, n->name()));
    copy->EraseAttr("_class");  // colocation with nodes that may not be here
    copies_[n] = copy;
    function_->signature.stateful |= n->def() != nullptr && n->def()->stateful;
  }
  for (const Node* n : inside) {
    Node* copy = copies_[n];
    for (const Endpoint& e : n->inputs()) body.AddInput(copy, InBody(e));
    for (const Node* control : n->control_inputs()) {
      if (auto it = copies_.find(control); it != copies_.end()) {
        body.AddControlInput(copy, it->second);
      }
    }
  }
  return OkStatus();
}

void FunctionOutline::AddResult(Endpoint e) {
  ArgDef result;
  result.name = absl::StrCat("output_", function_->results.size());
  result.type = BaseType(e.node->output_types[e.port]);
  function_->signature.outputs.push_back(std::move(result));
  function_->results.push_back({InBody(e)});
}

void FunctionOutline::AddEffect(const Node* n) {
  Node* copy = copies_.at(n);
  function_->control_results.emplace_back(copy->name(), copy);
  function_->signature.control_outputs.push_back(copy->name());
}

StatusOr<Node*> FunctionOutline::Call() {
  const std::string name = function_->name();
  std::vector<Dtype> in_types, out_types;
  for (const ArgDef& a : function_->signature.inputs) in_types.push_back(a.type);
  for (const ArgDef& r : function_->signature.outputs) out_types.push_back(r.type);
  AttrMap attrs;
  attrs.Set("f", FuncAttr{name, nullptr});
  attrs.Set("Tin", TypeList(std::move(in_types)));
  attrs.Set("Tout", TypeList(std::move(out_types)));
  RETURN_IF_ERROR(graph_.library()->Add(std::move(function_)));
  return graph_.Add(NodeNameOfFunction(name), "StatefulPartitionedCall", arg_order_,
                    std::move(attrs));
}

}  // namespace smelt
