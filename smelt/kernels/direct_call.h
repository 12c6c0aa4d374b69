// Calls of a function by a node whose op is the function's name, as TensorFlow's first functions
// are called.
#ifndef SMELT_KERNELS_DIRECT_CALL_H_
#define SMELT_KERNELS_DIRECT_CALL_H_

#include "smelt/kernels/kernel.h"

namespace smelt {

// For nodes whose op is a function of their graph's library: their attributes are the function's.
const Kernel* DirectCallKernel();

}  // namespace smelt

#endif  // SMELT_KERNELS_DIRECT_CALL_H_
