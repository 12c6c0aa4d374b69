// BiasAdd, sums of many tensors, clipping.
#include <algorithm>
#include <complex>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/isa/bfloat16.h"

namespace smelt {
namespace {

constexpr int64_t kBiasGrain = 1 << 15;

template <typename T>
void BiasVV(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* r = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<T>(x[i] + y[i]);
}
template <typename T>
void BiasVS(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T y = *static_cast<const T*>(b);
  T* r = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<T>(x[i] + y);
}
template <typename T>
void BiasHalfVV(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* r = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = T(static_cast<float>(x[i]) + static_cast<float>(y[i]));
}
template <typename T>
void BiasHalfVS(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const float y = static_cast<float>(*static_cast<const T*>(b));
  T* r = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = T(static_cast<float>(x[i]) + y);
}

// Loops of addition, of which sv may be missing. Signed integers of 16 bits are added as unsigned
// ones, which wrap around alike.
IsaBinaryLoops BiasLoops(Dtype t) {
  IsaType type;
  if (IsaTypeOf(t, &type)) {
    return Isa().binary[static_cast<int>(IsaBinary::kAdd)][static_cast<int>(type)];
  }
  switch (t) {
    case Dtype::kHalf:
      return {BiasHalfVV<Half>, BiasHalfVS<Half>, nullptr};
    case Dtype::kBfloat16:
      return Bfloat16Loops(IsaBinary::kAdd);
    case Dtype::kInt16:
    case Dtype::kUint16:
      return {BiasVV<uint16_t>, BiasVS<uint16_t>, nullptr};
    case Dtype::kComplex64:
      return {BiasVV<std::complex<float>>, BiasVS<std::complex<float>>, nullptr};
    case Dtype::kComplex128:
      return {BiasVV<std::complex<double>>, BiasVS<std::complex<double>>, nullptr};
    default:
      return {};
  }
}

struct BiasState final : TiledState {
  IsaBinaryLoops add;
  int64_t size = 0;
  bool channels_first = false;

  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
  std::optional<TileOp> tile_op() const override {
    if (channels_first || add.vs == nullptr) return std::nullopt;
    TileOp op;
    op.kind = TileOp::Kind::kBinary;
    op.binary = add;
    op.grain = kBiasGrain;
    return op;
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareBias(const Node& node) {
  auto s = std::make_unique<BiasState>();
  const Dtype t = node.Type("T");
  s->add = BiasLoops(t);
  s->size = static_cast<int64_t>(DtypeSize(t));
  if (node.Is("BiasAdd")) {
    const std::string format = node.String("data_format", "NHWC");
    if (format != "NHWC" && format != "NCHW") return InvalidArgument("Invalid data format");
    s->channels_first = format == "NCHW";
  }
  if (s->add.vv == nullptr) {
    return InvalidArgument("node '", node.name(), "': ", node.op(), " does not take ",
                           DtypeName(t));
  }
  return s;
}

// Values [outer, channels, inner], to which a bias of `channels` is added.
struct BiasPlan {
  int64_t outer, channels, inner;
};
StatusOr<BiasPlan> PlanBias(const BiasState& s, const Shape& value, const Shape& bias) {
  if (value.rank() < 2) {
    return InvalidArgument("Input tensor must be at least 2D: ", value.ToString());
  }
  if (bias.rank() != 1) return InvalidArgument("Biases must be 1D: ", bias.ToString());
  const int axis = s.channels_first ? 1 : value.rank() - 1;
  if (bias[0] != value[axis]) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input tensor: ", bias.ToString(),
        " vs. ", value.ToString());
  }
  return BiasPlan{value.Product(0, axis), value[axis], value.Product(axis + 1, value.rank())};
}

// y may be x. REQUIRES: there are elements.
void ComputeBias(const BiasState& s, const BiasPlan& p, const char* x, const char* b, char* y) {
  const int64_t size = s.size;
  if (p.inner == 1) {
    ParallelFor(p.outer, std::max<int64_t>(1, kBiasGrain / p.channels),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t at = i * p.channels * size;
                    s.add.vv(x + at, b, y + at, p.channels);
                  }
                });
    return;
  }
  ParallelFor(p.outer * p.channels, std::max<int64_t>(1, kBiasGrain / p.inner),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t at = i * p.inner * size;
                  s.add.vs(x + at, b + i % p.channels * size, y + at, p.inner);
                }
              });
}

Status RunBiasAdd(OpContext& ctx) {
  const auto& s = ctx.state<BiasState>();
  const Tensor& value = ctx.input(0);
  const Tensor& bias = ctx.input(1);
  ASSIGN_OR_RETURN(const BiasPlan plan, PlanBias(s, value.shape(), bias.shape()));
  const char* x = static_cast<const char*>(value.raw());
  const char* b = static_cast<const char*>(bias.raw());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, value.shape()));
  if (out->num_elements() == 0) return OkStatus();
  ComputeBias(s, plan, x, b, static_cast<char*>(out->raw()));
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> BiasState::Bind(const BindContext& context) {
  const Shape& value = context.inputs[0].shape;
  const auto plan = PlanBias(*this, value, context.inputs[1].shape);
  if (!plan.ok() || !Fits(context, 2, value)) return nullptr;  // the run says why
  if (value.num_elements() == 0) return nullptr;
  const auto run = [this, plan = *plan](const void* const* inputs, void* const* outputs,
                                        void* /*scratch*/) {
    ComputeBias(*this, plan, static_cast<const char*>(inputs[0]),
                static_cast<const char*>(inputs[1]), static_cast<char*>(outputs[0]));
  };
  return BindCall(run, {0});
}

