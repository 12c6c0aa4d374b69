// Loops that end by what they compute, not by how often they turned.
#ifndef SMELT_LITE_QUANTIZE_LOOPS_BY_NUMBERS_H_
#define SMELT_LITE_QUANTIZE_LOOPS_BY_NUMBERS_H_

#include "smelt/lite/quantize/calibrate.h"
#include "smelt/lite/quantize/graphs.h"

namespace smelt {

// Takes out the ranges of all that runs in loops whose conditions read floats, so that it stays
// float: a time, or an error, that grows or shrinks by less than a step of integers never ends.
void DropWhereNumbersEnd(const LiteGraphs& graphs, LiteRanges& ranges);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_LOOPS_BY_NUMBERS_H_
