#include "smelt/kernels/elementwise/short_rows.h"

#include <algorithm>

namespace smelt {
namespace {

template <typename W>
void RepeatShort(const char* from, int64_t step, char* to, int64_t n) {
  const W* x = reinterpret_cast<const W*>(from);
  W* y = reinterpret_cast<W*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i * step];
}
struct ShortWide16 {
  uint64_t a, b;
};

void CopyRow(const char* from, int64_t step, char* to, int64_t n, int size) {
  switch (size) {
    case 1:
      return RepeatShort<uint8_t>(from, step, to, n);
    case 2:
      return RepeatShort<uint16_t>(from, step, to, n);
    case 4:
      return RepeatShort<uint32_t>(from, step, to, n);
    case 8:
      return RepeatShort<uint64_t>(from, step, to, n);
    default:
      return RepeatShort<ShortWide16>(from, step, to, n);
  }
}

// Each of `rows` values n times.
template <typename W>
void SpreadColumn(const char* from, char* to, int64_t rows, int64_t n) {
  const W* x = reinterpret_cast<const W*>(from);
  W* y = reinterpret_cast<W*>(to);
  for (int64_t i = 0; i < rows; ++i) {
    const W v = x[i];
    for (int64_t j = 0; j < n; ++j) *y++ = v;
  }
}

// Fills `to` with an operand's part of rows [begin, begin + rows), each of n elements.
void SpreadRows(const Broadcast& bc, int operand, const char* from, int64_t begin, int64_t rows,
                int size, char* to) {
  const int64_t n = bc.sizes.back();
  const Dims& strides = bc.strides[operand];
  if (strides.size() == 2 && strides[0] == 1 && strides[1] == 0) {
    const char* at = from + begin * size;
    switch (size) {
      case 1:
        return SpreadColumn<uint8_t>(at, to, rows, n);
      case 2:
        return SpreadColumn<uint16_t>(at, to, rows, n);
      case 4:
        return SpreadColumn<uint32_t>(at, to, rows, n);
      case 8:
        return SpreadColumn<uint64_t>(at, to, rows, n);
      default:
        return SpreadColumn<ShortWide16>(at, to, rows, n);
    }
  }
  ForEachRow(bc, begin, begin + rows, [&](const int64_t* offsets, int64_t out, int64_t) {
    CopyRow(from + offsets[operand] * size, strides.back(), to + (out - begin * n) * size, n, size);
  });
}

}  // namespace

ShortOperand::ShortOperand(const Broadcast& bc, int operand, const char* from, int size)
    : bc_(bc), operand_(operand), from_(from), size_(size) {
  const Dims& strides = bc.strides[operand];
  int64_t stride = 1, rows = 1;
  for (size_t d = bc.sizes.size(); d-- > 0; stride *= bc.sizes[d]) {
    whole_ = whole_ && strides[d] == stride;
    if (d + 1 == bc.sizes.size()) continue;
    if (strides[d] == 0 && period_ == 0) period_ = rows, span_ = rows * bc.sizes[d];
    rows *= bc.sizes[d];
  }
}

int64_t ShortOperand::Limit(int64_t begin, int64_t rows) const {
  if (whole_ || period_ == 0) return rows;
  if (rows > period_) rows -= rows % period_;
  return std::min(rows, span_ - begin % span_);
}

const char* ShortOperand::Rows(int64_t begin, int64_t rows) {
  if (whole_) return from_ + begin * bc_.sizes.back() * size_;
  const bool same = period_ != 0 && rows <= filled_ && begin / span_ == span_of_block_ &&
                    begin % period_ == phase_;
  if (same) return block_;
  SpreadRows(bc_, operand_, from_, begin, rows, size_, block_);
  filled_ = rows;
  if (period_ != 0) span_of_block_ = begin / span_, phase_ = begin % period_;
  return block_;
}

}  // namespace smelt
