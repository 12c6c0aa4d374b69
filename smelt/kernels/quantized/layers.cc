// Layers on quantized tensors: activations, shapes, concatenation, pools, convolution.
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/nn/conv_reference.h"
#include "smelt/kernels/nn/pool.h"
#include "smelt/kernels/quantized/range.h"

namespace smelt {
namespace {

using quantized::Plain;

// Relu or, with kSix, Relu6.
template <bool kSix>
Status RunQuantizedRelu(OpContext& ctx) {
  const Tensor in = ctx.input(0);
  ASSIGN_OR_RETURN(const float min, quantized::ScalarInput(ctx, 1, "min_input"));
  ASSIGN_OR_RETURN(const float max, quantized::ScalarInput(ctx, 2, "max_input"));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  quantized::VisitPlain(in.dtype(), [&]<typename T>() {
    const T zero = quantized::ToQuantized<T>(0.0f, min, max);
    const T six = quantized::ToQuantized<T>(6.0f, min, max);
    const T* x = Plain<T>(in);
    T* y = Plain<T>(out);
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      y[i] = std::max(x[i], zero);
      if (kSix) y[i] = std::min(y[i], six);
    }
  });
  quantized::SetRange(ctx, 1, min, max);
  return OkStatus();
}

std::string DeclineOtherResult(const Node& node) {
  return node.input_types[0] == node.output_types[0] ? "" : "gives the type that it takes";
}

Status RunQuantizedReshape(OpContext& ctx) {
  const Tensor& sizes = ctx.input(1);
  if (sizes.rank() > 1) {
    return InvalidArgument("sizes input must be 1-D, not ", sizes.shape().ToString());
  }
  Dims dims = IntsOf(sizes);
  const int64_t elements = ctx.input(0).num_elements();
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      if (open >= 0) {
        return InvalidArgument("Only one input size may be -1, not both ", open, " and ", i);
      }
      open = static_cast<int64_t>(i);
    } else if (dims[i] < 0) {
      return InvalidArgument("Size ", i, " must be non-negative, not ", dims[i]);
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      return InvalidArgument("Shape has too many elements");
    }
  }
  if (open >= 0) {
    if (known == 0) {
      return InvalidArgument(
          "reshape cannot infer the missing input size for an empty tensor unless all specified "
          "input sizes are non-zero");
    }
    if (elements % known != 0) {
      return InvalidArgument("Input to reshape is a tensor with ", elements,
                             " values, but the requested shape requires a multiple of ", known);
    }
    dims[static_cast<size_t>(open)] = elements / known;
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  if (shape.num_elements() != elements) {
    return InvalidArgument("Input to reshape is a tensor with ", elements,
                           " values, but the requested shape has ", shape.num_elements());
  }
  for (int i = 2; i < 4; ++i) {
    if (ctx.input(i).num_elements() != 1 || ctx.input(i).rank() > 1) {
      return InvalidArgument(i == 2 ? "input_min" : "input_max",
                             " must be a scalar or a vector of 1 element");
    }
  }
  const float min = ctx.input(2).scalar<float>(), max = ctx.input(3).scalar<float>();
  ctx.set_output(0, ctx.TakeInput(0).WithShape(shape));
  quantized::SetRange(ctx, 1, min, max);
  return OkStatus();
}

