// Functions of one quantized number: tables of all 256 values of 8 bits, of 512 pieces for int16.
#include <array>
#include <memory>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/look_up_bytes.h"
#include "smelt/kernels/lite/fixed_functions.h"
#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {
namespace {

struct TableState : KernelState {
  std::array<uint8_t, 256> bytes{};  // by the input's bits
};

// y = fn(q) for each number of the type of 8 bits.
template <typename F>
void FillTable(Dtype type, TableState& s, F fn) {
  const Range range = RangeOf(type);
  for (int32_t q = range.low; q <= range.high; ++q) {
    s.bytes[static_cast<uint8_t>(q)] = static_cast<uint8_t>(fn(q));
  }
}

// kToEven: halves, as XNNPACK rounds the functions that it runs; else away from 0.
template <float (*kFn)(const Node& node, float x), bool kToEven = false>
StatusOr<std::unique_ptr<KernelState>> PrepareTable(const Node& node) {
  auto s = std::make_unique<TableState>();
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  const Dtype type = node.output_types[0];
  const Range range = RangeOf(type);
  const float inverse = 1 / out.scale();
  FillTable(type, *s, [&](int32_t q) {
    const float x = in.scale() * static_cast<float>(q - in.zero());
    const float y = kFn(node, x) * inverse;
    const float steps = kToEven ? std::nearbyint(y) : std::round(y);
    if (std::isnan(steps)) return range.low;
    return static_cast<int32_t>(std::clamp(steps + static_cast<float>(out.zero()),
                                           static_cast<float>(range.low),
                                           static_cast<float>(range.high)));
  });
  return s;
}

Status RunTable(OpContext& ctx) {
  const auto& s = ctx.state<TableState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  LookUpAllBytes(s.bytes.data(), in.raw(), out->raw(), in.num_elements());
  return OkStatus();
}

std::string DeclineTable(const Node& node) {
  std::string why = DeclineUnlessNarrow(node, 1);
  if (why.empty() && node.output_types[0] == Dtype::kInt16) why = "its output is int16";
  return why;
}

float Sigmoid(const Node&, float x) { return 1.0f / (1.0f + std::exp(-x)); }
float Tanh(const Node&, float x) { return std::tanh(x); }
float Elu(const Node&, float x) { return x < 0 ? std::expm1(x) : x; }
float Exp(const Node&, float x) { return std::exp(x); }
float Log(const Node&, float x) { return std::log(x); }
float Gelu(const Node& node, float x) {
  if (!node.Bool("approximate")) {
    return 0.5f * x * std::erfc(x * -0.70710678118654752440f);
  }
  return 0.5f * x * (1 + std::tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

// ---- piecewise linear functions of any type, on fixed point

struct SlopeState final : KernelState {
  int32_t zero_in = 0, zero_out = 0;
  Factor above, below;  // of numbers above and below the zero point
  Range range;
};

StatusOr<std::unique_ptr<SlopeState>> MakeSlope(const Node& node, double above, double below) {
  auto s = std::make_unique<SlopeState>();
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  s->zero_in = in.zero();
  s->zero_out = out.zero();
  s->range = RangeOf(node.output_types[0]);
  s->above = FactorOf(above);
  s->below = FactorOf(std::abs(below));
  if (below < 0) s->below.fraction = -s->below.fraction;
  return s;
}

StatusOr<std::unique_ptr<KernelState>> PrepareLeakyRelu(const Node& node) {
  const float in = InputAffine(node, 0).scale(), out = OutputAffine(node).scale();
  return MakeSlope(node, static_cast<double>(in / out),
                   static_cast<double>(in * node.Float("alpha") / out));
}

// The slopes of XNNPACK, which runs those of 8 bits: factors of 256ths. False where it runs none.
struct Slopes256 {
  int32_t above = 0, below = 0;
  static bool Of(const Node& node, Slopes256* s) {
    const float above = InputAffine(node, 0).scale() / OutputAffine(node).scale();
    const float below = above * node.Float("alpha");
    const float size = std::abs(below);
    if (!(above >= 0x1p-8f && above <= 0x1p7f && size >= 0x1p-8f && size < 0x1p7f)) return false;
    s->above = static_cast<int32_t>(std::lrint(256 * above));
    s->below = static_cast<int32_t>(std::lrint(256 * below));
    return true;
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareSlopes256(const Node& node) {
  auto s = std::make_unique<TableState>();
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  const Range range = RangeOf(node.output_types[0]);
  Slopes256 slopes;
  Slopes256::Of(node, &slopes);
  FillTable(node.output_types[0], *s, [&](int32_t q) {
    const int32_t value = q - in.zero();
    const int32_t product = value * (value >= 0 ? slopes.above : slopes.below);
    return range.Clamp((product + 128) >> 8, out.zero());
  });
  return s;
}

std::string DeclineSlopes256(const Node& node) {
  std::string why = DeclineTable(node);
  Slopes256 slopes;
  if (why.empty() && !Slopes256::Of(node, &slopes)) why = "its slopes are no 256ths";
  return why;
}

// The least and the most that stays are those of the function.
template <int kLow, int kHigh>
StatusOr<std::unique_ptr<KernelState>> PrepareRelu(const Node& node) {
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  const double factor = static_cast<double>(in.scale() / out.scale());
  ASSIGN_OR_RETURN(auto s, MakeSlope(node, factor, factor));
  const Range all = s->range;
  s->range.low = Quantized(static_cast<float>(kLow), out.scale(), out.zero(), all);
  if (kHigh > 0) {
    s->range.high = Quantized(static_cast<float>(kHigh), out.scale(), out.zero(), all);
  }
  return s;
}

Status RunSlope(OpContext& ctx) {
  const auto& s = ctx.state<SlopeState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    T* y = out->data<T>();
    ParallelFor(in.num_elements(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int32_t value = int32_t{x[i]} - s.zero_in;
        const int32_t steps = Times(value, value >= 0 ? s.above : s.below);
        y[i] = static_cast<T>(s.range.Clamp(steps, s.zero_out));
      }
    });
  });
  return OkStatus();
}

std::string DeclineSlope(const Node& node) { return DeclineUnlessNarrow(node, 1); }

// ---- int16: 256 samples of the function, and lines between them

// sigmoid(i / 24) in 16 bits, of which both functions are made: raised by half of what a line to
// the next one misses in its middle.
const std::array<uint16_t, 256>& SigmoidSamples() {
  static const auto* samples = [] {
    auto* table = new std::array<uint16_t, 256>();
    const auto sigmoid = [](double i) { return 65536 / (1 + std::exp(-i / 24)); };
    for (size_t i = 0; i < table->size(); ++i) {
      const auto here = static_cast<double>(i);
      const double line = (sigmoid(here) + sigmoid(here + 1)) / 2;
      const double y = sigmoid(here) - (line - sigmoid(here + 0.5)) / 2;
      // Where the last line ends the function counts as 1.
      (*table)[i] = i < 255 ? static_cast<uint16_t>(std::round(y)) : uint16_t{65535};
    }
    return table;
  }();
  return *samples;
}

struct SampledState final : KernelState {
  int32_t factor = 0;  // to 3 * 2^12 steps for 1
  int shift = 0;       // to the right, after the factor
  // Of all numbers, once a tensor has as many.
  absl::once_flag made;
  std::unique_ptr<const FixedTable> table;
};

StatusOr<std::unique_ptr<KernelState>> PrepareSampled(const Node& node) {
  auto s = std::make_unique<SampledState>();
  const float scale = InputAffine(node, 0).scale();
  double factor = static_cast<double>(scale) * 4096 * 3;
  if (factor > 0) {
    const double power = std::log2(static_cast<double>(scale)), rounded = std::round(power);
    const int log = static_cast<int>(rounded);
    // Powers of two are exact.
    if (std::abs(power - rounded) < 1e-3 && log + 12 >= 0 && log + 12 < 16) {
      s->factor = 3 << (log + 12);
      return s;
    }
  }
  while (factor <= 32767.0 / 2 && s->shift <= 30) {
    ++s->shift;
    factor *= 2;
  }
  s->factor = static_cast<int32_t>(std::min(factor, 32767.0));
  return s;
}

// The place among the samples: `bits` of it lie between two.
struct Place {
  uint32_t sample, between;
};
Place PlaceOf(int32_t steps, int bits) {
  const auto size = static_cast<uint32_t>(std::abs(int64_t{steps}));
  return {size >> bits, size & ((1u << bits) - 1)};
}

template <bool kTanh>
int16_t Sampled(int16_t x, const SampledState& s) {
  const auto& samples = SigmoidSamples();
  // tanh(x) = 2 sigmoid(2x) - 1
  const int bits = kTanh ? 8 : 9;
  const int32_t round = s.shift > 0 ? 1 << (s.shift - 1) : 0;
  const auto steps = static_cast<int32_t>((int64_t{x} * s.factor + round) >> s.shift);
  const Place p = PlaceOf(steps, bits);
  int64_t value;
  if (p.sample >= 255) {
    value = kTanh ? 0xffff << 8 : 0x7fff << 10;
  } else {
    const uint32_t a = samples[p.sample], b = samples[p.sample + 1];
    value = (a << bits) + p.between * (b - a);
  }
  if (kTanh) {
    const int64_t half = int64_t{1} << 23, up = int64_t{1} << 7;
    value = steps >= 0 ? value - half + up : -value + half + up - 1;
    return static_cast<int16_t>(std::clamp<int64_t>(value >> 8, -32768, 32767));
  }
  value = steps >= 0 ? value + (1 << 9) : (int64_t{1} << 25) - value + (1 << 9) - 1;
  return static_cast<int16_t>(std::clamp<int64_t>(value >> 10, 0, 32767));
}

template <bool kTanh>
Status RunSampled(OpContext& ctx) {
  auto& s = ctx.state<SampledState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const int16_t* x = in.data<int16_t>();
  int16_t* y = out->data<int16_t>();
  const int64_t n = in.num_elements();
  // Of as many numbers as there are, each is computed once.
  const bool many = n >= int64_t{std::tuple_size_v<FixedTable>};
  if (many) {
    absl::call_once(s.made, [&] {
      auto table = std::make_unique<FixedTable>();
      for (int32_t v = -32768; v <= 32767; ++v) {
        const auto number = static_cast<int16_t>(v);
        (*table)[static_cast<uint16_t>(number)] = Sampled<kTanh>(number, s);
      }
      s.table = std::move(table);
    });
  }
  // As other runs may be making it, only those that waited for the table read it.
  const FixedTable* table = many ? s.table.get() : nullptr;
  ParallelFor(n, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = table != nullptr ? At(*table, x[i]) : Sampled<kTanh>(x[i], s);
    }
  });
  return OkStatus();
}

