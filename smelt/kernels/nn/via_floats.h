// Kernels of floats for nodes of bfloat16, where there are none of the type or they are slower.
#ifndef SMELT_KERNELS_NN_VIA_FLOATS_H_
#define SMELT_KERNELS_NN_VIA_FLOATS_H_

#include <memory>
#include <vector>

#include "smelt/kernels/bound_kernel.h"

namespace smelt::nn {

// An input of bfloat16 that a kernel reads as floats.
struct WidenedInput {
  int input = 0;
  int64_t elements = 0;
};
// `own`, whose inputs of the list and whose output, of so many results, are bfloat16: all is
// widened before, and rounded once behind.
std::unique_ptr<BoundKernel> ViaFloats(std::unique_ptr<BoundKernel> own,
                                       std::vector<WidenedInput> wide, int64_t results);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_VIA_FLOATS_H_
