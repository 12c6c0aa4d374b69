// Loops whose body passes a state on to a later one, as a Fibonacci number becomes the one before.
#ifndef SMELT_LITE_SHIFTED_STATES_H_
#define SMELT_LITE_SHIFTED_STATES_H_

#include "smelt/lite/quantize/graphs.h"

namespace smelt {

// LiteRT's WHILE writes the states one after another where the body reads them: a result that is
// an earlier argument would be what that becomes. Such results become copies.
//
// REQUIRES: graphs of operators.
Status CopyShiftedStates(const LiteGraphs& graphs);

}  // namespace smelt

#endif  // SMELT_LITE_SHIFTED_STATES_H_
