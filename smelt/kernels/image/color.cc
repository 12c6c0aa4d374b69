// Colors: RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation, AdjustContrast.
#include <algorithm>
#include <cmath>
#include <vector>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/kernel.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

constexpr int64_t kColorGrain = 4096;  // pixels

// Applies pixel(const T in[3], T out[3]) to all pixels.
template <typename T, typename F>
void EachPixel(const Tensor& in, Tensor* out, F pixel) {
  const T* from = in.data<T>();
  T* to = out->data<T>();
  ParallelFor(in.num_elements() / 3, kColorGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pixel(from + 3 * i, to + 3 * i);
  });
}

// Arithmetic whose every result is rounded to T.
template <typename T>
struct Rounded {
  Wide<T> v;
  Rounded(Wide<T> x) : v(static_cast<Wide<T>>(T(x))) {}  // NOLINT: numbers convert implicitly
  friend Rounded operator+(Rounded a, Rounded b) { return a.v + b.v; }
  friend Rounded operator-(Rounded a, Rounded b) { return a.v - b.v; }
  friend Rounded operator*(Rounded a, Rounded b) { return a.v * b.v; }
  friend Rounded operator/(Rounded a, Rounded b) { return a.v / b.v; }
};

template <typename T>
void PixelToHsv(const T* in, T* out) {
  using R = Rounded<T>;
  const R r = static_cast<Wide<T>>(in[0]), g = static_cast<Wide<T>>(in[1]),
          b = static_cast<Wide<T>>(in[2]);
  const R value = std::max(std::max(r.v, g.v), b.v);
  const R range = value - R(std::min(std::min(r.v, g.v), b.v));
  const R norm = R(1) / range * (R(1) / R(6));
  R hue = r.v == value.v   ? norm * (g - b)
          : g.v == value.v ? norm * (b - r) + R(2) / R(6)
                           : norm * (r - g) + R(4) / R(6);
  if (!(range.v > 0)) hue = 0;
  if (hue.v < 0) hue = hue + R(1);
  out[0] = T(hue.v);
  out[1] = T(value.v > 0 ? (range / value).v : Wide<T>(0));
  out[2] = T(value.v);
}

template <typename T>
void PixelToRgb(const T* in, T* out) {
  using R = Rounded<T>;
  const R hue = R(static_cast<Wide<T>>(in[0])) * R(6);
  const R saturation = static_cast<Wide<T>>(in[1]), value = static_cast<Wide<T>>(in[2]);
  const auto clamp = [](R x) -> R { return std::min<Wide<T>>(std::max<Wide<T>>(x.v, 0), 1); };
  const R shares[] = {clamp(R(std::abs((hue - R(3)).v)) - R(1)),
                      clamp(R(2) - R(std::abs((hue - R(2)).v))),
                      clamp(R(2) - R(std::abs((hue - R(4)).v)))};
  for (int c = 0; c < 3; ++c) {
    out[c] = T(((R(1) - saturation + saturation * shares[c]) * value).v);
  }
}

template <bool kToHsv>
Status RunColorSpace(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) {
    return InvalidArgument("input must be at least 1D", in.shape().ToString());
  }
  if (in.dim(in.rank() - 1) != 3) {
    return FailedPrecondition("input must have 3 channels but input only has ",
                              in.dim(in.rank() - 1), " channels.");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  using Types = decltype(FloatTypes() + HalfTypes());
  VisitOneOf(Types(), in.dtype(),
             [&]<typename T>() { EachPixel<T>(in, out, kToHsv ? PixelToHsv<T> : PixelToRgb<T>); });
  return OkStatus();
}

// Turns the hue of an RGB pixel by `turn` sixths of the color circle; its greatest and least value
// stay.
void TurnHue(const float* in, float turn, float* out) {
  const float r = in[0], g = in[1], b = in[2];
  // The channels by falling value, found as TensorFlow does: NaN takes the place that is left.
  constexpr int kOrders[6][3] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}, {2, 0, 1}, {0, 2, 1}};
  const int sixth = r < g ? (b < r ? 1 : b > g ? 3 : 2) : (b < g ? 0 : b > r ? 4 : 5);
  const int* order = kOrders[sixth];
  const float high = in[order[0]], middle = in[order[1]], low = in[order[2]];
  float hue = 0;
  if (high != low) {
    const float ratio = (middle - low) / (high - low);
    // Within even sixths (from red, green, blue) the middle value rises, within odd ones it falls.
    hue = static_cast<float>(sixth) + (sixth % 2 == 0 ? ratio : 1 - ratio);
  }
  hue += turn;
  if (std::isnan(hue)) {
    out[0] = high;
    out[1] = low;
    out[2] = hue;
    return;
  }
  if (!(std::abs(hue) < 1e4f)) hue = std::isfinite(hue) ? std::fmod(hue, 6.0f) : 6;
  while (hue < 0) hue += 6;
  while (hue >= 6) hue -= 6;
  const int sector = static_cast<int>(hue);
  float ratio = hue - static_cast<float>(sector);
  if (sector % 2 == 1) ratio = 1 - ratio;
  const float between = low + ratio * (high - low);
  // Which channel is high, between and low in each sixth.
  constexpr int kHigh[] = {0, 1, 1, 2, 2, 0}, kBetween[] = {1, 0, 2, 1, 0, 2},
                kLow[] = {2, 2, 0, 0, 1, 1};
  out[kHigh[sector]] = high;
  out[kBetween[sector]] = between;
  out[kLow[sector]] = low;
}

