// The list of kernel families, in the order in which FindKernel tries them.
#ifndef SMELT_KERNELS_ALL_H_
#define SMELT_KERNELS_ALL_H_

#include <span>

#include "smelt/kernels/kernel.h"

namespace smelt {

std::span<const std::span<const Kernel>> AllKernelFamilies();

}  // namespace smelt

#endif  // SMELT_KERNELS_ALL_H_
