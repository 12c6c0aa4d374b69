#include "smelt/graph/shape/infer.h"

namespace smelt {

extern const std::span<const ShapeRule> kElementwiseShapes;
extern const std::span<const ShapeRule> kMatMulShapes;
extern const std::span<const ShapeRule> kNnShapes;
extern const std::span<const ShapeRule> kMovementShapes;
extern const std::span<const ShapeRule> kIndexingShapes;
extern const std::span<const ShapeRule> kReduceShapes;
extern const std::span<const ShapeRule> kStateShapes;
extern const std::span<const ShapeRule> kControlShapes;
extern const std::span<const ShapeRule> kTextShapes;
extern const std::span<const ShapeRule> kRandomShapes;
extern const std::span<const ShapeRule> kQueueShapes;
extern const std::span<const ShapeRule> kDatasetShapes;
extern const std::span<const ShapeRule> kSummaryShapes;

std::span<const std::span<const ShapeRule>> AllShapeFamilies() {
  static const auto* all = new std::vector<std::span<const ShapeRule>>{
      kElementwiseShapes, kMatMulShapes,  kNnShapes,      kMovementShapes, kIndexingShapes,
      kReduceShapes,      kStateShapes,   kControlShapes, kTextShapes,     kRandomShapes,
      kQueueShapes,       kDatasetShapes, kSummaryShapes};
  return *all;
}

}  // namespace smelt
