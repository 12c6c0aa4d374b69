// Cast and Bitcast.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/elementwise/elementwise.h"

namespace smelt {
namespace {

constexpr int64_t kCastGrain = 1 << 15;
constexpr int64_t kCastBlock = 512;

// What the processor's conversion gives: the least integer for NaN and whatever does not fit.
template <typename I, typename F>
I CastTruncate(F x) {
  constexpr F kLimit = static_cast<F>(uint64_t{1} << (sizeof(I) * 8 - 1));
  return x >= -kLimit && x < kLimit ? static_cast<I>(x) : std::numeric_limits<I>::min();
}

template <typename To, typename From>
struct Casting {
  static To Of(From x) {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // Narrow types take the low bits of a wider conversion, unsigned ones of a signed.
      if constexpr (std::is_same_v<To, uint64_t>) {
        const int64_t low = CastTruncate<int64_t>(x);
        const int64_t high = CastTruncate<int64_t>(x - static_cast<From>(uint64_t{1} << 63));
        return static_cast<uint64_t>(low < 0 ? low | high : low);
      } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint32_t>) {
        return static_cast<To>(CastTruncate<int64_t>(x));
      } else {
        return static_cast<To>(CastTruncate<int32_t>(x));
      }
    } else {
      return static_cast<To>(x);
    }
  }
};
// Of a complex number the real part is taken, to bool too.
template <typename To, typename R>
struct Casting<To, std::complex<R>> {
  static To Of(std::complex<R> x) { return Casting<To, R>::Of(x.real()); }
};
template <typename T, typename From>
struct Casting<std::complex<T>, From> {
  static std::complex<T> Of(From x) { return {static_cast<T>(x), T(0)}; }
};
template <typename T, typename R>
struct Casting<std::complex<T>, std::complex<R>> {
  static std::complex<T> Of(std::complex<R> x) {
    return {static_cast<T>(x.real()), static_cast<T>(x.imag())};
  }
};

using CastFn = void (*)(const void* x, void* y, int64_t n);
template <typename From, typename To>
void CastRow(const void* x, void* y, int64_t n) {
  const From* a = static_cast<const From*>(x);
  To* b = static_cast<To*>(y);
  for (int64_t i = 0; i < n; ++i) b[i] = Casting<To, From>::Of(a[i]);
}

template <typename From>
CastFn CastFrom(Dtype to) {
  switch (to) {
    case Dtype::kBool:
      return CastRow<From, bool>;
    case Dtype::kInt8:
      return CastRow<From, int8_t>;
    case Dtype::kInt16:
      return CastRow<From, int16_t>;
    case Dtype::kInt32:
      return CastRow<From, int32_t>;
    case Dtype::kInt64:
      return CastRow<From, int64_t>;
    case Dtype::kUint8:
      return CastRow<From, uint8_t>;
    case Dtype::kUint16:
      return CastRow<From, uint16_t>;
    case Dtype::kUint32:
      return CastRow<From, uint32_t>;
    case Dtype::kUint64:
      return CastRow<From, uint64_t>;
    case Dtype::kFloat:
      return CastRow<From, float>;
    case Dtype::kDouble:
      return CastRow<From, double>;
    case Dtype::kComplex64:
      return CastRow<From, std::complex<float>>;
    case Dtype::kComplex128:
      return CastRow<From, std::complex<double>>;
    default:
      return nullptr;
  }
}

