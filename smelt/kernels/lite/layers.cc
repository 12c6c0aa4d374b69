// Convolutions and fully connected layers of quantized tensors: sums of integers, times a factor
// for each channel.
#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/lite/layer_state.h"

namespace smelt::lite {
namespace {

// XNNPACK runs layers of 8 bits whose weights are constant, int8 ones about 0; of those of 4 bits
// products of even rows alone.
bool RunsInFloat(const Node& node, const LayerState& s, Places p) {
  const Dtype type = node.output_types[0];
  const Dtype weights = node.input_types[static_cast<size_t>(p.weights)];
  if (weights == Dtype::kInt4 && (s.kind != LayerKind::kDense || HasOddRows(node, p.weights))) {
    return false;
  }
  return node.input(p.weights).node->Is("Const") &&
         (type == Dtype::kUint8 ||
          (type == Dtype::kInt8 &&
           std::ranges::all_of(s.weight_zeros, [](int32_t z) { return z == 0; })));
}

StatusOr<std::unique_ptr<KernelState>> MakeLayer(const Node& node, Places p, LayerKind kind) {
  auto s = std::make_unique<LayerState>();
  ASSIGN_OR_RETURN(static_cast<LayerWindow&>(*s), LayerWindow::Of(node, kind));
  s->input = InputAffine(node, p.input);
  s->weights = InputAffine(node, p.weights);
  s->output = OutputAffine(node);
  s->range = ActivatedRange(node, s->output);
  s->type = node.output_types[0];
  for (const int64_t z : s->weights.zeros) s->weight_zeros.push_back(static_cast<int32_t>(z));
  const bool in_float = RunsInFloat(node, *s, p);
  const Dtype bias =
      p.bias < node.num_inputs() ? node.input_types[static_cast<size_t>(p.bias)] : Dtype::kFloat;
  const bool wide = bias == Dtype::kInt64 ||
                    (bias != Dtype::kInt32 && node.Type("quantized_bias_type") == Dtype::kInt64);
  s->narrow =
      s->type == Dtype::kInt16 &&
      (kind == LayerKind::kDense ? !wide : kind == LayerKind::kConv && bias == Dtype::kInt32);
  // LiteRT multiplies the scales of such a product in float where there is one of weights.
  const bool float_product =
      s->narrow && kind == LayerKind::kDense && s->weights.scales.size() == 1;
  for (const float scale : s->weights.scales) {
    const double product = float_product
                               ? static_cast<double>(s->input.scale() * scale)
                               : static_cast<double>(s->input.scale()) * static_cast<double>(scale);
    const double factor = product / static_cast<double>(s->output.scale());
    s->factors.push_back(FactorOf(factor));
    if (kind == LayerKind::kDense && s->type == Dtype::kInt16 && wide) s->doubles.push_back(factor);
    if (in_float) s->scales.push_back(s->input.scale() * scale / s->output.scale());
  }
  s->float_steps = FloatSteps(s->range, s->output.zero());
  return s;
}

StatusOr<std::unique_ptr<KernelState>> PrepareConv(const Node& node) {
  return MakeLayer(node, kForward, LayerKind::kConv);
}
StatusOr<std::unique_ptr<KernelState>> PrepareDepthwise(const Node& node) {
  return MakeLayer(node, kForward, LayerKind::kDepthwise);
}
StatusOr<std::unique_ptr<KernelState>> PrepareTransposed(const Node& node) {
  return MakeLayer(node, kTransposed, LayerKind::kTransposed);
}
StatusOr<std::unique_ptr<KernelState>> PrepareDense(const Node& node) {
  return MakeLayer(node, kForward, LayerKind::kDense);
}

// Sums of 32 bits wrap around, and biases of 64 bits may be any.
int32_t Plus(int32_t a, int32_t b) { return WrappedSum(a, b); }
int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Sums and biases of `channels`, as numbers of the output. `Sum` is int32 or int64.
class Finish {
 public:
  // by_factors: not by scales, though there are some.
  static StatusOr<Finish> Of(const OpContext& ctx, const LayerState& s, int bias, int64_t channels,
                             bool by_factors = false) {
    Finish f(s);
    f.by_scales_ = !s.scales.empty() && !by_factors;
    f.rounded_up_ = s.FirstRoundedUp(channels);
    if (s.factors.size() != 1 && static_cast<int64_t>(s.factors.size()) != channels) {
      return InvalidArgument("there are ", s.factors.size(), " scales for ", channels, " channels");
    }
    if (bias >= ctx.num_inputs() || ctx.input(bias).num_elements() == 0) return f;
    const Tensor& b = ctx.input(bias);
    if (b.num_elements() != channels) {
      return InvalidArgument("there are ", b.num_elements(), " biases for ", channels, " channels");
    }
    if (b.dtype() == Dtype::kInt32) {
      f.bias32_ = b.data<int32_t>();
    } else if (b.dtype() == Dtype::kInt64) {
      f.bias64_ = b.data<int64_t>();
    } else {
      return Unimplemented("biases are ", DtypeName(b.dtype()));
    }
    return f;
  }
  // Sums of numbers of 8 bits.
  int32_t operator()(int32_t sum, int64_t c) const {
    if (bias32_ != nullptr) sum = Plus(sum, bias32_[c]);
    if (by_scales_) return s_.float_steps(sum, s_.scales[s_.At(c)]);
    return s_.range.Clamp(Fixed(sum, c), s_.output.zero());
  }
  // Of int16: as wide as the biases are.
  int32_t Wide(int64_t sum, int64_t c) const {
    if (bias32_ != nullptr) return Narrow(static_cast<int32_t>(sum), c);
    if (bias64_ != nullptr) sum = Plus(sum, bias64_[c]);
    return s_.range.Clamp(Times(sum, s_.factor(c)), s_.output.zero());
  }

