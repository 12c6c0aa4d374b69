#include "smelt/kernels/xla/dimension_numbers.h"

#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt {

StatusOr<ConvDimensions> ConvDimensionsOf(const Node& node) {
  return ParseConvDimensions(node.String("dimension_numbers"));
}

StatusOr<DotDimensions> DotDimensionsOf(const Node& node) {
  return ParseDotDimensions(node.String("dimension_numbers"));
}

StatusOr<GatherDimensions> GatherDimensionsOf(const Node& node) {
  return ParseGatherDimensions(node.String("dimension_numbers"));
}

StatusOr<GatherDimensions> ScatterDimensionsOf(const Node& node) {
  return ParseScatterDimensions(node.String("dimension_numbers"));
}

}  // namespace smelt
