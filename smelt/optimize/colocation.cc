// Groups of nodes that must stand on one device, after nodes that named the groups went.
#include <map>

#include "absl/strings/match.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr absl::string_view kPrefix = "loc:@";

}  // namespace

void ReassignColocation(Graph& graph) {
  // By the name of a node that is gone: the member that stands for it now.
  std::map<std::string, Node*> leaders;
  for (Node* n : graph.Nodes()) {
    const Attr* attr = n->attrs().Find("_class");
    const auto* classes = attr == nullptr ? nullptr : attr->get<std::vector<std::string>>();
    if (classes == nullptr) continue;
    std::vector<std::string> kept;
    for (const std::string& c : *classes) {
      const std::string leader = absl::StartsWith(c, kPrefix) ? c.substr(kPrefix.size()) : "";
      // Where a function is written its arguments are no nodes.
      const Node* there = leader.empty() ? nullptr : graph.Find(leader);
      if (leader.empty() || (there != nullptr && !there->Is("_Arg"))) {
        kept.push_back(c);
        continue;
      }
      const auto [it, first] = leaders.try_emplace(leader, n);
      if (!first) kept.push_back(absl::StrCat(kPrefix, it->second->name()));
    }
    if (kept == *classes) continue;
    if (kept.empty()) {
      n->EraseAttr("_class");
    } else {
      n->AttrsToChange().Set("_class", std::move(kept));
    }
  }
}

}  // namespace smelt
