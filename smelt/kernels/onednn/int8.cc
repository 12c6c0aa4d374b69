// Convolutions and matrix products of int8 numbers, with what follows them: scales, bias, a
// residual, an activation or the way back to int8. graph/ops/own_ops.txt says what they compute.
//
// Where the processor multiplies 8-bit numbers the library does it, but for depthwise layers
// (nn/depthwise_int8.h). Elsewhere programs multiply pairs of 16 bits (nn/pairs_int8.h, bound in
// int8_bind.cc); what is not bound makes the products in float, whose sums are off by at most a few
// units in 2^24.
#include "smelt/kernels/isa/int8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/elementwise/chain.h"
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/nn/depthwise_int8.h"
#include "smelt/kernels/onednn/conv_layout.h"
#include "smelt/kernels/onednn/features.h"
#include "smelt/kernels/onednn/int8_layer.h"
#include "smelt/kernels/unsigned_int8.h"

namespace smelt {
namespace {

using onednn::Int8MatMulShapes;
using onednn::Int8State;
using onednn::Layout;
using onednn::PostOp;
using onednn::Primitive;

// One call: the layer as a product of known shapes.
struct Int8Layer {
  const Tensor& x;
  const Tensor& w;
  const Tensor& bias;
  const Tensor* addend;  // nullptr: none, or one that is not of the result's shape
  const Shape& output;
  int64_t depth;
  float low, high;  // what a float result is clamped to
};

// Elements that are worth a thread.
constexpr int64_t kInt8BorderPart = 1 << 15;
constexpr float kInt8Infinity = std::numeric_limits<float>::infinity();

std::vector<PostOp> Int8PostOps(const Int8State& s, const Int8Layer& layer, const Layout& dst) {
  std::vector<PostOp> ops;
  if (layer.addend != nullptr) {
    PostOp p;
    p.kind = PostOp::Kind::kAdd;
    p.operand = dst;
    ops.push_back(p);
  }
  if (s.int8_result) {
    if (s.zero != 0) {
      PostOp p;
      p.kind = PostOp::Kind::kLinear;
      p.alpha = 1;
      p.beta = s.zero;
      ops.push_back(p);
    }
    // The library saturates by itself.
    if (s.low == -128 && s.high == 127) return ops;
  }
  PostOp p;
  p.kind = PostOp::Kind::kClip;
  p.alpha = layer.low;
  p.beta = layer.high;
  if (layer.high != kInt8Infinity) {
    ops.push_back(p);
  } else if (layer.low != -kInt8Infinity) {
    p.kind = PostOp::Kind::kRelu;
    p.alpha = 0;
    ops.push_back(p);
  }
  return ops;
}

// Makes the result of sums that are held as floats. x_zero has been subtracted from x.
void FinishSums(const Int8State& s, const Int8Layer& layer, const Tensor& sums, Tensor* out) {
  const int64_t depth = layer.depth;
  const int64_t step = s.scales.size() > 1 ? 1 : 0;
  const Int8Loops& loops = IsaInt8();
  const int32_t* bias = layer.bias.data<int32_t>();
  const float* addend = layer.addend != nullptr ? layer.addend->data<float>() : nullptr;
  ParallelFor(sums.num_elements() / depth, std::max<int64_t>(1, 16384 / depth),
              [&](int64_t begin, int64_t end) {
                std::vector<float> row(depth);
                for (int64_t r = begin; r < end; ++r) {
                  loops.scale_sums(sums.data<float>() + r * depth, bias, s.scales.data(), step,
                                   row.data(), depth);
                  if (s.int8_result) {
                    loops.quantize(row.data(), out->data<int8_t>() + r * depth, depth, 1, s.zero,
                                   s.low, s.high);
                    continue;
                  }
                  float* y = out->data<float>() + r * depth;
                  for (int64_t c = 0; c < depth; ++c) {
                    const float v = addend != nullptr ? row[c] + addend[r * depth + c] : row[c];
                    y[c] = v < layer.low ? layer.low : (v > layer.high ? layer.high : v);
                  }
                }
              });
}

StatusOr<Tensor> Int8AsFloat(const Tensor& t, int32_t zero, Allocator* allocator) {
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(Dtype::kFloat, t.shape(), allocator));
  const int8_t* from = t.data<int8_t>();
  float* to = out.data<float>();
  ParallelFor(t.num_elements(), 32768, [&](int64_t begin, int64_t end) {
    IsaInt8().dequantize(from + begin, to + begin, end - begin, 1, static_cast<float>(zero));
  });
  return out;
}

// Runs the library's primitive that `build` compiles. False: the library has none, and nothing was
// done.
template <typename Build>
StatusOr<bool> RunInt8Plan(Int8State& s, const Int8Layer& layer, const Build& build, Tensor* out,
                           Allocator* allocator) {
  if (!Int8IsNative()) return false;
  onednn::PlanKey key = onednn::MakePlanKey({&layer.x.shape(), &layer.w.shape()});
  key.push_back(layer.addend != nullptr);
  ASSIGN_OR_RETURN(const onednn::Plan plan, s.plans.Get(key, [&] {
    return build(onednn::Quantization{s.scales, s.x_zero});
  }));
  if (plan == nullptr) return false;
  const auto weights = s.plans.Weights(plan, layer.w, s.constant_weights, allocator);
  if (absl::IsUnimplemented(weights.status())) return false;
  RETURN_IF_ERROR(weights.status());
  absl::InlinedVector<const void*, 5> tensors = {layer.x.raw(), (*weights)->raw(), layer.bias.raw(),
                                                 out->raw()};
  if (layer.addend != nullptr) tensors.push_back(layer.addend->raw());
  RETURN_IF_ERROR(plan->Run(tensors, allocator));
  return true;
}

// `run(x, w, sums)` computes the layer's sums, of shape `shape`, in float.
template <typename Run>
Status RunInt8AsFloat(Int8State& s, const Int8Layer& layer, const Shape& shape, const Run& run,
                      Tensor* out, Allocator* allocator) {
  ASSIGN_OR_RETURN(const Tensor x, Int8AsFloat(layer.x, s.x_zero, allocator));
  ASSIGN_OR_RETURN(const auto w, s.wide_weights.Get(layer.w, {}, s.constant_weights, allocator,
                                                    [&](Allocator* where) {
                                                      return Int8AsFloat(layer.w, 0, where);
                                                    }));
  ASSIGN_OR_RETURN(Tensor sums, Tensor::Make(Dtype::kFloat, shape, allocator));
  RETURN_IF_ERROR(run(x, *w, &sums));
  FinishSums(s, layer, sums, out);
  return OkStatus();
}

// Does nn::DepthwiseInt8 compute the layer? It lays the weights out once, so they must be constant.
bool IsDepthwiseLayer(const Int8State& s, const nn::ConvProblem& p) {
  return s.int8_result && s.constant_weights && Int8IsNative() && nn::IsDepthwiseInt8(p);
}

Status ConvInt8(Int8State& s, const nn::ConvProblem& p, const Int8Layer& layer, Tensor* out,
                Allocator* allocator) {
  if (layer.x.num_elements() > 0) {
    if (IsDepthwiseLayer(s, p)) {
      const auto make = [&]() -> StatusOr<nn::DepthwiseInt8> {
        return nn::DepthwiseInt8(p, layer.w, s.scales, s.x_zero, {s.zero, s.low, s.high});
      };
      ASSIGN_OR_RETURN(const auto depthwise,
                       s.depthwise.FindOrMake([](const auto&) { return true; }, make));
      return depthwise->Run(p, layer.x.data<int8_t>(), layer.bias.data<int32_t>(),
                            out->data<int8_t>(), allocator);
    }
    const auto build = [&](const onednn::Quantization& q) {
      onednn::ConvLayouts l = onednn::MakeConvLayouts(p, Dtype::kInt8);
      l.dst.dtype = out->dtype();
      const Layout bias = Layout::Dense(Dtype::kInt32, std::array<int64_t, 1>{p.out_depth});
      return Primitive::Convolution(l.src, l.weights, bias, l.dst, onednn::ConvWindow(p),
                                    Int8PostOps(s, layer, l.dst), &q);
    };
    ASSIGN_OR_RETURN(const bool done, RunInt8Plan(s, layer, build, out, allocator));
    if (done) return OkStatus();
  }
  const auto run = [&](const Tensor& x, const Tensor& w, Tensor* sums) {
    return s.float_conv.Run(p, x, w, s.constant_weights, {}, {}, sums, allocator);
  };
  return RunInt8AsFloat(s, layer, layer.output, run, out, allocator);
}

Status MatMulInt8(Int8State& s, const nn::MatMulProblem& p, const Int8Layer& layer, Tensor* out,
                  Allocator* allocator) {
  if (p.k > 0) {
    const auto build = [&](const onednn::Quantization& q) {
      const auto matrix = [&](Dtype t, int64_t rows, int64_t columns) {
        return Layout::Dense(t, std::array<int64_t, 2>{rows, columns});
      };
      Layout w = matrix(Dtype::kInt8, p.k, p.n);
      if (p.transpose_b) w.strides = Dims{1, p.k};
      const Layout dst = matrix(out->dtype(), p.m, p.n);
      return Primitive::Matmul(matrix(Dtype::kInt8, p.m, p.k), w, true,
                               matrix(Dtype::kInt32, 1, p.n), dst, Int8PostOps(s, layer, dst), &q);
    };
    ASSIGN_OR_RETURN(const bool done, RunInt8Plan(s, layer, build, out, allocator));
    if (done) return OkStatus();
  }
  const auto run = [&](const Tensor& x, const Tensor& w, Tensor* sums) {
    return s.float_matmul.Run(p, x, w, s.constant_weights, {}, {}, sums, allocator);
  };
  return RunInt8AsFloat(s, layer, p.output, run, out, allocator);
}

// v + addend under numpy's rules, then the activation: the addend is not of v's shape.
Status AddBroadcast(OpContext& ctx, const Int8State& s, const Tensor& v, const Tensor& addend) {
  const Shape* shapes[] = {&v.shape(), &addend.shape()};
  Broadcast bc;
  if (!MakeBroadcast(shapes, &bc)) return IncompatibleShapes(v.shape(), addend.shape());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, bc.shape));
  if (out->num_elements() == 0) return OkStatus();
  const float* a = v.data<float>();
  const float* b = addend.data<float>();
  float* y = out->data<float>();
  ForEachRow(bc, 0, NumRows(bc), [&](const int64_t* offsets, int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const float sum =
          a[offsets[0] + i * bc.strides[0].back()] + b[offsets[1] + i * bc.strides[1].back()];
      y[at + i] = sum < s.low ? s.low : (sum > s.high ? s.high : sum);
    }
  });
  return OkStatus();
}

