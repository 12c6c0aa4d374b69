#include "smelt/graph/shape/infer.h"

namespace smelt {

#define SMELT_SHAPE_FAMILY(name) extern const std::span<const ShapeRule> name;
#include "smelt/graph/shape/families.inc"
#undef SMELT_SHAPE_FAMILY

std::span<const std::span<const ShapeRule>> AllShapeFamilies() {
#define SMELT_SHAPE_FAMILY(name) name,
  static const auto* all = new std::vector<std::span<const ShapeRule>>{
#include "smelt/graph/shape/families.inc"
  };
#undef SMELT_SHAPE_FAMILY
  return *all;
}

}  // namespace smelt
