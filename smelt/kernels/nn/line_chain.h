// Line kernels one behind the other in one pass: of what lies between two of them only the lines
// exist that the next one still reads.
#ifndef SMELT_KERNELS_NN_LINE_CHAIN_H_
#define SMELT_KERNELS_NN_LINE_CHAIN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/line_kernel.h"

namespace smelt::nn {

struct LineLink {
  std::shared_ptr<const BoundKernel> kernel;  // lines() is not nullptr
  // The chain's input that each of the kernel's is; the first of all but the first link is what
  // the link before makes, and is not looked at.
  std::vector<int> inputs;
};

// May the second read what the first makes line by line?
bool FollowsByLines(const LineSizes& first, const LineSizes& second);

// The chain as a kernel whose output is that of the last link. REQUIRES: two links at least, each
// of which follows the one before by lines.
std::unique_ptr<BoundKernel> BindLineChain(std::vector<LineLink> links);

// The row that stands for a chain where a kernel is named; it is never run.
const Kernel& LineChainKernel();

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_LINE_CHAIN_H_
