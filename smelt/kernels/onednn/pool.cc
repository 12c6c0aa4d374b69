// Pools: maxima of floats and bfloat16 by a loop of our own, others through oneDNN or in plain
// loops.
#include "smelt/kernels/nn/pool.h"

#include <algorithm>
#include <optional>

#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/nn/max_pool.h"
#include "smelt/kernels/onednn/features.h"
#include "smelt/kernels/onednn/plan_cache.h"
#include "smelt/kernels/pads_input.h"
#include "smelt/kernels/unsigned_int8.h"

namespace smelt {
namespace {

struct PoolState final : KernelState, UnsignedInt8, PadsInput {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
  bool MayBeUnsigned(const BindContext& context) const override {
    return attrs.kind == nn::PoolKind::kMax && ProblemOf(context);
  }
  bool passes_on() const override { return true; }
  std::shared_ptr<KernelState> Padded(std::span<const int64_t> paddings) const override;
  // nullopt: what is not bound, or what the run will refuse.
  std::optional<nn::PoolProblem> ProblemOf(const BindContext& context) const;

  nn::PoolAttrs attrs;
  bool batch_in_index = false;
  bool may_pad = false;  // the node's window is its own, and its type float or bfloat16
  bool zeros = false;    // what is beside the image counts as zeros, not as nothing
  std::shared_ptr<onednn::PlanCache> plans = std::make_shared<onednn::PlanCache>();
};

// Results of fewer elements are not worth a call of the library.
constexpr int64_t kSmallPool = 2048;

bool IsSmall(const nn::PoolProblem& p) {
  return p.output.num_elements() < kSmallPool || p.depth_window > 1;
}

// Few elements a nanosecond come out of the library's loop over maxima.
bool IsOwn(nn::PoolKind kind, const nn::PoolProblem& p, Dtype dtype) {
  return kind == nn::PoolKind::kMax && nn::MaxPool::Suits(p, dtype);
}

// nullptr: the library has no code for it.
StatusOr<onednn::Plan> PoolPlan(PoolState& state, nn::PoolKind kind, const nn::PoolProblem& p,
                                Dtype dtype, const Shape& x) {
  using onednn::Layout;
  using onednn::Primitive;
  if (std::ranges::any_of(p.pad_before, [](int64_t pad) { return pad < 0; })) return nullptr;
  onednn::PlanKey key = onednn::MakePlanKey({&x});
  key.push_back(static_cast<int64_t>(dtype));
  for (const Dims* d : {&p.pad_before, &p.pad_after}) key.insert(key.end(), d->begin(), d->end());
  return state.plans->Get(key, [&] {
    const auto image = [&](const Dims& spatial) {
      return Layout::Image(dtype, p.batch, p.depth, spatial, p.channels_last);
    };
    return Primitive::Pooling(
        kind == nn::PoolKind::kMax ? Primitive::Pool::kMax : Primitive::Pool::kAvg, image(p.in),
        image(p.out), {p.strides, Dims(p.in.size(), 1), p.pad_before, p.pad_after}, p.kernel);
  });
}

// Zeros are as good as what a maximum leaves out but where they would be the maximum: in windows
// that reach beside the image.
std::shared_ptr<KernelState> PoolState::Padded(std::span<const int64_t> paddings) const {
  const size_t rank = static_cast<size_t>(attrs.spatial) + 2;
  if (!may_pad || zeros || attrs.kind != nn::PoolKind::kMax || !attrs.channels_last ||
      attrs.padding != nn::Padding::kValid || paddings.size() != 2 * rank) {
    return nullptr;
  }
  for (size_t i = 0; i < paddings.size(); ++i) {
    const bool spatial = i >= 2 && i < paddings.size() - 2;
    if (paddings[i] < 0 || (spatial ? paddings[i] >= attrs.ksize[i / 2] : paddings[i] > 0)) {
      return nullptr;
    }
  }
  auto state = std::make_shared<PoolState>();
  state->attrs = attrs;
  state->attrs.padding = nn::Padding::kExplicit;
  state->attrs.explicit_pads.assign(paddings.begin(), paddings.end());
  state->zeros = true;
  state->plans = plans;
  return state;
}

void RunOwn(const nn::MaxPool& pool, Dtype dtype, const void* x, void* y) {
  if (dtype == Dtype::kFloat) {
    pool.Run(static_cast<const float*>(x), static_cast<float*>(y));
  } else {
    pool.Run(static_cast<const uint16_t*>(x), static_cast<uint16_t*>(y));
  }
}

// The results of windows that reach beside the image are at least 0. NaN stays.
class ZeroBorders {
 public:
  explicit ZeroBorders(const nn::PoolProblem& p) : view_(p), batch_(p.batch), depth_(p.depth) {}

