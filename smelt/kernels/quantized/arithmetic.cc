// Sums and products of 8-bit quantized tensors, as 32-bit ones.
#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/nn/matmul_reference.h"
#include "smelt/kernels/quantized/range.h"

namespace smelt {
namespace {

using quantized::Plain;

// A range that holds sums of both with room to spare: `room` times the largest value.
std::pair<float, float> SumRange(float min_a, float max_a, float min_b, float max_b, int room) {
  const float most =
      std::max(max_a, std::max(-min_a, std::max(max_b, -min_b))) * static_cast<float>(room);
  return {-most, most};
}

// For each byte of one range its step in the 32-bit range [min, max]: with `nearest` the nearest
// one, else steps at equal distances.
void FillSteps(float from_min, float from_max, float min, float max, bool nearest, int32_t* steps) {
  const auto step_of = [&](uint8_t q) {
    return quantized::ToStep<int32_t>(quantized::ToReal(q, from_min, from_max), min, max);
  };
  const int64_t first = step_of(0);
  const auto each = static_cast<int32_t>(step_of(1) - first);
  for (int64_t v = 0; v < 256; ++v) {
    const int64_t step = nearest ? step_of(static_cast<uint8_t>(v)) : first + v * each;
    steps[v] = static_cast<int32_t>(
        std::clamp(step, quantized::kLowest<int32_t>, quantized::kHighest<int32_t>));
  }
}

int32_t WrapAdd(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
int32_t WrapMultiply(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

struct PairRange {
  float min_x, max_x, min_y, max_y;
};

// Runs combine(x, y) over quint8 operands that broadcast. `empty`: the error for an empty result of
// operands that are neither scalars nor of one shape.
template <typename F>
Status CombinePairs(OpContext& ctx, absl::string_view empty, const F& combine) {
  const Tensor &x = ctx.input(0), &y = ctx.input(1);
  const Shape* shapes[] = {&x.shape(), &y.shape()};
  Broadcast bc;
  if (!MakeBroadcast(shapes, &bc)) return IncompatibleShapes(x.shape(), y.shape());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, bc.shape));
  if (out->num_elements() == 0) {
    if (x.rank() == 0 || y.rank() == 0 || x.shape() == y.shape()) return OkStatus();
    return InvalidArgument(empty);
  }
  const uint8_t* px = Plain<uint8_t>(x);
  const uint8_t* py = Plain<uint8_t>(y);
  int32_t* pz = Plain<int32_t>(out);
  const int64_t step_x = bc.strides[0].back(), step_y = bc.strides[1].back();
  ForEachRow(bc, 0, NumRows(bc), [&](const int64_t* offsets, int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      pz[at + i] = combine(px[offsets[0] + i * step_x], py[offsets[1] + i * step_y]);
    }
  });
  return OkStatus();
}

// The names are those that TensorFlow's op gives.
Status CheckRangeOrder(const PairRange& r, absl::string_view least_x, absl::string_view most_y,
                       absl::string_view least_y) {
  if (!(r.max_x > r.min_x)) return InvalidArgument("max_x must be larger than ", least_x, ".");
  if (!(r.max_y > r.min_y)) return InvalidArgument(most_y, " must be larger than ", least_y, ".");
  return OkStatus();
}

Status RunQuantizedAdd(OpContext& ctx) {
  PairRange r;
  ASSIGN_OR_RETURN(r.min_x, quantized::ScalarInput(ctx, 2, "min_x"));
  ASSIGN_OR_RETURN(r.max_x, quantized::ScalarInput(ctx, 3, "max_x"));
  ASSIGN_OR_RETURN(r.min_y, quantized::ScalarInput(ctx, 4, "min_y"));
  ASSIGN_OR_RETURN(r.max_y, quantized::ScalarInput(ctx, 5, "max_y"));
  RETURN_IF_ERROR(CheckRangeOrder(r, "min_x", "max_y", "min_y"));
  const auto [min, max] = SumRange(r.min_x, r.max_x, r.min_y, r.max_y, 1 << 14);
  int32_t steps_x[256], steps_y[256];
  const bool scalar_x = ctx.input(0).num_elements() == 1;
  const bool scalar_y = !scalar_x && ctx.input(1).num_elements() == 1;
  FillSteps(r.min_x, r.max_x, min, max, scalar_x, steps_x);
  FillSteps(r.min_y, r.max_y, min, max, scalar_y, steps_y);
  RETURN_IF_ERROR(CombinePairs(ctx, "Must have some elements to add", [&](uint8_t x, uint8_t y) {
    return WrapAdd(steps_x[x], steps_y[y]);
  }));
  quantized::SetRange(ctx, 1, min, max);
  return OkStatus();
}

Status RunQuantizedMul(OpContext& ctx) {
  constexpr absl::string_view kNames[] = {"min_x", "max_x", "min_y", "max_y"};
  for (int i = 0; i < 4; ++i) {
    if (ctx.input(2 + i).rank() != 0) return InvalidArgument(kNames[i], " must be a scalar");
  }
  const PairRange r{ctx.input(2).scalar<float>(), ctx.input(3).scalar<float>(),
                    ctx.input(4).scalar<float>(), ctx.input(5).scalar<float>()};
  RETURN_IF_ERROR(CheckRangeOrder(r, "min_a", "max_x", "min_b"));
  const auto zero_x = static_cast<int32_t>(quantized::ToStep<uint8_t>(0.0f, r.min_x, r.max_x));
  const auto zero_y = static_cast<int32_t>(quantized::ToStep<uint8_t>(0.0f, r.min_y, r.max_y));
  RETURN_IF_ERROR(
      CombinePairs(ctx, "vector must have at least 1 element", [&](uint8_t x, uint8_t y) {
        return WrapMultiply(WrapAdd(x, -zero_x), WrapAdd(y, -zero_y));
      }));
  const auto [min, max] =
      quantized::ProductRange<uint8_t, uint8_t>(r.min_x, r.max_x, r.min_y, r.max_y);
  quantized::SetRange(ctx, 1, min, max);
  return OkStatus();
}

// Adds the bias along the last dimension.
template <typename T>
Status BiasAdd(OpContext& ctx, float min, float max, float bias_min, float bias_max) {
  const Tensor &in = ctx.input(0), &bias = ctx.input(1);
  const auto [out_min, out_max] = SumRange(min, max, bias_min, bias_max, 1 << 17);
  const quantized::Dequantizer<T> real(min, max), bias_real(bias_min, bias_max);
  const quantized::Quantizer<int32_t> step(out_min, out_max);
  const auto zero = quantized::ToQuantized<int32_t>(0.0f, out_min, out_max);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  const int64_t depth = bias.num_elements();
  const T* x = Plain<T>(in);
  const T* b = Plain<T>(bias);
  int32_t* y = Plain<int32_t>(out);
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    y[i] = WrapAdd(WrapAdd(step(real(x[i])), step(bias_real(b[i % depth]))), zero);
  }
  quantized::SetRange(ctx, 1, out_min, out_max);
  return OkStatus();
}

