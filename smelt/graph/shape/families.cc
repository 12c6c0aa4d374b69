#include "smelt/graph/shape/infer.h"

namespace smelt {

extern const std::span<const ShapeRule> kElementwiseShapes;
extern const std::span<const ShapeRule> kMatMulShapes;
extern const std::span<const ShapeRule> kNnShapes;
extern const std::span<const ShapeRule> kGradientShapes;
extern const std::span<const ShapeRule> kMovementShapes;
extern const std::span<const ShapeRule> kIndexingShapes;
extern const std::span<const ShapeRule> kRecurrentShapes;
extern const std::span<const ShapeRule> kReduceShapes;
extern const std::span<const ShapeRule> kStateShapes;
extern const std::span<const ShapeRule> kControlShapes;
extern const std::span<const ShapeRule> kTextShapes;
extern const std::span<const ShapeRule> kTrainShapes;
extern const std::span<const ShapeRule> kRandomShapes;

std::span<const std::span<const ShapeRule>> AllShapeFamilies() {
  static const auto* all = new std::vector<std::span<const ShapeRule>>{
      kElementwiseShapes, kMatMulShapes,    kNnShapes,     kGradientShapes, kMovementShapes,
      kIndexingShapes,    kRecurrentShapes, kReduceShapes, kStateShapes,    kControlShapes,
      kTextShapes,        kTrainShapes,     kRandomShapes};
  return *all;
}

}  // namespace smelt
