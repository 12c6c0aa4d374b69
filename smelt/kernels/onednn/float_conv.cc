#include "smelt/kernels/onednn/float_conv.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "smelt/base/cache_size.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/line_kernel.h"
#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/nn/depthwise.h"
#include "smelt/kernels/nn/planar_conv.h"
#include "smelt/kernels/nn/via_floats.h"
#include "smelt/kernels/onednn/activation_behind.h"
#include "smelt/kernels/onednn/bound_layer.h"
#include "smelt/kernels/onednn/conv_layout.h"
#include "smelt/kernels/onednn/features.h"
#include "smelt/kernels/onednn/fused_post_ops.h"
#include "smelt/kernels/onednn/keep_nan.h"

namespace smelt::onednn {
namespace {

// Are tiles of our own faster than the library? Timed over the layers of MobileNetV2, V3 and
// EfficientNet (Zen 5): where the window is one pixel, and either sums are long enough or there is
// an exponential to compute, which the library is slow at; and depthwise convolutions.
bool WantsTiles(const nn::ConvProblem& p, const FusedOps& ops) {
  if (p.groups > 1) return true;
  constexpr int64_t kLeast = 48;
  // One row reads each weight once: there is nothing to gain from packing.
  constexpr int64_t kMostOfRow = int64_t{1} << 19;
  if (std::ranges::any_of(p.kernel, [](int64_t size) { return size != 1; })) {
    // Without AVX-512 the library's loops over many channels reach half of what they reach over few
    // (Zen 3, windows of 3x3 and 5x5 pixels).
    constexpr int64_t kLeastIn = 32, kLeastOut = 8;
    // Of few windows that stand apart the library's loops are no faster, and made when first run.
    constexpr int64_t kFewWindows = 1024;
    const int64_t windows = p.output.num_elements() / p.out_depth;
    const bool apart = std::ranges::any_of(p.strides, [](int64_t s) { return s != 1; });
    if (apart && windows <= kFewWindows && p.in_depth >= kLeast && p.out_depth >= kLeast) {
      return true;
    }
    return Isa().level == IsaLevel::kAvx2 && p.in_depth >= kLeastIn && p.out_depth >= kLeastOut;
  }
  const int64_t pixels = p.output.num_elements() / p.out_depth;
  if (pixels == 1) return p.in_depth <= kMostOfRow / p.out_depth;
  const bool exponential = std::ranges::any_of(ops.steps, [](const FusedStep& s) {
    return s.kind == FusedStep::Kind::kActivation && s.activation != Activation::kRelu &&
           s.activation != Activation::kRelu6 && s.activation != Activation::kLeakyRelu;
  });
  return exponential || (p.in_depth >= kLeast && p.out_depth >= kLeast);
}

// Is what a window of one pixel reads or makes more than half a core's cache? By lines, of which
// that cache holds what is between layers (compile/join_lines.h), tiles are as fast as any.
bool MayGoByLines(const nn::ConvProblem& p) {
  constexpr int64_t kLeast = 8;  // channels
  if (p.spatial() != 2 || p.in_depth < kLeast || p.out_depth < kLeast) return false;
  for (size_t d = 0; d < 2; ++d) {
    if (p.kernel[d] != 1 || p.strides[d] != 1 || p.in[d] != p.out[d]) return false;
  }
  const int64_t pixels = p.output.num_elements() / p.out_depth;
  return pixels * std::max(p.in_depth, p.out_depth) * int64_t{sizeof(float)} >
         NearCacheBytes(int64_t{1} << 20) / 2;
}

// A kernel whose lines another one makes.
class WithLines final : public BoundKernel {
 public:
  WithLines(std::unique_ptr<BoundKernel> whole, std::unique_ptr<BoundKernel> by_lines)
      : whole_(std::move(whole)), by_lines_(std::move(by_lines)) {}
  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    return whole_->Run(inputs, outputs, scratch);
  }
  size_t scratch_bytes() const override { return whole_->scratch_bytes(); }
  bool may_overwrite(int i) const override { return whole_->may_overwrite(i); }
  const LineKernel* lines() const override { return by_lines_->lines(); }