Status RunQuantizedBiasAdd(OpContext& ctx) {
  const Tensor &in = ctx.input(0), &bias = ctx.input(1);
  ASSIGN_OR_RETURN(const float min, quantized::ScalarInput(ctx, 2, "min_input"));
  ASSIGN_OR_RETURN(const float max, quantized::ScalarInput(ctx, 3, "max_input"));
  ASSIGN_OR_RETURN(const float bias_min, quantized::ScalarInput(ctx, 4, "min_bias"));
  ASSIGN_OR_RETURN(const float bias_max, quantized::ScalarInput(ctx, 5, "max_bias"));
  if (in.rank() < 2) {
    return InvalidArgument("Input tensor must be at least 2D: ", in.shape().ToString());
  }
  if (bias.rank() != 1) return InvalidArgument("Biases must be 1D: ", bias.shape().ToString());
  if (bias.dim(0) != in.shape().back()) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input tensor: ",
        bias.shape().ToString(), " vs. ", in.shape().ToString());
  }
  if (bias.dim(0) == 0) return InvalidArgument("Must provide at least 1 bias");
  return in.dtype() == Dtype::kQint8 ? BiasAdd<int8_t>(ctx, min, max, bias_min, bias_max)
                                     : BiasAdd<uint8_t>(ctx, min, max, bias_min, bias_max);
}