  // Fully connected layers of int16 keep all bits of the factor, unlike convolutions.
  int32_t Exactly(int64_t sum, int64_t c) const {
    if (s_.narrow) return Narrow(static_cast<int32_t>(sum), c);
    if (bias64_ != nullptr) sum = Plus(sum, bias64_[c]);
    return s_.range.Clamp(TimesInDouble(sum, s_.in_double(c)), s_.output.zero());
  }

 private:
  explicit Finish(const LayerState& s) : s_(s) {}
  // As TensorFlow Lite's own kernels: products of uint8 are rounded once.
  int32_t Fixed(int32_t sum, int64_t c) const {
    const Factor& f = s_.factor(c);
    if (s_.kind == LayerKind::kDense && s_.type == Dtype::kUint8) return TimesExactly(sum, f);
    return c < rounded_up_ ? TimesUp(sum, f) : Times(sum, f);
  }
  // Of int16 whose biases have 32 bits, or that have none.
  int32_t Narrow(int32_t sum, int64_t c) const {
    if (bias32_ != nullptr) sum = Plus(sum, bias32_[c]);
    const int32_t steps = s_.narrow ? TimesUp(sum, s_.factor(c)) : Times(sum, s_.factor(c));
    return s_.range.Clamp(steps, s_.output.zero());
  }
  const LayerState& s_;
  bool by_scales_ = false;
  int64_t rounded_up_ = 0;
  const int32_t* bias32_ = nullptr;
  const int64_t* bias64_ = nullptr;
};

template <typename T>
void FinishRows(const Finish& finish, const int32_t* sums, int64_t rows, int64_t n, int64_t first,
                int64_t stride, T* y) {
  ParallelFor(rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  for (int64_t c = 0; c < n; ++c) {
                    y[i * stride + first + c] = static_cast<T>(finish(sums[i * n + c], first + c));
                  }
                }
              });
}

// ---- convolutions