std::string DeclineSampled(const Node& node) {
  std::string why = DeclineUnlessNarrow(node, 1);
  if (why.empty() && node.output_types[0] != Dtype::kInt16) why = "its output is not int16";
  return why;
}

// ---- x * relu6(x + 3) / 6 in 16 bits

// Of 8 bits a table, of int16 computed one by one.
struct SwishState final : TableState {
  int32_t zero_in = 0, zero_out = 0;
  int16_t out = 0, relu = 0;
  int out_shift = 0, relu_shift = 0;
  Range range;
};

// The high 16 bits of a fraction of 32, rounded.
int16_t HighHalf(int32_t fraction) {
  const int64_t rounded = (int64_t{fraction} + (1 << 15)) >> 16;
  return static_cast<int16_t>(std::min<int64_t>(rounded, 32767));
}

int16_t Saturated(int32_t x) { return static_cast<int16_t>(std::clamp(x, -32768, 32767)); }
int16_t DoublingHigh16(int16_t a, int16_t b, bool rounding) {
  if (a == b && a == -32768) return 32767;
  const int32_t ab = int32_t{a} * b;
  const int32_t nudge = !rounding ? 0 : ab >= 0 ? 1 << 14 : 1 - (1 << 14);
  return static_cast<int16_t>((ab + nudge) / (1 << 15));
}

