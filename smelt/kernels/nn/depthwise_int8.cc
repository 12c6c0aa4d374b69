#include "smelt/kernels/nn/depthwise_int8.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/container/inlined_vector.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/depthwise_int8.h"

namespace smelt::nn {
namespace {

constexpr int64_t kFewestChannels = 16;
constexpr int64_t kLargestStep = 1 << 15;
// Multiply-adds that are worth a thread.
constexpr int64_t kWorkOfThread = 1 << 17;

int64_t Blocks(int64_t channels) {
  return (channels + kDepthwiseInt8Block - 1) / kDepthwiseInt8Block;
}

}  // namespace

bool IsDepthwiseInt8(const ConvProblem& p) {
  for (const Dims* dims : {&p.strides, &p.dilations, &p.pad_before, &p.pad_after}) {
    for (const int64_t d : *dims) {
      if (d > kLargestStep) return false;  // as oneDNN's; products of them must not overflow
    }
  }
  return p.channels_last && p.spatial() == 2 && p.groups == p.in_depth && p.filter_in == 1 &&
         p.out_depth == p.in_depth && p.in_depth >= kFewestChannels;
}

DepthwiseInt8::DepthwiseInt8(const ConvProblem& p, const Tensor& weights,
                             std::span<const float> scales, int32_t x_zero, const Ends& ends)
    : x_zero_(x_zero), ends_(ends) {
  const int64_t channels = p.in_depth;
  const auto* w = static_cast<const int8_t*>(weights.raw());
  // Columns that either of two results reads.
  std::set<int64_t> columns;
  for (int64_t k = 0; k < p.kernel[1]; ++k) {
    columns.insert(k * p.dilations[1]);
    columns.insert(k * p.dilations[1] + p.strides[1]);
  }
  span_ = *columns.rbegin() + 1;
  std::vector<const int8_t*> first, second;
  const auto weights_at = [&](int64_t row, int64_t column) -> const int8_t* {
    if (column < 0 || column % p.dilations[1] != 0) return nullptr;
    const int64_t k = column / p.dilations[1];
    return k < p.kernel[1] ? w + (row * p.kernel[1] + k) * channels : nullptr;
  };
  for (int64_t row = 0; row < p.kernel[0]; ++row) {
    for (const int64_t column : columns) {
      taps_.push_back({row * p.dilations[0], column});
      first.push_back(weights_at(row, column));
      second.push_back(weights_at(row, column - p.strides[1]));
    }
  }
  while (taps_.size() % 4 != 0) {
    taps_.push_back(taps_[0]);
    first.push_back(nullptr);
    second.push_back(nullptr);
  }
  std::vector<const int8_t*> both(first);
  both.insert(both.end(), second.begin(), second.end());
  weights_ = DepthwiseInt8Weights(both, channels);
  const int64_t padded = Blocks(channels) * kDepthwiseInt8Block;
  offsets_.resize(padded);
  scales_.resize(padded);
  for (int64_t c = 0; c < channels; ++c) {
    uint32_t sum = 0;  // it may wrap, as the sums of products do
    for (int64_t k = 0; k < p.kernel[0] * p.kernel[1]; ++k) {
      sum += static_cast<uint32_t>(static_cast<int32_t>(w[k * channels + c]));
    }
    const int64_t place = DepthwiseInt8Place(c, channels);
    offsets_[place] = static_cast<int32_t>(-static_cast<uint32_t>(128 + x_zero) * sum);
    scales_[place] = scales.size() == 1 ? scales[0] : scales[c];
  }
}

std::vector<int32_t> DepthwiseInt8::StartOf(const int32_t* bias, int64_t channels) const {
  std::vector<int32_t> start(offsets_);
  for (int64_t c = 0; bias != nullptr && c < channels; c += 4) {
    int32_t* four = start.data() + DepthwiseInt8Place(c, channels);
    for (int64_t i = 0; i < std::min<int64_t>(4, channels - c); ++i) {
      four[i] =
          static_cast<int32_t>(static_cast<uint32_t>(bias[c + i]) + static_cast<uint32_t>(four[i]));
    }
  }
  return start;
}

Status DepthwiseInt8::Run(const ConvProblem& p, const int8_t* x, const int32_t* bias, int8_t* out,
                          Allocator* allocator) const {
  ASSIGN_OR_RETURN(const Shape line, Shape::Make(Dims{p.in[1], p.in_depth}));
  ASSIGN_OR_RETURN(Tensor padding, Tensor::Make(Dtype::kInt8, line, allocator));
  Run(p, x, StartOf(bias, p.in_depth).data(), out, padding.data<int8_t>(), {});
  return OkStatus();
}

void DepthwiseInt8::Run(const ConvProblem& p, const void* image, const int32_t* start, void* result,
                        int8_t* padding, Stored stored, const SwishInt8Steps* swish) const {
  const auto* x = static_cast<const int8_t*>(image);
  auto* out = static_cast<int8_t*>(result);
  const int64_t bytes = swish != nullptr && !swish->bytes ? 4 : 1;  // of an element of the result
  const int64_t channels = p.in_depth, blocks = Blocks(channels);
  const int64_t height = p.in[0], width = p.in[1], out_width = p.out[1];
  // A row of padding, so that taps outside walk along with those inside.
  std::memset(padding, x_zero_ + (stored.x_unsigned ? 128 : 0), padding_bytes(p));
  const int8_t* nowhere = padding;

  DepthwiseInt8Layer layer;
  layer.channels = channels;
  layer.groups = static_cast<int>(taps_.size() / 4);
  layer.weights = weights_.data();
  layer.start = start;
  layer.scales = scales_.data();
  layer.zero = ends_.zero;
  layer.low = ends_.low;
  layer.high = ends_.high;
  layer.behind = ends_.behind;
  layer.x_unsigned = stored.x_unsigned;
  layer.y_unsigned = stored.out_unsigned;
  if (swish != nullptr) {
    layer.swish = true;
    layer.steps = *swish;
  }

  // Pairs whose columns all lie in the image: [first_inner, first_inner + inner).
  const int64_t pairs = (out_width + 1) / 2, whole_pairs = out_width / 2;
  const int64_t step = 2 * p.strides[1];
  const int64_t first_inner = std::min((p.pad_before[1] + step - 1) / step, whole_pairs);
  const int64_t room = width - span_ + p.pad_before[1];  // the largest pair * step
  const int64_t inner =
      room < 0 ? 0 : std::max<int64_t>(0, std::min(room / step + 1, whole_pairs) - first_inner);

  const int64_t rows = p.batch * p.out[0];
  const int64_t row_work =
      std::max<int64_t>(1, pairs * channels * static_cast<int64_t>(taps_.size()));
  // Few rows are split by channels too.
  const int64_t parts = std::clamp<int64_t>(2 * Threads() / std::max<int64_t>(rows, 1), 1, blocks);
  SharedParallelFor(rows * parts, std::max<int64_t>(1, kWorkOfThread * parts / row_work),
                    [&](int64_t begin, int64_t end) {
                      absl::InlinedVector<const int8_t*, 64> pointers(taps_.size());
                      // Takes the second result of an odd row's last pair.
                      absl::InlinedVector<int8_t, 2048> beyond(
                          pairs > whole_pairs ? static_cast<size_t>(channels * bytes) : 0);
                      for (int64_t task = begin; task < end; ++task) {
                        const int64_t row = task / parts, part = task % parts;
                        const int64_t image = row / p.out[0], y = row % p.out[0];
                        const int64_t top = y * p.strides[0] - p.pad_before[0];
                        DepthwiseInt8Run run;
                        run.taps = pointers.data();
                        run.first_block = blocks * part / parts;
                        run.last_block = blocks * (part + 1) / parts;
                        run.y_step = 2 * channels;
                        run.tap_step = step * channels;
                        const auto at = [&](int64_t pair, int64_t count) {
                          const int64_t left = pair * step - p.pad_before[1];
                          for (size_t t = 0; t < taps_.size(); ++t) {
                            const int64_t i = top + taps_[t].row, j = left + taps_[t].column;
                            pointers[t] = i < 0 || i >= height || j < 0 || j >= width
                                              ? nowhere
                                              : x + ((image * height + i) * width + j) * channels;
                          }
                          int8_t* y = out + (row * out_width + 2 * pair) * channels * bytes;
                          run.y0 = y;
                          run.y1 = pair < whole_pairs ? y + channels * bytes : beyond.data();
                          run.pairs = count;
                          RunDepthwiseInt8(layer, run);
                        };
                        for (int64_t pair = 0; pair < first_inner; ++pair) at(pair, 1);
                        if (inner > 0) at(first_inner, inner);
                        for (int64_t pair = first_inner + inner; pair < pairs; ++pair) at(pair, 1);
                      }
                    });
}

}  // namespace smelt::nn
