// Names of the graph and of common/ that the sources of this room say as names of nn.
#ifndef SMELT_KERNELS_ONEDNN_NN_NAMES_H_
#define SMELT_KERNELS_ONEDNN_NN_NAMES_H_

#include "smelt/graph/einsum_equation.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/common/via_float.h"

namespace smelt::nn {

using smelt::Activation;
using smelt::EinsumEquation;
using smelt::EinsumLabels;
using smelt::EinsumShapes;
using smelt::ExpandEinsum;
using smelt::FromFloat;
using smelt::FusedOps;
using smelt::FusedStep;
using smelt::ParseEinsum;
using smelt::ParseFusedOps;
using smelt::ToFloat;

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_ONEDNN_NN_NAMES_H_
