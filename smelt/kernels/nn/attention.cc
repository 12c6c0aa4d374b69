#include "smelt/kernels/nn/attention.h"

#include <algorithm>

#include "smelt/kernels/isa/choice.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/score_rows.h"
#include "smelt/kernels/nn/attention_blocks.h"

namespace smelt::nn {
namespace {

constexpr int64_t RoundedUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

class BoundAttention final : public BoundKernel {
 public:
  explicit BoundAttention(Attention attention) : a_(std::move(attention)), blocks_(a_) {
    packs_ = a_.queries >= kFewQueries;
    const int64_t panel = Isa().dense_panel;
    row_ = RoundedUp(a_.keys, IsaScores().lanes);
    scores_ = blocks_.block() * row_;
    packed_keys_ = packs_ ? RoundedUp(a_.keys, panel) * a_.depth : 0;
    packed_values_ = packs_ ? RoundedUp(a_.width, panel) * a_.keys : 0;
  }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto input = [&](int i) { return static_cast<const float*>(inputs[i]); };
    Operands o = {input(0), input(1), input(2), {}, static_cast<float*>(outputs[0])};
    std::copy_n(inputs + 3, a_.masks.size(), o.masks.begin());
    blocks_.Run([&](int64_t begin, int64_t end, int64_t slot) {
      RunItems(o, begin, end, static_cast<float*>(scratch) + slot * SlotFloats());
    });
    return OkStatus();
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(blocks_.slots() * SlotFloats()) * sizeof(float);
  }

 private:
  struct Operands {
    const float *q, *k, *v;
    std::array<const void*, 2> masks;  // floats, or bytes that choose
    float* out;
  };
  int64_t SlotFloats() const { return scores_ + packed_keys_ + packed_values_; }

  // Blocks of queries of one unit, then of the next.
  void RunItems(const Operands& o, int64_t begin, int64_t end, float* scores) const {
    float* keys = scores + scores_;
    float* values = keys + packed_keys_;
    const Attention::Unit* packed = nullptr;
    for (int64_t i = begin; i < end; ++i) {
      const AttentionBlocks::Item item = blocks_.At(i);
      const Attention::Unit& unit = a_.units[item.unit];
      if (packs_ && &unit != packed) {
        const auto pack = a_.k_column == 1 ? Isa().dense_pack_turned : Isa().dense_pack;
        pack(o.k + unit.k, a_.k_column == 1 ? a_.k_row : a_.k_column, a_.depth, a_.keys, keys);
        Isa().dense_pack(o.v + unit.v, a_.v_row, a_.keys, a_.width, values);
        packed = &unit;
      }
      RunBlock(o, unit, item.first, item.count, scores, keys, values);
    }
  }

  void RunBlock(const Operands& o, const Attention::Unit& unit, int64_t first, int64_t count,
                float* scores, const float* keys, const float* values) const {
    const IsaTable& isa = Isa();
    const float* q = o.q + unit.q + first * a_.q_row;
    if (packs_) {
      // Whole vectors: what is behind the last key is zeros.
      const int64_t columns = RoundedUp(a_.keys, IsaScores().lanes);
      isa.dense_packed(q, a_.q_row, count, a_.depth, keys, columns, nullptr, nullptr,
                       UnaryF32::kIdentity, 0, scores, row_);
    } else if (a_.k_column == 1) {
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t j = 0; j < a_.keys; ++j) {
          scores[r * row_ + j] = isa.dot(q + r * a_.q_row, o.k + unit.k + j * a_.k_row, a_.depth);
        }
      }
    } else {
      isa.dense(q, a_.q_row, count, a_.depth, o.k + unit.k, a_.k_column, a_.keys, nullptr,
                UnaryF32::kIdentity, 0, scores, row_);
    }
    if (a_.chooses) {
      ChosenSoftmax(o, unit, first, count, scores);
    } else {
      MaskedSoftmax(o, unit, first, count, scores);
    }
    float* out = o.out + unit.out + first * a_.out_row;
    if (packs_) {
      isa.dense_packed(scores, row_, count, a_.keys, values, a_.width, nullptr, nullptr,
                       UnaryF32::kIdentity, 0, out, a_.out_row);
    } else {
      isa.dense(scores, row_, count, a_.keys, o.v + unit.v, a_.v_row, a_.width, nullptr,
                UnaryF32::kIdentity, 0, out, a_.out_row);
    }
  }

  void MaskedSoftmax(const Operands& o, const Attention::Unit& unit, int64_t first, int64_t count,
                     float* scores) const {
    ScoreRows rows{scores, row_, count, a_.keys, a_.scale, {}};
    for (size_t i = 0; i < a_.masks.size(); ++i) {
      const auto* numbers = static_cast<const float*>(o.masks[i]) + unit.masks[i];
      const Attention::Mask& steps = a_.masks[i];
      rows.masks[i] = {numbers + first * steps.row, steps.row, steps.column};
    }
    if (a_.keys <= IsaScores().most) return IsaScores().softmax(rows);
    const auto& [one, two] = rows.masks;
    for (int64_t r = 0; r < count; ++r) {
      float* row = scores + r * row_;
      const auto of = [r](const ScoreMask& m) { return m.numbers + r * m.row; };
      if (a_.masks.empty()) {
        Isa().masked_softmax(row, a_.scale, nullptr, 0, a_.keys);
      } else if (a_.masks.size() == 1) {
        Isa().masked_softmax(row, a_.scale, of(one), one.column, a_.keys);
      } else {
        Isa().scale_shift(row, row, a_.keys, a_.scale, one.column == 0 ? *of(one) : 0.0F);
        if (one.column != 0) Isa().axpy(of(one), row, a_.keys, 1.0F);
        Isa().masked_softmax(row, 1.0F, of(two), two.column, a_.keys);
      }
    }
  }

  void ChosenSoftmax(const Operands& o, const Attention::Unit& unit, int64_t first, int64_t count,
                     float* scores) const {
    const Attention::Mask& steps = a_.masks[0];
    const auto* choice =
        static_cast<const uint8_t*>(o.masks[0]) + unit.masks[0] + first * steps.row;
    const auto choose = [&](float scale, float other) {
      for (int64_t r = 0; r < count; ++r) {
        float* row = scores + r * row_;
        const uint8_t* of_row = choice + r * steps.row;
        if (steps.column != 0) {
          IsaChoice().choose(row, of_row, a_.keeps, scale, other, a_.keys);
        } else if ((*of_row != 0) != a_.keeps) {
          std::fill_n(row, a_.keys, other);
        } else if (scale != 1) {
          Isa().scale_shift(row, row, a_.keys, scale, 0.0F);
        }
      }
    };
    choose(a_.scale, a_.hidden);
    if (a_.keys <= IsaScores().most) {
      IsaScores().softmax({scores, row_, count, a_.keys, 1.0F, {}});
    } else {
      for (int64_t r = 0; r < count; ++r)
        Isa().softmax(scores + r * row_, scores + r * row_, a_.keys);
    }
    if (a_.hides_behind) choose(1.0F, a_.hidden_behind);
  }

  const Attention a_;
  const AttentionBlocks blocks_;
  bool packs_ = false;
  int64_t row_ = 0;                                           // floats from a row of scores on
  int64_t scores_ = 0, packed_keys_ = 0, packed_values_ = 0;  // floats of a slot
};

}  // namespace

std::unique_ptr<BoundKernel> BindAttention(Attention attention) {
  if (attention.narrow) return BindNarrowAttention(std::move(attention));
  return std::make_unique<BoundAttention>(std::move(attention));
}

}  // namespace smelt::nn
