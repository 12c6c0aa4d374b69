#include "smelt/lite/check_own_fusions.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/verify.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

StatusOr<Node*> AddArg(Graph& alone, Endpoint e, int64_t index) {
  ASSIGN_OR_RETURN(Node * arg, alone.AddNode(absl::StrCat("operand_", index), "_Arg"));
  arg->AttrsToChange().Set("T", e.node->output_types[static_cast<size_t>(e.port)]);
  arg->AttrsToChange().Set("index", index);
  arg->AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{StatedShape(e)});
  RETURN_IF_ERROR(alone.ResolveTypes(arg));
  return arg;
}

// The operator, what it reads, and a reader of each of its results.
StatusOr<std::vector<Node*>> CopyAlone(const Node& n, Graph& alone) {
  ASSIGN_OR_RETURN(Node * copy, AddCopy(alone, n, n.name()));
  absl::flat_hash_map<std::pair<const Node*, int>, Endpoint> known;
  for (const Endpoint& e : n.inputs()) {
    Endpoint& from = known[{e.node, e.port}];
    if (from.node == nullptr && (e.node->Is("Const") || e.node->Is("tfl.no_value"))) {
      ASSIGN_OR_RETURN(Node * same, AddCopy(alone, *e.node, e.node->name()));
      from = {same, e.port};
    } else if (from.node == nullptr) {
      ASSIGN_OR_RETURN(Node * arg, AddArg(alone, e, static_cast<int64_t>(known.size()) - 1));
      from = {arg, 0};
    }
    alone.AddInput(copy, from);
  }
  std::vector<Node*> results;
  for (int i = 0; i < copy->num_outputs(); ++i) {
    ASSIGN_OR_RETURN(Node * result, alone.AddNode(absl::StrCat("result_", i), "_Retval"));
    result->AttrsToChange().Set("T", copy->output_types[static_cast<size_t>(i)]);
    result->AttrsToChange().Set("index", int64_t{i});
    alone.AddInput(result, {copy, i});
    RETURN_IF_ERROR(alone.ResolveTypes(result));
    results.push_back(result);
  }
  return results;
}

// Can the results have the shapes that the graph states?
Status CheckShapes(Node& n, const Graph& alone, const std::vector<Node*>& results) {
  ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(alone, {}));
  for (int i = 0; i < n.num_outputs(); ++i) {
    const PartialShape stated = StatedShape({&n, i});
    const PartialShape& made = shapes.of(results[static_cast<size_t>(i)]->input(0));
    if (PartialShape::Merge(stated, made).ok()) continue;
    return InvalidArgument("its output ", i, " is ", stated.ToString(), ", and it makes ",
                           made.ToString());
  }
  return OkStatus();
}

Status Check(Node& n) {
  Graph alone(std::make_shared<FunctionLibrary>());
  ASSIGN_OR_RETURN(const std::vector<Node*> results, CopyAlone(n, alone));
  LiteResources resources;
  const Status lowered = Lower(alone, "", resources);
  if (absl::IsUnimplemented(lowered)) return OkStatus();
  RETURN_IF_ERROR(lowered);
  Status right = Verify(alone);
  if (right.ok()) right = CheckShapes(n, alone, results);
  if (right.ok()) return right;
  return Prefix(right, absl::StrCat("operator '", n.name(), "' (", n.op(), "): "));
}

}  // namespace

Status CheckOwnFusions(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    if (n->Find(kOwnFusion) == nullptr) continue;
    const std::string fusion = n->String(kOwnFusion);
    n->EraseAttr(kOwnFusion);
    if (!absl::StartsWith(n->op(), "tfl.") || n->Is("tfl.custom")) continue;
    const Status right = Check(*n);
    if (!right.ok()) return Prefix(right, absl::StrCat("fusion ", fusion, ": "));
  }
  return OkStatus();
}

}  // namespace smelt