 private:
  const std::unique_ptr<BoundKernel> whole_, by_lines_;
};

// The library (3.x, with AMX) crashes where a window of bfloat16 numbers sees padding alone.
bool RunsInBfloat16(const nn::ConvProblem& p) {
  return Bfloat16IsNative() && !p.has_empty_window();
}

// Does the library multiply by zero what is not the window's? It pads sums of bfloat16 numbers to
// whole groups, with zeros for weights but with whatever lies behind a pixel, where an infinity
// makes NaN.
bool ReadsBeyondWindow(const nn::ConvProblem& p) {
  return p.in_depth / p.groups % 2 != 0 ||
         std::ranges::any_of(p.kernel, [](int64_t size) { return size != 1; });
}

}  // namespace

void ConvPlain(const nn::ConvProblem& p, const Tensor& x, const Tensor& w, Tensor* out) {
  if (x.num_elements() > 0) {
    nn::ConvReference(p, x, w, out);
  } else {
    // No channels, or nothing but padding.
    std::memset(out->raw(), 0, out->bytes());
  }
}

StatusOr<FloatConv::FoldedOnce::Ref> FloatConv::Fold(const FusedOps& ops, nn::FusedArgs args) {
  using Kind = FusedStep::Kind;
  const size_t at = !ops.empty() && ops.steps[0].kind == Kind::kBias ? 1 : 0;
  if (!constant_args_ || ops.steps.size() <= at || ops.steps[at].kind != Kind::kBatchNorm) {
    return nullptr;
  }
  const auto make = [&]() -> StatusOr<Folded> {
    Folded f;
    const nn::FusedArgs four = args.subspan(ops.steps[at].arg, 4);
    const int64_t depth = four[0]->num_elements();
    f.factors.resize(depth);
    ASSIGN_OR_RETURN(f.bias, Tensor::Make(Dtype::kFloat, Shape({depth}), HeapAllocator()));
    float* bias = f.bias.data<float>();
    nn::FoldBatchNorm(ops, four, f.factors.data(), bias);
    if (at == 1) {
      const float* before = args[0]->data<float>();
      for (int64_t c = 0; c < depth; ++c) bias[c] += before[c] * f.factors[c];
    }
    f.skipped = ops.steps[at].arg + 4;
    return f;
  };
  return folded_.FindOrMake([](const Folded&) { return true; }, make);
}

FusedOps FloatConv::StepsAfter(const Folded& folded, const FusedOps& ops) {
  using Kind = FusedStep::Kind;
  FusedOps after = ops;
  if (ops.steps[0].kind == Kind::kBias) after.steps.erase(after.steps.begin());
  after.steps[0] = {Kind::kBias};
  for (size_t i = 1; i < after.steps.size(); ++i) after.steps[i].arg -= folded.skipped - 1;
  after.num_args -= folded.skipped - 1;
  return after;
}

Status FloatConv::Run(const nn::ConvProblem& p, const Tensor& x, const Tensor& w,
                      bool constant_filter, const FusedOps& fused_ops, nn::FusedArgs args,
                      Tensor* out, Allocator* allocator) {
  const LayerCall whole{x, w, constant_filter, fused_ops, args, out, allocator};
  if (x.dtype() == Dtype::kFloat) return RunInType(p, whole);
  const bool empty = x.num_elements() == 0 || w.num_elements() == 0;
  const bool natively =
      x.dtype() == Dtype::kBfloat16 && RunsInBfloat16(p) && !empty &&
      (!ReadsBeyondWindow(p) || nn::AllModest(x.raw(), x.num_elements(), x.dtype()));
  return narrow_.Run(whole, natively, [&](const LayerCall& call) { return RunInType(p, call); });
}

