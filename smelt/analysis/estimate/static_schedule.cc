#include <algorithm>
#include <deque>
#include <limits>

#include "smelt/analysis/estimate/schedule.h"

namespace smelt {
namespace {

constexpr OpSet kBeginWithOneInput = {"Merge", "RefMerge"};

size_t At(const Node& n) { return static_cast<size_t>(n.id()); }

int64_t TimeOn(const Node& n, const ShapeTable& shapes, Placement& placement) {
  return TimeOf(EstimateOp(n, shapes), placement.speed(placement.Of(n))).total;
}

}  // namespace

std::vector<int64_t> EarliestFinishTimes(const Graph& graph, const ShapeTable& shapes,
                                         Placement& placement) {
  std::vector<int64_t> finish(static_cast<size_t>(graph.max_id()), -1);
  std::vector<size_t> waits(finish.size(), 0);
  std::deque<const Node*> ready;
  for (const Node* n : graph.Nodes()) {
    const size_t inputs = n->inputs().size() + n->control_inputs().size();
    waits[At(*n)] = n->Is(kBeginWithOneInput) ? std::min<size_t>(inputs, 1) : inputs;
    if (inputs == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    const Node* n = ready.front();
    ready.pop_front();
    // No node takes no time.
    const int64_t took = std::max<int64_t>(1, TimeOn(*n, shapes, placement));
    const int64_t end = AddEstimates(std::max<int64_t>(0, finish[At(*n)]), took);
    finish[At(*n)] = end;
    for (const Use& use : n->OrderedUses()) {
      size_t& waiting = waits[At(*use.node)];
      if (waiting == 0) continue;
      if (--waiting == 0) ready.push_back(use.node);
      finish[At(*use.node)] = std::max(finish[At(*use.node)], end);
    }
  }
  // Of a node that began to wait and never began.
  for (size_t i = 0; i < waits.size(); ++i) {
    if (waits[i] > 0) finish[i] = -1;
  }
  return finish;
}

std::vector<int64_t> RequiredFinishTimes(const Graph& graph, const ShapeTable& shapes,
                                         Placement& placement, std::span<const int64_t> finish) {
  std::vector<int64_t> required(static_cast<size_t>(graph.max_id()),
                                std::numeric_limits<int64_t>::max());
  std::vector<size_t> waits(required.size(), 0);
  std::deque<const Node*> ready;
  for (const Node* n : graph.Nodes()) {
    waits[At(*n)] = n->uses().size();
    if (waits[At(*n)] > 0) continue;
    required[At(*n)] = finish[At(*n)];
    ready.push_back(n);
  }
  while (!ready.empty()) {
    const Node* n = ready.front();
    ready.pop_front();
    const int64_t took = TimeOn(*n, shapes, placement);
    const int64_t begin = std::max(required[At(*n)] - took, -kMostEstimated);
    const auto require = [&](const Node* input) {
      required[At(*input)] = std::min(required[At(*input)], begin);
      size_t& waiting = waits[At(*input)];
      if (waiting > 0 && --waiting == 0) ready.push_back(input);
    };
    for (const Endpoint& e : n->inputs()) {
      if (e.node != nullptr) require(e.node);
    }
    for (const Node* c : n->control_inputs()) require(c);
  }
  return required;
}

}  // namespace smelt
