// Attention of bfloat16: both products and the softmax of a block of queries.
#include <algorithm>

#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/score_rows.h"
#include "smelt/kernels/nn/attention.h"
#include "smelt/kernels/nn/attention_blocks.h"
#include "smelt/kernels/nn/narrow_factor.h"

namespace smelt::nn {
namespace {

constexpr int64_t kLineBytes = 64;

int64_t WholeLines(int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

// Vectors of scores begin where vectors may.
int64_t RowOfScores(int64_t read, int64_t keys) {
  constexpr int64_t kOfLine = kLineBytes / sizeof(uint16_t);
  return std::max(read, (keys + kOfLine - 1) / kOfLine * kOfLine);
}

class BoundNarrowAttention final : public BoundKernel {
 public:
  explicit BoundNarrowAttention(Attention attention)
      : a_(std::move(attention)),
        blocks_(a_),
        keys_(a_.depth, a_.keys),
        values_(a_.keys, a_.width),
        row_(RowOfScores(values_.row(), a_.keys)) {
    const auto place = [this](int64_t count, size_t bytes) {
      const int64_t at = slot_bytes_;
      slot_bytes_ += WholeLines(count * static_cast<int64_t>(bytes));
      return at;
    };
    wide_at_ = place(row_, sizeof(float));
    mask_at_ = place(a_.masks.empty() ? 0 : row_, sizeof(float));
    queries_at_ = place(keys_.RowsRead(blocks_.block()) * a_.depth, sizeof(uint16_t));
    scores_at_ = place(values_.RowsRead(blocks_.block()) * row_, sizeof(uint16_t));
    keys_at_ = place(keys_.elements(), sizeof(uint16_t));
    values_at_ = place(values_.elements(), sizeof(uint16_t));
  }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto input = [&](int i) { return static_cast<const uint16_t*>(inputs[i]); };
    const Operands o = {input(0), input(1), input(2), a_.masks.empty() ? nullptr : input(3),
                        static_cast<uint16_t*>(outputs[0])};
    blocks_.Run([&](int64_t begin, int64_t end, int64_t slot) {
      Items(o, begin, end, static_cast<char*>(scratch) + slot * slot_bytes_);
    });
    return OkStatus();
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(blocks_.slots() * slot_bytes_);
  }

 private:
  struct Operands {
    const uint16_t *q, *k, *v, *mask;
    uint16_t* out;
  };

  void Items(const Operands& o, int64_t begin, int64_t end, char* slot) const {
    auto* keys = reinterpret_cast<uint16_t*>(slot + keys_at_);
    auto* values = reinterpret_cast<uint16_t*>(slot + values_at_);
    auto* scores = reinterpret_cast<uint16_t*>(slot + scores_at_);
    const Attention::Unit* packed = nullptr;
    for (int64_t i = begin; i < end; ++i) {
      const AttentionBlocks::Item item = blocks_.At(i);
      const Attention::Unit& unit = a_.units[item.unit];
      if (&unit != packed) {
        const bool turned = a_.k_column == 1;
        keys_.Pack(o.k + unit.k, turned ? a_.k_row : a_.k_column, turned, keys);
        values_.Pack(o.v + unit.v, a_.v_row, false, values);
        packed = &unit;
      }
      keys_.Run(keys, {Queries(o, unit, item, slot), QueryStep(item), item.count, scores, row_});
      Softmax(o, unit, item, slot);
      uint16_t* out = o.out + unit.out + item.first * a_.out_row;
      values_.Run(values, {scores, row_, item.count, out, a_.out_row});
    }
  }

  // Queries are multiplied where they lie, but where rows behind the last would be read as well.
  bool CopiesQueries(const AttentionBlocks::Item& item) const {
    return keys_.RowsRead(item.count) != item.count;
  }
  int64_t QueryStep(const AttentionBlocks::Item& item) const {
    return CopiesQueries(item) ? a_.depth : a_.q_row;
  }
  const uint16_t* Queries(const Operands& o, const Attention::Unit& unit,
                          const AttentionBlocks::Item& item, char* slot) const {
    const uint16_t* q = o.q + unit.q + item.first * a_.q_row;
    if (!CopiesQueries(item)) return q;
    auto* copy = reinterpret_cast<uint16_t*>(slot + queries_at_);
    for (int64_t r = 0; r < item.count; ++r) {
      std::copy_n(q + r * a_.q_row, a_.depth, copy + r * a_.depth);
    }
    return copy;
  }

  void Softmax(const Operands& o, const Attention::Unit& unit, const AttentionBlocks::Item& item,
               char* slot) const {
    const IsaTable& isa = Isa();
    auto* wide = reinterpret_cast<float*>(slot + wide_at_);
    const Attention::Mask steps = a_.masks.empty() ? Attention::Mask() : a_.masks[0];
    auto* mask = a_.masks.empty() ? nullptr : reinterpret_cast<float*>(slot + mask_at_);
    for (int64_t r = 0; r < item.count; ++r) {
      auto* row = reinterpret_cast<uint16_t*>(slot + scores_at_) + r * row_;
      if (mask != nullptr && (r == 0 || steps.row != 0)) {
        isa.bf16_to_f32(o.mask + unit.masks[0] + (item.first + r) * steps.row, mask,
                        steps.column == 0 ? 1 : a_.keys);
      }
      isa.bf16_to_f32(row, wide, a_.keys);
      if (a_.keys <= IsaScores().most) {
        IsaScores().softmax({wide, row_, 1, a_.keys, a_.scale, {{mask, 0, steps.column}, {}}});
      } else {
        isa.masked_softmax(wide, a_.scale, mask, steps.column, a_.keys);
      }
      isa.f32_to_bf16(wide, row, a_.keys);
      // Their partners, times zero.
      std::fill(row + a_.keys, row + values_.row(), uint16_t{0});
    }
  }

  const Attention a_;
  const AttentionBlocks blocks_;
  const NarrowFactor keys_, values_;
  const int64_t row_;  // elements from a row of scores to the next
  // Bytes of a slot, and where in it: a row of scores and its mask as floats, queries, scores and
  // then probabilities, packed keys and values.
  int64_t slot_bytes_ = 0;
  int64_t wide_at_, mask_at_, queries_at_, scores_at_, keys_at_, values_at_;
};

}  // namespace

bool SuitsNarrowAttention(const Attention& a) {
  return NarrowFactor::Suits(a.depth) && !a.chooses && a.masks.size() < 2 &&
         a.queries >= kFewQueries && a.width % 2 == 0;
}

std::unique_ptr<BoundKernel> BindNarrowAttention(Attention attention) {
  return std::make_unique<BoundNarrowAttention>(std::move(attention));
}

}  // namespace smelt::nn
