#include "smelt/kernels/elementwise/chain.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <cwchar>
#include <type_traits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/elementwise/lstm_chain.h"

namespace smelt {
namespace {

constexpr int64_t kTileBytes = 2048;
// Tiles that are alive at a time: most of the smallest first-level cache.
constexpr size_t kMaxTiles = 12;
constexpr size_t kMaxSlots = 64;
// Copying and calling cost as much as some vectors: rows have to be longer.
constexpr int64_t kLeastRow = 16;

// A step as it runs. Slots are addresses of a tile: operands, then tiles, then outputs.
struct ChainCode {
  TileOp::Kind kind;
  IsaConvertFn convert;
  IsaUnaryFn f32;
  UnaryFn unary;
  IsaBinaryFn binary;
  TileOp::SelectFn select;
  TileOp::ScaledFn scaled;
  TileOp::Limits limits;
  float alpha;
  std::array<uint8_t, 3> from;
  std::array<uint8_t, 3> steps;  // of select's operands: 0 or 1
  uint8_t to;

  void Run(char* const* slots, int64_t n) const {
    char* out = slots[to];
    switch (kind) {
      case TileOp::Kind::kUnary:
        if (convert != nullptr) {
          convert(slots[from[0]], out, n);
        } else if (f32 != nullptr) {
          f32(reinterpret_cast<const float*>(slots[from[0]]), reinterpret_cast<float*>(out), n,
              alpha);
        } else {
          unary(slots[from[0]], out, n, alpha);
        }
        return;
      case TileOp::Kind::kBinary:
        return binary(slots[from[0]], slots[from[1]], out, n);
      case TileOp::Kind::kScaled:
        return scaled(slots[from[0]], limits, *reinterpret_cast<const float*>(slots[from[1]]), out,
                      n);
      case TileOp::Kind::kSelect:
        return select(reinterpret_cast<const bool*>(slots[from[0]]), steps[0], slots[from[1]],
                      steps[1], slots[from[2]], steps[2], out, n);
    }
  }
};

// n copies of the element at `from`. Those of known sizes are a few vectors, where calls for each
// would take as long as the row.
template <typename T>
void Repeat(const char* from, char* to, int64_t n) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  auto* out = reinterpret_cast<T*>(to);
  if constexpr (std::is_same_v<T, wchar_t>) {
    static_assert(sizeof(wchar_t) == 4);
    std::wmemset(out, value, static_cast<size_t>(n));
  } else {
    std::fill_n(out, n, value);
  }
}

class BoundChain final : public BoundKernel {
 public:
  // Neighboring dimensions that all operands walk as one become one. False: see BindChain.
  bool Init(const Chain& chain) {
    for (const Chain::Operand& o : chain.operands)
      operands_.push_back({o.input, o.size, o.first, {}});
    for (size_t d = chain.sizes.size(); d-- > 0;) {
      const int64_t size = chain.sizes[d];
      const bool joins =
          !sizes_.empty() && std::ranges::all_of(chain.operands, [&](const Chain::Operand& o) {
            const auto at = static_cast<size_t>(&o - chain.operands.data());
            return o.steps[d] == operands_[at].steps.front() * sizes_.front();
          });
      if (joins) {
        sizes_.front() *= size;
        continue;
      }
      sizes_.insert(sizes_.begin(), size);
      for (size_t i = 0; i < operands_.size(); ++i) {
        Dims& steps = operands_[i].steps;
        steps.insert(steps.begin(), chain.operands[i].steps[d]);
      }
    }
    row_ = sizes_.back();
    for (size_t d = 0; d + 1 < sizes_.size(); ++d) rows_ *= sizes_[d];
    if (rows_ > 1 && row_ < kLeastRow) return false;
    int64_t largest = 1;  // bytes of an element
    for (const Chain::Step& step : chain.steps) largest = std::max<int64_t>(largest, step.size);
    const Dims dense = Strides(Shape(std::span<const int64_t>(sizes_)));
    for (Operand& o : operands_) {
      largest = std::max<int64_t>(largest, o.size);
      if (o.steps.back() != 0 && o.steps.back() != 1) return false;
      o.dense = o.steps == dense;
      o.same = std::ranges::all_of(o.steps, [](int64_t step) { return step == 0; });
      o.repeats =
          std::all_of(o.steps.begin(), o.steps.end() - 1, [](int64_t step) { return step == 0; });
    }
    tile_ = kTileBytes / largest;
    // Loops run best over long rows: a turn takes several that are short.
    joins_rows_ = rows_ > 1 && 4 * row_ <= tile_;
    cell_ = FindLstm(chain);
    if (joins_rows_ && Assemble(chain)) return FindLent(chain);
    joins_rows_ = false;
    return Assemble(chain) && FindLent(chain);
  }

  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    ParallelFor(num_turns_, grain_, [&](int64_t begin, int64_t end) {
      if (joins_rows_) return RunJoined(inputs, outputs, begin, end);
      RunTiles(inputs, outputs, begin, end);
    });
    return OkStatus();
  }
  bool may_overwrite(int i) const override { return lent_[static_cast<size_t>(i)]; }