int32_t SwishOf(const SwishState& s, int32_t q) {
  const auto value = static_cast<int16_t>(q - s.zero_in);
  const auto fine = static_cast<int16_t>(value * 128);
  const int16_t in_steps = DoublingHigh16(fine, s.out, true);
  // relu6(x + 3) / 6 as a number of [0, 1].
  int16_t relu = fine;
  if (s.relu_shift > 0) {
    relu = Saturated(ShiftedLeft(relu, std::min(s.relu_shift - 1, 15)));
  }
  relu = DoublingHigh16(relu, s.relu, true);
  if (s.relu_shift > 0) relu = Saturated(int32_t{relu} * 2);
  if (s.relu_shift < 0) {
    relu = static_cast<int16_t>(DividedByPower(relu, std::min(-s.relu_shift, 31)));
  }
  relu = static_cast<int16_t>((relu + (1 << 15)) >> 1);
  const int16_t product = DoublingHigh16(relu, in_steps, false);
  const int32_t steps = s.out_shift > 0 ? ShiftedLeft(product, s.out_shift)
                                        : DividedByPower(product, std::min(-s.out_shift, 31));
  return s.range.Clamp(Saturated(steps), s.zero_out);
}

StatusOr<std::unique_ptr<KernelState>> PrepareSwish(const Node& node) {
  auto s = std::make_unique<SwishState>();
  const Affine in = InputAffine(node, 0), out = OutputAffine(node);
  s->zero_in = in.zero();
  s->zero_out = out.zero();
  s->range = RangeOf(node.output_types[0]);
  const float fine = in.scale() / 128.0f;  // the input with 7 more bits
  const Factor f = FactorOf(static_cast<double>(fine / out.scale()));
  const Factor r = FactorOf(static_cast<double>(fine / (3.0f / 32768.0f)));
  s->out = HighHalf(f.fraction);
  s->out_shift = f.shift;
  s->relu = HighHalf(r.fraction);
  s->relu_shift = r.shift;
  const Dtype type = node.output_types[0];
  if (type != Dtype::kInt16) FillTable(type, *s, [&](int32_t q) { return SwishOf(*s, q); });
  return s;
}

