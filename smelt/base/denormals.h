// Denormal numbers count as zero in kernels, as they do in TensorFlow's.
#ifndef SMELT_BASE_DENORMALS_H_
#define SMELT_BASE_DENORMALS_H_

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace smelt {

// While one lives, this thread's arithmetic takes denormal numbers for zero and gives zero for
// them. On processors other than x86 it changes nothing.
class FlushDenormals {
 public:
#ifdef __SSE__
  FlushDenormals() : before_(_mm_getcsr()) {
    if (!On(before_)) _mm_setcsr(before_ | kBits);
  }
  ~FlushDenormals() {
    if (!On(before_)) _mm_setcsr(before_);
  }
  // The whole floating-point mode of this thread, for another to compute alike.
  using Mode = unsigned;
  static Mode CurrentMode() { return _mm_getcsr(); }
  static void SetMode(Mode mode) { _mm_setcsr(mode); }
#else
  FlushDenormals() {}
  ~FlushDenormals() {}
  struct Mode {};
  static Mode CurrentMode() { return {}; }
  static void SetMode(Mode) {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#ifdef __SSE__
  // Results to zero (bit 15), operands as zero (bit 6).
  static constexpr unsigned kBits = 0x8040;
  static bool On(unsigned csr) { return (csr & kBits) == kBits; }
  unsigned before_;
#endif
};

}  // namespace smelt

#endif  // SMELT_BASE_DENORMALS_H_
