#include "smelt/lite/prepare/part.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_replace.h"
#include "smelt/graph/copy_node.h"
#include "smelt/lite/prepare/callable.h"

namespace smelt {
namespace {

Dtype PartType(Endpoint e) { return BaseType(e.node->output_types[static_cast<size_t>(e.port)]); }

}  // namespace

int64_t Captures::Of(Endpoint e) {
  const auto at = std::ranges::find(values, e);
  if (at != values.end()) return at - values.begin();
  values.push_back(e);
  return static_cast<int64_t>(values.size()) - 1;
}

StatusOr<std::unique_ptr<Graph>> CutPart(const Graph& graph, const std::vector<Endpoint>& results,
                                         const std::vector<Node*>& effects,
                                         const PartBorder& border, Captures& captures) {
  absl::flat_hash_set<const Node*> needed;
  std::vector<const Node*> todo;
  const auto need = [&](const Node* n) {
    if (needed.insert(n).second) todo.push_back(n);
  };
  const auto read = [&](Endpoint e) {
    const PartBorder::Place at = border.place(e);
    at.outside ? static_cast<void>(captures.Of(at.value)) : need(at.value.node);
  };
  for (const Endpoint& e : results) read(e);
  for (const Node* n : effects) need(n);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    for (const Endpoint& e : n->inputs()) read(e);
    for (Node* before : n->control_inputs()) {
      const PartBorder::Wait wait = border.wait(*before);
      if (wait == PartBorder::Wait::kInside) need(before);
      if (wait == PartBorder::Wait::kOutside) captures.waits.insert(before);
    }
  }
  auto out = std::make_unique<Graph>(graph.library());
  std::vector<Node*> args(captures.values.size());
  const auto argument = [&](Endpoint value) -> StatusOr<Endpoint> {
    const auto index = static_cast<size_t>(captures.Of(value));
    if (args[index] == nullptr) {
      AttrMap attrs;
      attrs.Set("T", PartType(value));
      attrs.Set("index", static_cast<int64_t>(index));
      ASSIGN_OR_RETURN(args[index], out->Add(value.node->name(), "_Arg", {}, std::move(attrs)));
    }
    return Endpoint{args[index], 0};
  };
  absl::flat_hash_map<const Node*, Node*> copies;
  const auto inside = [&](Endpoint e) -> StatusOr<Endpoint> {
    const PartBorder::Place at = border.place(e);
    if (at.outside) return argument(at.value);
    const auto copy = copies.find(at.value.node);
    if (copy == copies.end()) {
      return Internal("node '", at.value.node->name(), "' comes behind what reads it");
    }
    return Endpoint{copy->second, at.value.port};
  };
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  for (const Node* n : order) {
    if (!needed.contains(n)) continue;
    ASSIGN_OR_RETURN(Node * copy, AddCopy(*out, *n, n->name()));
    std::vector<Endpoint> inputs;
    for (const Endpoint& e : n->inputs()) {
      ASSIGN_OR_RETURN(inputs.emplace_back(), inside(e));
    }
    out->SetInputs(copy, inputs);
    for (const Node* before : n->control_inputs()) {
      const auto at = copies.find(before);
      if (at != copies.end()) out->AddControlInput(copy, at->second);
    }
    copies[n] = copy;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    ASSIGN_OR_RETURN(const Endpoint e, inside(results[i]));
    AttrMap attrs;
    attrs.Set("T", PartType(e));
    attrs.Set("index", static_cast<int64_t>(i));
    RETURN_IF_ERROR(out->Add("result", "_Retval", {e}, std::move(attrs)).status());
  }
  return out;
}

StatusOr<FuncAttr> AddPart(Graph& graph, std::unique_ptr<Graph> part, absl::string_view name,
                           const Captures& captures) {
  std::vector<CallableArgument> arguments;
  for (const Endpoint& e : captures.values) arguments.push_back({PartType(e), PartialShape()});
  RETURN_IF_ERROR(RestoreArguments(*part, arguments));
  const std::string free = graph.library()->FreeName(absl::StrReplaceAll(name, {{"/", "_"}}));
  ASSIGN_OR_RETURN(auto function, FunctionOf(std::move(part), free));
  RETURN_IF_ERROR(graph.library()->Add(std::move(function)));
  return FuncAttr{free, nullptr};
}

}  // namespace smelt
