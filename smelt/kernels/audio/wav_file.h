// Writing 16-bit PCM in RIFF files: for EncodeWav and the summaries of sound.
#ifndef SMELT_KERNELS_AUDIO_WAV_FILE_H_
#define SMELT_KERNELS_AUDIO_WAV_FILE_H_

#include <cstdint>
#include <span>
#include <string>

namespace smelt {

inline constexpr int64_t kWavHeader = 44;  // bytes before the samples

// RIFF header, format chunk, data chunk. Samples beyond [-1, 1) are clipped; NaN, which
// TensorFlow's ops treat in ways of their own, becomes `nan`. REQUIRES: everything fits the fields.
// Thread safe.
std::string EncodeWav(std::span<const float> samples, uint32_t rate, uint16_t channels,
                      int16_t nan);

}  // namespace smelt

#endif  // SMELT_KERNELS_AUDIO_WAV_FILE_H_
