// Which ops TensorFlow has kernels for that take narrow numbers.
#ifndef SMELT_OPTIMIZE_PRECISION_KERNELS_H_
#define SMELT_OPTIMIZE_PRECISION_KERNELS_H_

#include "smelt/graph/node.h"

namespace smelt {

// May `attr` (a type, or a list of types) be `type` by the definition of the node's op? False for
// functions and ops of the model's own.
bool DefinitionAllows(const Node& n, absl::string_view attr, Dtype type);
// Does a kernel of the GPU, or of the CPU, take it? A GPU's are known for half alone. REQUIRES:
// DefinitionAllows.
bool KernelTakes(const Node& n, absl::string_view attr, Dtype type, bool on_gpu);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PRECISION_KERNELS_H_
