#include "smelt/lite/check_own_fusions.h"

#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/verify.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/lite/prepare/part.h"

namespace smelt {
namespace {

// The operator and its constants; all else that it reads are arguments of the shapes stated.
StatusOr<std::unique_ptr<Graph>> CutAlone(const Graph& graph, Node& n) {
  std::vector<Endpoint> results;
  for (int i = 0; i < n.num_outputs(); ++i) results.push_back({&n, i});
  PartBorder border;
  border.place = [&](Endpoint e) {
    const bool inside = e.node == &n || e.node->Is({"Const", "tfl.no_value"});
    return PartBorder::Place{e, !inside};
  };
  border.wait = [](const Node&) { return PartBorder::Wait::kNone; };
  Captures captures;
  ASSIGN_OR_RETURN(auto alone, CutPart(graph, results, {}, border, captures));
  for (Node* arg : alone->Nodes()) {
    if (!arg->Is("_Arg")) continue;
    const Endpoint e = captures.values[static_cast<size_t>(arg->Int("index"))];
    arg->AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{StatedShape(e)});
  }
  return alone;
}

// Can the results have the shapes that the graph states?
Status CheckShapes(Node& n, const Graph& alone) {
  ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(alone, {}));
  for (const Node* result : alone.Nodes()) {
    if (!result->Is("_Retval")) continue;
    const int i = static_cast<int>(result->Int("index"));
    const PartialShape stated = StatedShape({&n, i});
    const PartialShape& made = shapes.of(result->input(0));
    if (PartialShape::Merge(stated, made).ok()) continue;
    return InvalidArgument("its output ", i, " is ", stated.ToString(), ", and it makes ",
                           made.ToString());
  }
  return OkStatus();
}

Status Check(const Graph& graph, Node& n) {
  ASSIGN_OR_RETURN(const auto alone, CutAlone(graph, n));
  LiteResources resources;
  const Status lowered = Lower(*alone, "", resources);
  if (absl::IsUnimplemented(lowered)) return OkStatus();
  RETURN_IF_ERROR(lowered);
  Status right = Verify(*alone);
  if (right.ok()) right = CheckShapes(n, *alone);
  if (right.ok()) return right;
  return Prefix(right, absl::StrCat("operator '", n.name(), "' (", n.op(), "): "));
}

Status CheckOwnFusions(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    if (n->Find(kOwnFusion) == nullptr) continue;
    const std::string fusion = n->String(kOwnFusion);
    n->EraseAttr(kOwnFusion);
    if (!absl::StartsWith(n->op(), "tfl.") || n->Is("tfl.custom")) continue;
    const Status right = Check(graph, *n);
    if (!right.ok()) return Prefix(right, absl::StrCat("fusion ", fusion, ": "));
  }
  return OkStatus();
}

}  // namespace

Status FuseChecked(Graph& graph, const FusionChoice& choice, std::vector<FusionNote>* notes) {
  RETURN_IF_ERROR(Fuse(graph, choice, notes));
  return CheckOwnFusions(graph);
}

}  // namespace smelt
