// Fused activations as functions of isa.h.
#ifndef SMELT_KERNELS_NN_ISA_ACTIVATION_H_
#define SMELT_KERNELS_NN_ISA_ACTIVATION_H_

#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/isa/isa.h"

namespace smelt::nn {

UnaryF32 IsaActivation(Activation activation);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_ISA_ACTIVATION_H_
