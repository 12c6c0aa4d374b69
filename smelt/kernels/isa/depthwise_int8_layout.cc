#include "smelt/kernels/isa/depthwise_int8.h"

namespace smelt {
namespace {

// Where channel c's numbers stand: in those of the register that begins with channel `first`, at
// lane `in_quarter` of its quarter.
struct DepthwisePlace {
  int64_t first, lanes, quarter, in_quarter;
  DepthwisePlace(int64_t c, int64_t channels)
      : lanes(DepthwiseInt8Lanes(channels - (c - c % kDepthwiseInt8Block))) {
    const int64_t in_register = c % (lanes * 16);
    first = c - in_register;
    quarter = in_register % 16 / 4;
    in_quarter = in_register / 16 * 4 + in_register % 4;
  }
};

}  // namespace

int64_t DepthwiseInt8Place(int64_t c, int64_t channels) {
  const DepthwisePlace p(c, channels);
  return p.first + p.quarter * p.lanes * 4 + p.in_quarter;
}

AlignedVector<int8_t> DepthwiseInt8Weights(std::span<const int8_t* const> taps, int64_t channels) {
  const int64_t num = static_cast<int64_t>(taps.size()) / 2;
  const int64_t groups = (num + 3) / 4;
  const int64_t blocks = (channels + kDepthwiseInt8Block - 1) / kDepthwiseInt8Block;
  AlignedVector<int8_t> out(blocks * kDepthwiseInt8Block * groups * 8);
  for (int64_t c = 0; c < channels; ++c) {
    const DepthwisePlace p(c, channels);
    for (int64_t result = 0; result < 2; ++result) {
      for (int64_t t = 0; t < num; ++t) {
        const int8_t* w = taps[result * num + t];
        if (w == nullptr) continue;
        const int64_t quarter = t / 4 * 8 + result * 4 + p.quarter;
        out[p.first * groups * 8 + (quarter * p.lanes * 4 + p.in_quarter) * 4 + t % 4] = w[c];
      }
    }
  }
  return out;
}

}  // namespace smelt
