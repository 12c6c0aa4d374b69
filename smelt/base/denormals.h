// Denormal numbers count as zero in kernels, as they do in TensorFlow's.
#ifndef SMELT_BASE_DENORMALS_H_
#define SMELT_BASE_DENORMALS_H_

#include "smelt/base/processor.h"

namespace smelt {

// While an object lives, vector arithmetic of this thread treats denormal operands and results as
// zero.
class FlushDenormals {
 public:
  FlushDenormals() : before_(ReadFloatMode()) {
    if (!On(before_)) WriteFloatMode(before_ | kFlushesDenormals);
  }
  ~FlushDenormals() {
    if (!On(before_)) WriteFloatMode(before_);
  }
  // The floating-point control word of the calling thread, so that workers of a team can compute in
  // the mode of the thread that started them.
  using Mode = FloatMode;
  static Mode CurrentMode() { return ReadFloatMode(); }
  static void SetMode(Mode mode) { WriteFloatMode(mode); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static bool On(Mode mode) { return (mode & kFlushesDenormals) == kFlushesDenormals; }
  Mode before_;
};

}  // namespace smelt

#endif  // SMELT_BASE_DENORMALS_H_
