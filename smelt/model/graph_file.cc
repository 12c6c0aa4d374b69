#include "smelt/model/graph_file.h"

#include "smelt/io/fs.h"

namespace smelt {
namespace {

Status AddTensor(const Graph& graph, const std::string& key,
                 std::map<std::string, TensorInfo>* to) {
  const Node* opaque = graph.Find(key.substr(0, key.find(':')));
  if (opaque != nullptr && opaque->def() == nullptr) {
    return NotFound("Op type not registered '", opaque->op(), "': what node '", opaque->name(),
                    "' answers is not known");
  }
  ASSIGN_OR_RETURN(const Endpoint e, graph.FindEndpoint(key));
  if (e.port < 0 || e.port >= e.node->num_outputs()) {
    return NotFound("'", key, "': node '", e.node->name(), "' (", e.node->op(), ") has ",
                    e.node->num_outputs(), " outputs");
  }
  TensorInfo info;
  info.kind = TensorInfo::Kind::kDense;
  info.name = EndpointName(e);
  info.dtype = e.node->output_types[e.port];
  if (e.node->Is("Placeholder")) info.shape = e.node->Get<PartialShape>("shape", {});
  (*to)[key] = std::move(info);
  return OkStatus();
}

}  // namespace

StatusOr<MetaGraph> ReadGraphFile(const std::string& path, const std::vector<std::string>& feeds,
                                  const std::vector<std::string>& fetches) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  MetaGraph meta;
  auto graph = ParseGraphDef(bytes, &meta.versions);
  if (!graph.ok()) return Prefix(graph.status(), absl::StrCat(path, ": "));
  meta.graph = *std::move(graph);
  std::vector<std::string> in = feeds, out = fetches;
  for (Node* n : meta.graph->Nodes()) {
    if (feeds.empty() && n->Is("Placeholder")) in.push_back(n->name());
    if (!fetches.empty()) continue;
    for (int port = 0; port < n->num_outputs(); ++port) {
      if (n->uses().empty() && !n->Is("Placeholder")) {
        out.push_back(EndpointName({n, port}));
      }
    }
  }
  Signature signature;
  signature.method_name = "tensorflow/serving/predict";
  for (const std::string& key : in) RETURN_IF_ERROR(AddTensor(*meta.graph, key, &signature.inputs));
  for (const std::string& key : out) {
    RETURN_IF_ERROR(AddTensor(*meta.graph, key, &signature.outputs));
  }
  meta.signatures["serving_default"] = std::move(signature);
  return meta;
}

}  // namespace smelt