StatusOr<Plan> FloatConv::PlanOf(const nn::ConvProblem& p, const Shape& x, const Shape& w,
                                 Dtype dtype, const FusedOps& ops) {
  PlanKey key = MakePlanKey({&x, &w});
  key.push_back(static_cast<int64_t>(dtype));
  // XLA's ops take the window from inputs, so that it may differ between calls.
  for (const Dims* d : {&p.strides, &p.dilations, &p.pad_before, &p.pad_after}) {
    key.insert(key.end(), d->begin(), d->end());
  }
  // A program may do more in the same pass than the node alone.
  AppendSteps(ops, &key);
  return plans_.Get(key, [&] {
    const ConvLayouts l = MakeConvLayouts(p, dtype);
    const auto fused = MakeFusedPostOps(ops, l.dst, 1);
    Layout bias;
    if (fused.bias) bias = Layout::Dense(Dtype::kFloat, std::array<int64_t, 1>{p.out_depth});
    return Primitive::Convolution(l.src, l.weights, bias, l.dst, ConvWindow(p), fused.post_ops);
  });
}

StatusOr<std::unique_ptr<BoundKernel>> FloatConv::Bind(const nn::ConvProblem& p,
                                                       const BindContext& context,
                                                       const FusedOps& fused_ops) {
  const BoundTensor& x = context.inputs[0];
  const BoundTensor& w = context.inputs[1];
  const Dtype dtype = context.outputs[0].dtype;
  const bool takes = dtype == Dtype::kFloat || (dtype == Dtype::kBfloat16 && RunsInBfloat16(p));
  if (!takes || x.dtype != dtype || w.dtype != dtype || w.constant == nullptr ||
      x.shape.num_elements() == 0 || w.shape.num_elements() == 0) {
    return DeclineToBind(w.constant == nullptr
                             ? "the filter is no constant"
                             : "an input is no float, or empty, or a window sees padding alone");
  }
  auto kept = std::make_shared<std::pair<LayerArguments, FoldedOnce::Ref>>();
  auto& [arguments, folded] = *kept;
  ASSIGN_OR_RETURN(const bool fit, MakeLayerArguments(fused_ops, context, dtype, &arguments));
  if (!fit) return nullptr;
  std::vector<LayerArgument> args = arguments.args;
  FusedOps ops = fused_ops;
  if (constant_args_) {
    // Tensors that are added whole are not read to fold.
    ASSIGN_OR_RETURN(folded, Fold(fused_ops, arguments.values));
  }
  std::span<const float> factors;
  if (folded != nullptr) {
    ops = StepsAfter(*folded, fused_ops);
    factors = folded->factors;
    args.erase(args.begin(), args.begin() + folded->skipped);
    args.insert(args.begin(), LayerArgument{folded->bias.raw(), -1});
  }
  const bool matrices = nn::MatrixBfloat16::Suits(p);
  if (dtype == Dtype::kBfloat16 && (matrices || nn::NarrowProduct::Suits(p))) {
    const TileOperands operands = OperandsOfTiles(ops, args);
    const auto bind = [&](const FusedOps& steps) {
      return matrices
                 ? matrices_.Bind(p, *w.constant, factors, operands.bias, operands.addend, steps)
                 : narrow_product_.Bind(p, *w.constant, factors, operands.bias, operands.addend,
                                        steps);
    };
    ASSIGN_OR_RETURN(auto own, BindBeforeExponential(ops, p.output.num_elements(), bind));
    if (own != nullptr) return own;
  }
  const bool planar = nn::PlanarConv::Suits(p);
  const bool streams = dtype == Dtype::kFloat && nn::StreamedConv::Suits(p);
  const auto filter_is_modest = [&] {
    return modest_filter_(*w.constant) &&
           nn::AllModest(factors.data(), static_cast<int64_t>(factors.size()));
  };
  const bool winograd = dtype == Dtype::kFloat && nn::WinogradConv::Suits(p) && filter_is_modest();
  const bool tiles = dtype == Dtype::kFloat && WantsTiles(p, ops);
  std::unique_ptr<BoundKernel> by_lines;
  // Loops of our own multiply the zeros beside an image, which others leave out.
  const auto borders_stay = [&] { return !p.is_padded() || filter_is_modest(); };
  if ((planar || streams || winograd || tiles || p.groups > 1) && borders_stay()) {
    const TileOperands operands = OperandsOfTiles(ops, args);
    const float* bias = operands.bias;
    const int addend = operands.addend;
    if (planar) {
      ASSIGN_OR_RETURN(const Tensor filter, wide_filter_.Get(*w.constant, true, HeapAllocator()));
      ASSIGN_OR_RETURN(auto own, nn::PlanarConv::Bind(p, filter, factors, bias, addend, ops));
      if (own != nullptr && dtype == Dtype::kFloat) return own;
      if (own != nullptr) {
        const int64_t results = p.output.num_elements();
        std::vector<nn::WidenedInput> wide = {{0, x.shape.num_elements()}};
        if (addend >= 0) wide.push_back({addend, results});
        return nn::ViaFloats(std::move(own), std::move(wide), results);
      }
    }
    if (p.groups > 1) {
      ASSIGN_OR_RETURN(auto own, nn::BindDepthwise(p, *w.constant, factors, bias, ops));
      if (own != nullptr) return own;
    }
    if (streams) {
      ASSIGN_OR_RETURN(auto own, streamed_.Bind(p, *w.constant, factors, bias, addend, ops));
      if (own != nullptr) return own;
    }
    const auto tiled = [this, p, filter = *w.constant, factors, bias, addend, ops, kept] {
      return tiled_.Bind(p, filter, factors, bias, addend, ops);
    };
    if (winograd) {
      ASSIGN_OR_RETURN(auto own, winograd_.Bind(p, *w.constant, factors, bias, addend, ops, tiled));
      if (own != nullptr) return own;
    }
    if (tiles) {
      ASSIGN_OR_RETURN(auto own, tiled());
      if (own != nullptr) return own;
    }
  } else if (dtype == Dtype::kFloat && MayGoByLines(p)) {
    const TileOperands operands = OperandsOfTiles(ops, args);
    ASSIGN_OR_RETURN(by_lines,
                     tiled_.Bind(p, *w.constant, factors, operands.bias, operands.addend, ops));
  }
  const auto with_lines = [&](std::unique_ptr<BoundKernel> whole) -> std::unique_ptr<BoundKernel> {
    if (whole == nullptr || by_lines == nullptr) return whole;
    return std::make_unique<WithLines>(std::move(whole), std::move(by_lines));
  };
  const size_t clamp = FirstClamp(ops);
  if (clamp + 1 < ops.steps.size()) {
    return DeclineToBind("oneDNN's clamp, which makes 0 of NaN, would not be the last step");
  }
  const auto bind = [this, p, shape = x.shape, filter = *w.constant, dtype, factors, args,
                     kept](const FusedOps& steps) -> StatusOr<std::unique_ptr<BoundKernel>> {
    ASSIGN_OR_RETURN(const Plan plan, PlanOf(p, shape, filter.shape(), dtype, steps));
    if (plan == nullptr) return nullptr;
    ASSIGN_OR_RETURN(auto weights, plans_.Weights(plan, filter, true, HeapAllocator(), factors));
    return BindLayer(plan, std::move(weights), steps, args, kept);
  };
  const bool beyond = dtype == Dtype::kBfloat16 && ReadsBeyondWindow(p);
  const bool clamps = clamp < ops.steps.size();
  const int64_t results = p.output.num_elements();
  if (!clamps && !beyond) {
    ASSIGN_OR_RETURN(auto layer, dtype == Dtype::kBfloat16
                                     ? BindBeforeExponential(ops, results, bind)
                                     : bind(ops));
    return with_lines(std::move(layer));
  }
  // Weights are looked at before they are packed: their pages are given back then.
  std::vector<WatchedInput> watched = {{0, x.shape.num_elements(), dtype}};
  bool modest = filter_is_modest();
  for (size_t i = 0; i < args.size(); ++i) {
    const LayerArgument& arg = args[i];
    const int64_t n = arg.input < 0
                          ? p.out_depth
                          : context.inputs[static_cast<size_t>(arg.input)].shape.num_elements();
    const Dtype type = ArgumentType(ops, i, dtype);
    if (arg.constant != nullptr) {
      modest = modest && nn::AllModest(arg.constant, n, type);
    } else {
      watched.push_back({arg.input, n, type});
    }
  }
  if (!modest) return DeclineToBind("oneDNN would lose or make a NaN, which a constant may give");
  if (!beyond) {
    ASSIGN_OR_RETURN(auto layer, bind(ops));
    if (layer == nullptr) return layer;
    return with_lines(KeepNan(std::move(layer), std::move(watched), ops.steps[clamp].activation,
                              results, dtype,
                              [bind, before = StepsBefore(ops, clamp)] { return bind(before); }));
  }
  const TileOperands operands = OperandsOfTiles(ops, args);
  if (!nn::TiledConv::Takes(p, operands.bias, ops)) {
    return DeclineToBind("oneDNN may make a NaN of an infinity, and no tiles do the same");
  }
  ASSIGN_OR_RETURN(auto layer, BindBeforeExponential(ops, results, bind));
  if (layer == nullptr) return layer;
  std::vector<nn::WidenedInput> wide = {{0, x.shape.num_elements()}};
  if (operands.addend >= 0) wide.push_back({operands.addend, results});
  const auto in_floats = [this, p, filter = *w.constant, factors, operands, ops, wide, results,
                          kept]() -> StatusOr<std::unique_ptr<BoundKernel>> {
    ASSIGN_OR_RETURN(const Tensor floats, wide_filter_.Get(filter, true, HeapAllocator()));
    ASSIGN_OR_RETURN(auto own,
                     tiled_.Bind(p, floats, factors, operands.bias, operands.addend, ops));
    return own == nullptr ? nullptr : nn::ViaFloats(std::move(own), wide, results);
  };
  return WhileModest(std::move(layer), std::move(watched), in_floats);
}

