// DIV and PRELU of quantized tensors, which broadcast.
#include <bit>

#include "smelt/kernels/lite/fixed_point.h"
#include "smelt/kernels/lite/pairs.h"

namespace smelt::lite {
namespace {

// Numbers of 32 bits: products of fixed point wrap or saturate as TensorFlow Lite's do.
constexpr int32_t kMost32 = std::numeric_limits<int32_t>::max();

int32_t Wrapped(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

// 1 / (1 + x) of x in [0, 1) with 31 bits behind the point, by Newton's method on numbers with two
// bits before it.
int32_t InverseOfOnePlus(int32_t x) {
  constexpr int32_t kFirst = 1515870810;   // 48 / 17
  constexpr int32_t kSlope = -1010580540;  // -32 / 17
  const auto half = static_cast<int32_t>((int64_t{x} + kMost32 + 1) / 2);
  int32_t y = Wrapped(int64_t{kFirst} + DoublingHigh(half, kSlope));
  const auto raised = [](int32_t v, int by) {
    const int64_t wide = int64_t{v} * (int64_t{1} << by);
    return static_cast<int32_t>(
        std::clamp<int64_t>(wide, std::numeric_limits<int32_t>::min(), kMost32));
  };
  for (int i = 0; i < 3; ++i) {
    const int32_t missing = Wrapped((int64_t{1} << 29) - DoublingHigh(half, y));
    y = Wrapped(int64_t{y} + raised(DoublingHigh(y, missing), 2));
  }
  return raised(y, 1);
}

// The bits of x beyond its sign that say nothing.
int Headroom(int32_t x) {
  const uint32_t size = x >= 0 ? static_cast<uint32_t>(x) : ~static_cast<uint32_t>(x);
  return std::countl_zero(size) - 1;
}

struct QuotientState final : KernelState {
  int32_t zero_a = 0, zero_b = 0, zero_out = 0;
  Factor above, below;  // of PRELU: of numbers above and below zero; of DIV the first one
  Range range;
};

StatusOr<std::unique_ptr<QuotientState>> MakeQuotient(const Node& node) {
  auto s = std::make_unique<QuotientState>();
  s->zero_a = InputAffine(node, 0).zero();
  s->zero_b = InputAffine(node, 1).zero();
  s->zero_out = OutputAffine(node).zero();
  s->range = ActivatedRange(node, OutputAffine(node));
  return s;
}

StatusOr<std::unique_ptr<KernelState>> PrepareDiv(const Node& node) {
  ASSIGN_OR_RETURN(auto s, MakeQuotient(node));
  const float a = InputAffine(node, 0).scale(), b = InputAffine(node, 1).scale();
  s->above = FactorOf(static_cast<double>(a / (b * OutputAffine(node).scale())));
  return s;
}

// REQUIRES: b != 0.
int32_t Quotient(int32_t a, int32_t b, const QuotientState& s) {
  if (b < 0) {
    a = -a;
    b = -b;
  }
  // b as 1 + x of a power of two.
  const int zeros = std::countl_zero(static_cast<uint32_t>(b));
  const auto x = static_cast<int32_t>((static_cast<uint32_t>(b) << zeros) - (1u << 31));
  const int headroom = Headroom(a);
  const int32_t plain = DoublingHigh(ShiftedLeft(a, headroom), InverseOfOnePlus(x));
  const int right = headroom + (31 - zeros) - s.above.shift;
  // Nothing is left of 32 bits. TensorFlow Lite shifts by more than a number has, which C++ does
  // not define.
  if (right > 31) return 0;
  return DividedByPower(DoublingHigh(plain, s.above.fraction), std::max(right, 0));
}

Status RunDiv(OpContext& ctx) {
  const auto& s = ctx.state<QuotientState>();
  Status status;
  VisitNarrow(ctx.output_type(0), [&]<typename T>() {
    for (const T x : ctx.input(1).flat<T>()) {
      if (int32_t{x} != s.zero_b) continue;
      status = InvalidArgument("Division by 0");
      return;
    }
    status = ForPairs<T, T>(ctx, [&](int32_t x, int32_t y) {
      return s.range.Clamp(Quotient(x - s.zero_a, y - s.zero_b, s), s.zero_out);
    });
  });
  return status;
}

StatusOr<std::unique_ptr<KernelState>> PreparePrelu(const Node& node) {
  ASSIGN_OR_RETURN(auto s, MakeQuotient(node));
  const float in = InputAffine(node, 0).scale(), alpha = InputAffine(node, 1).scale();
  const float out = OutputAffine(node).scale();
  s->above = FactorOf(static_cast<double>(in / out));
  s->below = FactorOf(static_cast<double>(in * alpha / out));
  return s;
}

Status RunPrelu(OpContext& ctx) {
  const auto& s = ctx.state<QuotientState>();
  Status status;
  VisitNarrow(ctx.output_type(0), [&]<typename T>() {
    using Alpha = std::conditional_t<std::is_same_v<T, int16_t>, int8_t, T>;
    status = ForPairs<T, T, Alpha>(ctx, [&](int32_t x, int32_t alpha) {
      const int32_t value = x - s.zero_a;
      const int32_t steps =
          value >= 0 ? Times(value, s.above) : Times(value * (alpha - s.zero_b), s.below);
      return s.range.Clamp(steps, s.zero_out);
    });
  });
  return status;
}

std::string DeclineQuotient(const Node& node) { return DeclineUnlessNarrow(node, 2); }
// The slopes of int16 are int8.
std::string DeclinePrelu(const Node& node) {
  if (node.output_types[0] != Dtype::kInt16) return DeclineUnlessNarrow(node, 2);
  std::string why = DeclineUnlessNarrow(node, 1);
  if (!why.empty()) return why;
  if (node.num_inputs() != 2 || node.input_types[1] != Dtype::kInt8)
    return "its slopes are no int8";
  return InputAffine(node, 1).scales.size() == 1 ? "" : "its slopes have no scale of their own";
}

constexpr Kernel kLiteQuotientTable[] = {
    {"tfl.div", "", kAnyType, "lite:div", RunDiv, PrepareDiv, DeclineQuotient},
    {"tfl.prelu", "", kAnyType, "lite:prelu", RunPrelu, PreparePrelu, DeclinePrelu},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteQuotientKernels = lite::kLiteQuotientTable;
}  // namespace smelt
