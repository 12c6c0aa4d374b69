#include "smelt/convert/transfer/stated_shapes.h"

#include <algorithm>
#include <set>

#include "smelt/graph/op_facts.h"

namespace smelt {

std::map<std::pair<std::string, int>, PartialShape> StatedResultShapes(const MetaGraph& meta) {
  std::map<std::pair<std::string, int>, PartialShape> shapes;
  std::set<std::pair<std::string, int>> doubtful;
  for (const auto& [name, signature] : meta.signatures) {
    for (const auto& [key, info] : signature.outputs) {
      if (info.kind != TensorInfo::Kind::kDense || !info.shape.known_rank()) continue;
      auto e = meta.graph->FindEndpoint(info.name);
      if (!e.ok()) continue;
      const Endpoint result = BehindIdentities(*e);
      const FuncAttr* callee = IsPartitionedCall(*result.node) ? result.node->Func("f") : nullptr;
      const std::string function =
          callee != nullptr ? callee->name : std::string(result.node->op());
      if (meta.graph->library()->Find(function) == nullptr) continue;
      const auto [it, first] = shapes.try_emplace({function, result.port}, info.shape);
      if (!first && !std::ranges::equal(it->second.dims(), info.shape.dims()))
        doubtful.insert(it->first);
    }
  }
  for (const auto& result : doubtful) shapes.erase(result);
  return shapes;
}

}  // namespace smelt
