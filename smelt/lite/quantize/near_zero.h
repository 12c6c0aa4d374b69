// What steps of one size serve badly: numbers near zero beside large ones, where small ones count.
#ifndef SMELT_LITE_QUANTIZE_NEAR_ZERO_H_
#define SMELT_LITE_QUANTIZE_NEAR_ZERO_H_

#include <span>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/graph.h"
#include "smelt/lite/quantize/declared_ranges.h"

namespace smelt {

// LOG, RSQRT and DIV of what comes near zero beside its greatest, and what computes that, back to
// numbers of both signs or of one size: in integers all that is small would be one or two steps,
// which a logarithm has far apart. `only_div`: what has kernels of integers is to have them, but
// for DIV. `stated`: values whose ranges the model states. REQUIRES: `order` is topological.
absl::flat_hash_set<const Node*> FindNearZero(std::span<Node* const> order,
                                              const LiteRanges& ranges, bool only_div,
                                              const DeclaredParams& stated);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_NEAR_ZERO_H_
