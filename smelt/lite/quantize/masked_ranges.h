// Masks of attention: numbers as -1e9 are added, or chosen, so that SOFTMAX gives nothing there.
// A scale for them would leave none of what they do not mask.
#ifndef SMELT_LITE_QUANTIZE_MASKED_RANGES_H_
#define SMELT_LITE_QUANTIZE_MASKED_RANGES_H_

#include <span>

#include "absl/container/flat_hash_set.h"
#include "smelt/lite/quantize/quantize.h"

namespace smelt {

// Where a choice is between scores and the same less 1e9 (as Keras hides them), the number stands
// in place of the difference, which is that number.
void StateHiddenScores(Graph& graph, const LiteRanges& ranges);

// Narrows the ranges of what only SOFTMAX reads, and of masks, to what is told apart there: lower
// numbers saturate, and give nothing as before. A constant that is a mask gets a range. Returns
// those that choose between numbers and a mask, which goes beyond the range of the numbers.
// Also narrows what EXP alone reads to what gives more than nothing beside the greatest result,
// but of those `in_float`.
absl::flat_hash_set<const Node*> NarrowMaskedRanges(
    std::span<Node* const> order, const absl::flat_hash_set<const Node*>& in_float,
    LiteRanges& ranges);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_MASKED_RANGES_H_