// Inputs: the dimension, N values, N minima and N maxima.
Status RunQuantizedConcat(OpContext& ctx) {
  const int n = (ctx.num_inputs() - 1) / 3;
  const Tensor& dim = ctx.input(0);
  const auto value = [&](int i) -> const Tensor& { return ctx.input(1 + i); };
  if (dim.rank() != 0) {
    return InvalidArgument("Concat dim tensor should be a scalar integer, but got shape ",
                           dim.shape().ToString());
  }
  const Shape& first = value(0).shape();
  int64_t axis = dim.scalar<int32_t>();
  if (axis < 0 || axis >= first.rank()) {
    return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [0, ",
                           first.rank(), "), but got ", axis);
  }
  float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::lowest();
  for (int i = 0; i < n; ++i) {
    for (const bool low : {true, false}) {
      const Tensor& t = ctx.input(1 + (low ? n : 2 * n) + i);
      if (t.num_elements() != 1) {
        return InvalidArgument(low ? "input_mins" : "input_maxes",
                               " each tensor's num elements must be 1, given num elements ",
                               t.num_elements(), " in index ", i);
      }
      least = low ? std::min(least, t.scalar<float>()) : least;
      most = low ? most : std::max(most, t.scalar<float>());
    }
  }
  least = std::min(0.0f, least);
  Shape shape = first;
  const int d = static_cast<int>(axis);
  int64_t joined = 0;
  for (int i = 0; i < n; ++i) {
    const Shape& s = value(i).shape();
    if (s.rank() != first.rank()) {
      return InvalidArgument("ConcatOp : Ranks of all input tensors should match: shape[0] = ",
                             first.ToString(), " vs. shape[", i, "] = ", s.ToString());
    }
    bool fits = true;
    for (int k = 0; fits && k < s.rank(); ++k) fits = k == d || s[k] == first[k];
    if (!fits) {
      return InvalidArgument("ConcatOp : Dimensions of inputs should match: shape[0] = ",
                             first.ToString(), " vs. shape[", i, "] = ", s.ToString());
    }
    joined += s[d];
  }
  shape.Set(d, joined);
  ASSIGN_OR_RETURN(shape, CheckedShape(shape.dims()));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  const int64_t outer = shape.Product(0, d), inner = shape.Product(d + 1, shape.rank());
  quantized::VisitPlain(out->dtype(), [&]<typename T>() {
    if (std::is_signed_v<T>) {  // zero in the middle
      most = std::max(std::abs(least), std::abs(most));
      least = -most;
    }
    const quantized::Quantizer<T> step(least, most);
    int64_t before = 0;
    int k = 0;  // TensorFlow gives range k to value k of those that are not empty
    for (int i = 0; i < n; ++i) {
      if (value(i).num_elements() == 0) continue;
      const float min = ctx.input(1 + n + k).scalar<float>();
      const float max = ctx.input(1 + 2 * n + k).scalar<float>();
      ++k;
      const quantized::Dequantizer<T> real(min, max);
      const bool same = min == least && max == most;
      const int64_t run = value(i).dim(d) * inner;
      for (int64_t o = 0; o < outer; ++o) {
        const T* x = Plain<T>(value(i)) + o * run;
        T* y = Plain<T>(out) + o * joined * inner + before;
        for (int64_t e = 0; e < run; ++e) y[e] = same ? x[e] : step(real(x[e]));
      }
      before += run;
    }
  });
  quantized::SetRange(ctx, 1, least, most);
  return OkStatus();
}

struct QuantizedWindowState final : KernelState {
  nn::PoolAttrs pool;
  nn::ConvAttrs conv;
};

template <nn::PoolKind kKind>
StatusOr<std::unique_ptr<KernelState>> PrepareQuantizedPool(const Node& node) {
  auto s = std::make_unique<QuantizedWindowState>();
  ASSIGN_OR_RETURN(s->pool, nn::ParsePoolAttrs(node, kKind, 2));
  return s;
}

// The mean of each window, truncated.
template <typename T>
void AveragePlain(const nn::PoolProblem& p, const T* x, T* y) {
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t r = 0; r < p.out[0]; ++r) {
      for (int64_t c = 0; c < p.out[1]; ++c) {
        const int64_t top = r * p.strides[0] - p.pad_before[0];
        const int64_t left = c * p.strides[1] - p.pad_before[1];
        const int64_t row0 = std::max<int64_t>(top, 0);
        const int64_t row1 = std::min(top + p.kernel[0], p.in[0]);
        const int64_t column0 = std::max<int64_t>(left, 0);
        const int64_t column1 = std::min(left + p.kernel[1], p.in[1]);
        const int64_t count = (row1 - row0) * (column1 - column0);
        for (int64_t d = 0; d < p.depth; ++d) {
          int64_t sum = 0;
          for (int64_t i = row0; i < row1; ++i) {
            for (int64_t j = column0; j < column1; ++j) {
              sum += x[((b * p.in[0] + i) * p.in[1] + j) * p.depth + d];
            }
          }
          *y++ = static_cast<T>(count > 0 ? sum / count : 0);
        }
      }
    }
  }
}