struct SumState final : KernelState {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;

  IsaBinaryLoops add;
  int64_t size = 0;
};
StatusOr<std::unique_ptr<KernelState>> PrepareAddN(const Node& node) {
  auto s = std::make_unique<SumState>();
  const Dtype t = node.Type("T");
  s->add = BiasLoops(t);
  s->size = static_cast<int64_t>(DtypeSize(t));
  if (s->add.vv == nullptr) {
    return InvalidArgument("node '", node.name(), "': ", node.op(), " does not take ",
                           DtypeName(t));
  }
  return s;
}

// Of at least two inputs; the result may lie where the first lies.
void SumAll(const SumState& s, std::span<const void* const> inputs, void* out, int64_t elements) {
  ParallelFor(elements, kBiasGrain, [&](int64_t begin, int64_t end) {
    // Blocks that stay in the first-level cache while all inputs pass.
    constexpr int64_t kBlock = 2048;
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i), at = i * s.size;
      char* y = static_cast<char*>(out) + at;
      s.add.vv(static_cast<const char*>(inputs[0]) + at, static_cast<const char*>(inputs[1]) + at,
               y, n);
      for (size_t k = 2; k < inputs.size(); ++k) {
        s.add.vv(y, static_cast<const char*>(inputs[k]) + at, y, n);
      }
    }
  });
}

Status RunAddN(OpContext& ctx) {
  const auto& s = ctx.state<SumState>();
  const int count = ctx.num_inputs();
  if (count == 0) return InvalidArgument("AddN needs at least one input");
  const Shape shape = ctx.input(0).shape();
  for (int i = 1; i < count; ++i) {
    if (ctx.input(i).shape() == shape) continue;
    return InvalidArgument("Inputs to operation ", ctx.node().name(), " of type ", ctx.node().op(),
                           " must have the same size and shape.  Input 0: ", shape.ToString(),
                           " != input ", i, ": ", ctx.input(i).shape().ToString());
  }
  if (count == 1) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  absl::InlinedVector<const void*, 8> inputs;
  for (int i = 0; i < count; ++i) inputs.push_back(ctx.input(i).raw());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, shape));
  SumAll(s, inputs, out->raw(), shape.num_elements());
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> SumState::Bind(const BindContext& context) {
  const Shape& shape = context.inputs[0].shape;
  const size_t count = context.inputs.size();
  if (count < 2 || !Fits(context, count, shape) ||
      !std::ranges::all_of(context.inputs,
                           [&](const BoundTensor& t) { return t.shape == shape; })) {
    return nullptr;  // the run says why
  }
  const auto run = [this, count, n = shape.num_elements()](
                       const void* const* inputs, void* const* outputs, void* /*scratch*/) {
    SumAll(*this, {inputs, count}, outputs[0], n);
  };
  return BindCall(run, {0});
}

// max(min(x, high), low); a bound that is NaN does not bind, a NaN x stays.
template <typename T>
T ClipOne(T x, T low, T high) {
  const T m = high < x ? high : x;
  return m < low ? low : m;
}
struct ClipBounds {
  const char* low;
  int64_t low_step;
  const char* high;
  int64_t high_step;
};
template <typename T>
void ClipRows(const void* x, const ClipBounds& b, void* y, int64_t n) {
  const T* in = static_cast<const T*>(x);
  const T* low = reinterpret_cast<const T*>(b.low);
  const T* high = reinterpret_cast<const T*>(b.high);
  T* out = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) {
    out[i] = ClipOne(in[i], low[i * b.low_step], high[i * b.high_step]);
  }
}
template <typename T>
void ClipHalfRows(const void* x, const ClipBounds& b, void* y, int64_t n) {
  const T* in = static_cast<const T*>(x);
  const T* low = reinterpret_cast<const T*>(b.low);
  const T* high = reinterpret_cast<const T*>(b.high);
  T* out = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) {
    out[i] = T(ClipOne(static_cast<float>(in[i]), static_cast<float>(low[i * b.low_step]),
                       static_cast<float>(high[i * b.high_step])));
  }
}
// Real and imaginary parts each by themselves.
template <typename T>
void ClipComplexRows(const void* x, const ClipBounds& b, void* y, int64_t n) {
  const T* in = static_cast<const T*>(x);
  const T* low = reinterpret_cast<const T*>(b.low);
  const T* high = reinterpret_cast<const T*>(b.high);
  T* out = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) {
    const T l = low[i * b.low_step], h = high[i * b.high_step];
    out[i] =
        T(ClipOne(in[i].real(), l.real(), h.real()), ClipOne(in[i].imag(), l.imag(), h.imag()));
  }
}
using ClipFn = void (*)(const void* x, const ClipBounds& b, void* y, int64_t n);
ClipFn ClipFor(Dtype t) {
  switch (t) {
    case Dtype::kFloat:
      return ClipRows<float>;
    case Dtype::kDouble:
      return ClipRows<double>;
    case Dtype::kHalf:
      return ClipHalfRows<Half>;
    case Dtype::kBfloat16:
      return ClipHalfRows<Bfloat16>;
    case Dtype::kInt8:
      return ClipRows<int8_t>;
    case Dtype::kInt16:
      return ClipRows<int16_t>;
    case Dtype::kInt32:
      return ClipRows<int32_t>;
    case Dtype::kInt64:
      return ClipRows<int64_t>;
    case Dtype::kUint8:
      return ClipRows<uint8_t>;
    case Dtype::kUint16:
      return ClipRows<uint16_t>;
    case Dtype::kComplex64:
      return ClipComplexRows<std::complex<float>>;
    case Dtype::kComplex128:
      return ClipComplexRows<std::complex<double>>;
    default:
      return nullptr;
  }
}

