// ArgMax and ArgMin: the first of equal elements wins, NaN never does.
#include <algorithm>
#include <limits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

constexpr int64_t kArgStrip = 128;
constexpr int64_t kArgGrain = 16384;

template <bool kMax, typename V>
bool ArgBetter(V a, V b) {
  return kMax ? a > b : a < b;
}

template <bool kMax, typename V>
V ArgWorst() {
  using Limits = std::numeric_limits<V>;
  if constexpr (Limits::has_infinity) {
    return kMax ? -Limits::infinity() : Limits::infinity();
  } else {
    return kMax ? Limits::lowest() : Limits::max();
  }
}

// The type that elements compare as.
template <typename T>
using ArgValue =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>, float, T>;

template <typename T, bool kMax>
int64_t ArgRow(const T* x, int64_t n) {
  using V = ArgValue<T>;
  if constexpr (std::is_same_v<T, float>) {
    if (n >= 32) {
      const float best = kMax ? Isa().max(x, n) : Isa().min(x, n);
      // The instruction set's loops return NaN where there is one.
      if (best == best) {
        const float* at = std::find(x, x + n, best);
        return at == x + n ? 0 : at - x;
      }
    }
  }
  V best = ArgWorst<kMax, V>();
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    const V v = static_cast<V>(x[i]);
    if (ArgBetter<kMax>(v, best)) {
      best = v;
      at = i;
    }
  }
  return at;
}

// Columns [0, width) of n rows that lie `stride` apart.
template <typename T, bool kMax>
void ArgColumns(const T* x, int64_t n, int64_t stride, int64_t width, int64_t* at) {
  using V = ArgValue<T>;
  V best[kArgStrip];
  std::fill_n(best, width, ArgWorst<kMax, V>());
  std::fill_n(at, width, 0);
  for (int64_t i = 0; i < n; ++i, x += stride) {
    for (int64_t j = 0; j < width; ++j) {
      const V v = static_cast<V>(x[j]);
      if (ArgBetter<kMax>(v, best[j])) {
        best[j] = v;
        at[j] = i;
      }
    }
  }
}

// Writes n indices as elements [begin, begin + n) of `out`, in its type.
using ArgStore = void (*)(const int64_t* at, int64_t n, void* out, int64_t begin);

template <typename I>
void StoreArg(const int64_t* at, int64_t n, void* out, int64_t begin) {
  I* o = static_cast<I*>(out) + begin;
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<I>(at[i]);
}

// Shape [outer, n, inner] -> [outer, inner].
template <typename T, bool kMax>
void ArgAll(const void* in, int64_t outer, int64_t n, int64_t inner, void* out, ArgStore store) {
  const T* x = static_cast<const T*>(in);
  const int64_t strips = (inner + kArgStrip - 1) / kArgStrip;
  const int64_t cost = std::max<int64_t>(n * std::min(inner, kArgStrip), 16);
  ParallelFor(outer * strips, kArgGrain / cost + 1, [&](int64_t begin, int64_t end) {
    int64_t at[kArgStrip];
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / strips;
      const int64_t column = (unit - row * strips) * kArgStrip;
      const int64_t width = std::min(kArgStrip, inner - column);
      if (inner == 1) {
        at[0] = ArgRow<T, kMax>(x + row * n, n);
      } else {
        ArgColumns<T, kMax>(x + row * n * inner + column, n, inner, width, at);
      }
      store(at, width, out, row * inner + column);
    }
  });
}

using ArgLoop = void (*)(const void*, int64_t, int64_t, int64_t, void*, ArgStore);

template <bool kMax>
ArgLoop ArgLoopOf(Dtype t) {
  switch (t) {
    case Dtype::kFloat:
      return ArgAll<float, kMax>;
    case Dtype::kDouble:
      return ArgAll<double, kMax>;
    case Dtype::kHalf:
      return ArgAll<Half, kMax>;
    case Dtype::kBfloat16:
      return ArgAll<Bfloat16, kMax>;
    case Dtype::kInt8:
      return ArgAll<int8_t, kMax>;
    case Dtype::kInt16:
      return ArgAll<int16_t, kMax>;
    case Dtype::kInt32:
      return ArgAll<int32_t, kMax>;
    case Dtype::kInt64:
      return ArgAll<int64_t, kMax>;
    case Dtype::kUint8:
    case Dtype::kBool:
      return ArgAll<uint8_t, kMax>;
    case Dtype::kUint16:
      return ArgAll<uint16_t, kMax>;
    case Dtype::kUint32:
      return ArgAll<uint32_t, kMax>;
    case Dtype::kUint64:
      return ArgAll<uint64_t, kMax>;
    default:
      return nullptr;
  }
}

