// Int8 layers bound to their shapes: the library's primitive, or our depthwise loops, with what
// follows the layer and the way to int8 in the same pass.
#include <algorithm>
#include <array>
#include <bit>

#include "smelt/kernels/common/bound_call.h"
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
};

// nullopt: an operand has another size than the library takes.
std::optional<Int8Steps> StepsOfInt8(const Int8State& s, const BindContext& context,
                                     const FusedOps& then, int64_t depth, const Shape& output) {
  using Kind = FusedStep::Kind;
  Int8Steps out;
  out.ops.leaky_alpha = then.leaky_alpha;
  const auto fits = [&](size_t input, bool whole) {
    if (input >= context.inputs.size()) return false;
    const BoundTensor& t = context.inputs[input];
    if (whole && t.dtype == Dtype::kInt8) {
      if (out.whole >= 0) return false;
      out.whole = static_cast<int>(out.ops.steps.size());
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

// Our depthwise loops with the start of their sums at hand.
StatusOr<std::unique_ptr<BoundKernel>> BindDepthwise(Int8State& s, const nn::ConvProblem& p,
                                                     const Tensor& w, const Tensor& bias) {
  const auto make = [&]() -> StatusOr<nn::DepthwiseInt8> {
    return nn::DepthwiseInt8(p, w, s.scales, s.x_zero, s.zero, s.low, s.high);
  };
  ASSIGN_OR_RETURN(const auto depthwise,
                   s.depthwise.FindOrMake([](const auto&) { return true; }, make));
  return BindCall(
      [depthwise, p, start = depthwise->StartOf(bias.data<int32_t>(), p.in_depth)](
          const void* const* inputs, void* const* outputs, void* scratch) {
        depthwise->Run(p, static_cast<const int8_t*>(inputs[0]), start.data(),
                       static_cast<int8_t*>(outputs[0]), static_cast<int8_t*>(scratch));
      },
      {}, nn::DepthwiseInt8::padding_bytes(p));
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

StatusOr<std::unique_ptr<BoundKernel>> Int8State::BindLayer(const BindContext& context,
                                                            const FusedOps& then,
                                                            const QuantizedResult* result) {
  const BoundTensor& x = context.inputs[0];
  const BoundTensor& w = context.inputs[1];
  const bool steps_follow = !then.empty() || result != nullptr;
  if (!Int8IsNative() || !constant_weights || w.constant == nullptr ||
      x.shape.num_elements() == 0 || (int8_result && steps_follow)) {
    return nullptr;
  }
  nn::ConvProblem window;
  Int8MatMulShapes matrices;
  if (product) {
    auto shapes = ShapesOfInt8MatMul(*this, x.shape, w.shape);
    if (!shapes.ok() || shapes->problem.k == 0) return nullptr;
    matrices = *std::move(shapes);
  } else {
    auto problem = nn::MakeConvProblem(conv, x.shape, w.shape);
    if (!problem.ok()) return nullptr;
    window = *std::move(problem);
  }
  const Shape& output = product ? matrices.output : window.output;
  const int64_t depth = product ? matrices.problem.n : window.out_depth;
  const Shape& bias = context.inputs[2].shape;
  if (output.num_elements() == 0 || bias.rank() != 1 || bias[0] != depth ||
      (scales.size() != 1 && static_cast<int64_t>(scales.size()) != depth)) {
    return nullptr;
  }
  const auto steps = StepsOfInt8(*this, context, then, depth, output);
  if (!steps) return nullptr;
  if (!product && int8_result && context.inputs[2].constant != nullptr &&
      nn::IsDepthwiseInt8(window)) {
    return BindDepthwise(*this, window, *w.constant, *context.inputs[2].constant);
  }

  ConvLayouts l;
  if (!product) {
    l = MakeConvLayouts(window, Dtype::kInt8);
  } else {
    const nn::MatMulProblem& p = matrices.problem;
    const auto matrix = [](int64_t rows, int64_t columns) {
      return Layout::Dense(Dtype::kInt8, std::array<int64_t, 2>{rows, columns});
    };
    l.src = matrix(p.m, p.k);
    l.weights = matrix(p.k, p.n);
    if (p.transpose_b) l.weights.strides = Dims{1, p.k};
    l.dst = matrix(p.m, p.n);
  }
  l.dst.dtype = Dtype::kFloat;  // what the steps add
  std::vector<PostOp> post_ops = MakeFusedPostOps(steps->ops, l.dst, 1).post_ops;
  if (steps->whole >= 0) {
    if (result == nullptr) return nullptr;
    PostOp& sum = post_ops[static_cast<size_t>(steps->whole - 1)];  // the bias is none
    sum.operand.dtype = Dtype::kInt8;
    sum.operand_scale = result->addend_scale;
    sum.operand_zero = result->addend_zero;
  }
  if (int8_result || result != nullptr) {
    l.dst.dtype = Dtype::kInt8;
    const QuantizedResult own{1, zero, low, high};
    const QuantizedResult& to = result != nullptr ? *result : own;
    if (to.scale != 1 || to.zero != 0) {
      post_ops.push_back(ToInt8(PostOp::Kind::kLinear, 1 / to.scale, to.zero));
    }
    // The library saturates what is a number.
    const bool numbers = steps->ops.steps.size() == 1;
    if (!numbers || to.low != -128 || to.high != 127) {
      post_ops.push_back(ToInt8(PostOp::Kind::kClip, to.low, to.high));
    }
  }
  PlanKey key = MakePlanKey({&x.shape, &w.shape});
  AppendKey(post_ops, l.dst.dtype, &key);
  const Quantization q{scales, x_zero};
  ASSIGN_OR_RETURN(const Plan plan, plans.Get(key, [&] {
    if (product) {
      return Primitive::Matmul(l.src, l.weights, true,
                               Layout::Dense(Dtype::kInt32, std::array<int64_t, 2>{1, depth}),
                               l.dst, post_ops, &q);
    }
    return Primitive::Convolution(l.src, l.weights,
                                  Layout::Dense(Dtype::kInt32, std::array<int64_t, 1>{depth}),
                                  l.dst, ConvWindow(window), post_ops, &q);
  }));
  if (plan == nullptr) return nullptr;
  const Tensor weights = product ? w.constant->WithShape(matrices.matrix) : *w.constant;
  auto packed = plans.Weights(plan, weights, true, HeapAllocator());
  if (absl::IsUnimplemented(packed.status())) return nullptr;
  RETURN_IF_ERROR(packed.status());
  return onednn::BindLayer(plan, *std::move(packed), steps->ops, steps->args, nullptr);
}

}  // namespace smelt::onednn