// `run(state, layer, out)` computes the layer, with the clamp and the addend that `layer` states.
template <typename Run>
Status RunInt8Layer(OpContext& ctx, const Shape& output, int64_t depth, Run run) {
  auto& s = ctx.state<Int8State>();
  const Tensor& bias = ctx.input(2);
  if (bias.rank() != 1 || bias.dim(0) != depth) {
    return InvalidArgument("bias must be of shape [", depth, "], not ", bias.shape().ToString());
  }
  if (s.scales.size() != 1 && static_cast<int64_t>(s.scales.size()) != depth) {
    return InvalidArgument("there must be 1 scale or ", depth, ", not ", s.scales.size());
  }
  Int8Layer layer{ctx.input(0), ctx.input(1), bias, nullptr, output, depth, s.low, s.high};
  if (s.addend && !(ctx.input(3).shape() == output)) {
    layer.low = -kInt8Infinity;
    layer.high = kInt8Infinity;
    ASSIGN_OR_RETURN(Tensor v, ctx.Temp(Dtype::kFloat, output));
    if (v.num_elements() > 0) RETURN_IF_ERROR(run(s, layer, &v));
    return AddBroadcast(ctx, s, v, ctx.input(3));
  }
  if (s.addend) layer.addend = &ctx.input(3);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, output));
  if (out->num_elements() == 0) return OkStatus();
  return run(s, layer, out);
}