struct ArgState final : KernelState {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;

  ArgLoop loop = nullptr;
  ArgStore store = nullptr;
};

template <bool kMax>
StatusOr<std::unique_ptr<KernelState>> PrepareArg(const Node& node) {
  auto state = std::make_unique<ArgState>();
  state->loop = ArgLoopOf<kMax>(node.Type("T"));
  switch (node.Type("output_type")) {
    case Dtype::kInt16:
      state->store = StoreArg<int16_t>;
      break;
    case Dtype::kUint16:
      state->store = StoreArg<uint16_t>;
      break;
    case Dtype::kInt32:
      state->store = StoreArg<int32_t>;
      break;
    case Dtype::kInt64:
      state->store = StoreArg<int64_t>;
      break;
    default:
      break;
  }
  if (state->loop == nullptr || state->store == nullptr) {
    return Unimplemented(node.op(), " of ", DtypeName(node.Type("T")), " giving ",
                         DtypeName(node.Type("output_type")));
  }
  return state;
}

// The reduced dimension of an input of this shape.
StatusOr<int> ArgAxis(const Shape& in, const Tensor& dimension) {
  if (dimension.rank() != 0) {
    return InvalidArgument("dim must be a scalar, but received tensor of shape: ",
                           dimension.shape().ToString());
  }
  // Of a wider number TensorFlow takes the low 32 bits.
  const auto dim = static_cast<int32_t>(
      dimension.dtype() == Dtype::kInt16 ? dimension.scalar<int16_t>() : IndexAt(dimension, 0));
  const int rank = in.rank();
  if (dim < -rank || dim >= rank) {
    return InvalidArgument("Expected dimension in the range [", -rank, ", ", rank, "), but got ",
                           dim);
  }
  const int axis = static_cast<int>(dim < 0 ? dim + rank : dim);
  if (in[axis] == 0) {
    return InvalidArgument("Reduction axis ", dim, " is empty in shape ", in.ToString());
  }
  return axis;
}

// Shape [outer, n, inner] -> [outer, inner].
struct ArgPlan {
  ArgPlan(const Shape& in, int axis)
      : outer(in.Product(0, axis)), n(in[axis]), inner(in.Product(axis + 1, in.rank())), out(in) {
    out.Remove(axis);
  }
  int64_t outer, n, inner;
  Shape out;
};

Status RunArg(OpContext& ctx) {
  const ArgState& state = ctx.state<ArgState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(const int axis, ArgAxis(in.shape(), ctx.input(1)));
  const ArgPlan plan(in.shape(), axis);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, plan.out));
  if (out->num_elements() == 0) return OkStatus();
  state.loop(in.raw(), plan.outer, plan.n, plan.inner, out->raw(), state.store);
  return OkStatus();
}

StatusOr<std::unique_ptr<BoundKernel>> ArgState::Bind(const BindContext& context) {
  const Shape& in = context.inputs[0].shape;
  if (context.inputs[1].constant == nullptr || in.num_elements() == 0) {
    return DeclineToBind("the dimension is no constant, or the input is empty");
  }
  const auto axis = ArgAxis(in, *context.inputs[1].constant);
  if (!axis.ok()) return nullptr;  // the run says why
  const ArgPlan plan(in, *axis);
  if (!Fits(context, 2, plan.out)) return nullptr;
  return BindCall([loop = loop, store = store, outer = plan.outer, n = plan.n, inner = plan.inner](
                      const void* const* inputs, void* const* outputs, void* /*scratch*/) {
    loop(inputs[0], outer, n, inner, outputs[0], store);
  });
}

constexpr Kernel kArgExtremeTable[] = {
    {"ArgMax", "T", kRealTypes | Bit(Dtype::kBool), "reduce:arg_max", RunArg, PrepareArg<true>},
    {"ArgMin", "T", kRealTypes | Bit(Dtype::kBool), "reduce:arg_min", RunArg, PrepareArg<false>},
};

}  // namespace

extern constinit const std::span<const Kernel> kArgExtremeKernels = kArgExtremeTable;

}  // namespace smelt
