// What this machine does at most, by loops of smelt's own: what `smelt bench` holds kernels to.
#ifndef SMELT_CLI_PEAKS_H_
#define SMELT_CLI_PEAKS_H_

#include <cstdint>

#include "smelt/base/status.h"

namespace smelt {

// Of all threads that loops of the caller have. 10^9 operations (a multiply-add is two) or bytes a
// second.
struct Peaks {
  double float32 = 0;
  double int8 = 0, bfloat16 = 0;      // 0: no such instructions
  double l2 = 0, l3 = 0, memory = 0;  // bytes read
  // What the caches hold: the threads' own, and the one that they share.
  int64_t l2_bytes = 0, l3_bytes = 0;

  // That of reading so many bytes time and again.
  double BandwidthOf(double bytes) const {
    return bytes <= static_cast<double>(l2_bytes)   ? l2
           : bytes <= static_cast<double>(l3_bytes) ? l3
                                                    : memory;
  }
};

// Takes about half a second.
StatusOr<Peaks> MeasurePeaks();

}  // namespace smelt

#endif  // SMELT_CLI_PEAKS_H_
