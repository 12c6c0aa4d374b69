// Operands of broadcasts whose innermost dimension is short: rows are joined, so that one call of a
// row function serves many. Private to this folder; for one thread.
#ifndef SMELT_KERNELS_ELEMENTWISE_SHORT_ROWS_H_
#define SMELT_KERNELS_ELEMENTWISE_SHORT_ROWS_H_

#include <cstdint>

#include "smelt/kernels/elementwise/elementwise.h"

namespace smelt {

// Where an operand lies as the result does it is read there, else its rows are spread into a block,
// which serves again as often as they repeat.
class ShortOperand {
 public:
  // Elements of a block.
  static constexpr int64_t kElements = kNarrowBlock;

  // Elements of `size` bytes, at most 16. `bc` and `from` outlive this.
  ShortOperand(const Broadcast& bc, int operand, const char* from, int size);
  // At most `rows`: whole periods, and such that a block from row `begin` on has one span's rows.
  int64_t Limit(int64_t begin, int64_t rows) const;
  // Rows [begin, begin + rows), of no more than kElements elements, one after the other; until the
  // next call.
  const char* Rows(int64_t begin, int64_t rows);

 private:
  void Spread(int64_t begin, int64_t rows);

  const Broadcast& bc_;
  const int operand_;
  const char* from_;
  const int size_;
  // How rows are spread: each is one of the values that lie in their order, or is one of the rows
  // that do, `repeats_` times; else they are looked for one by one.
  enum class Kind { kAny, kValues, kRepeated };
  Kind kind_ = Kind::kAny;
  int64_t repeats_ = 1;
  bool whole_ = true;
  // Within `span_` rows each is as the one `period_` rows before; 0: they do not repeat.
  int64_t period_ = 0, span_ = 0;
  int64_t filled_ = 0, span_of_block_ = 0, phase_ = 0;
  alignas(16) char block_[kElements * 16];
};

}  // namespace smelt

#endif  // SMELT_KERNELS_ELEMENTWISE_SHORT_ROWS_H_
