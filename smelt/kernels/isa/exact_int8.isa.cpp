#include "smelt/kernels/isa/exact_int8.h"

#include "smelt/kernels/isa/loop.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
namespace {

constexpr int kPanel = 16, kRows = 4;
constexpr int64_t kBlock = kExactDepthwiseBlock;

// What ExactInt8Scales says, without its factors.
struct Ends {
  float low, high;
  int32_t zero;
  explicit Ends(const ExactInt8Scales& s)
      : low(static_cast<float>(s.low - s.zero)),
        high(static_cast<float>(s.high - s.zero)),
        zero(s.zero) {}
};
// rint of numbers below 2^22 is what is left in the last bits of this sum, in any set.
constexpr float kToLastBits = 12582912.0f;
inline __attribute__((always_inline)) int8_t Rounded(float v, const Ends& ends) {
  v = v < ends.high ? v : ends.high;
  v = v > ends.low ? v : ends.low;
  const auto bits = __builtin_bit_cast(int32_t, v + kToLastBits);
  return static_cast<int8_t>(bits - __builtin_bit_cast(int32_t, kToLastBits) + ends.zero);
}

inline __attribute__((always_inline)) int8_t Scaled(int32_t sum, float scale, const Ends& ends) {
  return Rounded(static_cast<float>(sum) * scale, ends);
}

template <int P>
void Tile(const ExactInt8Tile& tile) {
  int32_t sum[P][kPanel];
  for (int p = 0; p < P; ++p) {
    for (int c = 0; c < kPanel; ++c) sum[p][c] = tile.start[c];
  }
  const int8_t* w = tile.weights;
  for (int64_t s = 0; s < tile.num_segments; ++s) {
    const int64_t at = tile.segments[s];
    for (int64_t g = 0; g < tile.groups; ++g, w += kPanel) {
      for (int p = 0; p < P; ++p) {
        const int16_t x = tile.rows[p][at + g];
        for (int c = 0; c < kPanel; ++c) {
          // Sums wrap around.
          sum[p][c] = static_cast<int32_t>(static_cast<uint32_t>(sum[p][c]) +
                                           static_cast<uint32_t>(int32_t{x} * int16_t{w[c]}));
        }
      }
    }
  }
  if (tile.sums != nullptr) {
    for (int p = 0; p < P; ++p) {
      for (int c = 0; c < kPanel; ++c) tile.sums[p * kPanel + c] = sum[p][c];
    }
    return;
  }
  const Ends ends(tile.scales);
  for (int p = 0; p < P; ++p) {
    int8_t y[kPanel];
    for (int c = 0; c < kPanel; ++c) y[c] = Scaled(sum[p][c], tile.scales.scale[c], ends);
    int8_t* to = tile.y + p * tile.y_step;
    for (int64_t c = 0; c < tile.columns; ++c) to[c] = y[c];
  }
}

void AnyTile(const ExactInt8Tile& tile, int rows) {
  switch (rows) {
    case 1:
      return Tile<1>(tile);
    case 2:
      return Tile<2>(tile);
    case 3:
      return Tile<3>(tile);
    default:
      return Tile<4>(tile);
  }
}

void Widen(const int8_t* x, int16_t* y, int64_t n, int32_t zero) {
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<int16_t>(int16_t{x[i]} - static_cast<int16_t>(zero));
  }
}

void ToBytes(const int8_t* x, uint8_t* y, int64_t n) {
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) y[i] = static_cast<uint8_t>(x[i]) ^ 0x80;
}

void Depthwise(const ExactInt8Depthwise& run) {
  const Ends ends(run.scales);
  for (int64_t r = 0; r < run.results; ++r) {
    const int16_t* x = run.x + r * run.x_step;
    int32_t sum[kBlock];
    for (int64_t c = 0; c < kBlock; ++c) sum[c] = run.start[c];
    for (int64_t p = 0; p < run.pairs; ++p) {
      const int16_t *a = x + run.taps[2 * p], *b = x + run.taps[2 * p + 1];
      const int16_t* w = run.weights + p * kBlock * 2;
      for (int64_t c = 0; c < kBlock; ++c) {
        const int32_t two = int32_t{a[c]} * w[2 * c] + int32_t{b[c]} * w[2 * c + 1];
        sum[c] = static_cast<int32_t>(static_cast<uint32_t>(sum[c]) + static_cast<uint32_t>(two));
      }
    }
    if (run.sums != nullptr) {
      for (int64_t c = 0; c < kBlock; ++c) run.sums[r * kBlock + c] = sum[c];
      continue;
    }
    int8_t y[kBlock];
    for (int64_t c = 0; c < kBlock; ++c) y[c] = Scaled(sum[c], run.scales.scale[c], ends);
    int8_t* to = run.y + r * run.y_step;
    for (int64_t c = 0; c < run.channels; ++c) to[c] = y[c];
  }
}

using Operand = ExactInt8Loops::Operand;

// Loops over both operands, either of which may be one number.
template <typename F>
inline __attribute__((always_inline)) void ForBoth(const Operand& a, const Operand& b, int8_t* y,
                                                   int64_t n, F fn) {
  const int8_t *p = a.x, *q = b.x;
  if (a.step == 1 && b.step == 1) {
    SMELT_LOOP for (int64_t i = 0; i < n; ++i) y[i] = fn(p[i], q[i]);
    return;
  }
  if (a.step == 1) {
    const int8_t one = q[0];
    SMELT_LOOP for (int64_t i = 0; i < n; ++i) y[i] = fn(p[i], one);
    return;
  }
  const int8_t one = p[0];
  if (b.step == 0) {
    for (int64_t i = 0; i < n; ++i) y[i] = fn(one, q[0]);
    return;
  }
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) y[i] = fn(one, q[i]);
}