void ScaleSaturation(const float* in, float scale, float* out) {
  const float r = in[0], g = in[1], b = in[2];
  const float value = std::max(r, std::max(g, b));
  const float range = value - std::min(r, std::min(g, b));
  const float norm = 1.0f / (6.0f * range);
  double hue = r == value   ? static_cast<double>(norm * (g - b))
               : g == value ? static_cast<double>(norm * (b - r)) + 2.0 / 6.0
                            : static_cast<double>(norm * (r - g)) + 4.0 / 6.0;
  auto turn = static_cast<float>(hue);
  if (range <= 0) turn = 0;
  if (turn < 0) turn += 1;
  float saturation = value > 0 ? range / value : 0;
  saturation = std::min(1.0f, std::max(0.0f, saturation * scale));
  const float chroma = saturation * value;
  const float least = value - chroma;
  const float sixths = turn * 6;
  const int sector = sixths >= 0 && sixths < 6 ? static_cast<int>(sixths) : 6;
  const float phase = sector < 6 ? std::fmod(sixths, 2.0f) : 0;
  const float other = chroma * (1 - std::abs(phase - 1));
  constexpr int kFull[] = {0, 1, 1, 2, 2, 0}, kOther[] = {1, 0, 2, 1, 0, 2};
  float parts[3] = {0, 0, 0};
  if (sector < 6) {
    parts[kFull[sector]] = chroma;
    parts[kOther[sector]] = other;
  }
  for (int c = 0; c < 3; ++c) out[c] = parts[c] + least;
}

template <void (*kAdjust)(const float*, float, float*), int kUnit>
Status RunAdjustColor(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Tensor& by = ctx.input(1);
  if (in.rank() < 3) {
    return InvalidArgument("input must be at least 3-D, got shape", in.shape().ToString());
  }
  if (by.rank() != 0) {
    return InvalidArgument(kUnit == 6 ? "delta" : "scale",
                           " must be scalar: ", by.shape().ToString());
  }
  if (in.dim(in.rank() - 1) != 3) {
    return InvalidArgument("input must have 3 channels but instead has ", in.dim(in.rank() - 1),
                           " channels.");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const float amount = by.scalar<float>() * kUnit;
  EachPixel<float>(in, out, [amount](const float* from, float* to) { kAdjust(from, amount, to); });
  return OkStatus();
}

Status CheckContrast(const OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 3) {
    return InvalidArgument("input must be at least 3-D, got shape", in.shape().ToString());
  }
  constexpr absl::string_view kNames[] = {"contrast_factor", "min_value", "max_value"};
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    const Tensor& t = ctx.input(i);
    if (t.rank() != 0) {
      return InvalidArgument(kNames[i - 1], " must be scalar: ", t.shape().ToString());
    }
  }
  return OkStatus();
}

// Each channel of each image moves away from its mean; version 1 then keeps it within limits.
template <typename T>
void StretchContrast(const OpContext& ctx, Tensor* out) {
  const Tensor& in = ctx.input(0);
  const float factor = ctx.input(1).scalar<float>();
  const bool clamped = ctx.num_inputs() == 4;
  const float low = clamped ? ctx.input(2).scalar<float>() : 0;
  const float high = clamped ? ctx.input(3).scalar<float>() : 0;
  const int64_t channels = in.dim(in.rank() - 1);
  const int64_t pixels = in.dim(in.rank() - 2) * in.dim(in.rank() - 3);
  const int64_t images = in.num_elements() / (pixels * channels);
  ParallelFor(images, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(channels));
    for (int64_t i = begin; i < end; ++i) {
      const T* from = in.data<T>() + i * pixels * channels;
      float* to = out->data<float>() + i * pixels * channels;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < channels; ++c) {
          sums[c] += static_cast<double>(static_cast<float>(from[p * channels + c]));
        }
      }
      for (int64_t c = 0; c < channels; ++c) {
        const auto mean = static_cast<float>(sums[c] / static_cast<double>(pixels));
        for (int64_t at = c; at < pixels * channels; at += channels) {
          const float v = (static_cast<float>(from[at]) - mean) * factor + mean;
          to[at] = clamped ? std::max(std::min(v, high), low) : v;
        }
      }
    }
  });
}

Status RunContrast(OpContext& ctx) {
  RETURN_IF_ERROR(CheckContrast(ctx));
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  using Types = CppTypes<float, double, uint8_t, int8_t, int16_t, int32_t>;
  VisitOneOf(Types(), in.dtype(), [&]<typename T>() { StretchContrast<T>(ctx, out); });
  return OkStatus();
}

constexpr DtypeSet kColorTypes = kFloatTypes | kHalfTypes;
constexpr DtypeSet kContrastTypes =
    kFloatTypes | Types(Dtype::kUint8, Dtype::kInt8, Dtype::kInt16, Dtype::kInt32);

constexpr Kernel kColorTable[] = {
    {"RGBToHSV", "T", kColorTypes, "image:color", RunColorSpace<true>},
    {"HSVToRGB", "T", kColorTypes, "image:color", RunColorSpace<false>},
    {"AdjustHue", "T", Types(Dtype::kFloat), "image:color", RunAdjustColor<TurnHue, 6>},
    {"AdjustSaturation", "T", Types(Dtype::kFloat), "image:color",
     RunAdjustColor<ScaleSaturation, 1>},
    {"AdjustContrast", "T", kContrastTypes, "image:contrast", RunContrast},
    {"AdjustContrastv2", "T", Types(Dtype::kFloat), "image:contrast", RunContrast},
};

}  // namespace

extern constinit const std::span<const Kernel> kColorKernels = kColorTable;

}  // namespace smelt