Status RunInt8Conv(OpContext& ctx) {
  ASSIGN_OR_RETURN(
      const nn::ConvProblem p,
      nn::MakeConvProblem(ctx.state<Int8State>().conv, ctx.input(0).shape(), ctx.input(1).shape()));
  return RunInt8Layer(ctx, p.output, p.out_depth,
                      [&](Int8State& s, const Int8Layer& layer, Tensor* out) {
                        return ConvInt8(s, p, layer, out, ctx.step().allocator);
                      });
}

Status RunInt8MatMul(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Int8MatMulShapes shapes,
                   onednn::ShapesOfInt8MatMul(ctx.state<Int8State>(), ctx.input(0).shape(),
                                              ctx.input(1).shape()));
  const nn::MatMulProblem& p = shapes.problem;
  return RunInt8Layer(ctx, shapes.output, p.n,
                      [&](Int8State& s, const Int8Layer& layer, Tensor* out) -> Status {
                        Tensor flat = out->WithShape(p.output);
                        const Tensor flat_x = layer.x.WithShape(shapes.rows);
                        const Tensor flat_w = layer.w.WithShape(shapes.matrix);
                        const Int8Layer two{flat_x,   flat_w,      layer.bias, layer.addend,
                                            p.output, layer.depth, layer.low,  layer.high};
                        return MatMulInt8(s, p, two, &flat, ctx.step().allocator);
                      });
}

