#include "smelt/kernels/nn/narrow_panels.h"

#include <algorithm>
#include <cstring>

namespace smelt::nn {
namespace {

typedef uint16_t Eight __attribute__((vector_size(16)));
typedef uint32_t FourPairs __attribute__((vector_size(16)));

template <typename V>
V LoadBits(const uint16_t* p) {
  V v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
template <typename V>
void StoreBits(uint16_t* p, V v) {
  std::memcpy(p, &v, sizeof(v));
}

// Four columns' four pairs become four pairs' four columns, `step` elements apart.
void TurnPairs(const uint16_t* x, int64_t x_step, uint16_t* y, int64_t y_step) {
  const auto a = LoadBits<FourPairs>(x), b = LoadBits<FourPairs>(x + x_step);
  const auto c = LoadBits<FourPairs>(x + 2 * x_step), d = LoadBits<FourPairs>(x + 3 * x_step);
  const FourPairs ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const FourPairs ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const FourPairs cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const FourPairs cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  StoreBits(y, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  StoreBits(y + y_step, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  StoreBits(y + 2 * y_step, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  StoreBits(y + 3 * y_step, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// Calls with each panel's first column, those behind its last, and how many lanes it has.
template <typename F>
void ForEachPanel(const NarrowPanels& panels, F&& f) {
  for (int64_t i = 0; i < panels.count; ++i) {
    const NarrowPanels::Panel panel = panels.At(i);
    f(panel.column, std::min(panel.behind, panels.columns), panel.behind - panel.column);
  }
}

}  // namespace

void PackPairs(const uint16_t* x, int64_t step, int64_t rows, int64_t pairs,
               const NarrowPanels& panels, uint16_t* packed) {
  ForEachPanel(panels, [&](int64_t from, int64_t to, int64_t lanes) {
    for (int64_t r = 0; r < rows; r += 2, packed += 2 * lanes) {
      const uint16_t* first = x + r * step;
      const uint16_t* second = r + 1 < rows ? first + step : nullptr;
      int64_t c = from;
      uint16_t* out = packed;
      for (; c + 8 <= to; c += 8, out += 16) {
        const auto a = LoadBits<Eight>(first + c);
        const Eight b = second == nullptr ? Eight{} : LoadBits<Eight>(second + c);
        StoreBits(out, __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
        StoreBits(out + 8, __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15));
      }
      for (; c < to; ++c, out += 2) {
        out[0] = first[c];
        out[1] = second == nullptr ? uint16_t{0} : second[c];
      }
      std::fill(out, packed + 2 * lanes, uint16_t{0});
    }
    packed = std::fill_n(packed, (pairs - (rows + 1) / 2) * 2 * lanes, uint16_t{0});
  });
}

void PackPairsTurned(const uint16_t* x, int64_t step, int64_t rows, int64_t pairs,
                     const NarrowPanels& panels, uint16_t* packed) {
  const int64_t whole = (rows + 1) / 2;
  ForEachPanel(panels, [&](int64_t from, int64_t to, int64_t lanes) {
    int64_t c = from;
    uint16_t* out = packed;
    const auto one = [&](int64_t column, int64_t pair, uint16_t* at) {
      const uint16_t* two = x + column * step + 2 * pair;
      at[0] = two[0];
      at[1] = 2 * pair + 1 < rows ? two[1] : uint16_t{0};
    };
    for (; c + 4 <= to; c += 4, out += 8) {
      int64_t p = 0;
      for (; 2 * p + 8 <= rows; p += 4) {
        TurnPairs(x + c * step + 2 * p, step, out + p * 2 * lanes, 2 * lanes);
      }
      for (; p < whole; ++p) {
        for (int64_t i = 0; i < 4; ++i) one(c + i, p, out + p * 2 * lanes + 2 * i);
      }
    }
    for (; c < to; ++c, out += 2) {
      for (int64_t p = 0; p < whole; ++p) one(c, p, out + p * 2 * lanes);
    }
    const int64_t left = packed + 2 * lanes - out;
    for (int64_t p = 0; p < whole; ++p) std::fill_n(out + p * 2 * lanes, left, uint16_t{0});
    packed += 2 * lanes * whole;
    packed = std::fill_n(packed, (pairs - whole) * 2 * lanes, uint16_t{0});
  });
}

StatusOr<Tensor> ScaledColumns(const Tensor& matrix, std::span<const float> factors) {
  if (factors.empty()) return matrix;
  ASSIGN_OR_RETURN(Tensor scaled, Tensor::Make(Dtype::kBfloat16, matrix.shape(), HeapAllocator()));
  const auto* x = matrix.data<Bfloat16>();
  auto* y = scaled.data<Bfloat16>();
  const auto columns = static_cast<int64_t>(factors.size());
  for (int64_t i = 0; i < matrix.num_elements(); i += columns) {
    for (int64_t c = 0; c < columns; ++c) {
      y[i + c] = Bfloat16(static_cast<float>(x[i + c]) * factors[static_cast<size_t>(c)]);
    }
  }
  return scaled;
}

}  // namespace smelt::nn
