#include "smelt/optimize/graph_item.h"

#include "absl/container/flat_hash_set.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr OpSet kPullsFromDataset = {"IteratorGetNext", "IteratorGetNextSync",
                                     "DatasetToSingleElement", "ReduceDataset"};

std::string NodeName(absl::string_view tensor) {
  if (!tensor.empty() && tensor.front() == '^') tensor.remove_prefix(1);
  return std::string(tensor.substr(0, tensor.find(':')));
}

}  // namespace

std::vector<std::string> GraphItem::NodesToPreserve() const {
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> seen;
  const auto add = [&](absl::string_view tensor) {
    if (tensor.empty()) return;
    std::string name = NodeName(tensor);
    if (seen.insert(name).second) names.push_back(std::move(name));
  };
  for (const auto* list : {&fetches, &feeds, &init_ops, &keep_ops}) {
    for (const std::string& tensor : *list) add(tensor);
  }
  add(save_op);
  add(restore_op);
  add(save_restore_loc_tensor);
  for (const Node* n : graph->Nodes()) {
    const Attr* keep = n->attrs().Find("_grappler_do_not_remove");
    const bool* kept = keep == nullptr ? nullptr : keep->get<bool>();
    const bool state = !allow_pruning_stateful_and_dataset_ops &&
                       ((n->def() != nullptr && n->def()->stateful) || n->Is(kPullsFromDataset));
    if (state || (kept != nullptr && *kept)) add(n->name());
  }
  return names;
}

Status GraphItem::Mark() {
  for (const auto* list : {&feeds, &fetches}) {
    for (const std::string& tensor : *list) {
      // What is fetched may be run for its effect alone, as an op that trains.
      const Node* n = list == &fetches ? graph->Find(tensor) : nullptr;
      if (n != nullptr && n->num_outputs() == 0) continue;
      RETURN_IF_ERROR(graph->FindEndpoint(tensor).status());
    }
  }
  for (const std::string& name : NodesToPreserve()) {
    if (Node* n = graph->Find(name)) AddRoot(n);
  }
  for (const std::string& tensor : feeds) MarkFed(graph->Find(NodeName(tensor)));
  return OkStatus();
}

}  // namespace smelt
