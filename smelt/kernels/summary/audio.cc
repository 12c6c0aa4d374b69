// AudioSummary: each sound of the batch as a 16-bit WAV file in a summary.
#include <algorithm>

#include "smelt/kernels/audio/wav_file.h"
#include "smelt/kernels/kernel.h"
#include "smelt/wire/records/summary.h"

namespace smelt {
namespace {

Status RunAudioSummary(OpContext& ctx) {
  const Tensor& tag = ctx.input(0);
  const Tensor& tensor = ctx.input(1);
  if (tag.rank() != 0) return InvalidArgument("Tag must be a scalar");
  if (tensor.rank() != 2 && tensor.rank() != 3) {
    return InvalidArgument("Tensor must be 3-D or 2-D, got: ", tensor.shape().ToString());
  }
  float rate = ctx.node().Float("sample_rate");
  if (ctx.num_inputs() > 2) {
    if (ctx.input(2).num_elements() != 1) return InvalidArgument("sample_rate must be a scalar");
    rate = ctx.input(2).scalar<float>();
  }
  if (!(rate > 0)) return InvalidArgument("sample_rate must be > 0");
  const int64_t most = ctx.node().Int("max_outputs", 3);
  const int64_t frames = tensor.dim(1), channels = tensor.rank() == 2 ? 1 : tensor.dim(2);
  const int64_t n = std::min(most, tensor.dim(0));
  const std::string& base = tag.scalar<std::string>();
  std::string summary;
  for (int64_t i = 0; i < n; ++i) {
    if (rate >= 4294967296.0f) {
      // As the conversion to an integer that the message is made of gives it.
      const uint64_t shown = rate < 0x1p63f ? static_cast<uint64_t>(rate) : uint64_t{1} << 63;
      return InvalidArgument("sample_rate must be in (0, 2^32), got: ", shown);
    }
    if (channels == 0) return InvalidArgument("audio is null");
    if (channels > 65535) {
      return InvalidArgument("num_channels must be in (0, 2^16), got: ", channels);
    }
    if (frames > (int64_t{1} << 30) / channels) {
      return InvalidArgument("a WAV file cannot hold ", frames, " frames");
    }
    const auto size = static_cast<size_t>(frames * channels);
    const std::string wav =
        EncodeWav(tensor.flat<float>().subspan(static_cast<size_t>(i) * size, size),
                  static_cast<uint32_t>(rate), static_cast<uint16_t>(channels), /*nan=*/0);
    const std::string name =
        most > 1 ? absl::StrCat(base, "/audio/", i) : absl::StrCat(base, "/audio");
    summary += AudioSummary(name, rate, channels, frames, wav);
  }
  ctx.set_output(0, Tensor::Scalar(std::move(summary)));
  return OkStatus();
}

constexpr Kernel kAudioSummaryTable[] = {
    {"AudioSummary", "", kAnyType, "summary:audio", RunAudioSummary},
};

}  // namespace

extern constinit const std::span<const Kernel> kAudioSummaryKernels = kAudioSummaryTable;

}  // namespace smelt