// Row r of all windows of group g: elements [from, to) of [kernel_h, kernel_w, channels].
template <typename T, typename Out>
void FillWindow(const LayerState& s, const Image& m, const T* x, int64_t first, int64_t channels,
                int64_t r, int64_t from, int64_t to, Out* out) {
  const int64_t ox = r % m.out_w, oy = r / m.out_w % m.out_h, b = r / m.out_w / m.out_h;
  const int32_t zero = s.input.zero();
  while (from < to) {
    const int64_t tap = from / channels, c = from % channels;
    const int64_t n = std::min(to - from, channels - c);
    const int64_t y = oy * s.stride_h - m.top + tap / m.kernel_w * s.dilation_h;
    const int64_t z = ox * s.stride_w - m.left + tap % m.kernel_w * s.dilation_w;
    if (y < 0 || y >= m.in_h || z < 0 || z >= m.in_w) {
      std::fill(out, out + n, Out{0});
    } else {
      const T* p = x + ((b * m.in_h + y) * m.in_w + z) * m.depth + first + c;
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(int32_t{p[i]} - zero);
    }
    out += n;
    from += n;
  }
}

Status RunConv(OpContext& ctx) {
  auto& s = ctx.state<LayerState>();
  const Tensor &in = ctx.input(0), &filter = ctx.input(1);
  ASSIGN_OR_RETURN(const Shape shape, LayerOutput(s, in.shape(), filter.shape()));
  ASSIGN_OR_RETURN(const Image m, ImageOf(s, in.shape(), filter.shape()));
  const int64_t units = filter.dim(0), channels = filter.dim(3);
  ASSIGN_OR_RETURN(const Finish finish, Finish::Of(ctx, s, 2, units));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  const int64_t groups = m.depth / channels, n = units / groups;
  const int64_t k = m.kernel_h * m.kernel_w * channels, rows = m.batch * m.out_h * m.out_w;
  const auto* w = static_cast<const int8_t*>(filter.raw());
  if (in.dtype() == Dtype::kInt16) {
    const int16_t* x = in.data<int16_t>();
    int16_t* y = out->data<int16_t>();
    ParallelFor(rows, std::max<int64_t>(1, 65536 / (k * n)), [&](int64_t begin, int64_t end) {
      std::vector<int32_t> window(static_cast<size_t>(k));
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t g = 0; g < groups; ++g) {
          FillWindow(s, m, x, g * channels, channels, r, 0, k, window.data());
          for (int64_t c = g * n; c < (g + 1) * n; ++c) {
            int64_t sum = 0;
            for (int64_t i = 0; i < k; ++i) {
              sum += int64_t{window[static_cast<size_t>(i)]} * w[c * k + i];
            }
            y[r * units + c] = static_cast<int16_t>(finish.Wide(sum, c));
          }
        }
      }
    });
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor sums, ctx.Temp(Dtype::kInt32, Shape({rows, n})));
  const bool constant = ctx.node().input(1).node->Is("Const");
  Status status;
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    for (int64_t g = 0; g < groups && status.ok(); ++g) {
      const Tensor part = groups == 1 ? filter : filter.Rows(g * n, (g + 1) * n);
      status = s.product(static_cast<size_t>(g))
                   .Run(
                       part, constant, n, k, s.weight_zeros, rows,
                       [&](int64_t r, int64_t from, int64_t to, float* to_row) {
                         FillWindow(s, m, x, g * channels, channels, r, from, to, to_row);
                       },
                       sums.data<int32_t>(), ctx.step().allocator);
      if (!status.ok()) return;
      FinishRows(finish, sums.data<int32_t>(), rows, n, g * n, units, out->data<T>());
    }
  });
  return status;
}

