#include "smelt/runtime/callable_graph.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/copy_node.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

using Port = std::pair<const Node*, int>;

StatusOr<Endpoint> FindTensor(const Graph& graph, const std::string& name, absl::string_view role) {
  auto e = graph.FindEndpoint(name);
  if (!e.ok() || e->port < 0) {
    return NotFound(role, ": unable to find ", role == "FeedInputs" ? "feed" : "fetch", " output ",
                    name, e.ok() ? "" : absl::StrCat(" (", e.status().message(), ")"));
  }
  return *e;
}

}  // namespace

StatusOr<std::unique_ptr<Graph>> CutCallable(const Graph& graph,
                                             const std::vector<std::string>& feeds,
                                             const std::vector<std::string>& fetches,
                                             const std::vector<std::string>& targets) {
  if (fetches.empty() && targets.empty()) {
    return InvalidArgument("Must specify at least one target to fetch or execute.");
  }
  auto out = std::make_unique<Graph>(graph.library());
  absl::flat_hash_map<Port, Node*> fed;
  absl::flat_hash_set<const Node*> fed_placeholders;
  for (size_t i = 0; i < feeds.size(); ++i) {
    ASSIGN_OR_RETURN(const Endpoint e, FindTensor(graph, feeds[i], "FeedInputs"));
    const Dtype dtype = e.node->output_types[e.port];
    if (dtype == Dtype::kInvalid) {
      return InvalidArgument("Tensor ", feeds[i], " of opaque op '", e.node->op(),
                             "' cannot be fed: its type is not known");
    }
    AttrMap attrs;
    attrs.Set("T", BaseType(dtype));
    attrs.Set("index", static_cast<int64_t>(i));
    ASSIGN_OR_RETURN(Node * arg, out->Add(e.node->name(), "_Arg", {}, std::move(attrs)));
    if (!fed.try_emplace(Port{e.node, e.port}, arg).second) {
      return InvalidArgument("Endpoint \"", feeds[i], "\" fed more than once.");
    }
    if (e.node->num_outputs() == 1) fed_placeholders.insert(e.node);
  }
  std::vector<Endpoint> fetched;
  std::vector<const Node*> stack;
  absl::flat_hash_map<const Node*, Node*> copy;
  auto visit = [&](const Node* n) {
    if (copy.try_emplace(n, nullptr).second) stack.push_back(n);
  };
  for (const std::string& name : fetches) {
    ASSIGN_OR_RETURN(const Endpoint e, FindTensor(graph, name, "FetchOutputs"));
    fetched.push_back(e);
    if (!fed.contains(Port{e.node, e.port})) visit(e.node);
  }
  std::vector<const Node*> target_nodes;
  for (const std::string& name : targets) {
    // "node", or one of its outputs.
    const Node* n = graph.Find(name.substr(0, name.rfind(':')));
    if (n == nullptr) return NotFound("PruneForTargets: Some target nodes not found: ", name);
    target_nodes.push_back(n);
    visit(n);
  }
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    for (const Endpoint& e : n->inputs()) {
      if (!fed.contains(Port{e.node, e.port})) visit(e.node);
    }
    for (const Node* c : n->control_inputs()) {
      if (!fed_placeholders.contains(c)) visit(c);
    }
  }
  std::vector<const Node*> order;
  order.reserve(copy.size());
  for (const auto& [n, none] : copy) order.push_back(n);
  std::ranges::sort(order, {}, &Node::id);
  for (const Node* n : order) {
    // The nodes of a call, which a graph that a request is cut from has no business to hold.
    if (n->Is("_Arg") || n->Is("_Retval")) {
      return InvalidArgument(n->Is("_Arg") ? "GetArg " : "SetRetval ", n->Int("index"),
                             " is not within [0, 0)\n\t [[{{node ", n->name(), "}}]]");
    }
    ASSIGN_OR_RETURN(copy[n], AddCopy(*out, *n, n->name()));
  }
  auto resolve = [&](Endpoint e) {
    auto it = fed.find(Port{e.node, e.port});
    return it != fed.end() ? Endpoint{it->second, 0} : Endpoint{copy.at(e.node), e.port};
  };
  for (const Node* n : order) {
    Node* c = copy[n];
    for (const Endpoint& e : n->inputs()) out->AddInput(c, resolve(e));
    for (const Node* control : n->control_inputs()) {
      auto it = copy.find(control);
      if (it != copy.end()) out->AddControlInput(c, it->second);
    }
  }
  for (size_t i = 0; i < fetched.size(); ++i) {
    const Dtype dtype = fetched[i].node->output_types[fetched[i].port];
    AttrMap attrs;
    attrs.Set("T", BaseType(dtype));
    attrs.Set("index", static_cast<int64_t>(i));
    const std::string name = absl::StrCat("_retval_", i);
    if (dtype != Dtype::kInvalid) {
      RETURN_IF_ERROR(out->Add(name, "_Retval", {resolve(fetched[i])}, std::move(attrs)).status());
      continue;
    }
    // An output of an opaque op: there is no kernel, and the error says so when it is looked for.
    ASSIGN_OR_RETURN(Node * r, out->AddNode(out->FreeName(name), "_Retval"));
    r->AttrsToChange() = std::move(attrs);
    out->SetInputs(r, {resolve(fetched[i])});
    r->SetInputTypes({Dtype::kInvalid});
  }
  for (const Node* t : target_nodes) AddRoot(copy.at(t));
  return out;
}

}  // namespace smelt
