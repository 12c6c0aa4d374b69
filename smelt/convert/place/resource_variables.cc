// Variables of TensorFlow 1 are references that an op can hold; an accelerator knows only
// resources. A variable whose every use has a counterpart becomes one: what reads it becomes
// ReadVariableOp, what assigns it AssignVariableOp. Nodes keep their names, so that the saver, the
// collections and whoever fetches by name find what they knew.
#include <algorithm>

#include "smelt/convert/stages.h"
#include "smelt/optimize/passes.h"
#include "smelt/wire/saved_model/signature_keys.h"
#include "smelt/wire/saved_model/variable_defs.h"

namespace smelt {
namespace {

// The op on a resource that does what the op on a reference does; empty: there is none.
absl::string_view OnResource(const Node& n) {
  if (n.Is("Identity")) return "ReadVariableOp";
  if (n.Is("Assign")) return "AssignVariableOp";
  if (n.Is("AssignAdd")) return "AssignAddVariableOp";
  if (n.Is("AssignSub")) return "AssignSubVariableOp";
  if (n.Is("IsVariableInitialized")) return "VarIsInitializedOp";
  return "";
}

bool TakesReference(const Node& n, int input) {
  return IsRef(n.input_types[input]) || n.Is("Identity");
}

// Does anything read the node's value? Control edges do not count.
bool HasReaders(const Node* n) {
  return std::ranges::any_of(n->uses(), [](const Use& use) { return !use.is_control(); });
}

// Variables that a request writes.
absl::flat_hash_set<const Node*> WrittenByRequests(const std::vector<const Node*>& outputs) {
  absl::flat_hash_set<const Node*> written, seen;
  std::vector<const Node*> todo = outputs;
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!seen.insert(n).second) continue;
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Node* from = n->inputs()[i].node;
      if (IsRef(n->input_types[i]) && !n->Is("IsVariableInitialized")) written.insert(from);
      todo.push_back(from);
    }
    todo.insert(todo.end(), n->control_inputs().begin(), n->control_inputs().end());
  }
  return written;
}

// `named`: nodes whose outputs signatures name, so that their type must stay.
bool CanBecomeResource(const absl::flat_hash_set<const Node*>& named, const Node* variable) {
  if (named.contains(variable)) return false;
  for (const Use& use : variable->uses()) {
    if (use.is_control() || !TakesReference(*use.node, use.input)) continue;
    const absl::string_view op = OnResource(*use.node);
    if (op.empty() || use.input != 0) return false;
    // Assign outputs the reference; AssignVariableOp has no output.
    const bool assigns = op != "ReadVariableOp" && op != "VarIsInitializedOp";
    if (assigns && (HasReaders(use.node) || named.contains(use.node))) return false;
  }
  return true;
}

Status MakeResource(Graph& g, Node* variable) {
  const Dtype dtype = variable->Type("dtype");
  AttrMap attrs;
  attrs.Set("dtype", dtype);
  attrs.Set("shape", variable->Get<PartialShape>("shape", {}));
  const std::string shared = variable->String("shared_name");
  attrs.Set("shared_name", shared.empty() ? variable->name() : shared);
  const std::string container = variable->String("container");
  if (!container.empty()) attrs.Set("container", container);
  g.SetOp(variable, "VarHandleOp");
  variable->AttrsToChange() = std::move(attrs);
  RETURN_IF_ERROR(g.ResolveTypes(variable));
  for (const Use& use : variable->OrderedUses()) {
    Node* n = use.node;
    if (use.is_control()) continue;
    AttrMap read;
    read.Set("dtype", dtype);
    if (!TakesReference(*n, use.input)) {
      ASSIGN_OR_RETURN(Node * value, g.Add(variable->name() + "/read", "ReadVariableOp",
                                           {{variable, 0}}, std::move(read)));
      g.SetControlInputs(value, n->control_inputs());  // so that it reads when its reader would
      g.SetInput(n, use.input, {value, 0});
      continue;
    }
    const std::string op(OnResource(*n));
    if (op == "VarIsInitializedOp") read = AttrMap();
    g.SetOp(n, op);
    n->AttrsToChange() = std::move(read);
    RETURN_IF_ERROR(g.ResolveTypes(n));
  }
  return OkStatus();
}

}  // namespace

Status MakeResourceVariables(Conversion& c, absl::string_view stage, absl::string_view otherwise) {
  Graph& g = *c.meta->graph;
  absl::flat_hash_set<const Node*> named;
  std::vector<const Node*> outputs;
  for (const auto& [name, signature] : c.meta->signatures) {
    for (const auto* side : {&signature.inputs, &signature.outputs}) {
      for (const auto& [key, info] : *side) {
        for (const std::string& tensor : TensorNames(info)) {
          auto e = g.FindEndpoint(tensor);
          if (!e.ok()) continue;
          named.insert(e->node);
          if (side == &signature.outputs && name != kInitSignature) outputs.push_back(e->node);
        }
      }
    }
  }
  // An Identity of a reference shows what is written after it, a ReadVariableOp does not: of
  // variables that requests write, each reader gets a read of its own (ReadLate).
  const absl::flat_hash_set<const Node*> written = WrittenByRequests(outputs);
  ReadLate(g, [&](const Node& n) { return written.contains(&n); });
  absl::flat_hash_set<std::string> resources;
  for (Node* n : g.Nodes()) {
    if (!n->Is("VariableV2") && !n->Is("Variable")) continue;
    if (!CanBecomeResource(named, n)) {
      if (otherwise.empty()) continue;
      c.records.AddNote(std::string(stage),
                        absl::StrCat("variable '", n->name(), "' stays a reference: ", otherwise),
                        "", n->name());
      continue;
    }
    RETURN_IF_ERROR(MakeResource(g, n));
    resources.insert(n->name());
  }
  DescribeAsResources(*c.meta, resources);
  if (!resources.empty()) c.variables = nullptr;  // traced anew
  return OkStatus();
}

}  // namespace smelt