void Add(const Operand& a, const Operand& b, const ExactInt8Sum& sum, int8_t* y, int64_t n) {
  const int32_t first = a.times, second = b.times;
  const ExactInt8Sum s = sum;
  ForBoth(
      a, b, y, n, [=](int32_t x, int32_t z) __attribute__((always_inline)) {
        int32_t t = (s.offset + x * first + z * second) >> s.right;
        t = t > s.low - s.zero ? t : s.low - s.zero;
        t = t < s.high - s.zero ? t : s.high - s.zero;
        return static_cast<int8_t>(t + s.zero);
      });
}

void Multiply(const Operand& a, const Operand& b, const ExactInt8Scales& scales, int8_t* y,
              int64_t n) {
  const int32_t first = a.zero, second = b.zero;
  const Ends ends(scales);
  const float scale = scales.scale[0];
  ForBoth(
      a, b, y, n, [=](int32_t x, int32_t z) __attribute__((always_inline)) {
        // Zero points may be any.
        const uint32_t p = static_cast<uint32_t>(x) - static_cast<uint32_t>(first);
        const uint32_t q = static_cast<uint32_t>(z) - static_cast<uint32_t>(second);
        return Scaled(static_cast<int32_t>(p * q), scale, ends);
      });
}

void Maximum(const int8_t* x, int8_t* y, int64_t n) {
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) y[i] = x[i] > y[i] ? x[i] : y[i];
}

void Accumulate(const int8_t* x, int32_t* sums, int64_t n) {
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) sums[i] += x[i];
}

void Quantize(const float* x, int8_t* y, int64_t n, const ExactInt8Scales& scales) {
  const Ends ends(scales);
  const float scale = scales.scale[0];
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) y[i] = Rounded(x[i] * scale, ends);
}

void StepsOf(const float* x, int16_t* y, int64_t n, float inverse, float low, float high) {
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) {
    float v = x[i] * inverse;
    v = v > low ? v : low;
    v = v < high ? v : high;
    y[i] = static_cast<int16_t>(static_cast<int32_t>(__builtin_rintf(v)));
  }
}

void BytesOf(const float* x, uint8_t* y, int64_t n, float inverse, float low, float high) {
  const auto least = static_cast<int32_t>(low);
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) {
    float v = x[i] * inverse;
    v = v > low ? v : low;
    v = v < high ? v : high;
    y[i] = static_cast<uint8_t>(static_cast<int32_t>(__builtin_rintf(v)) - least);
  }
}

template <bool kTimes>
inline __attribute__((always_inline)) void RowToFloats(const int32_t* sums, const ExactInt8Row& row,
                                                       const ExactInt8Floats& f, float* y) {
  const float *scales = f.scales, *bias = f.bias, low = f.low, high = f.high;
  const int32_t* times = f.weight_sums;
  SMELT_LOOP for (int64_t i = 0; i < f.columns; ++i) {
    auto sum = static_cast<uint32_t>(sums[i]);
    if (kTimes) sum += static_cast<uint32_t>(times[i]) * static_cast<uint32_t>(row.times);
    float v = static_cast<float>(static_cast<int32_t>(sum)) * row.scale * scales[i] + bias[i];
    v = v < low ? low : v;
    y[i] = v > high ? high : v;
  }
}

void ToFloats(const int32_t* sums, const ExactInt8Row* rows, int64_t num_rows,
              const ExactInt8Floats& floats) {
  float* y = floats.y;
  for (int64_t r = 0; r < num_rows; ++r, sums += floats.sums_step, y += floats.y_step) {
    if (floats.weight_sums != nullptr) {
      RowToFloats<true>(sums, rows[r], floats, y);
    } else {
      RowToFloats<false>(sums, rows[r], floats, y);
    }
  }
}

void AddToWide(const int32_t* sums, int64_t* wide, int64_t n) {
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) wide[i] += sums[i];
}

void WideToInt16(const int64_t* sums, const int64_t* bias, const int64_t* factors,
                 const int64_t* shifts, int32_t low, int32_t high, int16_t* y, int64_t n) {
  SMELT_LOOP for (int64_t i = 0; i < n; ++i) {
    const auto sum = static_cast<uint64_t>(sums[i]) + static_cast<uint64_t>(bias[i]);
    const uint64_t half = uint64_t{1} << (shifts[i] - 1);
    const auto product = static_cast<int64_t>(sum * static_cast<uint64_t>(factors[i]) + half);
    int32_t v = static_cast<int32_t>(product >> shifts[i]);
    v = v < low ? low : v;
    y[i] = static_cast<int16_t>(v > high ? high : v);
  }
}

constexpr uint8_t kPlaces[kBlock] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

}  // namespace

// Of exact_int8_rounded.isa.cpp.
void FillRoundedInt8(ExactInt8Loops& t);
void FillExactInt8(ExactInt8Loops& t);
void FillExactInt8(ExactInt8Loops& t) {
  t.panel = kPanel;
  t.group = 1;
  t.rows = kRows;
  t.tile = AnyTile;
  t.widen = Widen;
  t.to_bytes = ToBytes;
  t.depthwise_places = kPlaces;
  t.depthwise = Depthwise;
  t.add_to_wide = AddToWide;
  t.wide_to_int16 = WideToInt16;
  t.add = Add;
  t.multiply = Multiply;
  t.maximum = Maximum;
  t.accumulate = Accumulate;
  t.quantize = Quantize;
  t.steps_of = StepsOf;
  t.bytes_of = BytesOf;
  t.to_floats = ToFloats;
  FillRoundedInt8(t);
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
