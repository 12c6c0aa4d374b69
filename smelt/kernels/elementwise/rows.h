// Loop skeletons that turn a function of one or two elements into row functions. Private to this
// folder; each family instantiates them for its own functions only.
#ifndef SMELT_KERNELS_ELEMENTWISE_ROWS_H_
#define SMELT_KERNELS_ELEMENTWISE_ROWS_H_

#include <cstdint>

#include "smelt/kernels/isa/isa.h"

namespace smelt {

// F has a static R Of(T a, T b). Results may lie in the bytes of an input.
template <typename F, typename T, typename R>
struct BinaryRows {
  static void VV(const void* a, const void* b, void* out, int64_t n) {
    Loop(static_cast<const T*>(a), 1, static_cast<const T*>(b), 1, static_cast<R*>(out), n);
  }
  static void VS(const void* a, const void* b, void* out, int64_t n) {
    const T y = *static_cast<const T*>(b);
    Loop(static_cast<const T*>(a), 1, &y, 0, static_cast<R*>(out), n);
  }
  static void SV(const void* a, const void* b, void* out, int64_t n) {
    const T x = *static_cast<const T*>(a);
    Loop(&x, 0, static_cast<const T*>(b), 1, static_cast<R*>(out), n);
  }
  static constexpr IsaBinaryLoops kLoops = {VV, VS, SV};

 private:
  static void Loop(const T* a, int64_t a_step, const T* b, int64_t b_step, R* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = F::Of(a[i * a_step], b[i * b_step]);
  }
};

// F has a static R Of(T x).
template <typename F, typename T, typename R>
void UnaryRow(const void* x, void* y, int64_t n, float) {
  const T* a = static_cast<const T*>(x);
  R* b = static_cast<R*>(y);
  for (int64_t i = 0; i < n; ++i) b[i] = F::Of(a[i]);
}

}  // namespace smelt

#endif  // SMELT_KERNELS_ELEMENTWISE_ROWS_H_
