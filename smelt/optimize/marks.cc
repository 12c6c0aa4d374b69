#include "smelt/optimize/passes.h"

namespace smelt {

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

void AddRoot(Node* node) { node->attrs().Set("_root", true); }

void MarkFed(Node* node) {
  AddRoot(node);
  node->attrs().Set("_fed", true);
}

bool IsFed(const Node& node) { return node.attrs().Find("_fed") != nullptr; }

void SetAttrsButMarks(Node* node, AttrMap attrs) {
  for (const absl::string_view mark : {"_root", "_fed"}) {
    if (const Attr* a = node->attrs().Find(mark)) attrs.Set(mark, *a);
  }
  node->attrs() = std::move(attrs);
}

void ClearMarks(Graph& graph) {
  for (Node* n : graph.Nodes()) {
    n->attrs().Erase("_root");
    n->attrs().Erase("_fed");
  }
}

}  // namespace smelt
