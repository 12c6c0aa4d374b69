// The last step before operators are emitted: those whose operands have more dimensions than
// kernels take (common/kernel_ranks.h) become some that have fewer, with the same result.
//
// Dimensions that an operator treats alike, and that are neighbors, become one; where too many are
// left, operands that broadcast are broadcast first, and what works on each dimension by itself
// does so in turns.
#ifndef SMELT_LITE_FIT_FIT_H_
#define SMELT_LITE_FIT_FIT_H_

#include <span>

#include "smelt/lite/legalizer.h"

namespace smelt {

// Tables of the files of this folder. A row gives no endpoints where the operator fits.
std::span<const FitRow> BroadcastFit();
std::span<const FitRow> PartFit();
std::span<const FitRow> OrderFit();
std::span<const FitRow> SpaceFit();

}  // namespace smelt

#endif  // SMELT_LITE_FIT_FIT_H_
