#include "smelt/kernels/elementwise/lstm_chain.h"

#include <algorithm>

namespace smelt {
namespace {

// Looks back from a step's operands: `from` of the chain, as Chain::Step::from.
class LstmFinder {
 public:
  explicit LstmFinder(const Chain& chain) : chain_(chain) {}

  std::optional<LstmChain> Find() {
    constexpr size_t kSteps = 9;
    if (chain_.steps.size() != kSteps) return std::nullopt;
    const Chain::Step& last = chain_.steps.back();
    const int h = -static_cast<int>(kSteps);
    LstmChain out;
    int c = 0;
    const bool found =
        Multiplies(h,
                   [&](int a, int b) {
                     return Is(a, UnaryF32::kSigmoid, &out.o) && Is(b, UnaryF32::kTanh, &c);
                   }) &&
        Binary(c, IsaBinary::kAdd,
               [&](int a, int b) { return KeepsBefore(a, out) && Adds(b, out); });
    const int operands[] = {out.i, out.f, out.g, out.o, out.before};
    if (!found || !std::ranges::all_of(operands, [&](int from) { return IsRow(from); })) {
      return std::nullopt;
    }
    out.h = last.output;
    out.c = chain_.steps[static_cast<size_t>(-1 - c)].output;
    const auto made = std::ranges::count_if(
        chain_.steps, [](const Chain::Step& step) { return step.output >= 0; });
    if (out.h < 0 || out.c < 0 || made != 2) return std::nullopt;
    return out;
  }

 private:
  bool KeepsBefore(int from, LstmChain& out) {
    return Multiplies(from, [&](int a, int b) {
      out.before = b;
      return b >= 0 && Is(a, UnaryF32::kSigmoid, &out.f);
    });
  }
  bool Adds(int from, LstmChain& out) {
    return Multiplies(from, [&](int a, int b) {
      return Is(a, UnaryF32::kSigmoid, &out.i) && Is(b, UnaryF32::kTanh, &out.g);
    });
  }

  // An operand whose elements lie one behind the other.
  bool IsRow(int from) const {
    return from >= 0 && chain_.operands[static_cast<size_t>(from)].steps.back() == 1;
  }
  // Is it what the function makes of *of?
  bool Is(int from, UnaryF32 function, int* of) {
    if (from >= 0) return false;
    const Chain::Step& step = chain_.steps[static_cast<size_t>(-1 - from)];
    const bool is = step.op.kind == TileOp::Kind::kUnary && step.op.convert == nullptr &&
                    step.op.f32 == Isa().unary[static_cast<int>(function)];
    if (is) *of = step.from[0];
    return is;
  }
  template <typename F>
  bool Multiplies(int from, F operands) {
    return Binary(from, IsaBinary::kMul, operands);
  }
  // Operands in either order.
  template <typename F>
  bool Binary(int from, IsaBinary op, F operands) {
    if (from >= 0) return false;
    const Chain::Step& step = chain_.steps[static_cast<size_t>(-1 - from)];
    const IsaBinaryFn loop = Isa().binary[static_cast<int>(op)][static_cast<int>(IsaType::kF32)].vv;
    if (step.op.kind != TileOp::Kind::kBinary || step.op.binary.vv != loop) return false;
    return operands(step.from[0], step.from[1]) || operands(step.from[1], step.from[0]);
  }

  const Chain& chain_;
};

}  // namespace

std::optional<LstmChain> FindLstm(const Chain& chain) { return LstmFinder(chain).Find(); }

}  // namespace smelt
