// Attention that is spelled out.
#ifndef SMELT_COMPILE_ATTENTION_H_
#define SMELT_COMPILE_ATTENTION_H_

#include <optional>
#include <vector>

#include "smelt/compile/readers.h"
#include "smelt/compile/reasons.h"
#include "smelt/kernels/nn/attention.h"

namespace smelt {

// softmax(q k^T * scale + mask) v, where the scale may stand at q, k or their product.
struct SpelledAttention {
  nn::Attention attention;
  std::vector<int> inputs;      // values: q, k, v and the mask if there is one
  std::vector<size_t> actions;  // all but the first product, in any order
};

// The one whose first product, of queries and keys, action `first` is, where nobody else reads
// what is in between. Products are Einsums or BatchMatMuls; transposes, reshapes and slices of
// their operands, and a transpose of the result, become strides. `readers` are the plan's. Where it
// is none though a softmax of the product follows, `reasons` say why.
std::optional<SpelledAttention> FindAttention(const Plan& plan, size_t first,
                                              const PlanReaders& readers,
                                              Reasons* reasons = nullptr);

}  // namespace smelt

#endif  // SMELT_COMPILE_ATTENTION_H_
