// How many inputs and outputs operators have: what their kernels read and write.
#ifndef SMELT_LITE_COMMON_OPERAND_COUNTS_H_
#define SMELT_LITE_COMMON_OPERAND_COUNTS_H_

#include <limits>
#include <string>

#include "smelt/graph/op_name.h"

namespace smelt {

struct CountBounds {
  static constexpr int kAny = std::numeric_limits<int>::max();
  int least = 0, most = kAny;
  bool Has(int n) const { return n >= least && n <= most; }
  // "2", "2 to 3", "at least 2"
  std::string ToString() const;
};

struct OperandCounts {
  CountBounds inputs;  // with those that may be left out
  CountBounds outputs;
};
// nullptr for what is no operator of a file. Custom operators have any number.
const OperandCounts* FindOperandCounts(OpName op);

}  // namespace smelt

#endif  // SMELT_LITE_COMMON_OPERAND_COUNTS_H_
