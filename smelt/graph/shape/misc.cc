// Shapes of small ops that belong to no larger family.
#include <algorithm>
#include <array>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

Status FingerprintShape(ShapeContext& ctx) {
  ctx.set_output(0, PartialShape::Of({DimOf(ctx.input(0), 0), 8}));
  return OkStatus();
}

Status BothFirstShapes(ShapeContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  ctx.set_output(1, ctx.input(0));
  return OkStatus();
}

// points[n, d], centers[m, d], k -> [n, min(k, m)] twice
Status NeighborsShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(const PartialShape points, WithRank(ctx.input(0), 2));
  ASSIGN_OR_RETURN(const PartialShape centers, WithRank(ctx.input(1), 2));
  const auto k = IntConstant(ctx, 2);
  int64_t cols = kUnknownDim;
  if (k && *k >= 0 && centers[0] != kUnknownDim) cols = std::min(*k, centers[0]);
  ctx.set_output(0, PartialShape::Of({points[0], cols}));
  ctx.set_output(1, PartialShape::Of({points[0], cols}));
  return OkStatus();
}

constexpr std::array kMiscRows = {
    ShapeRule{"CheckNumericsV2", SameShape},
    ShapeRule{"CompositeTensorVariantFromComponents", ScalarShapes},
    ShapeRule{"DataFormatDimMap", SameShape},
    ShapeRule{"DataFormatVecPermute", SameShape},
    ShapeRule{"DeviceIndex", ScalarShapes},
    ShapeRule{"EmptyTensorMap", ScalarShapes},
    ShapeRule{"Fingerprint", FingerprintShape},
    ShapeRule{"GuaranteeConst", SameShape},
    ShapeRule{"InplaceAdd", SameShape},
    ShapeRule{"InplaceSub", SameShape},
    ShapeRule{"InplaceUpdate", SameShape},
    ShapeRule{"IsotonicRegression", BothFirstShapes},
    ShapeRule{"NearestNeighbors", NeighborsShape},
    ShapeRule{"KMC2ChainInitialization", ScalarShapes},
    ShapeRule{"TensorMapErase", ScalarShapes},
    ShapeRule{"TensorMapHasKey", ScalarShapes},
    ShapeRule{"TensorMapInsert", ScalarShapes},
    ShapeRule{"TensorMapSize", ScalarShapes},
    ShapeRule{"ToBool", ScalarShapes},
};

}  // namespace

extern const std::span<const ShapeRule> kMiscShapes;
constinit const std::span<const ShapeRule> kMiscShapes = kMiscRows;

}  // namespace smelt
