// The two 16-bit floating types: storage with conversion to and from float (round to nearest,
// ties to even; NaN stays NaN). Arithmetic is done in float.
#ifndef SMELT_TENSOR_FLOAT16_H_
#define SMELT_TENSOR_FLOAT16_H_

#include <bit>
#include <cstdint>

namespace smelt {

struct Bfloat16 {
  uint16_t bits = 0;

  Bfloat16() = default;
  explicit constexpr Bfloat16(float f) : bits(FromFloat(f)) {}
  explicit constexpr operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  static constexpr uint16_t FromFloat(float f) {
    const uint32_t u = std::bit_cast<uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

struct Half {
  uint16_t bits = 0;

  Half() = default;
  explicit constexpr Half(float f) : bits(FromFloat(f)) {}
  explicit constexpr operator float() const { return ToFloat(bits); }

  static constexpr float ToFloat(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t exp = (h >> 10) & 0x1fu;
    uint32_t mant = h & 0x3ffu;
    if (exp == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mant << 13));
    if (exp != 0) return std::bit_cast<float>(sign | ((exp + 112) << 23) | (mant << 13));
    if (mant == 0) return std::bit_cast<float>(sign);
    uint32_t e = 113;
    while ((mant & 0x400u) == 0) {
      mant <<= 1;
      --e;
    }
    return std::bit_cast<float>(sign | (e << 23) | ((mant & 0x3ffu) << 13));
  }
  static constexpr uint16_t FromFloat(float f) {
    const uint32_t u = std::bit_cast<uint32_t>(f);
    const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
    const uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (a >= 0x38800000u) {  // normal in half
      const uint32_t r = a - 0x38000000u;
      return static_cast<uint16_t>(sign | ((r + 0xfffu + ((r >> 13) & 1u)) >> 13));
    }
    if (a < 0x33000000u) return sign;  // below half of the least subnormal
    const uint32_t shift = 126 - (a >> 23);
    const uint32_t mant = (a & 0x7fffffu) | 0x800000u;
    const uint32_t half = 1u << (shift - 1);
    const uint32_t odd = (mant >> shift) & 1u;
    return static_cast<uint16_t>(sign | ((mant + half - 1 + odd) >> shift));
  }
};

}  // namespace smelt

#endif  // SMELT_TENSOR_FLOAT16_H_
