// Int8 layers bound to their shapes: the library's primitive, or our depthwise loops, with what
// follows the layer and the way to int8 in the same pass. Where the processor multiplies no bytes,
// products of pairs of 16 bits.
#include <algorithm>
#include <array>
#include <bit>

#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/nn/isa_activation.h"
#include "smelt/kernels/nn/pairs_int8.h"
#include "smelt/kernels/onednn/bound_layer.h"
#include "smelt/kernels/onednn/conv_layout.h"
#include "smelt/kernels/onednn/features.h"
#include "smelt/kernels/onednn/fused_post_ops.h"
#include "smelt/kernels/onednn/int8_layer.h"

namespace smelt::onednn {
namespace {

// The layer's own steps, then those that follow; the argument of step 0, the bias, is input 2.
struct Int8Steps {
  FusedOps ops;
  std::vector<LayerArgument> args;
  int whole = -1;  // the step that adds a whole int8 tensor
  Dtype whole_type = Dtype::kInt8;
};

// int8, or int8 stored unsigned (kernels/unsigned_int8.h).
bool IsInt8(Dtype t) { return t == Dtype::kInt8 || t == Dtype::kUint8; }
// What is added to a number where it is stored as t.
int32_t StoredMore(Dtype t) { return t == Dtype::kUint8 ? 128 : 0; }

// nullopt: an operand has another size than the library takes.
std::optional<Int8Steps> StepsOfInt8(const Int8State& s, const BindContext& context,
                                     const FusedOps& then, int64_t depth, const Shape& output) {
  using Kind = FusedStep::Kind;
  Int8Steps out;
  out.ops.leaky_alpha = then.leaky_alpha;
  const auto fits = [&](size_t input, bool whole) {
    if (input >= context.inputs.size()) return false;
    const BoundTensor& t = context.inputs[input];
    if (whole && IsInt8(t.dtype)) {
      if (out.whole >= 0) return false;
      out.whole = static_cast<int>(out.ops.steps.size());
      out.whole_type = t.dtype;
    } else if (t.dtype != (input == 2 ? Dtype::kInt32 : Dtype::kFloat)) {
      return false;
    }
    return t.shape.num_elements() == (whole ? output.num_elements() : depth);
  };
  const auto add = [&](Kind kind, size_t input) {
    if (!fits(input, kind == Kind::kAdd)) return false;
    const Tensor* value = context.inputs[input].constant;
    out.args.push_back({value != nullptr ? value->raw() : nullptr, static_cast<int>(input)});
    out.ops.steps.push_back({.kind = kind, .arg = out.ops.num_args++});
    return true;
  };
  if (!add(Kind::kBias, 2)) return std::nullopt;
  if (s.addend && (!(context.inputs[3].shape == output) || !add(Kind::kAdd, 3))) {
    return std::nullopt;
  }
  if (s.activation == "Relu" || s.activation == "Relu6") {
    out.ops.steps.push_back(
        {.activation = s.activation == "Relu" ? Activation::kRelu : Activation::kRelu6});
  }
  const size_t own = s.addend ? 4 : 3;
  for (const FusedStep& step : then.steps) {
    if (step.kind == Kind::kActivation) {
      out.ops.steps.push_back(step);
    } else if (step.kind == Kind::kBatchNorm || !add(step.kind, own + step.arg)) {
      return std::nullopt;
    }
  }
  return out;
}

PostOp ToInt8(PostOp::Kind kind, float alpha, float beta) {
  PostOp p;
  p.kind = kind;
  p.alpha = alpha;
  p.beta = beta;
  return p;
}

void AppendKey(const std::vector<PostOp>& ops, Dtype dst, PlanKey* key) {
  key->push_back(static_cast<int64_t>(dst));
  for (const PostOp& p : ops) {
    key->push_back(static_cast<int64_t>(p.kind));
    for (const float f : {p.alpha, p.beta, p.operand_scale}) {
      key->push_back(std::bit_cast<int32_t>(f));
    }
    key->push_back(p.operand_zero);
    if (!p.takes_tensor()) continue;
    key->push_back(static_cast<int64_t>(p.operand.dtype));
    key->insert(key->end(), p.operand.dims.begin(), p.operand.dims.end());
  }
}

// Is all that is done to the sums, beside scales and bias, x * sigmoid(x)?
bool IsSwish(const Int8Steps& steps, const BindContext& context) {
  return steps.ops.steps.size() == 2 && steps.ops.steps[1].kind == FusedStep::Kind::kActivation &&
         steps.ops.steps[1].activation == Activation::kSilu &&
         context.inputs[2].constant != nullptr;
}

// to == nullptr: a float result. `more`: what is added to a number where it is stored.
SwishInt8Steps SwishStepsOf(const QuantizedResult* to, int32_t more) {
  SwishInt8Steps out;
  if (to == nullptr) return out;
  out.bytes = true;
  out.factor = 1 / to->scale;
  out.zero = to->zero + static_cast<float>(more);
  out.low = to->low + static_cast<float>(more);
  out.high = to->high + static_cast<float>(more);
  return out;
}

// Our depthwise loops with the start of their sums at hand. `swish`: not nullptr: what is done to
// them in the place of the layer's own way to int8.
StatusOr<std::unique_ptr<BoundKernel>> BindDepthwise(Int8State& s, const nn::ConvProblem& p,
                                                     const BindContext& context,
                                                     const SwishInt8Steps* swish, Dtype stored_as) {
  const auto make = [&]() -> StatusOr<nn::DepthwiseInt8> {
    return nn::DepthwiseInt8(p, *context.inputs[1].constant, s.scales, s.x_zero,
                             {s.zero, s.low, s.high});
  };
  ASSIGN_OR_RETURN(const auto depthwise,
                   s.depthwise.FindOrMake([](const auto&) { return true; }, make));
  const nn::DepthwiseInt8::Stored stored{context.inputs[0].dtype == Dtype::kUint8,
                                         stored_as == Dtype::kUint8};
  const std::optional<SwishInt8Steps> steps =
      swish != nullptr ? std::optional(*swish) : std::nullopt;
  const auto* bias = context.inputs[2].constant->data<int32_t>();
  return BindCall(
      [depthwise, p, stored, steps, start = depthwise->StartOf(bias, p.in_depth)](
          const void* const* inputs, void* const* outputs, void* scratch) {
        depthwise->Run(p, inputs[0], start.data(), outputs[0], static_cast<int8_t*>(scratch),
                       stored, steps ? &*steps : nullptr);
      },
      {}, nn::DepthwiseInt8::padding_bytes(p));
}

// How the layer reads its input as rows of bytes; nullopt: not so.
std::optional<nn::SwishInt8::Rows> RowsOfInt8(const Int8State& s, const Int8Geometry& g) {
  nn::SwishInt8::Rows rows;
  if (s.product) {
    rows.columns = g.matrices.problem.m;
    rows.step = g.matrices.problem.k;
    return rows;
  }
  const nn::ConvProblem& p = g.window;
  const auto all = [](const Dims& dims, int64_t n) {
    return std::ranges::all_of(dims, [n](int64_t d) { return d == n; });
  };
  if (!p.channels_last || p.spatial() != 2 || p.groups != 1 || !all(p.kernel, 1) ||
      !all(p.pad_before, 0) || !all(p.pad_after, 0)) {
    return std::nullopt;
  }
  rows.images = p.batch;
  rows.image_lines = p.out[0];
  rows.columns = p.out[1];
  rows.step = p.strides[1] * p.in_depth;
  rows.line = p.strides[0] * p.in[1] * p.in_depth;
  rows.image = p.in[0] * p.in[1] * p.in_depth;
  return rows;
}

// Channels of the input below which the library's tiles (AMX) gain less than its activation loses.
constexpr int64_t kSwishDepthBesideTiles = 64;

// Our loops for sums that only x * sigmoid(x) follows; nullptr where they do not do it.
StatusOr<std::unique_ptr<BoundKernel>> BindSwish(Int8State& s, const Int8Geometry& g,
                                                 const BindContext& context,
                                                 const SwishInt8Steps& steps) {
  const auto rows = RowsOfInt8(s, g);
  const int64_t depth = s.product ? g.matrices.problem.k : g.window.in_depth;
  if (!rows || depth % 4 != 0 || context.inputs[0].dtype != Dtype::kUint8 ||
      (MultipliesTiles() && depth > kSwishDepthBesideTiles)) {
    return nullptr;
  }
  const auto make = [&]() -> StatusOr<nn::SwishInt8> {
    return nn::SwishInt8(context.inputs[1].constant->data<int8_t>(), s.product && s.transpose_b,
                         depth, g.depth, s.scales, context.inputs[2].constant->data<int32_t>(),
                         s.x_zero + StoredMore(Dtype::kUint8));
  };
  ASSIGN_OR_RETURN(const auto swish, s.swish.FindOrMake([](const auto&) { return true; }, make));
  return BindCall(
      [swish, rows = *rows, steps](const void* const* inputs, void* const* outputs, void*) {
        swish->Run(rows, static_cast<const uint8_t*>(inputs[0]), steps, outputs[0]);
      });
}

// The steps behind the bias for nn::PairsInt8.
nn::PairsInt8Steps PairsStepsOf(const Int8State& s, const Int8Steps& steps,
                                const QuantizedResult* to) {
  using Step = nn::PairsInt8Steps::Step;
  nn::PairsInt8Steps out;
  out.scales = s.scales;
  out.alpha = steps.ops.leaky_alpha;
  for (size_t i = 1; i < steps.ops.steps.size(); ++i) {
    const FusedStep& step = steps.ops.steps[i];
    Step& next = out.steps.emplace_back();
    if (step.kind == FusedStep::Kind::kActivation) {
      next.act = nn::IsaActivation(step.activation);
      continue;
    }
    next.kind = step.kind == FusedStep::Kind::kBias  ? Step::Kind::kAddChannels
                : static_cast<int>(i) == steps.whole ? Step::Kind::kAddInt8
                                                     : Step::Kind::kAddFloats;
    const LayerArgument& arg = steps.args[static_cast<size_t>(step.arg)];
    next.constant = arg.constant;
    next.input = arg.input;
  }
  if (to == nullptr) return out;
  const auto flip_of = [](Dtype t) { return static_cast<uint8_t>(StoredMore(t)); };
  out.to_int8 = true;
  out.factor = 1 / to->scale;
  out.numbers.zero = to->zero;
  out.numbers.low = to->low;
  out.numbers.high = to->high;
  out.numbers.flip = flip_of(to->stored);
  out.numbers.addend_scale = to->addend_scale;
  out.numbers.addend_zero = static_cast<float>(to->addend_zero);
  out.numbers.addend_flip = flip_of(steps.whole_type);
  return out;
}

nn::Int8Window WindowOf(const Int8State& s, const Int8Geometry& g) {
  return s.product ? nn::Int8Window::OfRows(g.matrices.problem.m, g.matrices.problem.k, g.depth)
                   : nn::Int8Window::Of(g.window);
}

// Products of pairs of 16 bits; nullptr where floats are as good. `to` == nullptr: a float result.
StatusOr<std::unique_ptr<BoundKernel>> BindPairs(Int8State& s, const Int8Geometry& g,
                                                 const BindContext& context, const Int8Steps& steps,
                                                 const QuantizedResult* to) {
  if (context.inputs[2].constant == nullptr) return DeclineToBind("its bias is not constant");
  if (context.inputs[0].dtype != Dtype::kInt8) return nullptr;
  const nn::Int8Window window = WindowOf(s, g);
  if (const char* why = nn::WhyNoPairsInt8(window)) return DeclineToBind(why);
  const auto make = [&]() -> StatusOr<std::shared_ptr<const nn::PairsInt8Weights>> {
    return std::make_shared<const nn::PairsInt8Weights>(
        window, context.inputs[1].constant->data<int8_t>(), s.product && s.transpose_b);
  };
  ASSIGN_OR_RETURN(const auto weights, s.pairs.FindOrMake([](const auto&) { return true; }, make));
  nn::PairsInt8Steps all = PairsStepsOf(s, steps, to);
  all.bias = context.inputs[2].constant->data<int32_t>();
  auto layer = std::make_unique<const nn::PairsInt8>(*weights, window, s.x_zero, std::move(all));
  const size_t scratch = layer->scratch_bytes();
  return BindCall(
      [layer = std::move(layer)](const void* const* inputs, void* const* outputs, void* scratch) {
        layer->Run(inputs, outputs[0], scratch);
      },
      {}, scratch);
}

// Products of matrices of bytes; nullptr where they are not the way.
StatusOr<std::unique_ptr<BoundKernel>> BindMatrices(Int8State& s, const Int8Geometry& g,
                                                    const BindContext& context,
                                                    const Int8Steps& steps,
                                                    const QuantizedResult* to) {
  const bool flat = s.product || (g.window.channels_last && g.window.spatial() == 2);
  if (context.inputs[2].constant == nullptr || to == nullptr || !flat) return nullptr;
  const nn::Int8Window window = WindowOf(s, g);
  if (!nn::MatrixInt8::Suits(window)) return nullptr;
  nn::PairsInt8Steps all = PairsStepsOf(s, steps, to);
  all.bias = context.inputs[2].constant->data<int32_t>();
  const Dtype stored = context.inputs[0].dtype;
  return s.matrices.Bind(window, *context.inputs[1].constant, s.product && s.transpose_b,
                         s.x_zero + StoredMore(stored), stored == Dtype::kUint8, std::move(all));
}

// May what is done to the sums' result be done to a multiple of it as well?
bool StepsScale(const Int8Steps& steps) {
  for (size_t i = 1; i < steps.ops.steps.size(); ++i) {
    const FusedStep& step = steps.ops.steps[i];
    const bool relu =
        step.kind == FusedStep::Kind::kActivation && step.activation == Activation::kRelu;
    if (!relu && static_cast<int>(i) != steps.whole) return false;
  }
  return true;
}

// Are all operands of the steps numbers? int8 ones are.
bool StepsAreNumbers(const Int8Steps& steps) {
  for (size_t i = 1; i < steps.ops.steps.size(); ++i) {
    if (steps.ops.steps[i].kind != FusedStep::Kind::kActivation &&
        static_cast<int>(i) != steps.whole) {
      return false;
    }
  }
  return true;
}

// The steps, and the way to int8 where `to` is not nullptr. `factor` is what the library's scales
// are to be multiplied by.
std::vector<PostOp> Int8PostOps(const Int8Steps& steps, const Layout& dst,
                                const QuantizedResult* to, float* factor) {
  *factor = 1;
  if (to == nullptr) return MakeFusedPostOps(steps.ops, dst, 1).post_ops;
  Layout wide = dst;
  wide.dtype = Dtype::kFloat;
  const int32_t more = StoredMore(dst.dtype);
  const float zero = to->zero + static_cast<float>(more);
  const float low = to->low + static_cast<float>(more);
  const float high = to->high + static_cast<float>(more);
  const bool scaled = StepsScale(steps);
  if (scaled) *factor = 1 / to->scale;
  FusedOps ops = steps.ops;
  // Zero is the least result: the clamp does what the activation does.
  if (scaled && ops.steps.size() > 1 && ops.steps.back().kind == FusedStep::Kind::kActivation &&
      zero <= low) {
    ops.steps.pop_back();
  }
  std::vector<PostOp> out = MakeFusedPostOps(ops, wide, 1).post_ops;
  if (steps.whole >= 0) {
    PostOp& sum = out[static_cast<size_t>(steps.whole - 1)];  // the bias is none
    sum.operand.dtype = steps.whole_type;
    sum.operand_scale = to->addend_scale * *factor;
    sum.operand_zero = to->addend_zero + StoredMore(steps.whole_type);
  }
  const float scale = scaled ? 1 : 1 / to->scale;
  if (scale != 1 || zero != 0) out.push_back(ToInt8(PostOp::Kind::kLinear, scale, zero));
  // The library saturates what is a number.
  const float least = static_cast<float>(more - 128);
  if (!StepsAreNumbers(steps) || low != least || high != least + 255) {
    out.push_back(ToInt8(PostOp::Kind::kClip, low, high));
  }
  return out;
}

}  // namespace

StatusOr<Int8MatMulShapes> ShapesOfInt8MatMul(const Int8State& s, const Shape& x, const Shape& w) {
  const int summed = s.contracted;
  if (x.rank() <= summed || w.rank() <= summed) {
    return InvalidArgument("int8 product of shapes ", x.ToString(), " and ", w.ToString());
  }
  const int kept = x.rank() - summed, split = s.transpose_b ? w.rank() - summed : summed;
  const auto x_summed = x.dims().subspan(kept);
  const auto w_summed = s.transpose_b ? w.dims().subspan(split) : w.dims().subspan(0, split);
  if (!std::ranges::equal(x_summed, w_summed)) {
    return InvalidArgument("int8 product of shapes ", x.ToString(), " and ", w.ToString());
  }
  Int8MatMulShapes out;
  out.rows = Shape({x.Product(0, kept), x.Product(kept, x.rank())});
  out.matrix = Shape({w.Product(0, split), w.Product(split, w.rank())});
  ASSIGN_OR_RETURN(out.problem,
                   nn::MakeMatMulProblem(out.rows, out.matrix, false, s.transpose_b, false));
  Dims dims(x.dims().begin(), x.dims().begin() + kept);
  const auto channels = s.transpose_b ? w.dims().subspan(0, split) : w.dims().subspan(split);
  dims.insert(dims.end(), channels.begin(), channels.end());
  ASSIGN_OR_RETURN(out.output, Shape::Make(dims));
  return out;
}

std::optional<Int8Geometry> Int8State::GeometryOf(const BindContext& context) const {
  const BoundTensor& x = context.inputs[0];
  const BoundTensor& w = context.inputs[1];
  if (!constant_weights || w.constant == nullptr || x.shape.num_elements() == 0) {
    return std::nullopt;
  }
  Int8Geometry g;
  if (product) {
    auto shapes = ShapesOfInt8MatMul(*this, x.shape, w.shape);
    if (!shapes.ok() || shapes->problem.k == 0) return std::nullopt;
    g.matrices = *std::move(shapes);
  } else {
    auto problem = nn::MakeConvProblem(conv, x.shape, w.shape);
    if (!problem.ok()) return std::nullopt;
    g.window = *std::move(problem);
  }
  g.output = product ? g.matrices.output : g.window.output;
  g.depth = product ? g.matrices.problem.n : g.window.out_depth;
  const Shape& bias = context.inputs[2].shape;
  if (g.output.num_elements() == 0 || bias.rank() != 1 || bias[0] != g.depth ||
      (scales.size() != 1 && static_cast<int64_t>(scales.size()) != g.depth)) {
    return std::nullopt;
  }
  return g;
}

bool Int8State::MayBeUnsigned(const BindContext& context) const {
  // Bytes that count from 0 are easier for products of bytes alone.
  if (!Int8IsNative()) return false;
  const auto g = GeometryOf(context);
  return g && StepsOfInt8(*this, context, {}, g->depth, g->output);
}

StatusOr<std::unique_ptr<BoundKernel>> Int8State::BindLayer(const BindContext& context,
                                                            const FusedOps& then,
                                                            const QuantizedResult* result) {
  if (int8_result && (!then.empty() || result != nullptr)) return nullptr;
  const auto g = GeometryOf(context);
  if (!g) return nullptr;
  const auto steps = StepsOfInt8(*this, context, then, g->depth, g->output);
  if (!steps || (steps->whole >= 0 && result == nullptr)) return nullptr;
  const QuantizedResult own{1, zero, low, high, 1, 0, context.outputs[0].dtype};
  const QuantizedResult* to = result != nullptr ? result : int8_result ? &own : nullptr;
  if (!Int8IsNative()) return BindPairs(*this, *g, context, *steps, to);
  const bool depthwise =
      !product && context.inputs[2].constant != nullptr && nn::IsDepthwiseInt8(g->window);
  if (depthwise && int8_result) {
    return BindDepthwise(*this, g->window, context, nullptr, context.outputs[0].dtype);
  }
  if (IsSwish(*steps, context)) {
    const Dtype stored = result != nullptr ? result->stored : Dtype::kFloat;
    if (depthwise) {
      const SwishInt8Steps swish = SwishStepsOf(result, 0);
      return BindDepthwise(*this, g->window, context, &swish, stored);
    }
    ASSIGN_OR_RETURN(auto bound,
                     BindSwish(*this, *g, context, SwishStepsOf(result, StoredMore(stored))));
    if (bound != nullptr) return bound;
  }

  ASSIGN_OR_RETURN(auto matrices, BindMatrices(*this, *g, context, *steps, to));
  if (matrices != nullptr) return matrices;

  const Dtype x_type = context.inputs[0].dtype;
  ConvLayouts l;
  if (!product) {
    l = MakeConvLayouts(g->window, Dtype::kInt8);
  } else {
    const nn::MatMulProblem& p = g->matrices.problem;
    const auto matrix = [](int64_t rows, int64_t columns) {
      return Layout::Dense(Dtype::kInt8, std::array<int64_t, 2>{rows, columns});
    };
    l.src = matrix(p.m, p.k);
    l.weights = matrix(p.k, p.n);
    if (p.transpose_b) l.weights.strides = Dims{1, p.k};
    l.dst = matrix(p.m, p.n);
  }
  l.src.dtype = x_type;
  l.dst.dtype = to != nullptr ? to->stored : Dtype::kFloat;
  float factor = 1;
  const std::vector<PostOp> post_ops = Int8PostOps(*steps, l.dst, to, &factor);
  std::vector<float> scaled(scales);
  for (float& scale : scaled) scale *= factor;
  PlanKey key = MakePlanKey({&context.inputs[0].shape, &context.inputs[1].shape});
  key.push_back(static_cast<int64_t>(x_type));
  key.push_back(std::bit_cast<int32_t>(factor));
  AppendKey(post_ops, l.dst.dtype, &key);
  const Quantization q{scaled, x_zero + StoredMore(x_type)};
  ASSIGN_OR_RETURN(const Plan plan, plans.Get(key, [&] {
    if (product) {
      return Primitive::Matmul(l.src, l.weights, true,
                               Layout::Dense(Dtype::kInt32, std::array<int64_t, 2>{1, g->depth}),
                               l.dst, post_ops, &q);
    }
    return Primitive::Convolution(l.src, l.weights,
                                  Layout::Dense(Dtype::kInt32, std::array<int64_t, 1>{g->depth}),
                                  l.dst, ConvWindow(g->window), post_ops, &q);
  }));
  if (plan == nullptr) return DeclineToBind("the library has no code for it");
  const Tensor& w = *context.inputs[1].constant;
  const Tensor weights = product ? w.WithShape(g->matrices.matrix) : w;
  auto packed = plans.Weights(plan, weights, true, HeapAllocator());
  if (absl::IsUnimplemented(packed.status())) return nullptr;
  RETURN_IF_ERROR(packed.status());
  return onednn::BindLayer(plan, *std::move(packed), steps->ops, steps->args, nullptr);
}

}  // namespace smelt::onednn
