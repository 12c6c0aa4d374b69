// BiasAdd, sums of many tensors, clipping.
#include <algorithm>
#include <complex>

#include "smelt/base/parallel.h"
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

Status RunBiasAdd(OpContext& ctx) {
  const auto& s = ctx.state<BiasState>();
  const Tensor& value = ctx.input(0);
  const Tensor& bias = ctx.input(1);
  const Shape shape = value.shape();
  if (shape.rank() < 2) {
    return InvalidArgument("Input tensor must be at least 2D: ", shape.ToString());
  }
  if (bias.rank() != 1) return InvalidArgument("Biases must be 1D: ", bias.shape().ToString());
  const int axis = s.channels_first ? 1 : shape.rank() - 1;
  const int64_t channels = shape[axis];
  if (bias.dim(0) != channels) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input tensor: ",
        bias.shape().ToString(), " vs. ", shape.ToString());
  }
  const char* x = static_cast<const char*>(value.raw());
  const char* b = static_cast<const char*>(bias.raw());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, shape));
  char* y = static_cast<char*>(out->raw());
  if (out->num_elements() == 0) return OkStatus();
  const int64_t outer = shape.Product(0, axis);
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  const int64_t size = s.size;
  if (inner == 1) {
    ParallelFor(outer, std::max<int64_t>(1, kBiasGrain / channels),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t at = i * channels * size;
                    s.add.vv(x + at, b, y + at, channels);
                  }
                });
    return OkStatus();
  }
  ParallelFor(outer * channels, std::max<int64_t>(1, kBiasGrain / inner),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t at = i * inner * size;
                  s.add.vs(x + at, b + i % channels * size, y + at, inner);
                }
              });
  return OkStatus();
}

struct SumState final : KernelState {
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
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, shape));
  char* y = static_cast<char*>(out->raw());
  ParallelFor(shape.num_elements(), kBiasGrain, [&](int64_t begin, int64_t end) {
    // Blocks that stay in the first-level cache while all inputs pass.
    constexpr int64_t kBlock = 2048;
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      const int64_t at = i * s.size;
      s.add.vv(static_cast<const char*>(ctx.input(0).raw()) + at,
               static_cast<const char*>(ctx.input(1).raw()) + at, y + at, n);
      for (int k = 2; k < count; ++k) {
        s.add.vv(y + at, static_cast<const char*>(ctx.input(k).raw()) + at, y + at, n);
      }
    }
  });
  return OkStatus();
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

Status RunClip(OpContext& ctx) {
  const ClipFn fn = ClipFor(ctx.output_type(0));
  if (fn == nullptr) return Unimplemented("ClipByValue of ", DtypeName(ctx.output_type(0)));
  const Tensor& in = ctx.input(0);
  const Tensor& low = ctx.input(1);
  const Tensor& high = ctx.input(2);
  const auto fits = [&](const Tensor& t) { return t.rank() == 0 || t.shape() == in.shape(); };
  if (!fits(low) || !fits(high)) {
    return InvalidArgument(
        "clip_value_min and clip_value_max must be either of the same shape as input, or a "
        "scalar. input shape: ",
        in.shape().ToString(), "clip_value_min shape: ", low.shape().ToString(),
        "clip_value_max shape: ", high.shape().ToString());
  }
  const ClipBounds bounds = {static_cast<const char*>(low.raw()), low.rank() == 0 ? 0 : 1,
                             static_cast<const char*>(high.raw()), high.rank() == 0 ? 0 : 1};
  const char* x = static_cast<const char*>(in.raw());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, in.shape()));
  char* y = static_cast<char*>(out->raw());
  const auto size = static_cast<int64_t>(DtypeSize(out->dtype()));
  ParallelFor(in.num_elements(), kBiasGrain, [&](int64_t begin, int64_t end) {
    ClipBounds part = bounds;
    part.low += begin * bounds.low_step * size;
    part.high += begin * bounds.high_step * size;
    fn(x + begin * size, part, y + begin * size, end - begin);
  });
  return OkStatus();
}

constexpr DtypeSet kClipTypes = kFloatTypes | kHalfTypes | kSignedIntTypes | kComplexTypes |
                                Types(Dtype::kUint8, Dtype::kUint16);

constexpr Kernel kBiasTable[] = {
    {"BiasAdd", "T", kNumberTypes, "isa:bias_add", RunBiasAdd, PrepareBias},
    {"AddN", "T", kNumberTypes, "isa:add_n", RunAddN, PrepareAddN},
    {"AccumulateNV2", "T", kNumberTypes, "isa:add_n", RunAddN, PrepareAddN},
    {"ClipByValue", "T", kClipTypes, "reference:clip_by_value", RunClip},
};

}  // namespace

extern constinit const std::span<const Kernel> kBiasKernels = kBiasTable;

}  // namespace smelt