StatusOr<std::unique_ptr<Int8State>> MakeInt8State(const Node& node) {
  auto s = std::make_unique<Int8State>();
  s->scales = node.Get<std::vector<float>>("scales", {});
  s->x_zero = static_cast<int32_t>(std::clamp<int64_t>(node.Int("x_zero"), -128, 127));
  s->int8_result = node.output_types[0] == Dtype::kInt8;
  s->addend = node.Int("num_addends") > 0;
  // Only the optimizer makes these ops, but a graph from a file may name them with any attributes.
  if (s->scales.empty()) return InvalidArgument("node '", node.name(), "' has no scales");
  if (node.Int("num_addends") > 1 || (!s->int8_result && node.output_types[0] != Dtype::kFloat)) {
    return InvalidArgument("node '", node.name(), "' has several addends, or a result that is ",
                           "neither int8 nor float");
  }
  const std::string activation = node.String("activation", "Identity");
  if (s->int8_result) {
    if (s->addend || activation != "Identity") {
      return InvalidArgument("node '", node.name(), "': an int8 result is neither added to nor ",
                             "activated");
    }
    s->zero = static_cast<float>(node.Int("zero"));
    s->low = static_cast<float>(std::clamp<int64_t>(node.Int("low", -128), -128, 127));
    s->high = static_cast<float>(std::clamp<int64_t>(node.Int("high", 127), -128, 127));
  } else {
    s->low = activation == "Identity" ? -kInt8Infinity : 0;
    s->high = activation == "Relu6" ? 6 : kInt8Infinity;
  }
  s->activation = activation;
  s->constant_weights = onednn::InputIsConst(node, 1);
  return s;
}

StatusOr<std::unique_ptr<KernelState>> PrepareInt8Conv(const Node& node) {
  ASSIGN_OR_RETURN(auto s, MakeInt8State(node));
  const auto two = [&](absl::string_view name) { return node.Get<std::vector<int64_t>>(name, {}); };
  const auto strides = two("strides"), dilations = two("dilations"), padding = two("padding");
  if (strides.size() != 2 || dilations.size() != 2 || padding.size() != 4 ||
      *std::ranges::min_element(strides) < 1 || *std::ranges::min_element(dilations) < 1 ||
      *std::ranges::min_element(padding) < 0) {
    return InvalidArgument("node '", node.name(), "': strides, dilations or padding are absurd");
  }
  s->conv.padding = nn::Padding::kExplicit;
  s->conv.strides.assign(strides.begin(), strides.end());
  s->conv.dilations.assign(dilations.begin(), dilations.end());
  s->conv.pad_before = {padding[0], padding[2]};
  s->conv.pad_after = {padding[1], padding[3]};
  return s;
}

StatusOr<std::unique_ptr<KernelState>> PrepareInt8MatMul(const Node& node) {
  ASSIGN_OR_RETURN(auto s, MakeInt8State(node));
  s->product = true;
  s->transpose_b = node.Bool("transpose_b");
  s->contracted = static_cast<int>(std::clamp<int64_t>(node.Int("contracted", 1), 1, kMaxRank));
  return s;
}

// ---- between float and int8 parts of a graph ----

struct Int8BorderState final : TiledState, UnsignedInt8 {
  float zero = 0, low = 0, high = 0;
  bool to_int8 = false;
  std::optional<TileOp> tile_op() const override;
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
  bool MayBeUnsigned(const BindContext& context) const override {
    return context.inputs[1].shape.num_elements() == 1;
  }
};

using Int8Limits = TileOp::Limits;

// T: int8_t, or uint8_t where the numbers are stored unsigned.
template <typename T>
void QuantizeTile(const void* x, const Int8Limits& l, float scale, void* y, int64_t n) {
  const auto* from = static_cast<const float*>(x);
  if constexpr (std::is_unsigned_v<T>) {
    IsaInt8().quantize_unsigned(from, static_cast<T*>(y), n, scale, l.zero, l.low, l.high);
  } else {
    IsaInt8().quantize(from, static_cast<T*>(y), n, scale, l.zero, l.low, l.high);
  }
}

template <typename T>
void DequantizeTile(const void* x, const Int8Limits& l, float scale, void* y, int64_t n) {
  auto* to = static_cast<float*>(y);
  if constexpr (std::is_unsigned_v<T>) {
    IsaInt8().dequantize_unsigned(static_cast<const T*>(x), to, n, scale, l.zero);
  } else {
    IsaInt8().dequantize(static_cast<const T*>(x), to, n, scale, l.zero);
  }
}

