// Batch normalization, softmax, sums of many, and images that change their size.
#include "smelt/analysis/estimate/rows.h"

namespace smelt::estimate {
namespace {

constexpr int kExpFlops = 34, kReciprocalFlops = 4, kRsqrtFlops = 5;
// What TensorFlow takes for a division where its table has none.
constexpr int kPlainDivisionFlops = 10;

struct Image {
  int64_t pixels, channels;
};
Image ImageOf(Op& op, int input) {
  const Dims sizes = op.Sizes(op.input(input), 4);
  const bool second = op.node.String("data_format", "NHWC") == "NCHW";
  return {Multiply(sizes[0], sizes[second ? 2 : 1], sizes[second ? 3 : 2]), sizes[second ? 1 : 3]};
}

OpEstimate EstimateBatchNorm(Op& op) {
  const auto [pixels, channels] = ImageOf(op, 0);
  const int64_t image = op.InputBytes(0), channel = op.InputBytes(1);
  if (!op.node.Bool("is_training")) {
    return op.Of(Multiply(pixels, channels, 2), image + 4 * channel, image);
  }
  // The image is read twice: for its mean and variance, and to be normalized.
  const int64_t each = AddEstimates(Multiply(pixels, 4), 6 + kRsqrtFlops);
  return op.Of(Multiply(channels, each), 2 * image + 2 * channel, image + 4 * channel);
}

OpEstimate EstimateBatchNormGrad(Op& op) {
  const auto [pixels, channels] = ImageOf(op, 1);
  const int64_t image = op.InputBytes(1), channel = op.InputBytes(2);
  const int64_t each = AddEstimates(Multiply(pixels, 11), 5 + kRsqrtFlops);
  return op.Of(Multiply(channels, each), 3 * image + 2 * channel, image + 2 * channel);
}

OpEstimate EstimateSoftmax(Op& op) {
  const PartialShape& logits = op.input(0);
  if (logits.rank() < 1) return Op::Impossible();
  const int64_t each = Multiply(op.Elements(logits), kExpFlops + 2);
  const int64_t first = op.Sizes(logits, logits.rank())[0];
  return op.Whole(AddEstimates(each, Multiply(first, kReciprocalFlops)));
}

OpEstimate EstimateAddN(Op& op) {
  return op.Whole(Multiply(op.ElementwiseElements(), op.node.num_inputs() - 1));
}

// Each row and column has its weights, each element is between four.
OpEstimate EstimateResizeBilinear(Op& op) {
  const Dims out = op.Sizes(op.output(0), 4);
  const int64_t each_line = op.node.Bool("half_pixel_centers") ? 12 : 10;
  const int64_t lines = Multiply(AddEstimates(out[1], out[2]), each_line);
  return op.Whole(AddEstimates(lines, Multiply(op.Elements(op.output(0)), 9)));
}

OpEstimate EstimateCropAndResize(Op& op) {
  const int64_t boxes = op.Sizes(op.input(1), 2)[0];
  const Dims crop = op.Sizes(op.output(0), 4);
  const int64_t lines = Multiply(boxes, crop[1]), places = Multiply(boxes, crop[1], crop[2]);
  const int64_t elements = op.Elements(op.output(0));
  int64_t flops = Multiply(boxes, 8 + 2 * kPlainDivisionFlops);
  flops = AddEstimates(flops, Multiply(AddEstimates(lines, places), 4));
  const std::string method = op.node.String("method", "bilinear");
  if (method == "bilinear") {
    flops = AddEstimates(flops, Multiply(AddEstimates(lines, places), 3));
    flops = AddEstimates(flops, Multiply(elements, 13));
  } else if (method == "nearest") {
    flops = AddEstimates(flops, AddEstimates(Multiply(places, 2), elements));
  } else {
    return op.Unknown();
  }
  return op.Whole(flops);
}

OpEstimate EstimateMean(Op& op) { return op.Whole(op.ElementwiseElements()); }

constexpr Row kNormalizationRows[] = {
    {"AddN", EstimateAddN},
    {"CropAndResize", EstimateCropAndResize},
    {"FusedBatchNorm", EstimateBatchNorm},
    {"FusedBatchNormGrad", EstimateBatchNormGrad},
    {"FusedBatchNormGradV2", EstimateBatchNormGrad, KnownOps::kMore},
    {"FusedBatchNormGradV3", EstimateBatchNormGrad, KnownOps::kMore},
    {"FusedBatchNormV2", EstimateBatchNorm, KnownOps::kMore},
    {"FusedBatchNormV3", EstimateBatchNorm, KnownOps::kMore},
    {"Mean", EstimateMean, KnownOps::kMore},
    {"ResizeBilinear", EstimateResizeBilinear},
    {"Softmax", EstimateSoftmax},
};

}  // namespace

const std::span<const Row> kNormalizations = kNormalizationRows;

}  // namespace smelt::estimate
