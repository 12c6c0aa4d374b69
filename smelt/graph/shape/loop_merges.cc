#include "smelt/graph/shape/loop_merges.h"

#include <algorithm>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

constexpr OpSet kLoopMerges = {"Merge", "RefMerge"};
constexpr OpSet kNextIterations = {"NextIteration", "RefNextIteration"};

bool WidenShape(PartialShape& shape, std::vector<bool>& own, const PartialShape& other) {
  if (!shape.known_rank()) return false;
  if (!other.known_rank() || other.rank() != shape.rank()) {
    shape = PartialShape();
    return true;
  }
  own.resize(static_cast<size_t>(shape.rank()));
  bool changed = false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (own[static_cast<size_t>(i)] || shape[i] == other[i]) continue;
    own[static_cast<size_t>(i)] = changed = true;
    shape.Set(i, kUnknownDim);
  }
  return changed;
}

}  // namespace

bool IsBackEdge(const Endpoint& e) { return e.node->Is(kNextIterations); }

bool IsLoopMerge(const Node& n) {
  return n.Is(kLoopMerges) && std::ranges::any_of(n.inputs(), IsBackEdge);
}

const LoopMerge* LoopMerges::Find(const Node& n) const {
  const auto at = of_.find(n.id());
  return at == of_.end() ? nullptr : &merges_[at->second];
}

const LoopMerge& LoopMerges::Begin(const Node& n, PartialShape shape, PartialShape held) {
  of_.try_emplace(n.id(), merges_.size());
  return merges_.emplace_back(LoopMerge{&n, std::move(shape), std::move(held), {}, {}});
}

bool LoopMerges::Widen(LoopMerge& merge, const PartialShape& shape, const PartialShape& held,
                       Name name) {
  const bool by_shape = WidenShape(merge.shape, merge.own_shape, shape);
  const bool by_held = WidenShape(merge.held, merge.own_held, held);
  name(merge.shape);
  name(merge.held);
  return by_shape || by_held;
}

bool LoopMerges::Forget(LoopMerge& merge) {
  const bool known = merge.shape.known_rank() || merge.held.known_rank();
  if (merge.shape.known_rank()) merge.shape = {};
  if (merge.held.known_rank()) merge.held = {};
  return known;
}

}  // namespace smelt
