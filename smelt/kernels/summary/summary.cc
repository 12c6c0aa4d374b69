// The ops that make summaries: serialized Summary messages.
#include "smelt/wire/records/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/image/codec.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/summary/as_double.h"

namespace smelt {
namespace {

// A value for each tag; both inputs are of one shape.
Status RunScalarSummary(OpContext& ctx) {
  const Tensor& tags = ctx.input(0);
  const Tensor& values = ctx.input(1);
  if (!(tags.shape() == values.shape())) {
    const std::string tag =
        tags.num_elements() == 1 ? absl::StrCat(" (tag '", tags.scalar<std::string>(), "')") : "";
    return InvalidArgument("tags and values are not the same shape: ", tags.shape().ToString(),
                           " != ", values.shape().ToString(), tag);
  }
  std::string summary;
  for (int64_t i = 0; i < tags.num_elements(); ++i) {
    summary += ScalarSummary(tags.data<std::string>()[i], static_cast<float>(DoubleAt(values, i)));
  }
  ctx.set_output(0, Tensor::Scalar(std::move(summary)));
  return OkStatus();
}

Status RunHistogramSummary(OpContext& ctx) {
  const Tensor& tag = ctx.input(0);
  if (tag.rank() != 0) return InvalidArgument("tags must be scalar");
  ASSIGN_OR_RETURN(const SummaryHistogram histogram, HistogramOf(ctx.input(1), ctx.node().name()));
  ctx.set_output(0, Tensor::Scalar(HistogramSummary(tag.scalar<std::string>(), histogram)));
  return OkStatus();
}

Status RunTensorSummary(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::string summary,
                   TensorSummary("", ctx.node().name(), ctx.input(0), std::nullopt));
  ctx.set_output(0, Tensor::Scalar(std::move(summary)));
  return OkStatus();
}

Status RunTensorSummaryV2(OpContext& ctx) {
  const Tensor& tag = ctx.input(0);
  const Tensor& metadata = ctx.input(2);
  if (tag.rank() != 0) return InvalidArgument("tag must be scalar");
  if (metadata.rank() != 0) return InvalidArgument("serialized_summary_metadata must be scalar");
  ASSIGN_OR_RETURN(std::string summary, TensorSummary(tag.scalar<std::string>(), "", ctx.input(1),
                                                      metadata.scalar<std::string>()));
  ctx.set_output(0, Tensor::Scalar(std::move(summary)));
  return OkStatus();
}

Status RunMergeSummary(OpContext& ctx) {
  std::vector<std::string> all;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const auto some = ctx.input(i).flat<std::string>();
    all.insert(all.end(), some.begin(), some.end());
  }
  ASSIGN_OR_RETURN(std::string summary, MergeSummaries(all));
  ctx.set_output(0, Tensor::Scalar(std::move(summary)));
  return OkStatus();
}

// ---- ImageSummary: each image of the batch as a PNG file ----

struct ImageSummaryState final : KernelState {
  int64_t most = 3;
  std::vector<uint8_t> bad;  // the pixel that stands for one with a NaN or an infinity
};

StatusOr<std::unique_ptr<KernelState>> PrepareImageSummary(const Node& node) {
  auto state = std::make_unique<ImageSummaryState>();
  state->most = node.Int("max_images", 3);
  const auto stated = node.Get<std::shared_ptr<const TensorValue>>("bad_color", nullptr);
  if (stated == nullptr) {
    state->bad = {255, 0, 0, 255};
    return state;
  }
  ASSIGN_OR_RETURN(const Tensor bad, stated->Materialize());
  if (bad.dtype() != Dtype::kUint8) {
    return InvalidArgument("bad_color must be uint8, got ", DtypeName(bad.dtype()));
  }
  if (bad.rank() != 1) {
    return InvalidArgument("bad_color must be a vector, got shape ", bad.shape().ToString());
  }
  const auto values = bad.flat<uint8_t>();
  state->bad.assign(values.begin(), values.end());
  return state;
}

bool IsFinite(Half v) { return std::isfinite(static_cast<float>(v)); }
template <typename T>
bool IsFinite(T v) {
  return std::isfinite(v);
}

// Values below zero put zero at 128 and the largest magnitude 127 away; else the largest becomes
// 255. Scale and products round to T.
template <typename T>
void ScaleToBytes(const T* x, int64_t pixels, int64_t depth, const uint8_t* bad, uint8_t* y) {
  const auto finite = [&](int64_t p) {
    return std::all_of(x + p * depth, x + (p + 1) * depth, [](T v) { return IsFinite(v); });
  };
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (int64_t p = 0; p < pixels; ++p) {
    if (!finite(p)) continue;
    for (int64_t c = 0; c < depth; ++c) {
      low = std::min(low, static_cast<float>(x[p * depth + c]));
      high = std::max(high, static_cast<float>(x[p * depth + c]));
    }
  }
  constexpr float kZero = 1e-6f;
  const float largest = low < 0 ? std::max(std::abs(low), std::abs(high)) : high;
  const T scale = T(largest < kZero ? 0.0f : (low < 0 ? 127.0f : 255.0f) / largest);
  const T offset = T(low < 0 ? 128.0f : 0.0f);
  for (int64_t p = 0; p < pixels; ++p) {
    const bool good = finite(p);
    for (int64_t c = 0; c < depth; ++c) {
      const int64_t i = p * depth + c;
      const T scaled = AddValues(MultiplyValues(x[i], scale), offset);
      y[i] = good ? static_cast<uint8_t>(static_cast<Wide<T>>(scaled)) : bad[c];
    }
  }
}

