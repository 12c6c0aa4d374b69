#include "smelt/optimize/inline_plan.h"

#include <algorithm>

namespace smelt {
namespace {

constexpr int kMaxInlinedDepth = 1000;

}  // namespace

// Notes that `f` is being measured; the functions that it calls, one for each call.
std::vector<const Function*> InlinePlan::Open(const Function& f) {
  // Two nodes stand around an inlined body.
  sizes_[&f].nodes = f.body->num_nodes() + 2;
  std::vector<const Function*> callees;
  for (const Node* n : f.body->Nodes()) callees_of_(*f.body, *n, callees);
  return callees;
}

// Callees first, with a stack of its own: chains of calls may be as long as the library.
InlinePlan::Size InlinePlan::Measure(const Function* root) {
  if (const auto known = sizes_.find(root); known != sizes_.end()) return known->second;
  struct Frame {
    const Function* f;
    std::vector<const Function*> callees;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  stack.push_back({root, Open(*root)});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.callees.size()) {
      const Function* callee = top.callees[top.next];
      const auto measured = sizes_.find(callee);
      if (measured == sizes_.end()) {
        stack.push_back({callee, Open(*callee)});
        continue;
      }
      ++top.next;
      if (measured->second.open) measured->second.stays = true;
      const Size inner = measured->second;
      Size& size = sizes_.at(top.f);
      if (!inner.stays) {
        size.nodes += inner.nodes;
        size.depth = std::max(size.depth, inner.depth + 1);
      }
      continue;
    }
    Size& size = sizes_.at(top.f);
    size.open = false;
    if (size.nodes > kMaxInlinedNodes || size.depth >= kMaxInlinedDepth) size.stays = true;
    stack.pop_back();
  }
  return sizes_.at(root);
}

}  // namespace smelt