CastFn CastPlain(Dtype from, Dtype to) {
  const IsaTable& isa = Isa();
  if (to == Dtype::kFloat) {
    if (from == Dtype::kUint8) return isa.u8_to_f32;
    if (from == Dtype::kInt8) return isa.i8_to_f32;
    if (from == Dtype::kInt32) return isa.i32_to_f32;
    if (from == Dtype::kInt64) return isa.i64_to_f32;
  }
  if (from == Dtype::kFloat && to == Dtype::kInt32) return isa.f32_to_i32;
  switch (from) {
    case Dtype::kBool:
      return CastFrom<bool>(to);
    case Dtype::kInt8:
      return CastFrom<int8_t>(to);
    case Dtype::kInt16:
      return CastFrom<int16_t>(to);
    case Dtype::kInt32:
      return CastFrom<int32_t>(to);
    case Dtype::kInt64:
      return CastFrom<int64_t>(to);
    case Dtype::kUint8:
      return CastFrom<uint8_t>(to);
    case Dtype::kUint16:
      return CastFrom<uint16_t>(to);
    case Dtype::kUint32:
      return CastFrom<uint32_t>(to);
    case Dtype::kUint64:
      return CastFrom<uint64_t>(to);
    case Dtype::kFloat:
      return CastFrom<float>(to);
    case Dtype::kDouble:
      return CastFrom<double>(to);
    case Dtype::kComplex64:
      return CastFrom<std::complex<float>>(to);
    case Dtype::kComplex128:
      return CastFrom<std::complex<double>>(to);
    default:
      return nullptr;
  }
}

// The 8-bit floating types: e5m2 is the upper byte of a half; e4m3fn has no infinities, and is NaN
// where all bits but the sign are ones.
void FromE5m2(const void* x, void* y, int64_t n) {
  const uint8_t* a = static_cast<const uint8_t*>(x);
  float* b = static_cast<float*>(y);
  for (int64_t i = 0; i < n; ++i) b[i] = Half::ToFloat(static_cast<uint16_t>(a[i] << 8));
}
void FromE4m3(const void* x, void* y, int64_t n) {
  const uint8_t* a = static_cast<const uint8_t*>(x);
  float* b = static_cast<float*>(y);
  for (int64_t i = 0; i < n; ++i) {
    const int exponent = (a[i] >> 3) & 15;
    const int mantissa = a[i] & 7;
    float v = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                            : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    if ((a[i] & 0x7f) == 0x7f) v = std::numeric_limits<float>::quiet_NaN();
    b[i] = (a[i] & 0x80) != 0 ? -v : v;
  }
}
// Rounds |x| to `mantissa` bits with the least exponent `least`; ties to even.
float RoundTo(float x, int mantissa, int least) {
  int e;
  std::frexp(x, &e);
  const int unit = std::max(e - 1, least) - mantissa;
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}
void ToE5m2(const void* x, void* y, int64_t n) {
  const float* a = static_cast<const float*>(x);
  uint8_t* b = static_cast<uint8_t*>(y);
  for (int64_t i = 0; i < n; ++i) {
    float v = a[i];
    if (std::isfinite(v)) v = RoundTo(v, 2, -14);
    b[i] = std::isnan(v) ? static_cast<uint8_t>(0x7e | (std::signbit(v) ? 0x80 : 0))
                         : static_cast<uint8_t>(Half::FromFloat(v) >> 8);
  }
}
void ToE4m3(const void* x, void* y, int64_t n) {
  const float* a = static_cast<const float*>(x);
  uint8_t* b = static_cast<uint8_t*>(y);
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t sign = std::signbit(a[i]) ? 0x80 : 0;
    float v = std::abs(a[i]);
    uint8_t bits = 0x7f;
    if (std::isfinite(v)) v = RoundTo(v, 3, -6);
    if (v <= 448.0f) {
      int e;
      std::frexp(v, &e);
      e -= 1;
      if (v < 0.015625f) {
        bits = static_cast<uint8_t>(std::ldexp(v, 9));
      } else {
        bits = static_cast<uint8_t>(((e + 7) << 3) | (static_cast<int>(std::ldexp(v, 3 - e)) & 7));
      }
    }
    b[i] = sign | bits;
  }
}

