#include "smelt/lite/prepare/callable.h"

#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/optimize/passes.h"

namespace smelt {

std::vector<Node*> ArgumentsOf(const Graph& graph, size_t count) {
  std::vector<Node*> out(count);
  for (Node* n : graph.Nodes()) {
    if (!n->Is("_Arg")) continue;
    const auto index = static_cast<size_t>(n->Int("index"));
    if (index >= out.size()) out.resize(index + 1);
    out[index] = n;
  }
  return out;
}

std::vector<Node*> ResultsOf(const Graph& graph) {
  std::vector<Node*> out;
  for (Node* n : graph.Nodes()) {
    if (!n->Is("_Retval")) continue;
    const auto index = static_cast<size_t>(n->Int("index"));
    if (index >= out.size()) out.resize(index + 1);
    out[index] = n;
  }
  return out;
}

Status RestoreArguments(Graph& graph, const std::vector<CallableArgument>& arguments) {
  const std::vector<Node*> there = ArgumentsOf(graph, arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (there[i] != nullptr) continue;
    AttrMap attrs;
    attrs.Set("T", BaseType(arguments[i].type));
    attrs.Set("index", static_cast<int64_t>(i));
    attrs.Set(kOutputShapes, std::vector<PartialShape>{arguments[i].shape});
    RETURN_IF_ERROR(
        graph.Add(absl::StrCat("unread_argument_", i), "_Arg", {}, std::move(attrs)).status());
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Function>> FunctionOf(std::unique_ptr<Graph> graph,
                                               const std::string& name) {
  auto f = std::make_unique<Function>();
  f->signature.name = name;
  f->args = ArgumentsOf(*graph, 0);
  for (const Node* arg : f->args) {
    if (arg == nullptr) return Internal("function '", name, "' lacks an argument");
    ArgDef def;
    def.name = arg->name();
    def.type = arg->output_types[0];
    f->signature.inputs.push_back(std::move(def));
  }
  for (Node* result : ResultsOf(*graph)) {
    if (result == nullptr) return Internal("function '", name, "' lacks a result");
    ArgDef def;
    def.name = absl::StrCat("result_", f->results.size());
    def.type = BaseType(result->input_types[0]);
    f->signature.outputs.push_back(std::move(def));
    f->results.push_back({result->input(0)});
  }
  for (Node* result : ResultsOf(*graph)) graph->Remove(result);
  for (Node* n : graph->Nodes()) {
    if (n->def() == nullptr || !n->def()->stateful || n->Is(kReadsState)) continue;
    f->signature.control_outputs.push_back(n->name());
    f->control_results.emplace_back(n->name(), n);
  }
  f->body = std::move(graph);
  return f;
}

StatusOr<std::unique_ptr<Graph>> GraphOf(const Function& f) {
  ASSIGN_OR_RETURN(auto graph, Instantiate(f, nullptr));
  std::vector<CallableArgument> arguments;
  for (Node* arg : f.args) arguments.push_back({arg->output_types[0], StatedShape({arg, 0})});
  RETURN_IF_ERROR(RestoreArguments(*graph, arguments));
  return graph;
}

}  // namespace smelt