 private:
  struct Operand {
    int input, size;
    int64_t first;
    Dims steps;
    bool dense = false;    // as a result lies
    bool same = false;     // one element for all
    bool repeats = false;  // one row for all
    size_t tile = 0;       // that joined rows are copied to, unless dense or the same

    // Of a row's first element.
    int64_t At(int64_t row, const Dims& sizes) const {
      int64_t offset = first;
      for (size_t d = sizes.size() - 1; d-- > 1;) {
        offset += row % sizes[d] * steps[d];
        row /= sizes[d];
      }
      return sizes.size() > 1 ? offset + row * steps[0] : offset;
    }
    void CopyRow(const char* from, char* to, int64_t n) const {
      const auto bytes = static_cast<size_t>(size);
      if (steps.back() == 1) {
        std::memcpy(to, from, static_cast<size_t>(n) * bytes);
        return;
      }
      switch (size) {
        case 1:
          return Repeat<uint8_t>(from, to, n);
        case 2:
          return Repeat<uint16_t>(from, to, n);
        case 4:
          return Repeat<wchar_t>(from, to, n);
        case 8:
          return Repeat<uint64_t>(from, to, n);
        default:
          for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * size, from, bytes);
      }
    }
  };
  struct Output {
    int output, size;
  };

  // Chooses loops, and a slot for every value.
  bool Assemble(const Chain& chain) {
    std::vector<size_t> last(chain.steps.size(), 0);  // that reads the step's result
    double cost = 0;
    for (size_t s = 0; s < chain.steps.size(); ++s) {
      for (const int from : chain.steps[s].from) {
        if (from < 0) last[static_cast<size_t>(-1 - from)] = s;
      }
      cost += 1 / static_cast<double>(chain.steps[s].op.grain);
    }
    code_.clear();
    outputs_.clear();
    num_tiles_ = 0;
    turn_ = joins_rows_ ? tile_ / row_ * row_ : std::min(row_, tile_);
    turns_per_row_ = (row_ + turn_ - 1) / turn_;
    num_turns_ = joins_rows_ ? (rows_ * row_ + turn_ - 1) / turn_ : rows_ * turns_per_row_;
    grain_ = std::max<int64_t>(1, static_cast<int64_t>(1 / cost) / turn_);
    for (Operand& o : operands_) {
      if (joins_rows_ && !o.dense && !o.same) o.tile = num_tiles_++;
    }

    std::vector<size_t> free;
    std::vector<size_t> slot_of(chain.steps.size());
    const size_t first_tile = operands_.size();
    for (size_t s = 0; s < chain.steps.size(); ++s) {
      const Chain::Step& step = chain.steps[s];
      ChainCode code{step.op.kind,
                     step.op.convert,
                     step.op.f32,
                     step.op.unary,
                     nullptr,
                     step.op.select,
                     step.op.scaled,
                     step.op.limits,
                     step.op.alpha,
                     {},
                     {},
                     0};
      const auto steps_at = [&](size_t i) {
        if (step.from[i] < 0) return true;
        const Operand& o = operands_[static_cast<size_t>(step.from[i])];
        return joins_rows_ ? !o.same : o.steps.back() == 1;
      };
      for (size_t i = 0; i < step.from.size(); ++i) {
        const int from = step.from[i];
        code.from[i] = static_cast<uint8_t>(from < 0 ? slot_of[static_cast<size_t>(-1 - from)]
                                                     : static_cast<size_t>(from));
        code.steps[i] = steps_at(i) ? 1 : 0;
      }
      if (code.kind == TileOp::Kind::kUnary && !steps_at(0)) return false;
      if (code.kind == TileOp::Kind::kScaled && (!steps_at(0) || steps_at(1))) return false;
      if (code.kind == TileOp::Kind::kBinary) {
        const bool a = steps_at(0), b = steps_at(1);
        code.binary =
            a ? (b ? step.op.binary.vv : step.op.binary.vs) : (b ? step.op.binary.sv : nullptr);
        if (code.binary == nullptr) return false;
      }
      // A result may take the tile of what is read for the last time, element for element.
      const auto release = [&](bool as_large) {
        for (const int from : step.from) {
          if (from >= 0) continue;
          const auto made = static_cast<size_t>(-1 - from);
          if (last[made] == s && chain.steps[made].output < 0 &&
              (chain.steps[made].size == step.size) == as_large &&
              std::ranges::find(free, slot_of[made]) == free.end()) {
            free.push_back(slot_of[made]);
          }
        }
      };
      release(true);
      if (step.output >= 0) {
        // Slots of outputs follow the tiles, whose number is known at the end.
        slot_of[s] = kMaxSlots + outputs_.size();
        outputs_.push_back({step.output, step.size});
      } else if (!free.empty()) {
        slot_of[s] = free.back();
        free.pop_back();
      } else {
        slot_of[s] = first_tile + num_tiles_++;
      }
      code.to = static_cast<uint8_t>(slot_of[s]);
      code_.push_back(code);
      release(false);
    }
    const size_t first_output = first_tile + num_tiles_;
    if (num_tiles_ > kMaxTiles || first_output + outputs_.size() > kMaxSlots) return false;
    const auto settle = [&](uint8_t& slot) {
      if (slot >= kMaxSlots) slot = static_cast<uint8_t>(slot - kMaxSlots + first_output);
    };
    for (ChainCode& code : code_) {
      for (uint8_t& from : code.from) settle(from);
      settle(code.to);
    }
    return true;
  }

  // Output 0 may lie where an input lies whose elements are all read before they are written.
  bool FindLent(const Chain& chain) {
    size_t written = chain.steps.size();
    for (size_t s = 0; s < chain.steps.size(); ++s) {
      if (chain.steps[s].output == 0) written = s;
    }
    if (written == chain.steps.size()) return false;
    for (const Operand& o : operands_) {
      const auto input = static_cast<size_t>(o.input);
      if (lent_.size() <= input) lent_.resize(input + 1, true);
      if (o.first != 0 || !o.dense || o.size != chain.steps[written].size) {
        lent_[input] = false;
      }
    }
    for (size_t s = written + 1; s < chain.steps.size(); ++s) {
      for (const int from : chain.steps[s].from) {
        if (from < 0) continue;
        lent_[static_cast<size_t>(operands_[static_cast<size_t>(from)].input)] = false;
      }
    }
    // An LSTM's loop reads the output's gate behind that.
    if (cell_ && cell_->c == 0) {
      const Operand& o = operands_[static_cast<size_t>(cell_->o)];
      lent_[static_cast<size_t>(o.input)] = false;
    }
    return true;
  }

  void FindTiles(char* tiles, char** slots) const {
    for (size_t t = 0; t < num_tiles_; ++t) slots[operands_.size() + t] = tiles + t * kTileBytes;
  }
  void RunCode(void* const* outputs, int64_t at, int64_t n, char** slots) const {
    char** out = slots + operands_.size() + num_tiles_;
    for (const Output& o : outputs_) {
      *out++ = static_cast<char*>(outputs[o.output]) + at * o.size;
    }
    if (cell_) return RunCell(slots, outputs, at, n);
    for (const ChainCode& code : code_) code.Run(slots, n);
  }
  void RunCell(char* const* slots, void* const* outputs, int64_t at, int64_t n) const {
    const auto in = [&](int i) { return reinterpret_cast<const float*>(slots[i]); };
    const auto out = [&](int i) { return static_cast<float*>(outputs[i]) + at; };
    Isa().lstm_cell({in(cell_->i), in(cell_->f), in(cell_->g), in(cell_->o)}, in(cell_->before),
                    out(cell_->c), out(cell_->h), n);
  }

  // A turn is a row or a part of one, whose operands are read where they lie.
  void RunTiles(const void* const* inputs, void* const* outputs, int64_t begin, int64_t end) const {
    alignas(kAlignment) char tiles[kMaxTiles * kTileBytes];
    char* slots[kMaxSlots];
    FindTiles(tiles, slots);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / turns_per_row_, at = i % turns_per_row_ * turn_;
      for (size_t k = 0; k < operands_.size(); ++k) {
        const Operand& o = operands_[k];
        const int64_t offset = (o.At(row, sizes_) + at * o.steps.back()) * o.size;
        slots[k] = static_cast<char*>(const_cast<void*>(inputs[o.input])) + offset;
      }
      RunCode(outputs, row * row_ + at, std::min(turn_, row_ - at), slots);
    }
  }

  // A turn is some rows, which are copied together where they lie apart.
  void RunJoined(const void* const* inputs, void* const* outputs, int64_t begin,
                 int64_t end) const {
    alignas(kAlignment) char tiles[kMaxTiles * kTileBytes];
    char* slots[kMaxSlots];
    FindTiles(tiles, slots);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * turn_, n = std::min(turn_, rows_ * row_ - at);
      for (size_t k = 0; k < operands_.size(); ++k) {
        const Operand& o = operands_[k];
        char* from = static_cast<char*>(const_cast<void*>(inputs[o.input]));
        if (o.dense || o.same) {
          slots[k] = from + (o.first + (o.dense ? at : 0)) * o.size;
          continue;
        }
        slots[k] = tiles + o.tile * kTileBytes;
        if (o.repeats && i > begin) continue;  // it is there, and no turn is longer than the first
        for (int64_t r = 0; r < n / row_; ++r) {
          o.CopyRow(from + o.At(at / row_ + r, sizes_) * o.size, slots[k] + r * row_ * o.size,
                    row_);
        }
      }
      RunCode(outputs, at, n, slots);
    }
  }

  std::vector<Operand> operands_;
  std::vector<Output> outputs_;
  std::vector<ChainCode> code_;
  std::vector<bool> lent_;         // by input
  std::optional<LstmChain> cell_;  // all steps are one loop
  Dims sizes_;
  int64_t rows_ = 1, row_ = 1, tile_ = 1, grain_ = 1;
  bool joins_rows_ = false;
  int64_t turn_ = 1, num_turns_ = 1;  // elements of a turn, and how many there are
  int64_t turns_per_row_ = 1;         // unless rows are joined
  size_t num_tiles_ = 0;
};

}  // namespace

std::unique_ptr<BoundKernel> BindChain(const Chain& chain) {
  auto bound = std::make_unique<BoundChain>();
  if (chain.sizes.empty() || chain.operands.size() + chain.steps.size() > kMaxSlots ||
      !bound->Init(chain)) {
    return nullptr;
  }
  return bound;
}

namespace {

const Kernel& AnyChain() {
  static const Kernel row{OpName(), "", kAnyType, "elementwise:chain"};
  return row;
}
const Kernel& CellChain() {
  static const Kernel row{OpName(), "", kAnyType, "elementwise:lstm_cell"};
  return row;
}

}  // namespace

const Kernel& ChainKernel(const Chain& chain) { return FindLstm(chain) ? CellChain() : AnyChain(); }

bool IsChainKernel(const Kernel& kernel) {
  return &kernel == &AnyChain() || &kernel == &CellChain();
}

}  // namespace smelt