// A 4-bit integer takes a byte, of which the upper half is ignored.
void FromNibble(const void* x, void* y, int64_t n) {
  const uint8_t* a = static_cast<const uint8_t*>(x);
  int8_t* b = static_cast<int8_t*>(y);
  for (int64_t i = 0; i < n; ++i) b[i] = static_cast<int8_t>(static_cast<int8_t>(a[i] << 4) >> 4);
}
void FromUnsignedNibble(const void* x, void* y, int64_t n) {
  const uint8_t* a = static_cast<const uint8_t*>(x);
  int8_t* b = static_cast<int8_t*>(y);
  for (int64_t i = 0; i < n; ++i) b[i] = static_cast<int8_t>(a[i] & 15);
}

// A type that is converted by way of another: how to get there and back.
struct CastVia {
  Dtype plain;
  CastFn widen;   // nullptr: the same bits
  CastFn narrow;  // nullptr: the same bits
};
bool CastViaOf(Dtype t, CastVia* via) {
  const IsaTable& isa = Isa();
  switch (t) {
    case Dtype::kHalf:
      *via = {Dtype::kFloat, isa.f16_to_f32, isa.f32_to_f16};
      return true;
    case Dtype::kBfloat16:
      *via = {Dtype::kFloat, isa.bf16_to_f32, isa.f32_to_bf16};
      return true;
    case Dtype::kFloat8E5m2:
      *via = {Dtype::kFloat, FromE5m2, ToE5m2};
      return true;
    case Dtype::kFloat8E4m3fn:
      *via = {Dtype::kFloat, FromE4m3, ToE4m3};
      return true;
    case Dtype::kInt4:
      *via = {Dtype::kInt8, FromNibble, FromNibble};
      return true;
    case Dtype::kUint4:
      *via = {Dtype::kInt8, FromUnsignedNibble, FromUnsignedNibble};
      return true;
    case Dtype::kQint8:
      *via = {Dtype::kInt8, nullptr, nullptr};
      return true;
    case Dtype::kQuint8:
      *via = {Dtype::kUint8, nullptr, nullptr};
      return true;
    case Dtype::kQint16:
      *via = {Dtype::kInt16, nullptr, nullptr};
      return true;
    case Dtype::kQuint16:
      *via = {Dtype::kUint16, nullptr, nullptr};
      return true;
    case Dtype::kQint32:
      *via = {Dtype::kInt32, nullptr, nullptr};
      return true;
    default:
      *via = {t, nullptr, nullptr};
      return false;
  }
}

bool IsNibble(Dtype t) { return t == Dtype::kInt4 || t == Dtype::kUint4; }
bool IsFloat8(Dtype t) { return t == Dtype::kFloat8E5m2 || t == Dtype::kFloat8E4m3fn; }

// Mantissa bits of the types between which Truncate works; 0: none.
int MantissaBits(Dtype t) {
  switch (t) {
    case Dtype::kDouble:
      return 52;
    case Dtype::kFloat:
      return 23;
    case Dtype::kHalf:
      return 10;
    case Dtype::kBfloat16:
      return 7;
    case Dtype::kFloat8E5m2:
      return 2;
    case Dtype::kFloat8E4m3fn:
      return 3;
    default:
      return 0;
  }
}

struct CastState final : TiledState {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
  std::optional<TileOp> tile_op() const override;