Status FloatConv::RunInType(const nn::ConvProblem& p, const LayerCall& call) {
  const Tensor& x = call.x;
  const Tensor& w = call.w;
  Tensor* out = call.out;
  Allocator* allocator = call.allocator;
  const Dtype dtype = x.dtype();
  const FusedOps* ops = &call.fused;
  FusedOps shorter;
  FoldedOnce::Ref folded;
  nn::WidenedArgs some_args;
  if (call.constant_w) {
    ASSIGN_OR_RETURN(folded, Fold(call.fused, call.args));
  }
  nn::FusedArgs plan_args = call.args;
  if (folded != nullptr) {
    shorter = StepsAfter(*folded, call.fused);
    ops = &shorter;
    some_args.push_back(&folded->bias);
    some_args.insert(some_args.end(), call.args.begin() + folded->skipped, call.args.end());
    plan_args = some_args;
  }
  const auto factors =
      folded != nullptr ? std::span<const float>(folded->factors) : std::span<const float>();
  // What the library would lose a NaN in is done behind it.
  const size_t kept =
      StepsThatKeepNan(*ops, x, w, call.constant_w ? &modest_filter_ : nullptr, factors, plan_args);
  if (dtype != Dtype::kFloat && kept < ops->steps.size()) {
    return Unimplemented("a clamp of ", DtypeName(dtype), " that keeps NaN");
  }
  const FusedOps behind = StepsFrom(*ops, kept);
  const FusedOps inside = StepsBefore(*ops, kept);
  Plan plan;
  // oneDNN takes no empty tensors; what they give is zeros.
  if (x.num_elements() > 0 && w.num_elements() > 0) {
    ASSIGN_OR_RETURN(plan, PlanOf(p, x.shape(), w.shape(), dtype, inside));
  }
  if (plan == nullptr) {
    if (dtype != Dtype::kFloat) return Unimplemented("no convolution of ", DtypeName(dtype));
    ConvPlain(p, x, w, out);
    nn::ApplyFusedOps(call.fused, call.args, p.channels_last ? p.output.rank() - 1 : 1, out);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const auto weights,
                   plans_.Weights(plan, w, call.constant_w, allocator, factors));
  ASSIGN_OR_RETURN(const auto pointers, FusedPointers::Make(inside, plan_args, allocator));
  RETURN_IF_ERROR(plan->Run(pointers.Tensors(x.raw(), weights->raw(), out->raw()), allocator));
  if (!behind.empty()) {
    nn::ApplyFusedOps(behind, plan_args, p.channels_last ? p.output.rank() - 1 : 1, out);
  }
  return OkStatus();
}

}  // namespace smelt::onednn
