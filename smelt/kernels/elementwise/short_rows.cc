#include "smelt/kernels/elementwise/short_rows.h"

#include <algorithm>
#include <cstring>

namespace smelt {
namespace {

struct ShortWide16 {
  uint64_t a, b;
};
// Calls f with null of a type of so many bytes.
template <typename F>
void VisitWord(int size, F&& f) {
  switch (size) {
    case 1:
      return f(static_cast<uint8_t*>(nullptr));
    case 2:
      return f(static_cast<uint16_t*>(nullptr));
    case 4:
      return f(static_cast<uint32_t*>(nullptr));
    case 8:
      return f(static_cast<uint64_t*>(nullptr));
    default:
      return f(static_cast<ShortWide16*>(nullptr));
  }
}

void CopyRow(const char* from, int64_t step, char* to, int64_t n, int size) {
  VisitWord(size, [&]<typename W>(W*) {
    const W* x = reinterpret_cast<const W*>(from);
    W* y = reinterpret_cast<W*>(to);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i * step];
  });
}

// Each of `rows` values n times.
void SpreadValues(const char* from, char* to, int64_t rows, int64_t n, int size) {
  VisitWord(size, [&]<typename W>(W*) {
    const W* x = reinterpret_cast<const W*>(from);
    W* y = reinterpret_cast<W*>(to);
    for (int64_t i = 0; i < rows; ++i) {
      const W v = x[i];
      for (int64_t j = 0; j < n; ++j) *y++ = v;
    }
  });
}

// `bytes` of a row, so many times.
void RepeatRow(const char* from, int64_t bytes, int64_t times, char* to) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
  int64_t done = 1;
  for (; 2 * done <= times; done *= 2) {
    std::memcpy(to + done * bytes, to, static_cast<size_t>(done * bytes));
  }
  std::memcpy(to + done * bytes, to, static_cast<size_t>((times - done) * bytes));
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
  // What lies in order, from the dimension before the last on, or before those that repeat rows.
  size_t d = bc.sizes.size() - 1;
  const int64_t inner = strides[d];
  if (inner > 1) return;
  int64_t times = 1;
  for (; inner == 1 && d > 0 && strides[d - 1] == 0; --d) times *= bc.sizes[d - 1];
  // Longer blocks serve again.
  if (times * bc.sizes.back() > kElements / 4) return;
  for (int64_t step = inner == 0 ? 1 : bc.sizes.back(); d > 0; --d) {
    if (strides[d - 1] != step) return;
    step *= bc.sizes[d - 1];
  }
  kind_ = inner == 0 ? Kind::kValues : Kind::kRepeated;
  repeats_ = times;
  period_ = 0;
}

// Fills the block with rows [begin, begin + rows).
void ShortOperand::Spread(int64_t begin, int64_t rows) {
  const int64_t n = bc_.sizes.back();
  if (kind_ == Kind::kValues) {
    return SpreadValues(from_ + begin * size_, block_, rows, n, size_);
  }
  if (kind_ == Kind::kRepeated) {
    const int64_t bytes = n * size_;
    char* to = block_;
    for (int64_t row = begin; row < begin + rows;) {
      const int64_t times = std::min(repeats_ - row % repeats_, begin + rows - row);
      RepeatRow(from_ + row / repeats_ * bytes, bytes, times, to);
      row += times;
      to += times * bytes;
    }
    return;
  }
  const int64_t step = bc_.strides[operand_].back();
  ForEachRow(bc_, begin, begin + rows, [&](const int64_t* offsets, int64_t out, int64_t) {
    CopyRow(from_ + offsets[operand_] * size_, step, block_ + (out - begin * n) * size_, n, size_);
  });
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
  Spread(begin, rows);
  filled_ = rows;
  if (period_ != 0) span_of_block_ = begin / span_, phase_ = begin % period_;
  return block_;
}

}  // namespace smelt
