// A signature of TensorFlow 1 is what lies in the graph between named tensors. To be placed it
// becomes what TensorFlow 2 saves: one call of a function.
//
// Into the function goes everything between the signature's inputs and outputs, control edges
// included. What makes a resource or holds a variable stays outside: handles are passed on, and of
// variables that had to stay references (resource_variables.cc) the values. The nodes that were
// copied stay where they are, for other signatures and for those who fetch tensors by name.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "smelt/convert/place/outline.h"
#include "smelt/convert/stages.h"

namespace smelt {
namespace {

// A feed, or a node that makes state which outlives a request: variables of both kinds, tables,
// queues.
bool StaysOutside(const Node& n) {
  if (n.Is("Placeholder") || n.Is("_Arg")) return true;
  if (n.def() == nullptr || !n.def()->stateful) return false;
  for (Dtype t : n.output_types) {
    if (IsRef(t) && n.inputs().empty()) return true;
    if (t == Dtype::kResource && n.inputs().empty()) return true;
  }
  return false;
}

class Outliner {
 public:
  Outliner(Conversion& c, const std::string& signature, std::string name)
      : graph_(*c.meta->graph),
        signature_(c.meta->signatures[signature]),
        outline_(graph_, std::move(name)) {}

  Status Run() {
    std::vector<std::string*> in, out;
    for (auto& [key, info] : signature_.inputs) TensorNames(info, &in);
    for (auto& [key, info] : signature_.outputs) TensorNames(info, &out);
    if (out.empty()) return InvalidArgument("the signature has no outputs");
    for (const std::string* name : in) {
      ASSIGN_OR_RETURN(const Endpoint e, graph_.FindEndpoint(*name));
      RETURN_IF_ERROR(outline_.AddArg(e));
    }
    std::vector<Endpoint> outputs;
    for (const std::string* name : out) {
      ASSIGN_OR_RETURN(const Endpoint e, graph_.FindEndpoint(*name));
      outputs.push_back(e);
    }
    ASSIGN_OR_RETURN(const std::vector<Node*> inside, Inside(outputs));
    RETURN_IF_ERROR(outline_.Copy(inside));
    for (const Endpoint& e : outputs) outline_.AddResult(e);
    ASSIGN_OR_RETURN(Node * call, outline_.Call());
    for (size_t i = 0; i < out.size(); ++i) {
      *out[i] = absl::StrCat(call->name(), ":", i);
    }
    return OkStatus();
  }

 private:
  // The nodes that the outputs need beyond the inputs, in the order of the graph. What comes from
  // nodes that stay outside becomes arguments.
  StatusOr<std::vector<Node*>> Inside(const std::vector<Endpoint>& outputs) {
    absl::flat_hash_set<Node*> seen;
    std::vector<Node*> stack;
    Status refused = OkStatus();
    const auto visit = [&](Endpoint e) {
      if (e.port >= 0 && outline_.IsArg(e)) return;
      if (StaysOutside(*e.node)) {
        if (e.port >= 0 && refused.ok()) refused = outline_.AddArg(e);
        return;
      }
      if (seen.insert(e.node).second) stack.push_back(e.node);
    };
    for (const Endpoint& e : outputs) visit(e);
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (size_t i = 0; i < n->inputs().size(); ++i) {
        visit(n->inputs()[i]);
        if (IsRef(n->input_types[i]) && StaysOutside(*n->inputs()[i].node)) {
          return Unimplemented("node '", n->name(), "' (", n->op(), ") writes to variable '",
                               n->inputs()[i].node->name(),
                               "', of which a function only gets the value");
        }
      }
      for (Node* control : n->control_inputs()) visit({control, -1});
    }
    RETURN_IF_ERROR(refused);
    std::vector<Node*> inside(seen.begin(), seen.end());
    std::ranges::sort(inside, {}, &Node::id);
    return inside;
  }

  Graph& graph_;
  Signature& signature_;
  FunctionOutline outline_;
};

}  // namespace

StatusOr<std::string> OutlineSignature(Conversion& c, const std::string& name) {
  RETURN_IF_ERROR(
      MakeResourceVariables(c, "resolve", "its value crosses to the TPU with each request"));
  std::string function = "signature_";
  for (char ch : name) function += absl::ascii_isalnum(ch) ? ch : '_';
  function = c.library().FreeName(function);
  const Status s = Outliner(c, name, function).Run();
  if (!s.ok()) {
    return Prefix(s, absl::StrCat("signature_name \"", name,
                                  "\" is not one function call and cannot be made one: "));
  }
  return function;
}

}  // namespace smelt
