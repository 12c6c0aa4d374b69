// What stays float though there are kernels of integers.
#ifndef SMELT_LITE_QUANTIZE_LEFT_FLOAT_H_
#define SMELT_LITE_QUANTIZE_LEFT_FLOAT_H_

#include <span>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/graph.h"
#include "smelt/lite/quantize/declared_ranges.h"
#include "smelt/lite/quantize/quantize.h"

namespace smelt {

// LOG, RSQRT and DIV of what comes near zero beside its greatest, and what computes that, back to
// numbers of both signs or of one size: in integers all that is small would be one or two steps,
// which a logarithm has far apart. `only_div`: what has kernels of integers is to have them, but
// for DIV. `stated`: values whose ranges the model states. REQUIRES: `order` is topological.
absl::flat_hash_set<const Node*> FindNearZero(std::span<Node* const> order,
                                              const LiteRanges& ranges, bool only_div,
                                              const DeclaredParams& stated);

// Takes out of `chosen` what gains by it and costs little: joins of results (FindMixedResults);
// what brings features of several sizes to one, as (x - mean) / size, before they become integers;
// and what stands between floats and operators of floats, as a window before RFFT2D, or between
// operators of floats and results, where integers would round, and take a QUANTIZE and a DEQUANTIZE
// more; and any operator without weights before floats that takes fewer of these in float.
// REQUIRES: `order` is topological.
void LeaveFloat(std::span<Node* const> order, const LiteRanges& ranges, const IntegerFlags& flags,
                absl::flat_hash_set<const Node*>& chosen);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_LEFT_FLOAT_H_
