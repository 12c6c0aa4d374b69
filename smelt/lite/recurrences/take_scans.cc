#include "smelt/graph/shape/infer.h"
#include "smelt/lite/recurrences/recurrence.h"

namespace smelt {

StatusOr<Scan> ReadScan(Node* node, std::span<const std::unique_ptr<Graph>> bodies) {
  Scan s;
  s.node = node;
  const int64_t number = node->Int("body");
  if (number < 0 || static_cast<size_t>(number) >= bodies.size()) {
    return Internal("scan '", node->name(), "' has no body");
  }
  s.body = bodies[static_cast<size_t>(number)].get();
  const auto count = [&](const char* types) {
    return static_cast<int>(node->Get<std::vector<Dtype>>(types, {}).size());
  };
  s.states = count("Tstates");
  s.rows = count("Trows");
  s.rest = count("Trest");
  s.arrays = static_cast<int>(node->Int("num_arrays"));
  s.last = node->Get<std::vector<bool>>("last", {});
  s.args.resize(static_cast<size_t>(s.states + s.rows + s.rest));
  s.results.resize(static_cast<size_t>(s.states + s.arrays + (node->Bool("until") ? 1 : 0)));
  for (Node* n : s.body->Nodes()) {
    if (n->Is("_Arg")) s.args.at(static_cast<size_t>(n->Int("index"))) = n;
    if (n->Is("_Retval")) s.results.at(static_cast<size_t>(n->Int("index"))) = n;
  }
  return s;
}

Status TakeScans(Graph& graph, std::span<const std::unique_ptr<Graph>> bodies,
                 const std::set<std::string, std::less<>>& off, std::vector<FusionNote>* notes) {
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  for (Node* n : order) {
    if (!n->Is("_Scan") || off.contains("FuseLstm")) continue;
    ASSIGN_OR_RETURN(const Scan scan, ReadScan(n, bodies));
    ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph, {}));
    const std::string name = n->name();
    std::string why;
    ASSIGN_OR_RETURN(const bool taken, TakeLstm(graph, scan, shapes, &why));
    if (notes != nullptr) notes->push_back({"FuseLstm", name, taken ? "" : why});
  }
  return OkStatus();
}

}  // namespace smelt
