// How many operands and results the builtin operators have: what their kernels read.
#ifndef SMELT_LITE_COMMON_OPERAND_COUNTS_H_
#define SMELT_LITE_COMMON_OPERAND_COUNTS_H_

#include "smelt/graph/op_name.h"

namespace smelt {

struct OperandCounts {
  int least = 0, most = 0;  // operands, with those that may be left out at the end
  int results = 1;          // -1: as many as its options or operands say
};
// Of operators that are not listed, custom ones among them: any number, results -1.
OperandCounts OperandCountsOf(OpName op);

}  // namespace smelt

#endif  // SMELT_LITE_COMMON_OPERAND_COUNTS_H_
