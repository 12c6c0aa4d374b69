#include <algorithm>

#include "smelt/graph/function_ops.h"
#include "smelt/graph/infer_attrs.h"
#include "smelt/lite/recurrences/recurrence.h"
#include "smelt/optimize/pipeline.h"

namespace smelt {
namespace {

using Bodies = std::vector<std::unique_ptr<Graph>>;

constexpr absl::string_view kLoopPasses[] = {
    "scan_loops",            // lists become arrays
    "constant_folding",      // what moved in front of a loop
    "dependency_optimizer",  // and the identities that it left
};

struct Recurrence {
  absl::string_view fusion;
  StatusOr<bool> (*take)(Graph&, const Scan&, const ShapeTable&, std::string* why);
};
constexpr Recurrence kRecurrences[] = {{"FuseLstm", TakeLstm}, {"FuseRnn", TakeRnn}};

StatusOr<Scan> ReadScan(Node* node, Bodies& bodies) {
  Scan s;
  s.node = node;
  const int64_t number = node->Int("body");
  if (number < 0 || static_cast<size_t>(number) >= bodies.size()) {
    return Internal("scan '", node->name(), "' has no body");
  }
  s.body = &bodies[static_cast<size_t>(number)];
  const auto count = [&](const char* types) {
    return static_cast<int>(node->Get<std::vector<Dtype>>(types, {}).size());
  };
  s.states = count("Tstates");
  s.rows = count("Trows");
  s.rest = count("Trest");
  s.arrays = static_cast<int>(node->Int("num_arrays"));
  s.last = node->Get<std::vector<bool>>("last", {});
  s.args.resize(static_cast<size_t>(s.states + s.rows + s.rest));
  s.results.resize(static_cast<size_t>(s.states + s.arrays + (s.until() ? 1 : 0)));
  for (Node* n : (*s.body)->Nodes()) {
    if (n->Is("_Arg")) s.args.at(static_cast<size_t>(n->Int("index"))) = n;
    if (n->Is("_Retval")) s.results.at(static_cast<size_t>(n->Int("index"))) = n;
  }
  return s;
}

}  // namespace

StatusOr<Endpoint> AddOp(Graph& graph, absl::string_view name, absl::string_view op,
                         std::initializer_list<Endpoint> inputs, AttrMap attrs) {
  ASSIGN_OR_RETURN(Node * n, graph.AddNode(graph.FreeName(name), op));
  n->AttrsToChange() = std::move(attrs);
  graph.SetInputs(n, inputs);
  RETURN_IF_ERROR(InferAttrs(n, graph.library().get()));
  RETURN_IF_ERROR(graph.ResolveTypes(n));
  return Endpoint{n, 0};
}

Status TakeLoops(std::unique_ptr<Graph>& graph, const PassContext& context,
                 const std::set<std::string, std::less<>>& off, std::vector<FusionNote>* notes) {
  const auto loops = [](const Graph& g) {
    for (const Node* n : g.Nodes()) {
      if (IsLoop(*n) || n->Is({"Enter", "Unpack"})) return true;
    }
    return false;
  };
  if (!loops(*graph)) return OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<Graph> rewritten, graph->Clone());
  Bodies bodies;
  PassContext inside = context;
  inside.scan_bodies = &bodies;
  // Fused nodes are this program's own.
  inside.config.remapping = Toggle::kOff;
  std::vector<Pass> passes;
  for (const absl::string_view name : kLoopPasses) {
    const Pass* pass = FindPass(name);
    if (pass == nullptr) return Internal("there is no pass ", name);
    passes.push_back(*pass);
  }
  RETURN_IF_ERROR(RunPasses(passes, *rewritten, inside));
  ASSIGN_OR_RETURN(const std::vector<Node*> order, rewritten->TopologicalOrder());
  // A loop without lists is right as it is: its condition need not go around.
  const bool lists = std::ranges::any_of(order, [](const Node* n) {
    return n->Is("_Scan") &&
           (n->Int("num_arrays") > 0 || !n->Get<std::vector<Dtype>>("Trows", {}).empty());
  });
  if (!lists) return OkStatus();
  std::vector<FusionNote> said;
  bool any = false;
  for (Node* n : order) {
    if (!n->Is("_Scan")) continue;
    ASSIGN_OR_RETURN(const Scan scan, ReadScan(n, bodies));
    const std::string name = n->name();
    std::string why;
    bool taken = false;
    // Of a loop that became an operator, nobody asks what other one it is not.
    std::vector<FusionNote> tried;
    for (const Recurrence& r : kRecurrences) {
      if (taken || off.contains(r.fusion)) continue;
      ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(*rewritten, {}));
      why.clear();
      ASSIGN_OR_RETURN(taken, r.take(*rewritten, scan, shapes, &why));
      if (taken) tried.clear();
      if (taken || !why.empty()) tried.push_back({std::string(r.fusion), name, why});
    }
    said.insert(said.end(), tried.begin(), tried.end());
    if (!taken) {
      ASSIGN_OR_RETURN(taken, TakeWhile(*rewritten, scan, &why));
      said.push_back({"LoopOverArrays", name, taken ? "" : why});
    }
    if (!taken) {
      // Nothing is as it was said to be but what was declined.
      std::erase_if(said, [](const FusionNote& note) { return note.why_not.empty(); });
      if (notes != nullptr) notes->insert(notes->end(), said.begin(), said.end());
      return OkStatus();
    }
    any = true;
  }
  if (!any) return OkStatus();
  graph = std::move(rewritten);
  if (notes != nullptr) notes->insert(notes->end(), said.begin(), said.end());
  return OkStatus();
}

}  // namespace smelt
