// The attribute dimension_numbers of XLA's nodes. INVALID_ARGUMENT when it holds no such message.
// Thread safe.
#ifndef SMELT_KERNELS_XLA_DIMENSION_NUMBERS_H_
#define SMELT_KERNELS_XLA_DIMENSION_NUMBERS_H_

#include "smelt/graph/dimension_numbers.h"
#include "smelt/graph/graph.h"

namespace smelt {

StatusOr<ConvDimensions> ConvDimensionsOf(const Node& node);
StatusOr<DotDimensions> DotDimensionsOf(const Node& node);
StatusOr<GatherDimensions> GatherDimensionsOf(const Node& node);
StatusOr<GatherDimensions> ScatterDimensionsOf(const Node& node);

}  // namespace smelt

#endif  // SMELT_KERNELS_XLA_DIMENSION_NUMBERS_H_