template <typename T, typename W, typename Sum>
void Depthwise(const LayerState& s, const Image& m, const Finish& finish, const T* x, const W* w,
               T* y) {
  const int64_t units = m.depth * s.multiplier;
  const int32_t zero = s.input.zero(), weight_zero = s.weight_zeros.empty() ? 0 : s.weight_zeros[0];
  ParallelFor(m.batch * m.out_h, 1, [&](int64_t begin, int64_t end) {
    std::vector<Sum> sums(static_cast<size_t>(units));
    for (int64_t line = begin; line < end; ++line) {
      const int64_t b = line / m.out_h, oy = line % m.out_h;
      for (int64_t ox = 0; ox < m.out_w; ++ox) {
        std::fill(sums.begin(), sums.end(), Sum{0});
        for (int64_t ky = 0; ky < m.kernel_h; ++ky) {
          const int64_t iy = oy * s.stride_h - m.top + ky * s.dilation_h;
          if (iy < 0 || iy >= m.in_h) continue;
          for (int64_t kx = 0; kx < m.kernel_w; ++kx) {
            const int64_t ix = ox * s.stride_w - m.left + kx * s.dilation_w;
            if (ix < 0 || ix >= m.in_w) continue;
            const T* p = x + ((b * m.in_h + iy) * m.in_w + ix) * m.depth;
            const W* q = w + (ky * m.kernel_w + kx) * units;
            Sum* sum = sums.data();
            if (s.multiplier == 1) {
              for (int64_t c = 0; c < units; ++c) {
                sum[c] = Plus(sum[c], Sum{(int32_t{p[c]} - zero)} * (int32_t{q[c]} - weight_zero));
              }
              continue;
            }
            for (int64_t c = 0; c < units; ++c) {
              sum[c] = Plus(sum[c], Sum{(int32_t{p[c / s.multiplier]} - zero)} *
                                        (int32_t{q[c]} - weight_zero));
            }
          }
        }
        T* to = y + (line * m.out_w + ox) * units;
        for (int64_t c = 0; c < units; ++c) {
          const Sum sum = sums[static_cast<size_t>(c)];
          if constexpr (sizeof(T) == 2) {
            to[c] = static_cast<T>(finish.Wide(sum, c));
          } else {
            to[c] = static_cast<T>(finish(sum, c));
          }
        }
      }
    }
  });
}

Status RunDepthwise(OpContext& ctx) {
  auto& s = ctx.state<LayerState>();
  const Tensor &in = ctx.input(0), &filter = ctx.input(1);
  ASSIGN_OR_RETURN(const Shape shape, LayerOutput(s, in.shape(), filter.shape()));
  ASSIGN_OR_RETURN(const Image m, ImageOf(s, in.shape(), filter.shape()));
  ASSIGN_OR_RETURN(const Finish finish, Finish::Of(ctx, s, 2, filter.dim(3)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  if (in.dtype() == Dtype::kUint8) {
    Depthwise<uint8_t, uint8_t, int32_t>(s, m, finish, in.data<uint8_t>(), filter.data<uint8_t>(),
                                         out->data<uint8_t>());
  } else if (const auto* w = static_cast<const int8_t*>(filter.raw()); in.dtype() == Dtype::kInt8) {
    Depthwise<int8_t, int8_t, int32_t>(s, m, finish, in.data<int8_t>(), w, out->data<int8_t>());
  } else {
    Depthwise<int16_t, int8_t, int64_t>(s, m, finish, in.data<int16_t>(), w, out->data<int16_t>());
  }
  return OkStatus();
}

// Each element of the input adds to a window of the output.
template <typename T, typename W, typename Sum>
void Transposed(const LayerState& s, const Image& m, const Finish& finish, int64_t units,
                const T* x, const W* w, Sum* sums, T* y) {
  // m.out_* are sizes of the input of this operator, m.in_* of its output.
  const int32_t zero = s.input.zero();
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t iy = 0; iy < m.out_h; ++iy) {
      for (int64_t ix = 0; ix < m.out_w; ++ix) {
        const T* p = x + ((b * m.out_h + iy) * m.out_w + ix) * m.depth;
        for (int64_t ky = 0; ky < m.kernel_h; ++ky) {
          const int64_t oy = iy * s.stride_h - m.top + ky;
          if (oy < 0 || oy >= m.in_h) continue;
          for (int64_t kx = 0; kx < m.kernel_w; ++kx) {
            const int64_t ox = ix * s.stride_w - m.left + kx;
            if (ox < 0 || ox >= m.in_w) continue;
            Sum* to = sums + ((b * m.in_h + oy) * m.in_w + ox) * units;
            for (int64_t u = 0; u < units; ++u) {
              const W* q = w + ((u * m.kernel_h + ky) * m.kernel_w + kx) * m.depth;
              const int32_t weight_zero = s.weight_zeros.empty() ? 0 : s.weight_zeros[0];
              Sum sum = 0;
              for (int64_t c = 0; c < m.depth; ++c) {
                sum = Plus(sum, Sum{int32_t{p[c]} - zero} * (int32_t{q[c]} - weight_zero));
              }
              to[u] = Plus(to[u], sum);
            }
          }
        }
      }
    }
  }
  for (int64_t i = 0; i < m.batch * m.in_h * m.in_w * units; ++i) {
    if constexpr (sizeof(T) == 2) {
      y[i] = static_cast<T>(finish.Wide(sums[i], i % units));
    } else {
      y[i] = static_cast<T>(finish(sums[i], i % units));
    }
  }
}