Status RunImageSummary(OpContext& ctx) {
  const auto& state = ctx.state<ImageSummaryState>();
  const Tensor &tag = ctx.input(0), &tensor = ctx.input(1);
  if (tag.rank() != 0) return InvalidArgument("Tags must be a scalar");
  const int64_t depth = tensor.rank() == 4 ? tensor.dim(3) : 0;
  if (depth != 1 && depth != 3 && depth != 4) {
    return InvalidArgument("Tensor must be 4-D with last dim 1, 3, or 4, not ",
                           tensor.shape().ToString());
  }
  const int64_t batch = tensor.dim(0), height = tensor.dim(1), width = tensor.dim(2);
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t pixels = height * width;
  if (batch >= kMost || height >= kMost || width >= kMost || pixels >= (int64_t{1} << 29)) {
    return InvalidArgument("Tensor too large for summary ", tensor.shape().ToString());
  }
  if (pixels == 0) {
    return InvalidArgument("input tensor must have non-zero dims. Found: [", batch, ", ", height,
                           ", ", width, ", ", depth, "].");
  }
  const bool bytes = tensor.dtype() == Dtype::kUint8;
  if (!bytes && static_cast<int64_t>(state.bad.size()) < depth) {
    return InvalidArgument("expected depth <= bad_color.size, got depth = ", depth,
                           ", bad_color.size = ", state.bad.size());
  }
  const int64_t size = pixels * depth;
  std::vector<uint8_t> scaled(bytes ? 0 : static_cast<size_t>(size));
  const std::string& base = tag.scalar<std::string>();
  std::string summary;
  for (int64_t i = 0; i < std::min(state.most, batch); ++i) {
    const auto scale = [&]<typename T>(const T* x) {
      ScaleToBytes(x + i * size, pixels, depth, state.bad.data(), scaled.data());
    };
    const uint8_t* image = scaled.data();
    if (bytes) {
      image = tensor.data<uint8_t>() + i * size;
    } else if (tensor.dtype() == Dtype::kFloat) {
      scale(tensor.data<float>());
    } else if (tensor.dtype() == Dtype::kDouble) {
      scale(tensor.data<double>());
    } else {
      scale(tensor.data<Half>());
    }
    const image::Extent extent{.height = height, .width = width, .channels = depth};
    ASSIGN_OR_RETURN(const std::string png, image::EncodePng(image, extent, 8, -1));
    const std::string name =
        state.most > 1 ? absl::StrCat(base, "/image/", i) : absl::StrCat(base, "/image");
    summary += ImageSummary(name, height, width, depth, png);
  }
  ctx.set_output(0, Tensor::Scalar(std::move(summary)));
  return OkStatus();
}

constexpr Kernel kSummaryTable[] = {
    {"ScalarSummary", "T", kRealTypes, "summary:scalar", RunScalarSummary},
    {"HistogramSummary", "T", kRealTypes, "summary:histogram", RunHistogramSummary},
    {"TensorSummary", "T", kNumberTypes | Types(Dtype::kBool, Dtype::kString), "summary:tensor",
     RunTensorSummary},
    {"TensorSummaryV2", "T", kNumberTypes | Types(Dtype::kBool, Dtype::kString), "summary:tensor",
     RunTensorSummaryV2},
    {"ImageSummary", "T", Types(Dtype::kUint8, Dtype::kFloat, Dtype::kHalf, Dtype::kDouble),
     "summary:image", RunImageSummary, PrepareImageSummary},
    {"MergeSummary", "", kAnyType, "summary:merge", RunMergeSummary},
};

}  // namespace

extern constinit const std::span<const Kernel> kSummaryKernels = kSummaryTable;

double DoubleAt(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case Dtype::kFloat:
      return t.data<float>()[i];
    case Dtype::kDouble:
      return t.data<double>()[i];
    case Dtype::kHalf:
      return static_cast<float>(t.data<Half>()[i]);
    case Dtype::kBfloat16:
      return static_cast<float>(t.data<Bfloat16>()[i]);
    case Dtype::kBool:
      return t.data<bool>()[i] ? 1 : 0;
    case Dtype::kUint64:
      return static_cast<double>(t.data<uint64_t>()[i]);
    default:
      return static_cast<double>(IntAt(t, i));
  }
}

StatusOr<SummaryHistogram> HistogramOf(const Tensor& values, absl::string_view name) {
  SummaryHistogram histogram;
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const double v = DoubleAt(values, i);
    if (std::isnan(v)) return InvalidArgument("Nan in summary histogram for: ", name);
    if (std::isinf(v)) return InvalidArgument("Infinity in Histogram for: ", name);
    histogram.Add(v);
  }
  return histogram;
}

}  // namespace smelt