template <nn::PoolKind kKind>
Status RunQuantizedPool(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  for (int i = 1; i < 3; ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument(i == 1 ? "min_input" : "max_input",
                             " shape must be rank 0 but is rank ", ctx.input(i).rank(),
                             ", received shape: ", ctx.input(i).shape().ToString());
    }
  }
  if (in.rank() != 4) {
    return InvalidArgument("tensor_in_shape must have 2 spatial dimensions. ", in.rank(), " 0");
  }
  ASSIGN_OR_RETURN(const nn::PoolProblem p,
                   nn::MakePoolProblem(ctx.state<QuantizedWindowState>().pool, in.shape()));
  if (p.depth_window > 1) return Unimplemented("quantized pooling over depth");
  const Dtype plain = in.dtype() == Dtype::kQint8 ? Dtype::kInt8 : Dtype::kUint8;
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(plain, p.output, ctx.step().allocator));
  if (out.num_elements() > 0) {
    if (kKind == nn::PoolKind::kMax) {
      nn::PoolReference(kKind, p, plain, in.raw(), out.raw());
    } else if (plain == Dtype::kInt8) {
      AveragePlain(p, Plain<int8_t>(in), Plain<int8_t>(&out));
    } else {
      AveragePlain(p, Plain<uint8_t>(in), Plain<uint8_t>(&out));
    }
  }
  ctx.set_output(0, out.WithDtype(in.dtype()));
  quantized::SetRange(ctx, 1, ctx.input(1).scalar<float>(), ctx.input(2).scalar<float>());
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareQuantizedConv(const Node& node) {
  auto s = std::make_unique<QuantizedWindowState>();
  ASSIGN_OR_RETURN(s->conv, nn::ParseConvAttrs(node, 2, false));
  for (const int64_t d : s->conv.dilations) {
    if (d != 1) {
      return InvalidArgument("Current implementation only supports dilated rate as 1 in the row ",
                             "and column dimensions.");
    }
  }
  return s;
}

Status RunQuantizedConv(OpContext& ctx) {
  const Tensor &in = ctx.input(0), &filter = ctx.input(1);
  constexpr absl::string_view kNames[] = {"input",     "filter",     "min_input",
                                          "max_input", "min_filter", "max_filter"};
  for (int i = 0; i < 6; ++i) {
    const int rank = i < 2 ? 4 : 0;
    if (ctx.input(i).rank() != rank) {
      return InvalidArgument(kNames[i], " must be rank ", rank, " but is rank ",
                             ctx.input(i).rank());
    }
  }
  if (in.dim(3) != filter.dim(2)) {
    return InvalidArgument("input and filter must have the same depth: ", in.dim(3), " vs ",
                           filter.dim(2));
  }
  ASSIGN_OR_RETURN(
      const nn::ConvProblem p,
      nn::MakeConvProblem(ctx.state<QuantizedWindowState>().conv, in.shape(), filter.shape()));
  const auto range = [&](int i) { return ctx.input(i).scalar<float>(); };
  Allocator* allocator = ctx.step().allocator;
  ASSIGN_OR_RETURN(const Tensor x, quantized::StepsAroundZero(in, range(2), range(3), allocator));
  ASSIGN_OR_RETURN(const Tensor w,
                   quantized::StepsAroundZero(filter, range(4), range(5), allocator));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(Dtype::kInt32, p.output, allocator));
  if (out.num_elements() > 0 && x.num_elements() > 0) nn::ConvReference(p, x, w, &out);
  ctx.set_output(0, out.WithDtype(Dtype::kQint32));
  const auto [min, max] =
      quantized::ProductRange<uint8_t, uint8_t>(range(2), range(3), range(4), range(5));
  quantized::SetRange(ctx, 1, min, max);
  return OkStatus();
}

std::string DeclineOtherConv(const Node& node) {
  return node.input_types[1] == Dtype::kQuint8 && node.output_types[0] == Dtype::kQint32
             ? ""
             : "takes quint8 and gives qint32";
}

constexpr DtypeSet kActivated = Types(Dtype::kQuint8, Dtype::kQint32);
constexpr DtypeSet kPooled = Types(Dtype::kQuint8, Dtype::kQint8);

constexpr Kernel kQuantizedLayerTable[] = {
    {"QuantizedRelu", "Tinput", kActivated, "quantized:relu", RunQuantizedRelu<false>, nullptr,
     DeclineOtherResult},
    {"QuantizedRelu6", "Tinput", kActivated, "quantized:relu6", RunQuantizedRelu<true>, nullptr,
     DeclineOtherResult},
    {"QuantizedReshape", "T", kActivated, "quantized:reshape", RunQuantizedReshape},
    {"QuantizedConcat", "T", kActivated, "quantized:concat", RunQuantizedConcat},
    {"QuantizedMaxPool", "T", kPooled, "quantized:max_pool", RunQuantizedPool<nn::PoolKind::kMax>,
     PrepareQuantizedPool<nn::PoolKind::kMax>},
    {"QuantizedAvgPool", "T", kPooled, "quantized:avg_pool", RunQuantizedPool<nn::PoolKind::kAvg>,
     PrepareQuantizedPool<nn::PoolKind::kAvg>},
    {"QuantizedConv2D", "Tinput", Types(Dtype::kQuint8), "quantized:conv2d", RunQuantizedConv,
     PrepareQuantizedConv, DeclineOtherConv},
};

}  // namespace

extern constinit const std::span<const Kernel> kQuantizedLayerKernels = kQuantizedLayerTable;

}  // namespace smelt