template <typename T>
void Int8QuantizeAll(const Int8BorderState& s, const float* x, T* y, int64_t n, float scale) {
  ParallelFor(n, kInt8BorderPart, [&](int64_t begin, int64_t end) {
    QuantizeTile<T>(x + begin, {s.zero, s.low, s.high}, scale, y + begin, end - begin);
  });
}

template <typename T>
void Int8DequantizeAll(const Int8BorderState& s, const T* x, float* y, int64_t n, float scale) {
  ParallelFor(n, kInt8BorderPart, [&](int64_t begin, int64_t end) {
    DequantizeTile<T>(x + begin, {s.zero, s.low, s.high}, scale, y + begin, end - begin);
  });
}

std::optional<TileOp> Int8BorderState::tile_op() const {
  TileOp op;
  op.kind = TileOp::Kind::kScaled;
  op.scaled = to_int8 ? QuantizeTile<int8_t> : DequantizeTile<int8_t>;
  op.scaled_unsigned = to_int8 ? QuantizeTile<uint8_t> : DequantizeTile<uint8_t>;
  op.limits = {zero, low, high};
  op.grain = kInt8BorderPart;
  return op;
}

template <typename From, typename To>
std::unique_ptr<BoundKernel> BindInt8Border(const Int8BorderState& s, int64_t n,
                                            void (*all)(const Int8BorderState&, const From*, To*,
                                                        int64_t, float)) {
  return BindCall([&s, n, all](const void* const* inputs, void* const* outputs, void*) {
    all(s, static_cast<const From*>(inputs[0]), static_cast<To*>(outputs[0]), n,
        *static_cast<const float*>(inputs[1]));
  });
}

StatusOr<std::unique_ptr<BoundKernel>> Int8BorderState::Bind(const BindContext& context) {
  if (context.inputs[1].shape.num_elements() != 1) return nullptr;
  const int64_t n = context.inputs[0].shape.num_elements();
  if (context.outputs[0].dtype == Dtype::kInt8) {
    return BindInt8Border(*this, n, Int8QuantizeAll<int8_t>);
  }
  if (context.outputs[0].dtype == Dtype::kUint8) {
    return BindInt8Border(*this, n, Int8QuantizeAll<uint8_t>);
  }
  return context.inputs[0].dtype == Dtype::kUint8
             ? BindInt8Border(*this, n, Int8DequantizeAll<uint8_t>)
             : BindInt8Border(*this, n, Int8DequantizeAll<int8_t>);
}

StatusOr<std::unique_ptr<KernelState>> PrepareInt8Conversion(const Node& node) {
  auto s = std::make_unique<Int8BorderState>();
  s->to_int8 = node.output_types[0] == Dtype::kInt8;
  s->zero = static_cast<float>(node.Int("zero"));
  s->low = static_cast<float>(std::clamp<int64_t>(node.Int("low", -128), -128, 127));
  s->high = static_cast<float>(std::clamp<int64_t>(node.Int("high", 127), -128, 127));
  return s;
}

template <typename From, typename To>
Status RunInt8Conversion(OpContext& ctx,
                         void (*all)(const Int8BorderState&, const From*, To*, int64_t, float)) {
  const Tensor& x = ctx.input(0);
  if (ctx.input(1).num_elements() != 1) {
    return InvalidArgument("scale must be a scalar, not of shape ",
                           ctx.input(1).shape().ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, x.shape()));
  all(ctx.state<Int8BorderState>(), x.data<From>(), out->data<To>(), x.num_elements(),
      ctx.input(1).flat<float>()[0]);
  return OkStatus();
}

Status RunInt8Quantize(OpContext& ctx) {
  return RunInt8Conversion<float, int8_t>(ctx, Int8QuantizeAll<int8_t>);
}

Status RunInt8Dequantize(OpContext& ctx) {
  return RunInt8Conversion<int8_t, float>(ctx, Int8DequantizeAll<int8_t>);
}

constexpr Kernel kInt8Table[] = {
    {"_Int8Conv2D", "", kAnyType, "onednn:int8_conv2d", RunInt8Conv, PrepareInt8Conv},
    {"_Int8MatMul", "", kAnyType, "onednn:int8_matmul", RunInt8MatMul, PrepareInt8MatMul},
    {"_Int8Quantize", "", kAnyType, "isa:int8_quantize", RunInt8Quantize, PrepareInt8Conversion},
    {"_Int8Dequantize", "", kAnyType, "isa:int8_dequantize", RunInt8Dequantize,
     PrepareInt8Conversion},
};

}  // namespace

extern constinit const std::span<const Kernel> kInt8Kernels = kInt8Table;

}  // namespace smelt
