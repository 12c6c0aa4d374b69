// A signature of TensorFlow 1 is a piece of the graph between named tensors. To be placed it
// becomes what TensorFlow 2 saves: one call of a function.
//
// Into the function goes everything between the signature's inputs and outputs, control edges
// included. What makes a resource or holds a variable stays outside: handles are passed on, and of
// variables that had to stay references (resource_variables.cc) the values. The nodes that were
// copied stay where they are, for other signatures and for those who fetch tensors by name.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "smelt/convert/stages.h"

namespace smelt {
namespace {

// Holds state that outlives a request: variables of both kinds, tables, queues.
bool StaysOutside(const Node& n) {
  if (n.Is("Placeholder") || n.Is("_Arg")) return true;
  if (n.def() == nullptr || !n.def()->stateful) return false;
  for (Dtype t : n.output_types) {
    if (IsRef(t) && n.inputs.empty()) return true;
    if (t == Dtype::kResource && n.inputs.empty()) return true;
  }
  return false;
}

class Outliner {
 public:
  Outliner(Conversion& c, const std::string& signature)
      : graph_(*c.meta->graph), library_(c.library()), signature_(c.meta->signatures[signature]) {
    name_ = "signature_";
    for (char ch : signature) name_ += absl::ascii_isalnum(ch) ? ch : '_';
    name_ = library_.FreeName(name_);
  }

  StatusOr<std::string> Run() {
    std::vector<std::string*> in, out;
    for (auto& [key, info] : signature_.inputs) TensorNames(info, &in);
    for (auto& [key, info] : signature_.outputs) TensorNames(info, &out);
    if (out.empty()) return InvalidArgument("the signature has no outputs");
    function_ = std::make_unique<Function>();
    function_->signature.name = name_;
    function_->body = std::make_unique<Graph>(graph_.library());
    for (const std::string* name : in) {
      ASSIGN_OR_RETURN(const Endpoint e, graph_.FindEndpoint(*name));
      if (!args_.contains({e.node, e.port})) RETURN_IF_ERROR(AddArg(e));
    }
    std::vector<Endpoint> outputs;
    for (const std::string* name : out) {
      ASSIGN_OR_RETURN(const Endpoint e, graph_.FindEndpoint(*name));
      outputs.push_back(e);
    }
    ASSIGN_OR_RETURN(const std::vector<Node*> inside, Inside(outputs));
    RETURN_IF_ERROR(Copy(inside));
    std::vector<Dtype> out_types;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Dtype t = BaseType(outputs[i].node->output_types[outputs[i].port]);
      ArgDef result;
      result.name = absl::StrCat("output_", i);
      result.type = t;
      function_->signature.outputs.push_back(std::move(result));
      function_->results.push_back({InBody(outputs[i])});
      out_types.push_back(t);
    }
    for (const Node* n : inside) {
      function_->signature.stateful |= n->def() != nullptr && n->def()->stateful;
    }
    AttrMap attrs;
    std::vector<Dtype> in_types;
    for (const Endpoint& e : arg_order_) in_types.push_back(BaseType(e.node->output_types[e.port]));
    attrs.Set("f", FuncAttr{name_, nullptr});
    attrs.Set("Tin", in_types.empty() ? Attr(EmptyList{}) : Attr(in_types));
    attrs.Set("Tout", out_types);
    RETURN_IF_ERROR(library_.Add(std::move(function_)));
    ASSIGN_OR_RETURN(Node * call,
                     graph_.Add(name_, "StatefulPartitionedCall", arg_order_, std::move(attrs)));
    for (size_t i = 0; i < out.size(); ++i) {
      *out[i] = absl::StrCat(call->name(), ":", i);
    }
    return name_;
  }

 private:
  Status AddArg(Endpoint e) {
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
    if (IsRef(t)) {
      AttrMap read;
      read.Set("T", BaseType(t));
      ASSIGN_OR_RETURN(Node * value, graph_.Add(e.node->name() + "/value", "Identity", {e}, read));
      e = {value, 0};
    }
    arg_order_.push_back(e);
    return OkStatus();
  }

  // What the outputs need and the inputs do not give. In the order of the graph.
  StatusOr<std::vector<Node*>> Inside(const std::vector<Endpoint>& outputs) {
    absl::flat_hash_set<Node*> seen;
    std::vector<Node*> stack;
    Status refused = OkStatus();
    const auto visit = [&](Endpoint e) {
      if (e.port >= 0 && args_.contains({e.node, e.port})) return;
      if (StaysOutside(*e.node)) {
        if (e.port >= 0 && refused.ok()) refused = AddArg(e);
        return;
      }
      if (seen.insert(e.node).second) stack.push_back(e.node);
    };
    for (const Endpoint& e : outputs) visit(e);
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (size_t i = 0; i < n->inputs.size(); ++i) {
        visit(n->inputs[i]);
        if (IsRef(n->input_types[i]) && StaysOutside(*n->inputs[i].node)) {
          return Unimplemented("node '", n->name(), "' (", n->op(), ") writes to variable '",
                               n->inputs[i].node->name(),
                               "', of which a function only gets the value");
        }
      }
      for (Node* control : n->control_inputs) visit({control, -1});
    }
    RETURN_IF_ERROR(refused);
    std::vector<Node*> inside(seen.begin(), seen.end());
    std::sort(inside.begin(), inside.end(),
              [](const Node* a, const Node* b) { return a->id() < b->id(); });
    return inside;
  }

  Endpoint InBody(Endpoint e) const {
    if (auto arg = args_.find({e.node, e.port}); arg != args_.end()) {
      return Endpoint{arg->second, 0};
    }
    return Endpoint{copies_.at(e.node), e.port};
  }

  Status Copy(const std::vector<Node*>& inside) {
    Graph& body = *function_->body;
    for (const Node* n : inside) {
      ASSIGN_OR_RETURN(Node * copy, body.AddNode(body.FreeName(n->name()), n->op()));
      copy->attrs() = n->attrs();
      copy->attrs().Erase("_class");  // colocation with nodes that may not be here
      copy->device = n->device;
      copy->input_types = n->input_types;
      copy->output_types = n->output_types;
      copy->opaque_outputs = n->opaque_outputs;
      copy->extra = n->extra;
      copies_[n] = copy;
    }
    for (const Node* n : inside) {
      Node* copy = copies_[n];
      for (const Endpoint& e : n->inputs) copy->inputs.push_back(InBody(e));
      for (const Node* control : n->control_inputs) {
        if (auto it = copies_.find(control); it != copies_.end()) {
          copy->control_inputs.push_back(it->second);
        }
      }
    }
    return OkStatus();
  }

  Graph& graph_;
  FunctionLibrary& library_;
  Signature& signature_;
  std::string name_;
  std::unique_ptr<Function> function_;
  absl::flat_hash_map<std::pair<const Node*, int>, Node*> args_;
  std::vector<Endpoint> arg_order_;
  absl::flat_hash_map<const Node*, Node*> copies_;
};

}  // namespace

StatusOr<std::string> OutlineSignature(Conversion& c, const std::string& name) {
  RETURN_IF_ERROR(MakeResourceVariables(c));
  auto function = Outliner(c, name).Run();
  if (!function.ok()) {
    return Prefix(function.status(), absl::StrCat("signature_name \"", name,
                                                  "\" is not one function call and cannot be made "
                                                  "one: "));
  }
  return function;
}

}  // namespace smelt
