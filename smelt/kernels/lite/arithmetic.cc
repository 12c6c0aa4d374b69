// Sums, products and comparisons of quantized tensors, which broadcast.
#include "absl/strings/str_cat.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/lite/fixed_point.h"
#include "smelt/kernels/lite/pairs.h"

namespace smelt::lite {
namespace {

enum class Kind : uint8_t { kAdd, kSub, kMul, kSquaredDifference };

struct PairState final : KernelState {
  Kind kind = Kind::kSquaredDifference;
  int32_t zero_a = 0, zero_b = 0, zero_out = 0;
  Factor a, b, out;
  int left = 0;  // operands are shifted so far before their factors
  Range range;
  // int16 on scales that are powers of two: operands are shifted to the right by these.
  bool powers = false;
  int right_a = 0, right_b = 0;

  // Is it of 8 bits, and does XNNPACK run it by default? The loops, which are int8's, round so.
  bool by_xnnpack = false, by_loops = false;
  ExactInt8Sum sum;
  int32_t times_a = 0, times_b = 0;
  float scale = 0;  // of a product
  FloatSteps float_steps;

  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
};

// A pair of int8 tensors; which rows of them meet, says `bc`.
void RunInt8Pair(const PairState& s, const Broadcast& bc, const int8_t* x, const int8_t* y,
                 int8_t* z) {
  ExactInt8Loops::Operand first, second;
  first.step = bc.strides[0].back();
  first.zero = s.zero_a;
  first.times = s.times_a;
  second.step = bc.strides[1].back();
  second.zero = s.zero_b;
  second.times = s.times_b;
  const ExactInt8Scales scales = {&s.scale, s.zero_out, s.range.low, s.range.high};
  const ExactInt8Loops& loops = IsaExactInt8();
  ForPairRows(bc, [&](int64_t at_x, int64_t at_y, int64_t at_z, int64_t n) {
    ExactInt8Loops::Operand a = first, b = second;
    a.x = x + at_x;
    b.x = y + at_y;
    if (s.kind == Kind::kMul) {
      loops.multiply(a, b, scales, z + at_z, n);
    } else {
      loops.add(a, b, s.sum, z + at_z, n);
    }
  });
}

StatusOr<std::unique_ptr<BoundKernel>> PairState::Bind(const BindContext& context) {
  if (!by_loops) {
    return DeclineToBind("it is no sum, difference or product of int8 that XNNPACK would run");
  }
  const Shape* shapes[] = {&context.inputs[0].shape, &context.inputs[1].shape};
  Broadcast bc;
  if (!MakeBroadcast(shapes, &bc) || !(bc.shape == context.outputs[0].shape) ||
      bc.shape.num_elements() == 0) {
    return nullptr;
  }
  return BindCall(
      [this, bc](const void* const* in, void* const* out, void*) {
        RunInt8Pair(*this, bc, static_cast<const int8_t*>(in[0]), static_cast<const int8_t*>(in[1]),
                    static_cast<int8_t*>(out[0]));
      },
      {0, 1});
}

// log2, where the scale is a power of two.
bool PowerOf(float scale, int* log) {
  if (scale == 0) return false;
  const float power = std::log2(scale), rounded = std::round(power);
  *log = static_cast<int>(rounded);
  return std::abs(power - rounded) < 1e-3f;
}

bool ByPowers(const Node& node, const Affine& a, const Affine& b, const Affine& out, PairState& s) {
  int log_a = 0, log_b = 0, log_out = 0;
  if (node.output_types[0] != Dtype::kInt16 || !node.Bool("pot_scale_int16", true) ||
      !PowerOf(a.scale(), &log_a) || !PowerOf(b.scale(), &log_b) ||
      !PowerOf(out.scale(), &log_out)) {
    return false;
  }
  s.right_a = log_out - log_a;
  s.right_b = log_out - log_b;
  // One operand has the scale of the sum, and the other a finer one.
  return s.right_a >= 0 && s.right_b >= 0 && (s.right_a == 0 || s.right_b == 0) && s.right_a < 31 &&
         s.right_b < 31;
}

bool IsWithin(float x, float least, float bound) { return x >= least && x < bound; }

// A sum as XNNPACK has it: factors of 21 bits and one shift. False where XNNPACK runs none.
bool SetSum(float a, float b, PairState& s) {
  const float most = std::max(a, b);
  if (!IsWithin(most, 0x1p-10f, 0x1p8f)) return false;
  const int right = 20 - std::ilogb(most);
  const auto times = [&](float x) {
    return static_cast<int32_t>(std::lrint(std::ldexp(x, right)));
  };
  s.times_a = times(a);
  s.times_b = s.kind == Kind::kSub ? -times(b) : times(b);
  s.sum.right = right;
  s.sum.offset = (1 << (right - 1)) - s.times_a * s.zero_a - s.times_b * s.zero_b;
  s.sum.zero = s.zero_out;
  s.sum.low = s.range.low;
  s.sum.high = s.range.high;
  return true;
}

bool SetFactors(Dtype type, float a, float b, float out, PairState& s) {
  const Range all = RangeOf(type);
  const auto is_of_type = [&](int32_t zero) { return all.Clamp(zero) == zero; };
  if (type == Dtype::kInt16 || s.kind == Kind::kSquaredDifference || !is_of_type(s.zero_a) ||
      !is_of_type(s.zero_b) || !is_of_type(s.zero_out)) {
    return false;
  }
  if (s.kind != Kind::kMul) return SetSum(a / out, b / out, s);
  s.scale = a * b / out;
  return IsWithin(s.scale, 0x1p-16f, 0x1p8f);
}

template <Kind kKind>
StatusOr<std::unique_ptr<KernelState>> PreparePair(const Node& node) {
  auto s = std::make_unique<PairState>();
  s->kind = kKind;
  const Affine a = InputAffine(node, 0), b = InputAffine(node, 1), out = OutputAffine(node);
  s->zero_a = a.zero();
  s->zero_b = b.zero();
  s->zero_out = out.zero();
  s->range = ActivatedRange(node, out);
  s->by_xnnpack = SetFactors(node.output_types[0], a.scale(), b.scale(), out.scale(), *s);
  s->by_loops = s->by_xnnpack && node.output_types[0] == Dtype::kInt8;
  s->float_steps = FloatSteps(s->range, s->zero_out);
  if (kKind == Kind::kMul) {
    // The product of scales is a float's.
    s->out = FactorOf(static_cast<double>(a.scale() * b.scale() / out.scale()));
    return s;
  }
  s->powers = (kKind == Kind::kAdd || kKind == Kind::kSub) && ByPowers(node, a, b, out, *s);
  const bool wide = node.output_types[0] == Dtype::kInt16;
  const double twice = 2 * std::max(a.scale(), b.scale());
  s->left = wide ? 15 : kKind == Kind::kSquaredDifference ? 7 : 20;
  s->a = FactorOf(static_cast<double>(a.scale()) / twice);
  s->b = FactorOf(static_cast<double>(b.scale()) / twice);
  const int times = kKind == Kind::kSquaredDifference ? 2 * s->left : s->left;
  const double unit = kKind == Kind::kSquaredDifference ? twice * twice : twice;
  s->out = FactorOf(unit / (std::ldexp(1.0, times) * static_cast<double>(out.scale())));
  return s;
}

// Of operands on one scale; of a product, as they are.
template <Kind kKind>
int32_t Combined(int32_t p, int32_t q) {
  if (kKind == Kind::kMul) return WrappedProduct(p, q);
  const int32_t sum = WrappedSum(p, kKind == Kind::kAdd ? q : WrappedProduct(q, -1));
  return kKind == Kind::kSquaredDifference ? WrappedProduct(sum, sum) : sum;
}

template <Kind kKind>
Status RunPair(OpContext& ctx) {
  const auto& s = ctx.state<PairState>();
  if (s.by_loops) {
    ASSIGN_OR_RETURN(const PairsOfInputs pairs, AllocatePairs(ctx));
    if (pairs.out->num_elements() == 0) return OkStatus();
    RunInt8Pair(s, pairs.bc, ctx.input(0).data<int8_t>(), ctx.input(1).data<int8_t>(),
                pairs.out->data<int8_t>());
    return OkStatus();
  }
  Status status;
  VisitNarrow(ctx.output_type(0), [&]<typename T>() {
    if (kKind == Kind::kMul && s.by_xnnpack) {
      status = ForPairs<T, T>(ctx, [&](int32_t x, int32_t y) {
        return s.float_steps((x - s.zero_a) * (y - s.zero_b), s.scale);
      });
    } else if (s.by_xnnpack) {
      status = ForPairs<T, T>(ctx, [&](int32_t x, int32_t y) {
        const int32_t sum = s.sum.offset + x * s.times_a + y * s.times_b;
        return s.range.Clamp(sum >> s.sum.right, s.zero_out);
      });
    } else if (s.powers) {
      status = ForPairs<T, T>(ctx, [&](int32_t x, int32_t y) {
        const int32_t p = DividedByPower(x, s.right_a), q = DividedByPower(y, s.right_b);
        const int32_t sum = kKind == Kind::kSub ? p - q : p + q;
        return s.range.Clamp(std::clamp(sum, -32768, 32767));
      });
    } else if constexpr (std::is_same_v<T, uint8_t>) {
      status = ForPairs<T, T>(ctx, [&](int32_t x, int32_t y) {
        int32_t p = ShiftedLeft(x - s.zero_a, s.left), q = ShiftedLeft(y - s.zero_b, s.left);
        if (kKind != Kind::kMul) p = Times(p, s.a), q = Times(q, s.b);
        return s.range.Clamp(Times(Combined<kKind>(p, q), s.out), s.zero_out);
      });
    } else {
      const FixedLoops& loops = IsaFixed();
      status = ForPairBlocks<T>(ctx, s.zero_a, s.zero_b, s.left,
                                [&](int32_t* p, int32_t* q, int64_t n, T* z) {
                                  if (kKind != Kind::kMul) {
                                    loops.times(p, n, FixedOf(s.a));
                                    loops.times(q, n, FixedOf(s.b));
                                  }
                                  for (int64_t i = 0; i < n; ++i)
                                    p[i] = Combined<kKind>(p[i], q[i]);
                                  loops.times(p, n, FixedOf(s.out));
                                  if constexpr (std::is_same_v<T, int8_t>) {
                                    loops.to_int8(p, s.zero_out, s.range.low, s.range.high, z, n);
                                  } else {
                                    loops.to_int16(p, s.zero_out, s.range.low, s.range.high, z, n);
                                  }
                                });
    }
  });
  return status;
}

std::string DeclinePair(const Node& node) { return DeclineUnlessNarrow(node, 2); }

// Comparisons: both sides in units of the sum of the scales, with 8 more bits.
enum class Order : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

StatusOr<std::unique_ptr<KernelState>> PrepareComparison(const Node& node) {
  auto s = std::make_unique<PairState>();
  const Affine a = InputAffine(node, 0), b = InputAffine(node, 1);
  s->zero_a = a.zero();
  s->zero_b = b.zero();
  s->left = 8;
  s->a = FactorOf(static_cast<double>(a.scale()));
  s->b = FactorOf(static_cast<double>(b.scale()));
  return s;
}

template <Order kOrder>
Status RunComparison(OpContext& ctx) {
  const auto& s = ctx.state<PairState>();
  Status status;
  VisitNarrow(ctx.input(0).dtype(), [&]<typename T>() {
    status = ForPairs<T, bool>(ctx, [&](int32_t x, int32_t y) {
      const int32_t p = Times(ShiftedLeft(x - s.zero_a, s.left), s.a);
      const int32_t q = Times(ShiftedLeft(y - s.zero_b, s.left), s.b);
      switch (kOrder) {
        case Order::kEqual:
          return p == q;
        case Order::kNotEqual:
          return p != q;
        case Order::kLess:
          return p < q;
        case Order::kLessEqual:
          return p <= q;
        case Order::kGreater:
          return p > q;
        case Order::kGreaterEqual:
          return p >= q;
      }
    });
  });
  return status;
}

std::string DeclineComparison(const Node& node) {
  if (node.num_inputs() != 2 || node.input_types[0] != node.input_types[1]) {
    return "its inputs are not of one type";
  }
  if (node.output_types[0] != Dtype::kBool) return "its output is not bool";
  if (!VisitNarrow(node.input_types[0], []<typename T>() {})) {
    return absl::StrCat("its inputs are ", DtypeName(node.input_types[0]));
  }
  for (const int i : {0, 1}) {
    if (InputAffine(node, i).scales.size() != 1) return "an input has no scale of its own";
  }
  return "";
}

constexpr Kernel kLiteArithmeticTable[] = {
    {"tfl.add", "", kAnyType, "lite:add", RunPair<Kind::kAdd>, PreparePair<Kind::kAdd>,
     DeclinePair},
    {"tfl.sub", "", kAnyType, "lite:sub", RunPair<Kind::kSub>, PreparePair<Kind::kSub>,
     DeclinePair},
    {"tfl.mul", "", kAnyType, "lite:mul", RunPair<Kind::kMul>, PreparePair<Kind::kMul>,
     DeclinePair},
    {"tfl.squared_difference", "", kAnyType, "lite:squared_difference",
     RunPair<Kind::kSquaredDifference>, PreparePair<Kind::kSquaredDifference>, DeclinePair},
    {"tfl.equal", "", kAnyType, "lite:compare", RunComparison<Order::kEqual>, PrepareComparison,
     DeclineComparison},
    {"tfl.not_equal", "", kAnyType, "lite:compare", RunComparison<Order::kNotEqual>,
     PrepareComparison, DeclineComparison},
    {"tfl.less", "", kAnyType, "lite:compare", RunComparison<Order::kLess>, PrepareComparison,
     DeclineComparison},
    {"tfl.less_equal", "", kAnyType, "lite:compare", RunComparison<Order::kLessEqual>,
     PrepareComparison, DeclineComparison},
    {"tfl.greater", "", kAnyType, "lite:compare", RunComparison<Order::kGreater>, PrepareComparison,
     DeclineComparison},
    {"tfl.greater_equal", "", kAnyType, "lite:compare", RunComparison<Order::kGreaterEqual>,
     PrepareComparison, DeclineComparison},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteArithmeticKernels = lite::kLiteArithmeticTable;
}  // namespace smelt
