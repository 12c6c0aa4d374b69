// What an operator must have before a row may look at it: inputs, outputs, and options within the
// bounds that LiteRT's kernels ask for. Private to this folder.
#ifndef SMELT_LITE_LOWER_OPERANDS_H_
#define SMELT_LITE_LOWER_OPERANDS_H_

#include "smelt/graph/graph.h"

namespace smelt {

// INVALID_ARGUMENT says which input, output or option of the operator is wrong: of how many there
// are, of what is left out that must not be, of numbers that no operator has. Rows that run behind
// it may read the inputs and outputs that the operator must have.
Status CheckOperands(const Node& n);

}  // namespace smelt

#endif  // SMELT_LITE_LOWER_OPERANDS_H_
