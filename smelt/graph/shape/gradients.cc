// Shapes of gradients of convolutions, pools and normalization.
#include <array>

#include "absl/strings/match.h"
#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// The shape that input kInput holds as a vector of kRank sizes.
template <int kInput, int kRank>
Status StatedShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, WithRank(ctx.constant_as_shape(kInput), kRank));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// The shape of input kInput, which must have rank kRank.
template <int kInput, int kRank>
Status ShapeOfInput(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, WithRank(ctx.input(kInput), kRank));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// y_backprop, x, scale, ... -> x_backprop, and the gradients of scale and offset along the
// channels.
Status BatchNormGradShape(ShapeContext& ctx) {
  const std::string format = ctx.node().String("data_format", "NHWC");
  ASSIGN_OR_RETURN(const PartialShape both, PartialShape::Merge(ctx.input(0), ctx.input(1)));
  ASSIGN_OR_RETURN(PartialShape x, WithRank(both, format.size() == 5 ? 5 : 4));
  int64_t channels = kUnknownDim;
  for (int i = 2; i <= 4; ++i) {
    ASSIGN_OR_RETURN(const PartialShape v, WithRank(ctx.input(i), 1));
    ASSIGN_OR_RETURN(channels, MergeDims(channels, v[0]));
  }
  const int at = absl::StartsWith(format, "NC") ? 1 : x.rank() - 1;
  ASSIGN_OR_RETURN(channels, MergeDims(channels, x[at]));
  x.Set(at, channels);
  ctx.set_output(0, std::move(x));
  for (const int i : {1, 2}) ctx.set_output(i, VectorShape(channels));
  for (const int i : {3, 4}) ctx.set_output(i, VectorShape(0));
  return OkStatus();
}

constexpr std::array kGradientRows = {
    ShapeRule{"AvgPool3DGrad", StatedShape<0, 5>},
    ShapeRule{"AvgPoolGrad", StatedShape<0, 4>},
    ShapeRule{"Conv2DBackpropFilter", StatedShape<1, 4>},
    ShapeRule{"Conv3DBackpropFilter", ShapeOfInput<1, 5>},
    ShapeRule{"Conv3DBackpropFilterV2", StatedShape<1, 5>},
    ShapeRule{"Conv3DBackpropInput", ShapeOfInput<0, 5>},
    ShapeRule{"DepthwiseConv2dNativeBackpropFilter", StatedShape<1, 4>},
    ShapeRule{"DepthwiseConv2dNativeBackpropInput", StatedShape<0, 4>},
    ShapeRule{"FusedBatchNormGrad", BatchNormGradShape},
    ShapeRule{"FusedBatchNormGradV2", BatchNormGradShape},
    ShapeRule{"LRNGrad", MergedShape},
    ShapeRule{"MaxPool3DGrad", ShapeOfInput<0, 5>},
    ShapeRule{"MaxPool3DGradGrad", ShapeOfInput<1, 5>},
    ShapeRule{"MaxPoolGrad", ShapeOfInput<0, 4>},
    ShapeRule{"MaxPoolGradGrad", ShapeOfInput<1, 4>},
    ShapeRule{"MaxPoolGradWithArgmax", ShapeOfInput<0, 4>},
};

}  // namespace

extern const std::span<const ShapeRule> kGradientShapes;
constinit const std::span<const ShapeRule> kGradientShapes = kGradientRows;

}  // namespace smelt