Status RunTransposed(OpContext& ctx) {
  auto& s = ctx.state<LayerState>();
  const Tensor &sizes = ctx.input(0), &filter = ctx.input(1), &in = ctx.input(2);
  ASSIGN_OR_RETURN(const auto fitted, TransposedImageOf(s, sizes, in.shape(), filter.shape()));
  const Shape& shape = fitted.output;
  const Image& m = fitted.image;
  ASSIGN_OR_RETURN(const Finish finish, Finish::Of(ctx, s, 3, shape[3], LeavesGaps(s, m)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  const bool wide = in.dtype() == Dtype::kInt16;
  ASSIGN_OR_RETURN(Tensor sums, Tensor::Zeros(wide ? Dtype::kInt64 : Dtype::kInt32, shape));
  if (in.dtype() == Dtype::kUint8) {
    Transposed(s, m, finish, shape[3], in.data<uint8_t>(), filter.data<uint8_t>(),
               sums.data<int32_t>(), out->data<uint8_t>());
  } else if (const auto* w = static_cast<const int8_t*>(filter.raw()); !wide) {
    Transposed(s, m, finish, shape[3], in.data<int8_t>(), w, sums.data<int32_t>(),
               out->data<int8_t>());
  } else {
    Transposed(s, m, finish, shape[3], in.data<int16_t>(), w, sums.data<int64_t>(),
               out->data<int16_t>());
  }
  return OkStatus();
}

// ---- fully connected layers

Status RunDense(OpContext& ctx) {
  auto& s = ctx.state<LayerState>();
  const Tensor &in = ctx.input(0), &weights = ctx.input(1);
  ASSIGN_OR_RETURN(const Shape shape, DenseOutput(s, in.shape(), weights.shape()));
  const int64_t n = weights.dim(0), k = weights.dim(1), rows = in.num_elements() / k;
  ASSIGN_OR_RETURN(const Finish finish, Finish::Of(ctx, s, 2, n));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (in.dtype() == Dtype::kInt16) {
    const int16_t* x = in.data<int16_t>();
    const auto* w = static_cast<const int8_t*>(weights.raw());
    int16_t* y = out->data<int16_t>();
    ParallelFor(rows * n, std::max<int64_t>(1, 65536 / k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int16_t* p = x + i / n * k;
        const int8_t* q = w + i % n * k;
        int64_t sum = 0;
        for (int64_t j = 0; j < k; ++j) sum += (int64_t{p[j]} - s.input.zero()) * q[j];
        y[i] = static_cast<int16_t>(finish.Exactly(sum, i % n));
      }
    });
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor sums, ctx.Temp(Dtype::kInt32, Shape({rows, n})));
  Status status;
  VisitNarrow(in.dtype(), [&]<typename T>() {
    const T* x = in.data<T>();
    const int32_t zero = s.input.zero();
    status = s.product(0).Run(
        weights, ctx.node().input(1).node->Is("Const"), n, k, s.weight_zeros, rows,
        [&](int64_t r, int64_t from, int64_t to, float* to_row) {
          const T* p = x + r * k;
          for (int64_t i = from; i < to; ++i) {
            to_row[i - from] = static_cast<float>(int32_t{p[i]} - zero);
          }
        },
        sums.data<int32_t>(), ctx.step().allocator);
    if (status.ok()) FinishRows(finish, sums.data<int32_t>(), rows, n, 0, n, out->data<T>());
  });
  return status;
}

std::string DeclineLayer(const Node& node, Places p) {
  const Dtype type = node.output_types[0];
  if (node.num_inputs() <= p.input || node.num_inputs() <= p.weights) return "an input is missing";
  if (!VisitNarrow(type, []<typename T>() {})) {
    return absl::StrCat("its output is ", DtypeName(type));
  }
  if (node.input_types[static_cast<size_t>(p.input)] != type) {
    return "its input is not of the output's type";
  }
  const Dtype weights = node.input_types[static_cast<size_t>(p.weights)];
  if (type == Dtype::kUint8 ? weights != Dtype::kUint8
                            : weights != Dtype::kInt8 && weights != Dtype::kInt4) {
    return absl::StrCat("its weights are ", DtypeName(weights));
  }
  if (std::string why = DeclineUnlessBounds(node); !why.empty()) return why;
  if (node.String("weights_format", "DEFAULT") != "DEFAULT") return "its weights are shuffled";
  const Range all = RangeOf(type);
  for (const Affine& a : {InputAffine(node, p.input), OutputAffine(node)}) {
    if (a.scales.size() != 1 || a.zeros.size() != 1) return "input or output have no scale";
    if (a.zeros[0] < all.low || a.zeros[0] > all.high) return "a zero point is out of range";
  }
  const Affine w = InputAffine(node, p.weights);
  if (w.scales.empty() || w.zeros.size() != w.scales.size()) return "its weights have no scales";
  if (w.block != 0) return "its weights have scales of blocks";
  const Range of_weights = RangeOf(type == Dtype::kUint8 ? type : Dtype::kInt8);
  // Products of two computed tensors have any zero points; int8 convolutions know none of weights.
  const bool any_zero =
      type == Dtype::kUint8 ||
      (type == Dtype::kInt8 && node.Is("tfl.fully_connected") && w.zeros.size() == 1);
  for (const int64_t z : w.zeros) {
    if (!any_zero ? z != 0 : z < of_weights.low || z > of_weights.high) {
      return "a zero point of the weights is out of range";
    }
  }
  return "";
}
std::string DeclineConv(const Node& node) { return DeclineLayer(node, kForward); }
std::string DeclineTransposed(const Node& node) { return DeclineLayer(node, kTransposed); }

constexpr Kernel kLiteLayerTable[] = {
    {"tfl.conv_2d", "", kAnyType, "lite:conv", RunConv, PrepareConv, DeclineConv},
    {"tfl.depthwise_conv_2d", "", kAnyType, "lite:depthwise", RunDepthwise, PrepareDepthwise,
     DeclineConv},
    {"tfl.transpose_conv", "", kAnyType, "lite:transpose_conv", RunTransposed, PrepareTransposed,
     DeclineTransposed},
    {"tfl.fully_connected", "", kAnyType, "lite:dense", RunDense, PrepareDense, DeclineConv},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteLayerKernels = lite::kLiteLayerTable;
}  // namespace smelt
