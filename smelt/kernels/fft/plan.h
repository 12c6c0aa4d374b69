// What a transform over the innermost dimensions of a tensor is. For the files of this folder.
#ifndef SMELT_KERNELS_FFT_PLAN_H_
#define SMELT_KERNELS_FFT_PLAN_H_

#include <algorithm>
#include <array>
#include <cstdint>

namespace smelt::fft {

enum class FftKind : uint8_t { kForward, kInverse, kReal, kInverseReal };

// A transform of `rank` dimensions; sizes of those that it lacks are 1. The last dimension of a
// real transform's complex side holds length / 2 + 1 bins.
struct FftPlan {
  FftKind kind;
  int rank;
  std::array<int64_t, 3> length{1, 1, 1}, in{1, 1, 1}, out{1, 1, 1};

  bool inverse() const { return kind == FftKind::kInverse || kind == FftKind::kInverseReal; }
  int64_t points() const { return length[0] * length[1] * length[2]; }
  int64_t in_points() const { return in[0] * in[1] * in[2]; }
  int64_t out_points() const { return out[0] * out[1] * out[2]; }
  // Values of the last dimension that are read.
  int64_t bins() const {
    return std::min(in[2], kind == FftKind::kInverseReal ? length[2] / 2 + 1 : length[2]);
  }
};

}  // namespace smelt::fft

#endif  // SMELT_KERNELS_FFT_PLAN_H_
