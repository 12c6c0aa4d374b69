#include "smelt/kernels/nn/attention.h"

#include <algorithm>

#include "smelt/kernels/isa/choice.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/nn/attention_blocks.h"

namespace smelt::nn {
namespace {

constexpr int64_t RoundedUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

class BoundAttention final : public BoundKernel {
 public:
  explicit BoundAttention(Attention attention) : a_(std::move(attention)), blocks_(a_) {
    packs_ = a_.queries >= kFewQueries;
    const int64_t panel = Isa().dense_panel;
    scores_ = RoundedUp(blocks_.block() * a_.keys, 16);
    packed_keys_ = packs_ ? RoundedUp(a_.keys, panel) * a_.depth : 0;
    packed_values_ = packs_ ? RoundedUp(a_.width, panel) * a_.keys : 0;
  }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    const auto input = [&](int i) { return static_cast<const float*>(inputs[i]); };
    const Operands o = {input(0), input(1), input(2), a_.has_mask ? inputs[3] : nullptr,
                        static_cast<float*>(outputs[0])};
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
    const void* mask;  // floats, or bytes that choose
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
      isa.dense_packed(q, a_.q_row, count, a_.depth, keys, a_.keys, nullptr, UnaryF32::kIdentity, 0,
                       scores, a_.keys);
    } else if (a_.k_column == 1) {
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t j = 0; j < a_.keys; ++j) {
          scores[r * a_.keys + j] =
              isa.dot(q + r * a_.q_row, o.k + unit.k + j * a_.k_row, a_.depth);
        }
      }
    } else {
      isa.dense(q, a_.q_row, count, a_.depth, o.k + unit.k, a_.k_column, a_.keys, nullptr,
                UnaryF32::kIdentity, 0, scores, a_.keys);
    }
    for (int64_t r = 0; r < count; ++r) {
      const int64_t at = unit.mask + (first + r) * a_.mask_row;
      float* row = scores + r * a_.keys;
      if (a_.chooses) {
        ChosenSoftmax(row, static_cast<const uint8_t*>(o.mask) + at);
        continue;
      }
      const float* mask = o.mask == nullptr ? nullptr : static_cast<const float*>(o.mask) + at;
      isa.masked_softmax(row, a_.scale, mask, a_.mask_column, a_.keys);
    }
    float* out = o.out + unit.out + first * a_.out_row;
    if (packs_) {
      isa.dense_packed(scores, a_.keys, count, a_.keys, values, a_.width, nullptr,
                       UnaryF32::kIdentity, 0, out, a_.out_row);
    } else {
      isa.dense(scores, a_.keys, count, a_.keys, o.v + unit.v, a_.v_row, a_.width, nullptr,
                UnaryF32::kIdentity, 0, out, a_.out_row);
    }
  }

  void ChosenSoftmax(float* row, const uint8_t* choice) const {
    const auto choose = [&](float scale, float other) {
      if (a_.mask_column != 0) {
        IsaChoice().choose(row, choice, a_.keeps, scale, other, a_.keys);
      } else if ((*choice != 0) != a_.keeps) {
        std::fill_n(row, a_.keys, other);
      } else if (scale != 1) {
        Isa().scale_shift(row, row, a_.keys, scale, 0.0F);
      }
    };
    choose(a_.scale, a_.hidden);
    Isa().masked_softmax(row, 1.0F, nullptr, 0, a_.keys);
    if (a_.hides_behind) choose(1.0F, a_.hidden_behind);
  }

  const Attention a_;
  const AttentionBlocks blocks_;
  bool packs_ = false;
  int64_t scores_ = 0, packed_keys_ = 0, packed_values_ = 0;  // floats of a slot
};

}  // namespace

std::unique_ptr<BoundKernel> BindAttention(Attention attention) {
  if (attention.narrow) return BindNarrowAttention(std::move(attention));
  return std::make_unique<BoundAttention>(std::move(attention));
}

}  // namespace smelt::nn
