#include "smelt/optimize/precision/lists_of_tensors.h"

namespace smelt {
namespace {

constexpr OpSet kListReaders = {"TensorListConcat",  "TensorListConcatV2", "TensorListGather",
                                "TensorListGetItem", "TensorListPopBack",  "TensorListStack"};
constexpr OpSet kListWriters = {"TensorListFromTensor",    "TensorListPushBack",
                                "TensorListPushBackBatch", "TensorListScatter",
                                "TensorListScatterV2",     "TensorListScatterIntoExistingList",
                                "TensorListSetItem",       "TensorListSplit"};
constexpr OpSet kOtherListOps = {"EmptyTensorList", "TensorListConcatLists", "TensorListReserve"};

bool IsListOp(const Node& n) {
  return n.Is(kListReaders) || n.Is(kListWriters) || n.Is(kOtherListOps);
}

}  // namespace

bool WritesList(const Node& n) { return n.Is(kListWriters); }
bool ReadsList(const Node& n) { return n.Is(kListReaders); }

int FloatElements(const TypeGraph& types, const Node& n) {
  if (!IsListOp(n)) return -1;
  const int place = types.Find(n, "element_dtype");
  return place >= 0 && types.at(place).type == Dtype::kFloat ? place : -1;
}

std::vector<ListCluster> FindListClusters(const TypeGraph& types,
                                          absl::FunctionRef<bool(const Node&)> may_change,
                                          absl::FunctionRef<bool(const Node&)> leaves) {
  std::vector<ListCluster> clusters;
  std::vector<bool> met(static_cast<size_t>(types.size()));
  std::vector<int> stack;
  for (int root = 0; root < types.size(); ++root) {
    const TypePlace& start = types.at(root);
    const bool lists = start.is_fixed() && start.type == Dtype::kVariant;
    if (!lists || met[static_cast<size_t>(root)] || FloatElements(types, *start.node) < 0) continue;
    ListCluster& cluster = clusters.emplace_back();
    met[static_cast<size_t>(root)] = true;
    stack.push_back(root);
    while (!stack.empty()) {
      const int place = stack.back();
      stack.pop_back();
      const Node& n = *types.at(place).node;
      const int elements = FloatElements(types, n);
      if (elements >= 0) {
        cluster.places.push_back(elements);
        cluster.must_stay |= !may_change(n);
      }
      cluster.must_stay |= leaves(n);
      for (const auto next : {types.sources(place), types.readers(place)}) {
        for (const int other : next) {
          if (met[static_cast<size_t>(other)]) continue;
          met[static_cast<size_t>(other)] = true;
          stack.push_back(other);
        }
      }
    }
  }
  return clusters;
}

}  // namespace smelt