std::string DeclineQuantizedBiasAdd(const Node& node) {
  return node.input_types[0] == node.input_types[1] ? "" : "input and bias must be of one type";
}

struct QuantizedMatMulState final : KernelState {
  bool transpose_a = false, transpose_b = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareQuantizedMatMul(const Node& node) {
  auto s = std::make_unique<QuantizedMatMulState>();
  s->transpose_a = node.Bool("transpose_a");
  s->transpose_b = node.Bool("transpose_b");
  return s;
}

Status RunQuantizedMatMul(OpContext& ctx) {
  const auto& s = ctx.state<QuantizedMatMulState>();
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  constexpr absl::string_view kNames[] = {"min_a", "max_a", "min_b", "max_b"};
  float range[4];
  for (int i = 0; i < 4; ++i) {
    const Tensor& t = ctx.input(2 + i);
    if (t.rank() != 0) {
      return InvalidArgument(kNames[i], " must be a scalar, but got shape", t.shape().ToString());
    }
    range[i] = t.scalar<float>();
  }
  for (const int i : {0, 2}) {
    if (range[i + 1] > range[i]) continue;
    return InvalidArgument(kNames[i + 1], " must be larger than ", kNames[i], ".");
  }
  if (a.rank() != 2) return InvalidArgument("In[0] is not a matrix");
  if (b.rank() != 2) return InvalidArgument("In[1] is not a matrix");
  ASSIGN_OR_RETURN(
      const nn::MatMulProblem p,
      nn::MakeMatMulProblem(a.shape(), b.shape(), s.transpose_a, s.transpose_b, false));
  Allocator* allocator = ctx.step().allocator;
  ASSIGN_OR_RETURN(const Tensor x, quantized::StepsAroundZero(a, range[0], range[1], allocator));
  ASSIGN_OR_RETURN(const Tensor y, quantized::StepsAroundZero(b, range[2], range[3], allocator));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(Dtype::kInt32, p.output, allocator));
  RETURN_IF_ERROR(nn::MatMulReference(p, x, y, false, false, &out));
  ctx.set_output(0, out.WithDtype(Dtype::kQint32));
  const auto [min, max] =
      quantized::ProductRange<uint8_t, uint8_t>(range[0], range[1], range[2], range[3]);
  quantized::SetRange(ctx, 1, min, max);
  return OkStatus();
}

constexpr DtypeSet kQuantizedByte = Types(Dtype::kQuint8);

// Rows state the type of the first operand; those of the second and of the result are as fixed.
std::string DeclineOtherQuantized(const Node& node) {
  return node.input_types[1] == Dtype::kQuint8 && node.output_types[0] == Dtype::kQint32
             ? ""
             : "takes quint8 and gives qint32";
}

constexpr Kernel kQuantizedArithmeticTable[] = {
    {"QuantizedAdd", "T1", kQuantizedByte, "quantized:add", RunQuantizedAdd, nullptr,
     DeclineOtherQuantized},
    {"QuantizedMul", "T1", kQuantizedByte, "quantized:mul", RunQuantizedMul, nullptr,
     DeclineOtherQuantized},
    {"QuantizedBiasAdd", "T1", Types(Dtype::kQint8, Dtype::kQuint8), "quantized:bias_add",
     RunQuantizedBiasAdd, nullptr, DeclineQuantizedBiasAdd},
    {"QuantizedMatMul", "T1", kQuantizedByte, "quantized:matmul", RunQuantizedMatMul,
     PrepareQuantizedMatMul, DeclineOtherQuantized},
};

}  // namespace

extern constinit const std::span<const Kernel> kQuantizedArithmeticKernels =
    kQuantizedArithmeticTable;

}  // namespace smelt
