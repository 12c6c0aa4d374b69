// Ops that state their format.
#include <array>

#include "smelt/optimize/layout/rows.h"

namespace smelt::layout {
namespace {

constexpr absl::string_view kFormat = "data_format";

struct DimensionAttr {
  absl::string_view name;
  int per_dimension;
};
constexpr DimensionAttr kDimensionAttrs[] = {
    {"strides", 1}, {"ksize", 1}, {"dilations", 1}, {"explicit_paddings", 2}};

absl::string_view IsOfIntegers(const Node& node, const Formats&, Rewriter&) {
  switch (node.Type("T")) {
    case Dtype::kHalf:
    case Dtype::kBfloat16:
    case Dtype::kFloat:
    case Dtype::kDouble:
      return "";
    default:
      return "convolutions of integers have one format";
  }
}

absl::string_view DoesNotTrain(const Node& node, const Formats&, Rewriter&) {
  return node.Bool("is_training") ? "" : "only the gradient of training has both formats";
}

constexpr LayoutRow kSensitiveRows[] = {
    {.name = "LayoutSensitive",
     .ops = {"AvgPool", "DepthwiseConv2dNative", "DepthToSpace", "FusedBatchNorm",
             "FusedBatchNormV2", "FusedBatchNormV3", "MaxPool", "SpaceToDepth"},
     .data = {0}},
    {.name = "Conv2D", .ops = {"Conv2D"}, .data = {0}, .declines = IsOfIntegers},
    {.name = "BiasAdd", .ops = {"BiasAdd"}, .data = {0}, .format_of_images = true},
    {.name = "BiasAddGrad",
     .ops = {"BiasAddGrad"},
     .data = {0},
     .results = {},
     .rank_of_input = 0,
     .format_of_images = true},
    {.name = "AvgPoolGrad",
     .ops = {"AvgPoolGrad"},
     .ranks = kImages,
     .data = {1},
     .vectors = {0},
     .rank_of_input = 1},
    // The filter is the same in both formats.
    {.name = "Conv2DBackpropFilter",
     .ops = {"Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"},
     .ranks = kImages,
     .data = {0, 2},
     .results = {}},
    {.name = "Conv2DBackpropInput",
     .ops = {"Conv2DBackpropInput"},
     .ranks = kImages,
     .data = {2},
     .vectors = {0},
     .declines = IsOfIntegers},
    {.name = "Conv2DBackpropInput",
     .ops = {"DepthwiseConv2dNativeBackpropInput"},
     .ranks = kImages,
     .data = {2},
     .vectors = {0}},
    {.name = "Conv3D", .ops = {"Conv3D"}, .ranks = kVolumes, .data = {0}},
    {.name = "Conv3DBackpropFilter",
     .ops = {"Conv3DBackpropFilterV2"},
     .ranks = kVolumes,
     .data = {0, 2},
     .results = {}},
    {.name = "Conv3DBackpropInput",
     .ops = {"Conv3DBackpropInputV2"},
     .ranks = kVolumes,
     .data = {2},
     .vectors = {0}},
    {.name = "FusedBatchNormEx", .ops = {"_FusedBatchNormEx"}, .ranks = kImages, .data = {0, 5}},
    {.name = "FusedBatchNormGrad",
     .ops = {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"},
     .ranks = kImages,
     .data = {0, 1},
     .rank_of_input = 0,
     .declines = DoesNotTrain},
    {.name = "MaxPoolV2",
     .ops = {"MaxPoolV2"},
     .ranks = kImages,
     .data = {0},
     .vectors = {1, 2},
     .rank_of_input = 0,
     .per_dimension = 1},
    {.name = "MaxPoolGrad",
     .ops = {"MaxPoolGrad", "MaxPoolGradGrad"},
     .ranks = kImages,
     .data = {0, 1, 2}},
    {.name = "MaxPoolGradV2",
     .ops = {"MaxPoolGradV2", "MaxPoolGradGradV2"},
     .ranks = kImages,
     .data = {0, 1, 2},
     .vectors = {3, 4},
     .per_dimension = 1},
};

const Formats& Stated(const LayoutRow& row, const Conversion& conversion, const Formats& formats) {
  return row.format_of_images ? conversion.images : formats;
}

}  // namespace

std::span<const LayoutRow> SensitiveRows() { return kSensitiveRows; }

absl::string_view CannotChangeFormat(const Node& node, const LayoutRow& row,
                                     const Conversion& conversion, const Formats& formats) {
  if (node.String(kFormat) != Stated(row, conversion, formats).src) {
    return "its format is not the one that is converted";
  }
  for (const DimensionAttr& attr : kDimensionAttrs) {
    const std::vector<int64_t> values = node.Ints(attr.name);
    if (!values.empty() && static_cast<int>(values.size()) != formats.rank() * attr.per_dimension) {
      return "an attribute states no value for each dimension";
    }
  }
  return "";
}

void ChangeFormat(Node& node, const LayoutRow& row, const Conversion& conversion,
                  const Formats& formats) {
  node.AttrsToChange().Set(kFormat, Stated(row, conversion, formats).dst);
  for (const DimensionAttr& attr : kDimensionAttrs) {
    const std::vector<int64_t> values = node.Ints(attr.name);
    if (values.empty()) continue;
    node.AttrsToChange().Set(attr.name, Permuted(values, formats.to_dst, attr.per_dimension));
  }
}

}  // namespace smelt::layout
