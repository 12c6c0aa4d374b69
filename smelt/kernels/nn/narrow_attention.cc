// Attention of bfloat16 by the tiles of its products.
#include <algorithm>
#include <array>
#include <limits>

#include "smelt/base/processor.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/score_rows.h"
#include "smelt/kernels/isa/tile_bfloat16.h"
#include "smelt/kernels/nn/attention.h"
#include "smelt/kernels/nn/attention_blocks.h"
#include "smelt/kernels/nn/narrow_panels.h"

namespace smelt::nn {
namespace {

constexpr int64_t kLineBytes = 64;

int64_t WholeLines(int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

// y = x * packed, of `rows` rows, each of `pairs` pairs.
struct NarrowRows {
  const uint16_t* x;
  int64_t x_step, rows, pairs;
  const uint16_t* packed;
  int64_t columns;  // that are written
  uint16_t* y;
  int64_t y_step;

  void Run() const {
    static constexpr std::array<float, kNarrowTileVecs* kNarrowTileLanes> kNoBias = {};
    const NarrowPanels panels(columns);
    NarrowTile tile;
    tile.x_step = x_step, tile.y_step = y_step;
    tile.pairs = pairs;
    tile.bias = kNoBias.data();
    tile.low = -std::numeric_limits<float>::infinity();
    tile.high = std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < panels.count; ++i) {
      const NarrowPanels::Panel panel = panels.At(i);
      tile.weights = packed + panel.column * pairs * 2;
      tile.last = panel.last;
      for (int64_t r = 0; r < rows; r += kNarrowTileRows) {
        tile.x = x + r * x_step;
        tile.y = y + r * y_step + panel.column;
        const int64_t height = std::min<int64_t>(kNarrowTileRows, rows - r);
        NarrowTileOf(static_cast<int>(height), panel.vectors)(tile);
      }
    }
  }
};

class BoundNarrowAttention final : public BoundKernel {
 public:
  explicit BoundNarrowAttention(Attention attention)
      : a_(std::move(attention)),
        blocks_(a_),
        row_(NarrowPanels(a_.keys).vectors * kNarrowTileLanes) {
    const auto place = [this](int64_t bytes) {
      const int64_t at = slot_bytes_;
      slot_bytes_ += WholeLines(bytes);
      return at;
    };
    wide_ = place(row_ * int64_t{sizeof(float)});
    mask_ = place(a_.masks.empty() ? 0 : row_ * int64_t{sizeof(float)});
    scores_ = place(blocks_.block() * row_ * int64_t{sizeof(uint16_t)});
    keys_ = place(NarrowPanels(a_.keys).Elements(a_.depth / 2) * int64_t{sizeof(uint16_t)});
    values_ = place(NarrowPanels(a_.width).Elements((a_.keys + 1) / 2) * int64_t{sizeof(uint16_t)});
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
    auto* keys = reinterpret_cast<uint16_t*>(slot + keys_);
    auto* values = reinterpret_cast<uint16_t*>(slot + values_);
    const Attention::Unit* packed = nullptr;
    for (int64_t i = begin; i < end; ++i) {
      const AttentionBlocks::Item item = blocks_.At(i);
      const Attention::Unit& unit = a_.units[item.unit];
      if (&unit != packed) {
        if (a_.k_column == 1) {
          PackPairsTurned(o.k + unit.k, a_.k_row, a_.depth, a_.keys, keys);
        } else {
          PackPairs(o.k + unit.k, a_.k_column, a_.depth, a_.keys, keys);
        }
        PackPairs(o.v + unit.v, a_.v_row, a_.keys, a_.width, values);
        packed = &unit;
      }
      auto* scores = reinterpret_cast<uint16_t*>(slot + scores_);
      NarrowRows{o.q + unit.q + item.first * a_.q_row,
                 a_.q_row,
                 item.count,
                 a_.depth / 2,
                 keys,
                 row_,
                 scores,
                 row_}
          .Run();
      Softmax(o, unit, item, slot);
      NarrowRows{scores,
                 row_,
                 item.count,
                 (a_.keys + 1) / 2,
                 values,
                 a_.width,
                 o.out + unit.out + item.first * a_.out_row,
                 a_.out_row}
          .Run();
    }
  }

  void Softmax(const Operands& o, const Attention::Unit& unit, const AttentionBlocks::Item& item,
               char* slot) const {
    const IsaTable& isa = Isa();
    auto* wide = reinterpret_cast<float*>(slot + wide_);
    const Attention::Mask steps = a_.masks.empty() ? Attention::Mask() : a_.masks[0];
    auto* mask = a_.masks.empty() ? nullptr : reinterpret_cast<float*>(slot + mask_);
    for (int64_t r = 0; r < item.count; ++r) {
      auto* row = reinterpret_cast<uint16_t*>(slot + scores_) + r * row_;
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
      // Its partner, times zero.
      if (a_.keys % 2 != 0) row[a_.keys] = 0;
    }
  }

  const Attention a_;
  const AttentionBlocks blocks_;
  const int64_t row_;  // elements from a row of scores to the next
  // Bytes of a slot, and where in it: a row of scores and its mask as floats, scores and then
  // probabilities, packed keys and values.
  int64_t slot_bytes_ = 0;
  int64_t wide_, mask_, scores_, keys_, values_;
};

}  // namespace

bool SuitsNarrowAttention(const Attention& a) {
  return NarrowTileOf(1, 1) != nullptr && CpuHas(CpuFeature::kDotBfloat16) &&
         Isa().level == IsaLevel::kAvx512 && !a.chooses && a.masks.size() < 2 &&
         a.queries >= kFewQueries && a.depth % 2 == 0 && a.width % 2 == 0;
}

std::unique_ptr<BoundKernel> BindNarrowAttention(Attention attention) {
  return std::make_unique<BoundNarrowAttention>(std::move(attention));
}

}  // namespace smelt::nn
