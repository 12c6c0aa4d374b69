#include "smelt/kernels/audio/wav_file.h"

#include <algorithm>
#include <cmath>

#include "smelt/base/little_endian.h"

namespace smelt {

std::string EncodeWav(std::span<const float> samples, uint32_t rate, uint16_t channels,
                      int16_t nan) {
  constexpr uint32_t kBytes = 2;
  const auto size = static_cast<uint32_t>(samples.size() * kBytes);
  std::string out;
  out.reserve(static_cast<size_t>(kWavHeader) + size);
  out += "RIFF";
  AppendLittle<uint32_t>(static_cast<uint32_t>(kWavHeader) - 8 + size, &out);
  out += "WAVEfmt ";
  AppendLittle<uint32_t>(16, &out);
  AppendLittle<uint16_t>(1, &out);  // PCM
  AppendLittle<uint16_t>(channels, &out);
  AppendLittle<uint32_t>(rate, &out);
  AppendLittle<uint32_t>(rate * channels * kBytes, &out);
  AppendLittle<uint16_t>(static_cast<uint16_t>(channels * kBytes), &out);
  AppendLittle<uint16_t>(8 * kBytes, &out);
  out += "data";
  AppendLittle<uint32_t>(size, &out);
  for (const float s : samples) {
    const float v = std::clamp(std::round(s * 32768.0f), -32768.0f, 32767.0f);
    AppendLittle<int16_t>(std::isnan(s) ? nan : static_cast<int16_t>(v), &out);
  }
  return out;
}

}  // namespace smelt
