#include "smelt/kernels/isa/bfloat16.h"

namespace smelt::SMELT_ISA_NAMESPACE {
namespace {

inline __attribute__((always_inline)) float WidenOne(uint16_t x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16);
}
// To nearest even; NaNs stay NaNs.
inline __attribute__((always_inline)) uint16_t NarrowOne(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uint32_t quiet = (u >> 16) | 0x40u;
  return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

struct NarrowAdd {
  static float Of(float a, float b) { return a + b; }
};
struct NarrowSub {
  static float Of(float a, float b) { return a - b; }
};
struct NarrowMul {
  static float Of(float a, float b) { return a * b; }
};
struct NarrowDiv {
  static float Of(float a, float b) { return a / b; }
};
struct NarrowSquaredDifference {
  static float Of(float a, float b) {
    const float d = WidenOne(NarrowOne(a - b));
    return d * d;
  }
};

template <typename Op>
void NarrowVV(const void* a, const void* b, void* out, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(a);
  const uint16_t* y = static_cast<const uint16_t*>(b);
  uint16_t* r = static_cast<uint16_t*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = NarrowOne(Op::Of(WidenOne(x[i]), WidenOne(y[i])));
}
template <typename Op>
void NarrowVS(const void* a, const void* b, void* out, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(a);
  const float y = WidenOne(*static_cast<const uint16_t*>(b));
  uint16_t* r = static_cast<uint16_t*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = NarrowOne(Op::Of(WidenOne(x[i]), y));
}
template <typename Op>
void NarrowSV(const void* a, const void* b, void* out, int64_t n) {
  const float x = WidenOne(*static_cast<const uint16_t*>(a));
  const uint16_t* y = static_cast<const uint16_t*>(b);
  uint16_t* r = static_cast<uint16_t*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = NarrowOne(Op::Of(x, WidenOne(y[i])));
}
template <typename Op>
constexpr IsaBinaryLoops NarrowRows() {
  return {NarrowVV<Op>, NarrowVS<Op>, NarrowSV<Op>};
}

// NaN passes.
void NarrowRelu(const void* x, void* y, int64_t n, float) {
  const uint16_t* a = static_cast<const uint16_t*>(x);
  uint16_t* r = static_cast<uint16_t*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = WidenOne(a[i]) <= 0 ? uint16_t{0} : a[i];
}
void NarrowRelu6(const void* x, void* y, int64_t n, float) {
  constexpr uint16_t kSix = 0x40c0;
  const uint16_t* a = static_cast<const uint16_t*>(x);
  uint16_t* r = static_cast<uint16_t*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float v = WidenOne(a[i]);
    const uint16_t low = v <= 0 ? uint16_t{0} : a[i];
    r[i] = v > 6 ? kSix : low;
  }
}

}  // namespace

void FillBfloat16(Bfloat16Table& t);
void FillBfloat16(Bfloat16Table& t) {
  t.binary[static_cast<int>(IsaBinary::kAdd)] = NarrowRows<NarrowAdd>();
  t.binary[static_cast<int>(IsaBinary::kSub)] = NarrowRows<NarrowSub>();
  t.binary[static_cast<int>(IsaBinary::kMul)] = NarrowRows<NarrowMul>();
  t.binary[static_cast<int>(IsaBinary::kDiv)] = NarrowRows<NarrowDiv>();
  t.binary[static_cast<int>(IsaBinary::kSquaredDifference)] = NarrowRows<NarrowSquaredDifference>();
  t.unary[static_cast<int>(UnaryF32::kRelu)] = NarrowRelu;
  t.unary[static_cast<int>(UnaryF32::kRelu6)] = NarrowRelu6;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
