#include "smelt/kernels/lite/int8_matmul.h"

#include <algorithm>
#include <array>

#include "smelt/base/parallel.h"

namespace smelt::lite {
namespace {

constexpr int64_t kMatmulWorkOfThread = 1 << 16;
// Rows that are filled, and multiplied by all panels, at a time.
constexpr int64_t kRowsAtOnce = 32;

}  // namespace

Int8Matmul::Int8Matmul(int64_t rows, int64_t depth, int64_t columns, bool transpose_a,
                       bool transpose_b, const Int8MatmulNumbers& numbers)
    : loops_(IsaExactInt8()),
      rows_(rows),
      depth_(depth),
      columns_(columns),
      transpose_a_(transpose_a),
      transpose_b_(transpose_b),
      numbers_(numbers),
      panels_(nn::Int8Image(nn::Int8Window::OfRows(rows, depth, columns)), false, 1),
      row_step_(panels_.groups * panels_.group),
      scales_(static_cast<size_t>(panels_.panel), numbers.scale) {}

void Int8Matmul::FillRows(const int8_t* a, int64_t from, int64_t to, int16_t* rows) const {
  for (int64_t r = from; r < to; ++r, rows += row_step_) {
    if (!transpose_a_) {
      loops_.widen(a + r * depth_, rows, depth_, numbers_.zero_a);
    } else {
      for (int64_t i = 0; i < depth_; ++i) {
        rows[i] = static_cast<int16_t>(a[i * rows_ + r] - numbers_.zero_a);
      }
    }
    std::fill(rows + depth_, rows + row_step_, int16_t{0});
  }
}

void Int8Matmul::RunRows(const Operands& o, const int8_t* packed, int64_t from, int64_t to) const {
  constexpr int kMatmulRows = 8, kMatmulPanel = 64;
  static constexpr std::array<int32_t, kMatmulPanel> kZeros = {};
  const int most = std::min(loops_.rows, kMatmulRows);
  const int64_t at_once = std::min(kRowsAtOnce, to - from);
  AlignedVector<int16_t> filled(static_cast<size_t>(at_once * row_step_) + nn::kBehindInt8Image);
  std::array<int32_t, kMatmulRows * kMatmulPanel> sums;
  std::array<int32_t, kRowsAtOnce> less = {};  // what the zero point of b adds to a row's sums
  std::array<const int16_t*, kMatmulRows> at;
  const int64_t segment = 0;
  ExactInt8Tile tile;
  tile.rows = at.data();
  tile.segments = &segment;
  tile.num_segments = 1;
  tile.groups = panels_.groups;
  tile.start = kZeros.data();
  tile.scales = {scales_.data(), numbers_.zero_out, numbers_.range.low, numbers_.range.high};
  tile.y_step = columns_;
  if (!numbers_.in_float) tile.sums = sums.data();
  for (int64_t begin = from; begin < to; begin += kRowsAtOnce) {
    const int64_t end = std::min(to, begin + kRowsAtOnce);
    FillRows(o.a, begin, end, filled.data());
    for (int64_t r = begin; numbers_.zero_b != 0 && r < end; ++r) {
      uint32_t sum = 0;
      const int16_t* row = filled.data() + (r - begin) * row_step_;
      for (int64_t i = 0; i < depth_; ++i) sum += static_cast<uint32_t>(int32_t{row[i]});
      less[static_cast<size_t>(r - begin)] =
          static_cast<int32_t>(sum * static_cast<uint32_t>(numbers_.zero_b));
    }
    for (int64_t p = 0; p < panels_.panels; ++p) {
      const int64_t column = p * panels_.panel;
      tile.weights = packed + p * panels_.of_panel;
      tile.columns = std::min(panels_.panel, columns_ - column);
      for (int64_t r = begin; r < end; r += most) {
        const int n = static_cast<int>(std::min<int64_t>(most, end - r));
        for (int i = 0; i < n; ++i) {
          at[static_cast<size_t>(i)] = filled.data() + (r - begin + i) * row_step_;
        }
        tile.y = o.y + r * columns_ + column;
        loops_.tile(tile, n);
        for (int i = 0; tile.sums != nullptr && i < n; ++i) {
          int32_t* row = sums.data() + i * panels_.panel;
          const auto by = static_cast<uint32_t>(less[static_cast<size_t>(r - begin + i)]);
          for (int64_t c = 0; by != 0 && c < tile.columns; ++c) {
            row[c] = static_cast<int32_t>(static_cast<uint32_t>(row[c]) - by);
          }
          IsaFixed().times(row, tile.columns, FixedOf(numbers_.factor));
          IsaFixed().to_int8(row, numbers_.zero_out, numbers_.range.low, numbers_.range.high,
                             tile.y + i * columns_, tile.columns);
        }
      }
    }
  }
}

void Int8Matmul::Run(int64_t count, absl::FunctionRef<Operands(int64_t i)> of) const {
  const auto size = static_cast<size_t>(panels_.size());
  const auto product = [&](int64_t i, AlignedVector<int8_t>& packed) {
    const Operands o = of(i);
    std::ranges::fill(packed, int8_t{0});
    panels_.Pack(o.b, transpose_b_, packed.data());
    const int64_t blocks = (rows_ + kRowsAtOnce - 1) / kRowsAtOnce;
    const int64_t of_block = kRowsAtOnce * columns_ * depth_;
    ParallelFor(blocks, std::max<int64_t>(1, kMatmulWorkOfThread / of_block),
                [&](int64_t begin, int64_t end) {
                  RunRows(o, packed.data(), begin * kRowsAtOnce,
                          std::min(rows_, end * kRowsAtOnce));
                });
  };
  if (count == 1) {
    AlignedVector<int8_t> packed(size);
    return product(0, packed);
  }
  const int64_t of_product = rows_ * columns_ * depth_;
  ParallelFor(count, std::max<int64_t>(1, kMatmulWorkOfThread / of_product),
              [&](int64_t begin, int64_t end) {
                AlignedVector<int8_t> packed(size);
                for (int64_t i = begin; i < end; ++i) product(i, packed);
              });
}

}  // namespace smelt::lite