  Dtype from = Dtype::kInvalid, to = Dtype::kInvalid;
  CastFn widen = nullptr, convert = nullptr, narrow = nullptr;  // nullptr: nothing to do
  uint8_t in_size = 0, out_size = 0;
  int clear_bits = 0;  // of a float or double source, before anything else
  bool same = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareCast(const Node& node) {
  auto s = std::make_unique<CastState>();
  s->from = BaseType(node.Type("SrcT"));
  s->to = BaseType(node.Type("DstT"));
  s->same = s->from == s->to;
  if (s->same) return s;
  CastVia a, b;
  CastViaOf(s->from, &a);
  CastViaOf(s->to, &b);
  s->widen = a.widen;
  s->narrow = b.narrow;
  if (a.plain != b.plain) {
    s->convert = CastPlain(a.plain, b.plain);
  } else if (a.widen == nullptr && b.narrow == nullptr) {
    s->convert = CastPlain(a.plain, b.plain);
  }
  // 4-bit integers meet integers only, 8-bit floats floating types only.
  const auto meets = [](Dtype t, Dtype other) {
    if (IsNibble(t)) return IsInteger(other) || IsNibble(other);
    if (IsFloat8(t)) return MantissaBits(other) != 0;
    return true;
  };
  const bool known = a.plain == b.plain || CastPlain(a.plain, b.plain) != nullptr;
  if (!known || !IsPod(s->from) || !IsPod(s->to) || !meets(s->from, s->to) ||
      !meets(s->to, s->from)) {
    // Reported when run: a graph may hold such a node and never reach it.
    s->convert = nullptr;
    s->in_size = 0;
    return s;
  }
  s->in_size = static_cast<uint8_t>(DtypeSize(s->from));
  s->out_size = static_cast<uint8_t>(DtypeSize(s->to));
  const int from_bits = MantissaBits(s->from), to_bits = MantissaBits(s->to);
  // TensorFlow rounds double to bfloat16 even with Truncate.
  const bool rounds = s->from == Dtype::kDouble && s->to == Dtype::kBfloat16;
  if (node.Bool("Truncate", false) && from_bits > to_bits && to_bits > 0 && from_bits >= 23 &&
      !rounds) {
    s->clear_bits = from_bits - to_bits;
  }
  return s;
}

// Clears low mantissa bits, so that rounding has nothing to round. NaN stays.
void ClearBits(int bits, size_t size, const void* x, void* y, int64_t n) {
  if (size == 8) {
    const double* a = static_cast<const double*>(x);
    double* b = static_cast<double*>(y);
    const uint64_t mask = ~((uint64_t{1} << bits) - 1);
    for (int64_t i = 0; i < n; ++i) {
      b[i] = std::isnan(a[i]) ? a[i] : std::bit_cast<double>(std::bit_cast<uint64_t>(a[i]) & mask);
    }
    return;
  }
  const float* a = static_cast<const float*>(x);
  float* b = static_cast<float*>(y);
  const uint32_t mask = ~((uint32_t{1} << bits) - 1);
  for (int64_t i = 0; i < n; ++i) {
    b[i] = std::isnan(a[i]) ? a[i] : std::bit_cast<float>(std::bit_cast<uint32_t>(a[i]) & mask);
  }
}

void CastRange(const CastState& s, const char* x, char* y, int64_t n) {
  const int steps =
      (s.clear_bits != 0) + (s.widen != nullptr) + (s.convert != nullptr) + (s.narrow != nullptr);
  if (steps == 0) {
    if (n > 0) std::memcpy(y, x, static_cast<size_t>(n) * s.in_size);
    return;
  }
  if (steps == 1 && s.clear_bits == 0) {
    const CastFn fn = s.widen ? s.widen : s.convert ? s.convert : s.narrow;
    return fn(x, y, n);
  }
  alignas(16) char blocks[3][kCastBlock * 16];
  for (int64_t i = 0; i < n; i += kCastBlock) {
    const int64_t count = std::min(kCastBlock, n - i);
    const void* at = x + i * s.in_size;
    if (s.clear_bits != 0) {
      ClearBits(s.clear_bits, s.in_size, at, blocks[0], count);
      at = blocks[0];
    }
    if (s.widen != nullptr) {
      s.widen(at, blocks[1], count);
      at = blocks[1];
    }
    void* out = y + i * s.out_size;
    if (s.convert != nullptr) {
      void* to = s.narrow != nullptr ? blocks[2] : out;
      s.convert(at, to, count);
      at = to;
    }
    if (s.narrow != nullptr) {
      s.narrow(at, out, count);
    } else if (at != out) {
      std::memcpy(out, at, static_cast<size_t>(count) * s.out_size);
    }
  }
}

// y may be x where elements are as large.
void CastAll(const CastState& s, const void* in, void* out, int64_t n) {
  const char* x = static_cast<const char*>(in);
  char* y = static_cast<char*>(out);
  if (n <= kCastGrain) return CastRange(s, x, y, n);
  ParallelFor(n, kCastGrain, [&](int64_t begin, int64_t end) {
    CastRange(s, x + begin * s.in_size, y + begin * s.out_size, end - begin);
  });
}

Status RunCast(OpContext& ctx) {
  const auto& s = ctx.state<CastState>();
  if (s.same) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  if (s.in_size == 0) {
    return Unimplemented("Cast ", DtypeName(s.from), " to ", DtypeName(s.to), " is not supported");
  }
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  CastAll(s, in.raw(), out->raw(), in.num_elements());
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> CastState::Bind(const BindContext& context) {
  if (same && IsPod(from)) return BindWhole(0, context.outputs[0]);
  if (in_size == 0) return nullptr;  // the run says why
  const auto run = [this, n = context.inputs[0].shape.num_elements()](
                       const void* const* inputs, void* const* outputs, void* /*scratch*/) {
    CastAll(*this, inputs[0], outputs[0], n);
  };
  if (in_size == out_size) return BindCall(run, {0});
  return BindCall(run);
}

std::optional<TileOp> CastState::tile_op() const {
  const int steps = (widen != nullptr) + (convert != nullptr) + (narrow != nullptr);
  if (steps != 1 || clear_bits != 0 || in_size == 0) return std::nullopt;
  TileOp op;
  op.convert = widen ? widen : convert ? convert : narrow;
  op.grain = kCastGrain;
  return op;
}

// The shape of `from`'s bytes as elements of type `to`.
StatusOr<Shape> BitcastShape(const Shape& from, Dtype from_type, Dtype to) {
  const auto from_size = static_cast<int64_t>(DtypeSize(from_type));
  const auto to_size = static_cast<int64_t>(DtypeSize(to));
  if (from_size == 0 || to_size == 0 || !IsPod(to) || !IsPod(from_type)) {
    return InvalidArgument("Bitcast does not take ", DtypeName(from_type), " to ", DtypeName(to));
  }
  Shape shape = from;
  if (from_size > to_size) {
    shape.Add(from_size / to_size);
  } else if (from_size < to_size) {
    const int64_t ratio = to_size / from_size;
    if (shape.rank() == 0 || shape.back() != ratio) {
      return InvalidArgument("Cannot bitcast from ", static_cast<int>(from_type), " to ",
                             static_cast<int>(to));
    }
    shape.Remove(shape.rank() - 1);
  }
  return Shape::Make(shape.dims());
}

Status RunBitcast(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Dtype to = ctx.output_type(0);
  ASSIGN_OR_RETURN(const Shape shape, BitcastShape(in.shape(), in.dtype(), to));
  if (DtypeSize(in.dtype()) == DtypeSize(to)) {
    ctx.set_output(0, ctx.TakeInput(0).WithDtype(to));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (in.bytes() > 0) std::memcpy(out->raw(), in.raw(), std::min(in.bytes(), out->bytes()));
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> BindBitcast(const IntAttrs&, const BindContext& context) {
  const BoundTensor &in = context.inputs[0], &out = context.outputs[0];
  const auto shape = BitcastShape(in.shape, in.dtype, out.dtype);
  if (!shape.ok() || !Fits(context, 1, *shape)) return nullptr;  // the run says why
  return BindWhole(0, out);
}

constexpr Kernel kCastTable[] = {
    {"Cast", "", kAnyType, "isa:cast", RunCast, PrepareCast},
    {"Bitcast", "", kAnyType, "reference:bitcast", RunBitcast, PrepareBinding<BindBitcast>},
};

}  // namespace

extern constinit const std::span<const Kernel> kCastKernels = kCastTable;

}  // namespace smelt
