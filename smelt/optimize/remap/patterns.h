// Finding the parts of what is spelled out.
#ifndef SMELT_OPTIMIZE_REMAP_PATTERNS_H_
#define SMELT_OPTIMIZE_REMAP_PATTERNS_H_

#include <cmath>

#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::remap {

// Of a node with two inputs the one that an op of `ops` gives, and the other; nullptr: neither is.
struct SidesOf {
  const Node* found = nullptr;
  Endpoint other;
};
inline SidesOf Sides(const Node& n, const OpSet& ops) {
  if (n.num_inputs() != 2) return {};
  for (int side = 0; side < 2; ++side) {
    if (n.input(side).node->Is(ops)) return {n.input(side).node, n.input(1 - side)};
  }
  return {};
}

// Of a node with two inputs the one beside a constant scalar that is about `number`; nullptr: there
// is no such scalar.
inline Endpoint BesideNumber(const Node& n, float number, const Rewriter& r) {
  if (n.num_inputs() != 2) return {};
  for (int side = 0; side < 2; ++side) {
    const std::optional<Tensor> k = r.Constant(n.input(side));
    if (!k || k->dtype() != Dtype::kFloat || k->num_elements() != 1) continue;
    constexpr float kClose = 1e-5F;
    if (std::abs(k->scalar<float>() - number) <= kClose) return n.input(1 - side);
  }
  return {};
}

}  // namespace smelt::remap

#endif  // SMELT_OPTIMIZE_REMAP_PATTERNS_H_
