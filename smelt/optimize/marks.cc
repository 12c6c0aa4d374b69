#include <algorithm>

#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr OpSet kSwitchOps = {"Switch", "RefSwitch"};

}  // namespace

std::vector<Node*> Roots(const Graph& graph) {
  std::vector<Node*> roots;
  for (Node* n : graph.Nodes()) {
    if (IsRoot(*n)) roots.push_back(n);
  }
  return roots;
}

bool IsRoot(const Node& node) {
  return node.Is("_Retval") || node.attrs().Find("_root") != nullptr;
}

void AddRoot(Node* node) { node->AttrsToChange().Set("_root", true); }

void MarkFed(Node* node) {
  AddRoot(node);
  node->AttrsToChange().Set("_fed", true);
}

bool IsFed(const Node& node) { return node.attrs().Find("_fed") != nullptr; }

StatusOr<Node*> WaitableNode(Graph& graph, Endpoint e) {
  if (!e.node->Is(kSwitchOps)) return e.node;
  for (const Use& use : e.node->OrderedUses()) {
    if (!use.is_control() && use.port() == e.port && use.node->Is("Identity")) return use.node;
  }
  AttrMap attrs;
  attrs.Set("T", BaseType(e.node->output_types[static_cast<size_t>(e.port)]));
  ASSIGN_OR_RETURN(Node * identity,
                   graph.Add(absl::StrCat("ConstantFoldingCtrl/", e.node->name(), "_", e.port),
                             "Identity", {e}, std::move(attrs)));
  identity->device = e.node->device;
  return identity;
}

void AddWait(Graph& graph, Node* node, Node* before) {
  if (node == before) return;
  const bool reads =
      std::ranges::any_of(node->inputs(), [&](const Endpoint& e) { return e.node == before; });
  if (!reads) graph.AddControlInput(node, before);
}

void SetAttrsButMarks(Node* node, AttrMap attrs) {
  for (const absl::string_view mark : {"_root", "_fed"}) {
    if (const Attr* a = node->attrs().Find(mark)) attrs.Set(mark, *a);
  }
  node->AttrsToChange() = std::move(attrs);
}

void ClearMarks(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    n->EraseAttr("_root");
    n->EraseAttr("_fed");
  }
}

}  // namespace smelt