  void Apply(Dtype dtype, void* y) const {
    dtype == Dtype::kFloat ? Apply(static_cast<float*>(y)) : Apply(static_cast<Bfloat16*>(y));
  }

 private:
  template <typename T>
  void Apply(T* y) const {
    using Range = nn::PoolView::Range;
    const Range planes = view_.Whole(0), lines = view_.Whole(1), columns = view_.Whole(2);
    const auto among = [](const Range& r, int64_t at) { return at >= r.from && at < r.to; };
    const int64_t width = view_.out[2] * depth_;
    for (int64_t line = 0; line < batch_ * view_.out[0] * view_.out[1]; ++line, y += width) {
      const bool inside =
          among(planes, line / view_.out[1] % view_.out[0]) && among(lines, line % view_.out[1]);
      AtLeastZero(y, (inside ? columns.from : view_.out[2]) * depth_);
      if (inside) AtLeastZero(y + columns.to * depth_, width - columns.to * depth_);
    }
  }

  template <typename T>
  static void AtLeastZero(T* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(y[i]) < 0.0f ? T(0.0f) : y[i];
  }
  const nn::PoolView view_;
  const int64_t batch_, depth_;
};

std::optional<nn::PoolProblem> PoolState::ProblemOf(const BindContext& context) const {
  const BoundTensor& x = context.inputs[0];
  const bool narrow = x.dtype == Dtype::kBfloat16;
  if ((narrow ? attrs.kind != nn::PoolKind::kMax : x.dtype == Dtype::kHalf) ||
      context.inputs.size() != 1 || context.outputs.size() != 1) {
    DeclineToBind("a pool of half, an average of bfloat16, or a window that is no attribute");
    return std::nullopt;
  }
  auto p = nn::MakePoolProblem(attrs, x.shape);
  // What the run will refuse is left to it.
  if (!p.ok() || !Fits(context, 1, p->output) || p->output.num_elements() == 0) {
    return std::nullopt;
  }
  if (narrow && (IsSmall(*p) || !IsOwn(attrs.kind, *p, x.dtype))) {
    DeclineToBind("too few results or channels of bfloat16");
    return std::nullopt;
  }
  return *std::move(p);
}

StatusOr<std::unique_ptr<BoundKernel>> PoolState::Bind(const BindContext& context) {
  const BoundTensor& x = context.inputs[0];
  const auto p = ProblemOf(context);
  if (!p || x.dtype != context.outputs[0].dtype) return nullptr;
  std::optional<ZeroBorders> borders;
  if (zeros) borders.emplace(*p);
  // What is bound calls compute(inputs, outputs, scratch).
  const auto bind = [&](auto compute, size_t scratch_bytes) {
    const auto run = [compute, borders, dtype = x.dtype](
                         const void* const* inputs, void* const* outputs, void* scratch) -> Status {
      RETURN_IF_ERROR(compute(inputs[0], outputs[0], scratch));
      if (borders) borders->Apply(dtype, outputs[0]);
      return OkStatus();
    };
    return BindCall(run, {}, scratch_bytes);
  };
  // What the library does not take or have; bfloat16 is our own.
  const auto bind_plain = [&] {
    return bind(
        [kind = attrs.kind, p = *p, dtype = x.dtype](const void* from, void* to,
                                                     void* /*scratch*/) {
          nn::PoolReference(kind, p, dtype, from, to);
          return OkStatus();
        },
        0);
  };
  const bool fast =
      Has(Types(Dtype::kFloat, Dtype::kBfloat16, Dtype::kInt8, Dtype::kUint8), x.dtype);
  if (!fast || IsSmall(*p)) return bind_plain();
  if (IsOwn(attrs.kind, *p, x.dtype)) {
    return bind(
        [pool = nn::MaxPool(*p), dtype = x.dtype](const void* from, void* to, void* /*scratch*/) {
          RunOwn(pool, dtype, from, to);
          return OkStatus();
        },
        0);
  }
  ASSIGN_OR_RETURN(const onednn::Plan plan, PoolPlan(*this, attrs.kind, *p, x.dtype, x.shape));
  if (plan == nullptr) return bind_plain();
  return bind(
      [plan](const void* from, void* to, void* scratch) {
        const void* tensors[] = {from, to};
        return plan->Run(tensors, scratch);
      },
      plan->scratch_bytes());
}

// Runs the pool in the library where that pays and the library has code. Else a float pool runs in
// plain loops, and any other is UNIMPLEMENTED.
Status PoolFast(PoolState& state, nn::PoolKind kind, const nn::PoolProblem& p, const Tensor& x,
                bool cacheable, Tensor* out, Allocator* allocator) {
  const auto plain = [&]() -> Status {
    if (x.dtype() != Dtype::kFloat) return Unimplemented("no pool of ", DtypeName(x.dtype()));
    nn::PoolReference(kind, p, x.dtype(), x.raw(), out->raw());
    return OkStatus();
  };
  if (IsSmall(p)) return plain();
  if (IsOwn(kind, p, x.dtype())) {
    RunOwn(nn::MaxPool(p), x.dtype(), x.raw(), out->raw());
    return OkStatus();
  }
  if (!cacheable) return plain();
  ASSIGN_OR_RETURN(const onednn::Plan plan, PoolPlan(state, kind, p, x.dtype(), x.shape()));
  if (plan == nullptr) return plain();
  const void* tensors[] = {x.raw(), out->raw()};
  return plan->Run(tensors, allocator);
}

// A maximum over an image begins with the type's lowest number, so that it never is -inf. What was
// computed in float began with float's, which narrow types round to -inf.
void StartAtLowest(Tensor* out) {
  // The bits of -inf less one: of all numbers, what comes next.
  const uint16_t infinity = out->dtype() == Dtype::kHalf ? 0xFC00 : 0xFF80;
  auto* y = static_cast<uint16_t*>(out->raw());
  std::replace(y, y + out->num_elements(), infinity, static_cast<uint16_t>(infinity - 1));
}

// `cacheable`: the window is the node's own, so that a primitive can be kept by the input's shape.
Status RunPoolOf(OpContext& ctx, const nn::PoolAttrs& attrs, bool cacheable) {
  auto& state = ctx.state<PoolState>();
  const Tensor& x = ctx.input(0);
  ASSIGN_OR_RETURN(const nn::PoolProblem p, nn::MakePoolProblem(attrs, x.shape()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  if (out->num_elements() == 0) return OkStatus();
  Allocator* allocator = ctx.step().allocator;
  const Dtype dtype = x.dtype();
  const auto fast = [&](const Tensor& from, Tensor* to) -> Status {
    RETURN_IF_ERROR(PoolFast(state, attrs.kind, p, from, cacheable, to, allocator));
    if (state.zeros) ZeroBorders(p).Apply(to->dtype(), to->raw());
    return OkStatus();
  };
  const bool tries = dtype == Dtype::kBfloat16
                         ? IsOwn(attrs.kind, p, dtype) || Bfloat16IsNative()
                         : Has(Types(Dtype::kFloat, Dtype::kInt8, Dtype::kUint8), dtype);
  if (tries) {
    const Status s = fast(x, out);
    if (!absl::IsUnimplemented(s)) return s;
  }
  if (Has(kHalfTypes, dtype)) {
    RETURN_IF_ERROR(ViaFloat({&x}, out, allocator, [&](std::span<const Tensor> in, Tensor* to) {
      return fast(in[0], to);
    }));
    if (attrs.kind == nn::PoolKind::kMax && attrs.spatial == 2 && p.depth_window == 1) {
      StartAtLowest(out);
    }
    return OkStatus();
  }
  nn::PoolReference(attrs.kind, p, dtype, x.raw(), out->raw());
  return OkStatus();
}

Status RunPool(OpContext& ctx) { return RunPoolOf(ctx, ctx.state<PoolState>().attrs, true); }

Status RunMaxPoolV2(OpContext& ctx) {
  nn::PoolAttrs attrs = ctx.state<PoolState>().attrs;
  for (const int i : {1, 2}) {
    const Tensor& t = ctx.input(i);
    const auto values = t.flat<int32_t>();
    (i == 1 ? attrs.ksize : attrs.strides).assign(values.begin(), values.end());
  }
  RETURN_IF_ERROR(nn::CheckPoolWindow(attrs));
  return RunPoolOf(ctx, attrs, false);
}

Status RunMaxPoolWithArgmax(OpContext& ctx) {
  auto& state = ctx.state<PoolState>();
  const Tensor& x = ctx.input(0);
  ASSIGN_OR_RETURN(nn::PoolProblem p, nn::MakePoolProblem(state.attrs, x.shape()));
  if (x.num_elements() == 0) return InvalidArgument("tensor_in must not be empty (2)");
  if (p.depth_window > 1) {
    return Unimplemented("MaxPoolWithArgmax does not pool over the depth dimension");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  ASSIGN_OR_RETURN(Tensor * argmax, ctx.Allocate(1, p.output));
  if (!Has(kHalfTypes, x.dtype())) {
    nn::MaxPoolArgmax(p, state.batch_in_index, x, out, argmax);
    return OkStatus();
  }
  return ViaFloat({&x}, out, ctx.step().allocator, [&](std::span<const Tensor> in, Tensor* to) {
    nn::MaxPoolArgmax(p, state.batch_in_index, in[0], to, argmax);
    return OkStatus();
  });
}

StatusOr<std::unique_ptr<KernelState>> MakePoolState(const Node& node, nn::PoolKind kind,
                                                     int spatial) {
  auto state = std::make_unique<PoolState>();
  ASSIGN_OR_RETURN(state->attrs, nn::ParsePoolAttrs(node, kind, spatial));
  state->batch_in_index = node.Bool("include_batch_in_index");
  state->may_pad = (node.Is("MaxPool") || node.Is("MaxPool3D")) &&
                   Has(Types(Dtype::kFloat, Dtype::kBfloat16), node.Type("T"));
  return state;
}
StatusOr<std::unique_ptr<KernelState>> PrepareMaxPool(const Node& node) {
  return MakePoolState(node, nn::PoolKind::kMax, 2);
}
StatusOr<std::unique_ptr<KernelState>> PrepareAvgPool(const Node& node) {
  return MakePoolState(node, nn::PoolKind::kAvg, 2);
}
StatusOr<std::unique_ptr<KernelState>> PrepareMaxPool3D(const Node& node) {
  return MakePoolState(node, nn::PoolKind::kMax, 3);
}
StatusOr<std::unique_ptr<KernelState>> PrepareAvgPool3D(const Node& node) {
  return MakePoolState(node, nn::PoolKind::kAvg, 3);
}

constexpr DtypeSet kPoolFast = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16);
constexpr DtypeSet kPoolPlain = kIntTypes | Types(Dtype::kDouble);

constexpr Kernel kPoolTable[] = {
    {"MaxPool", "T", kPoolFast, "onednn:max_pool", RunPool, PrepareMaxPool},
    {"MaxPool", "T", kPoolPlain, "reference:max_pool", RunPool, PrepareMaxPool},
    {"MaxPoolV2", "T", kPoolFast | kPoolPlain, "reference:max_pool", RunMaxPoolV2, PrepareMaxPool},
    {"MaxPool3D", "T", kPoolFast, "onednn:max_pool3d", RunPool, PrepareMaxPool3D},
    {"AvgPool", "T", kPoolFast, "onednn:avg_pool", RunPool, PrepareAvgPool},
    {"AvgPool", "T", Types(Dtype::kDouble), "reference:avg_pool", RunPool, PrepareAvgPool},
    {"AvgPool3D", "T", kPoolFast, "onednn:avg_pool3d", RunPool, PrepareAvgPool3D},
    {"AvgPool3D", "T", Types(Dtype::kDouble), "reference:avg_pool3d", RunPool, PrepareAvgPool3D},
    {"MaxPoolWithArgmax", "T", kPoolFast | kPoolPlain, "reference:max_pool_argmax",
     RunMaxPoolWithArgmax, PrepareMaxPool},
};

}  // namespace

extern constinit const std::span<const Kernel> kPoolKernels = kPoolTable;

}  // namespace smelt