Status RunSwish(OpContext& ctx) {
  const auto& s = ctx.state<SwishState>();
  const Tensor& in = ctx.input(0);
  if (in.dtype() != Dtype::kInt16) return RunTable(ctx);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const int16_t* x = in.data<int16_t>();
  int16_t* y = out->data<int16_t>();
  for (int64_t i = 0; i < in.num_elements(); ++i) y[i] = static_cast<int16_t>(SwishOf(s, x[i]));
  return OkStatus();
}

constexpr Kernel kLiteLookupTable[] = {
    {"tfl.logistic", "", kAnyType, "lite:table", RunTable, PrepareTable<Sigmoid, true>,
     DeclineTable},
    {"tfl.logistic", "", kAnyType, "lite:samples", RunSampled<false>, PrepareSampled,
     DeclineSampled},
    {"tfl.tanh", "", kAnyType, "lite:table", RunTable, PrepareTable<Tanh, true>, DeclineTable},
    {"tfl.tanh", "", kAnyType, "lite:samples", RunSampled<true>, PrepareSampled, DeclineSampled},
    {"tfl.elu", "", kAnyType, "lite:table", RunTable, PrepareTable<Elu, true>, DeclineTable},
    {"tfl.exp", "", kAnyType, "lite:table", RunTable, PrepareTable<Exp>, DeclineTable},
    {"tfl.log", "", kAnyType, "lite:table", RunTable, PrepareTable<Log>, DeclineTable},
    {"tfl.gelu", "", kAnyType, "lite:table", RunTable, PrepareTable<Gelu>, DeclineTable},
    {"tfl.leaky_relu", "", kAnyType, "lite:slopes256", RunTable, PrepareSlopes256,
     DeclineSlopes256},
    {"tfl.leaky_relu", "", kAnyType, "lite:slope", RunSlope, PrepareLeakyRelu, DeclineSlope},
    {"tfl.relu", "", kAnyType, "lite:slope", RunSlope, PrepareRelu<0, -1>, DeclineSlope},
    {"tfl.relu6", "", kAnyType, "lite:slope", RunSlope, PrepareRelu<0, 6>, DeclineSlope},
    {"tfl.relu_n1_to_1", "", kAnyType, "lite:slope", RunSlope, PrepareRelu<-1, 1>, DeclineSlope},
    {"tfl.relu_0_to_1", "", kAnyType, "lite:slope", RunSlope, PrepareRelu<0, 1>, DeclineSlope},
    {"tfl.hard_swish", "", kAnyType, "lite:hard_swish", RunSwish, PrepareSwish, DeclineSlope},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteLookupKernels = lite::kLiteLookupTable;
}  // namespace smelt
