// Runs one node by itself: for constant folding and for op tests.
#ifndef SMELT_KERNELS_RUN_OP_H_
#define SMELT_KERNELS_RUN_OP_H_

#include <vector>

#include "smelt/kernels/kernel.h"

namespace smelt {

// Finds the node's kernel, prepares it and runs it on `inputs` in this thread. The node's own input
// edges are not read. NOT_FOUND without a kernel, INVALID_ARGUMENT when the inputs' count or types
// are not the node's, else what the kernel says.
StatusOr<std::vector<Tensor>> RunOp(const Node& node, std::vector<Tensor> inputs, Step& step);

}  // namespace smelt

#endif  // SMELT_KERNELS_RUN_OP_H_
