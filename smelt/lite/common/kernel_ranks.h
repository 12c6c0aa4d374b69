// How many dimensions the kernels of operators take. What has more makes runtimes refuse the file,
// or end the process.
#ifndef SMELT_LITE_COMMON_KERNEL_RANKS_H_
#define SMELT_LITE_COMMON_KERNEL_RANKS_H_

#include "smelt/graph/op_name.h"

namespace smelt {

// That every kernel takes of whom no more is known.
inline constexpr int kMostLiteDims = 8;

struct KernelRanks {
  OpSet ops;
  int most = kMostLiteDims;  // dimensions of operands and results
  int broadcast = -1;        // of operands that broadcast, 0: none may; -1: it does not broadcast
};
const KernelRanks& KernelRanksOf(OpName op);

}  // namespace smelt

#endif  // SMELT_LITE_COMMON_KERNEL_RANKS_H_
