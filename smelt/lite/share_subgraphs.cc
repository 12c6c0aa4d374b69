#include "smelt/lite/share_subgraphs.h"

#include <algorithm>
#include <vector>

#include "smelt/lite/subgraph_names.h"

namespace smelt {
namespace {

// Do the subgraphs differ in names alone? Their tensors are in the same order then.
bool SameSubgraph(const LiteModel& model, const LiteSubgraph& a, const LiteSubgraph& b) {
  const auto same_tensor = [&](const LiteTensor& x, const LiteTensor& y) {
    return x.type == y.type && x.shape == y.shape && x.shape_signature == y.shape_signature &&
           x.has_rank == y.has_rank && x.is_variable == y.is_variable &&
           x.quantization == y.quantization &&
           model.buffers[x.buffer].bytes == model.buffers[y.buffer].bytes;
  };
  const auto same_operator = [](const LiteOperator& x, const LiteOperator& y) {
    return x.op == y.op && x.custom == y.custom && x.inputs == y.inputs && x.outputs == y.outputs &&
           x.options == y.options && x.custom_options == y.custom_options;
  };
  return a.inputs == b.inputs && a.outputs == b.outputs &&
         std::ranges::equal(a.operators, b.operators, same_operator) &&
         std::ranges::equal(a.tensors, b.tensors, same_tensor);
}

// Of each subgraph how many others at most stand between it and one that nobody calls.
std::vector<size_t> CallDepths(const LiteModel& model) {
  std::vector<size_t> depths(model.subgraphs.size(), 0);
  bool more = true;
  for (size_t turn = 0; more && turn < depths.size(); ++turn) {
    more = false;
    for (size_t i = 0; i < depths.size(); ++i) {
      for (const LiteOperator& op : model.subgraphs[i].operators) {
        for (const SubgraphOption& option : kSubgraphOptions) {
          const Attr* value = op.options.Find(option.option);
          const auto* number = value == nullptr ? nullptr : value->get<int64_t>();
          if (number == nullptr) continue;
          size_t& depth = depths[static_cast<size_t>(*number)];
          if (depth > depths[i]) continue;
          depth = depths[i] + 1;
          more = true;
        }
      }
    }
  }
  return depths;
}

}  // namespace

void ShareSubgraphs(LiteModel& model) {
  const std::vector<size_t> depths = CallDepths(model);
  std::vector<int64_t> place;
  std::vector<LiteSubgraph> kept;
  std::vector<size_t> kept_depths;
  for (size_t i = 0; i < model.subgraphs.size(); ++i) {
    LiteSubgraph& graph = model.subgraphs[i];
    size_t number = 0;
    while (number < kept.size() &&
           (kept_depths[number] != depths[i] || !SameSubgraph(model, kept[number], graph))) {
      ++number;
    }
    place.push_back(static_cast<int64_t>(number));
    if (number < kept.size()) continue;
    kept.push_back(std::move(graph));
    kept_depths.push_back(depths[i]);
  }
  model.subgraphs = std::move(kept);
  for (LiteSignature& s : model.signatures) s.subgraph = static_cast<uint32_t>(place[s.subgraph]);
  for (LiteSubgraph& graph : model.subgraphs) {
    for (LiteOperator& op : graph.operators) {
      for (const SubgraphOption& option : kSubgraphOptions) {
        const Attr* value = op.options.Find(option.option);
        const auto* number = value == nullptr ? nullptr : value->get<int64_t>();
        if (number != nullptr) op.options.Set(option.option, place[static_cast<size_t>(*number)]);
      }
    }
  }
}

}  // namespace smelt
