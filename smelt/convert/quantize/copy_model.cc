// A copy of a model in memory.
#include "smelt/convert/quantize/quantize.h"

namespace smelt::quantize {

StatusOr<MetaGraph> CopyModel(const MetaGraph& meta) {
  const FunctionLibrary& from = *meta.graph->library();
  auto library = std::make_shared<FunctionLibrary>();
  for (const auto& [name, def] : from.own_ops()) library->AddOp(*def);
  for (const Function* f : from.Functions()) library->Declare(f->signature);
  library->gradients = from.gradients;
  library->registered_gradients = from.registered_gradients;
  for (const Function* f : from.Functions()) {
    auto copy = std::make_unique<Function>();
    copy->signature = f->signature;
    copy->attrs = f->attrs;
    copy->arg_attrs = f->arg_attrs;
    copy->extra = f->extra;
    copy->body = std::make_unique<Graph>(library);
    ASSIGN_OR_RETURN(const NodeCopies map, copy->body->CopyFrom(*f->body, ""));
    for (const Node* arg : f->args) copy->args.push_back(map.Of(arg));
    for (const auto& result : f->results) {
      auto& out = copy->results.emplace_back();
      for (const Endpoint& e : result) out.push_back({map.Of(e.node), e.port});
    }
    for (const auto& [name, node] : f->control_results) {
      copy->control_results.emplace_back(name, map.Of(node));
    }
    RETURN_IF_ERROR(library->Add(std::move(copy)));
  }
  MetaGraph out;
  out.tags = meta.tags;
  out.tensorflow_version = meta.tensorflow_version;
  out.tensorflow_git_version = meta.tensorflow_git_version;
  out.stripped_default_attrs = meta.stripped_default_attrs;
  out.function_aliases = meta.function_aliases;
  out.versions = meta.versions;
  out.signatures = meta.signatures;
  out.saver = meta.saver;
  out.collections = meta.collections;
  out.assets = meta.assets;
  out.object_graph = meta.object_graph;
  out.extra = meta.extra;
  out.graph = std::make_unique<Graph>(library);
  RETURN_IF_ERROR(out.graph->CopyFrom(*meta.graph, "").status());
  return out;
}

}  // namespace smelt::quantize