struct ClipState final : KernelState {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;

  ClipFn fn = nullptr;
  int64_t size = 0;
};

StatusOr<std::unique_ptr<KernelState>> PrepareClip(const Node& node) {
  auto s = std::make_unique<ClipState>();
  s->fn = ClipFor(node.Type("T"));
  s->size = static_cast<int64_t>(DtypeSize(node.Type("T")));
  return s;
}

// Of n elements; y may be x.
void ClipAll(const ClipState& s, const void* in, const ClipBounds& bounds, void* out, int64_t n) {
  const char* x = static_cast<const char*>(in);
  char* y = static_cast<char*>(out);
  ParallelFor(n, kBiasGrain, [&](int64_t begin, int64_t end) {
    ClipBounds part = bounds;
    part.low += begin * bounds.low_step * s.size;
    part.high += begin * bounds.high_step * s.size;
    s.fn(x + begin * s.size, part, y + begin * s.size, end - begin);
  });
}

// Is a bound of shape `t` one for all, or one for each of the elements?
bool ClipFits(const Shape& t, const Shape& in) { return t.rank() == 0 || t == in; }

Status RunClip(OpContext& ctx) {
  const auto& s = ctx.state<ClipState>();
  if (s.fn == nullptr) return Unimplemented("ClipByValue of ", DtypeName(ctx.output_type(0)));
  const Tensor& in = ctx.input(0);
  const Tensor& low = ctx.input(1);
  const Tensor& high = ctx.input(2);
  if (!ClipFits(low.shape(), in.shape()) || !ClipFits(high.shape(), in.shape())) {
    return InvalidArgument(
        "clip_value_min and clip_value_max must be either of the same shape as input, or a "
        "scalar. input shape: ",
        in.shape().ToString(), "clip_value_min shape: ", low.shape().ToString(),
        "clip_value_max shape: ", high.shape().ToString());
  }
  const ClipBounds bounds = {static_cast<const char*>(low.raw()), low.rank() == 0 ? 0 : 1,
                             static_cast<const char*>(high.raw()), high.rank() == 0 ? 0 : 1};
  const void* x = in.raw();
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, in.shape()));
  ClipAll(s, x, bounds, out->raw(), in.num_elements());
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> ClipState::Bind(const BindContext& context) {
  const Shape& in = context.inputs[0].shape;
  const Shape &low = context.inputs[1].shape, &high = context.inputs[2].shape;
  if (fn == nullptr || !Fits(context, 3, in) || !ClipFits(low, in) || !ClipFits(high, in)) {
    return nullptr;  // the run says why
  }
  const auto run = [this, n = in.num_elements(), low_step = low.rank() == 0 ? 0 : 1,
                    high_step = high.rank() == 0 ? 0 : 1](const void* const* inputs,
                                                          void* const* outputs, void* /*scratch*/) {
    ClipAll(*this, inputs[0],
            {static_cast<const char*>(inputs[1]), low_step, static_cast<const char*>(inputs[2]),
             high_step},
            outputs[0], n);
  };
  return BindCall(run, {0});
}

constexpr DtypeSet kClipTypes = kFloatTypes | kHalfTypes | kSignedIntTypes | kComplexTypes |
                                Types(Dtype::kUint8, Dtype::kUint16);

constexpr Kernel kBiasTable[] = {
    {"BiasAdd", "T", kNumberTypes, "isa:bias_add", RunBiasAdd, PrepareBias},
    {"AddN", "T", kNumberTypes, "isa:add_n", RunAddN, PrepareAddN},
    {"AccumulateNV2", "T", kNumberTypes, "isa:add_n", RunAddN, PrepareAddN},
    {"ClipByValue", "T", kClipTypes, "reference:clip_by_value", RunClip, PrepareClip},
};

}  // namespace

extern constinit const std::span<const Kernel> kBiasKernels = kBiasTable;

}  // namespace smelt
