// Normalizations that the remapper finds spelled out: _MklLayerNorm and _MklFusedInstanceNorm.
#include <algorithm>
#include <cmath>

#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/nn/layer_norm.h"

namespace smelt {
namespace {

struct FusedNormState : KernelState {
  float epsilon = 0;
  float alpha = 0;
  std::vector<int64_t> axes;  // of an instance
  std::optional<UnaryF32> activation;
};

// Rows of `depth` elements, each by itself.
void NormalizeRows(const float* x, const float* scale, const float* offset, float epsilon,
                   int64_t rows, int64_t depth, float* y, bool affine = false) {
  const auto normalize = affine ? Isa().affine_norm : Isa().layer_norm;
  ParallelFor(rows, std::max<int64_t>(1, 16384 / depth), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      normalize(x + r * depth, scale, offset, epsilon, y + r * depth, depth);
    }
  });
}

class BoundRowNorm final : public BoundKernel {
 public:
  // Inputs behind the first are the scale and the offset that there are; only x * factor + shift
  // (`affine`) may lack one, and may lie where it writes.
  BoundRowNorm(float epsilon, int64_t rows, int64_t depth, bool affine, bool has_scale,
               bool has_offset)
      : epsilon_(epsilon),
        rows_(rows),
        depth_(depth),
        affine_(affine),
        scale_(has_scale ? 1 : 0),
        offset_(has_offset ? 1 + scale_ : 0) {}
  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    const auto row = [&](int i) { return i == 0 ? nullptr : static_cast<const float*>(inputs[i]); };
    NormalizeRows(static_cast<const float*>(inputs[0]), row(scale_), row(offset_), epsilon_, rows_,
                  depth_, static_cast<float*>(outputs[0]), affine_);
    return OkStatus();
  }
  bool may_overwrite(int i) const override { return affine_ && i == 0; }

 private:
  const float epsilon_;
  const int64_t rows_, depth_;
  const bool affine_;
  const int scale_, offset_;  // inputs; 0: there is none
};

class BoundNormOfSquares final : public BoundKernel {
 public:
  BoundNormOfSquares(float epsilon, int64_t rows, int64_t depth, bool has_scale)
      : epsilon_(epsilon), rows_(rows), depth_(depth), has_scale_(has_scale) {}
  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    const auto* x = static_cast<const float*>(inputs[0]);
    const auto* scale = has_scale_ ? static_cast<const float*>(inputs[1]) : nullptr;
    auto* y = static_cast<float*>(outputs[0]);
    ParallelFor(rows_, std::max<int64_t>(1, 16384 / depth_), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) Row(x + r * depth_, scale, y + r * depth_);
    });
    return OkStatus();
  }
  bool may_overwrite(int i) const override { return i == 0; }

 private:
  void Row(const float* x, const float* scale, float* y) const {
    const IsaTable& isa = Isa();
    const float mean = isa.sum_squares(x, depth_, 0.0F) / static_cast<float>(depth_);
    const float factor = 1.0F / std::sqrt(mean + epsilon_);
    const IsaBinaryLoops& multiply =
        isa.binary[static_cast<int>(IsaBinary::kMul)][static_cast<int>(IsaType::kF32)];
    multiply.vs(x, &factor, y, depth_);
    if (scale != nullptr) multiply.vv(y, scale, y, depth_);
  }

  const float epsilon_;
  const int64_t rows_, depth_;
  const bool has_scale_;
};

float ToBfloat16AndBack(float x) {
  uint16_t bits;
  Isa().f32_to_bf16(&x, &bits, 1);
  Isa().bf16_to_f32(&bits, &x, 1);
  return x;
}

class BoundNarrowLayerNorm final : public BoundKernel {
 public:
  BoundNarrowLayerNorm(float epsilon, int64_t rows, int64_t depth)
      : epsilon_(epsilon), rows_(rows), depth_(depth) {}
  // Scale and offset as floats.
  size_t scratch_bytes() const override { return static_cast<size_t>(2 * depth_) * sizeof(float); }
  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    auto* scale = static_cast<float*>(scratch);
    float* offset = scale + depth_;
    Isa().bf16_to_f32(inputs[1], scale, depth_);
    Isa().bf16_to_f32(inputs[2], offset, depth_);
    const auto* x = static_cast<const uint16_t*>(inputs[0]);
    auto* y = static_cast<uint16_t*>(outputs[0]);
    ParallelFor(rows_, std::max<int64_t>(1, 16384 / depth_), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        Row(x + r * depth_, scale, offset, y + r * depth_);
      }
    });
    return OkStatus();
  }
  bool may_overwrite(int i) const override { return i == 0; }

 private:
  // Floats at a time; rows that are no longer are widened once.
  static constexpr int64_t kPiece = 2048;

  void Row(const uint16_t* x, const float* scale, const float* offset, uint16_t* y) const {
    const IsaTable& isa = Isa();
    float wide[kPiece];
    const auto each = [&](auto&& f) {
      for (int64_t i = 0; i < depth_; i += kPiece) {
        const int64_t n = std::min(kPiece, depth_ - i);
        if (i > 0 || depth_ > kPiece) isa.bf16_to_f32(x + i, wide, n);
        f(i, n);
      }
    };
    if (depth_ <= kPiece) isa.bf16_to_f32(x, wide, depth_);
    const auto count = static_cast<double>(depth_);
    double sum = 0, squares = 0;
    each([&](int64_t, int64_t n) { sum += static_cast<double>(isa.sum(wide, n)); });
    const auto mean = static_cast<float>(sum / count);
    each([&](int64_t, int64_t n) {
      squares += static_cast<double>(isa.sum_squares(wide, n, mean));
    });
    const auto variance = static_cast<float>(squares / count);
    const float center = ToBfloat16AndBack(mean);
    const float factor = ToBfloat16AndBack(1.0F / std::sqrt(variance + epsilon_));
    each([&](int64_t i, int64_t n) {
      isa.scale_shift(wide, wide, n, 1.0F, -center);
      isa.scale_shift(wide, wide, n, factor, 0.0F);
      isa.mul_add(wide, scale + i, offset + i, wide, n);
      isa.f32_to_bf16(wide, y + i, n);
    });
  }

  const float epsilon_;
  const int64_t rows_, depth_;
};

struct LayerNormState final : FusedNormState {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override {
    const Shape& x = context.inputs[0].shape;
    // What the run will refuse is left to it.
    if (x.rank() < 2 || x.rank() > 3 || x.num_elements() == 0) return nullptr;
    const int64_t depth = x.back();
    if (context.inputs[1].shape.num_elements() != depth ||
        context.inputs[2].shape.num_elements() != depth) {
      return nullptr;
    }
    return nn::BindLayerNorm(epsilon, x.num_elements() / depth, depth);
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareLayerNorm(const Node& node) {
  auto s = std::make_unique<LayerNormState>();
  s->epsilon = node.Float("epsilon");
  return s;
}

StatusOr<std::unique_ptr<KernelState>> PrepareFusedNorm(const Node& node) {
  auto s = std::make_unique<FusedNormState>();
  s->epsilon = node.Float("epsilon");
  s->alpha = node.Float("leakyrelu_alpha", 0.2F);
  s->axes = node.Ints("reduction_axes");
  const auto fused = node.Get<std::vector<std::string>>("fused_ops", {});
  if (fused.empty()) return s;
  if (fused.size() == 1 && fused[0] == "Relu") {
    s->activation = UnaryF32::kRelu;
  } else if (fused.size() == 1 && fused[0] == "LeakyRelu") {
    s->activation = UnaryF32::kLeakyRelu;
  } else {
    return InvalidArgument("Unsupported fusion in Fused InstanceNorm");
  }
  return s;
}

Status CheckScales(const OpContext& ctx, int64_t depth) {
  for (const int i : {1, 2}) {
    if (ctx.input(i).num_elements() == depth) continue;
    return InvalidArgument("scale and offset must have ", depth, " elements, one for each channel,",
                           " but input ", i, " is of shape ", ctx.input(i).shape().ToString());
  }
  return OkStatus();
}

Status RunFusedLayerNorm(OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 2 || x.rank() > 3) {
    return InvalidArgument("input must be 2 or 3-dimensional", x.shape().ToString());
  }
  const int64_t depth = x.dim(x.rank() - 1);
  RETURN_IF_ERROR(CheckScales(ctx, depth));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, x.shape()));
  if (x.num_elements() == 0) return OkStatus();
  NormalizeRows(x.data<float>(), ctx.input(1).data<float>(), ctx.input(2).data<float>(),
                ctx.state<LayerNormState>().epsilon, x.num_elements() / depth, depth,
                out->data<float>());
  return OkStatus();
}

// Images as [items, pixels, depth], or [items, depth, pixels] with channels first.
struct Instances {
  int64_t items = 0, pixels = 0, depth = 0;
  bool channels_last = true;
};

StatusOr<Instances> ViewInstances(const Shape& x, std::vector<int64_t> axes) {
  const int rank = x.rank();
  if (rank != 4 && rank != 5) {
    return InvalidArgument("input must be 4 or 5-dimensional", x.ToString());
  }
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::ranges::sort(axes);
  Instances v;
  v.items = x[0];
  v.channels_last = !axes.empty() && axes[0] == 1;
  const int first = v.channels_last ? 1 : 2;
  bool fits = static_cast<int>(axes.size()) == rank - 2;
  for (size_t i = 0; fits && i < axes.size(); ++i) fits = axes[i] == first + static_cast<int>(i);
  if (!fits) {
    return InvalidArgument("reduction_axes must be the dimensions between the batch and the ",
                           "channels");
  }
  v.depth = x[v.channels_last ? rank - 1 : 1];
  v.pixels = x.Product(first, first + rank - 2);
  return v;
}

// One channel whose pixels lie together.
void NormalizeRow(const float* x, int64_t n, float scale, float offset, float epsilon, float* y) {
  const IsaTable& isa = Isa();
  const float mean = isa.sum(x, n) / static_cast<float>(n);
  const float variance = isa.sum_squares(x, n, mean) / static_cast<float>(n);
  const float factor = scale / std::sqrt(variance + epsilon);
  isa.scale_shift(x, y, n, factor, offset - mean * factor);
}

// Channels side by side, so that rows of memory are read whole.
constexpr int64_t kChannelBlock = 64;

// `width` channels of an image whose pixels lie `depth` elements apart.
void NormalizeBlock(const float* x, int64_t pixels, int64_t depth, int64_t width,
                    const float* scale, const float* offset, float epsilon, float* y) {
  double mean[kChannelBlock] = {}, square[kChannelBlock] = {};
  for (int64_t p = 0; p < pixels; ++p) {
    const float* row = x + p * depth;
    for (int64_t c = 0; c < width; ++c) mean[c] += row[c];
  }
  const auto n = static_cast<double>(pixels);
  for (int64_t c = 0; c < width; ++c) mean[c] /= n;
  for (int64_t p = 0; p < pixels; ++p) {
    const float* row = x + p * depth;
    for (int64_t c = 0; c < width; ++c) {
      const double d = row[c] - mean[c];
      square[c] += d * d;
    }
  }
  float factor[kChannelBlock], shift[kChannelBlock];
  for (int64_t c = 0; c < width; ++c) {
    const double f = scale[c] / std::sqrt(square[c] / n + epsilon);
    factor[c] = static_cast<float>(f);
    shift[c] = static_cast<float>(offset[c] - mean[c] * f);
  }
  for (int64_t p = 0; p < pixels; ++p) {
    Isa().mul_add(x + p * depth, factor, shift, y + p * depth, width);
  }
}

Status RunFusedInstanceNorm(OpContext& ctx) {
  const auto& s = ctx.state<FusedNormState>();
  const Tensor& x = ctx.input(0);
  ASSIGN_OR_RETURN(const Instances v, ViewInstances(x.shape(), s.axes));
  RETURN_IF_ERROR(CheckScales(ctx, v.depth));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, x.shape()));
  if (x.num_elements() == 0) return OkStatus();
  const float* from = x.flat<float>().data();
  const float* scale = ctx.input(1).flat<float>().data();
  const float* offset = ctx.input(2).flat<float>().data();
  float* to = out->flat<float>().data();
  const int64_t width = v.channels_last ? std::min(v.depth, kChannelBlock) : 1;
  const int64_t blocks = (v.depth + width - 1) / width;
  ParallelFor(
      v.items * blocks, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, v.pixels * width)),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t item = i / blocks, c = i % blocks * width;
          const int64_t image = item * v.pixels * v.depth;
          if (v.channels_last) {
            NormalizeBlock(from + image + c, v.pixels, v.depth, std::min(width, v.depth - c),
                           scale + c, offset + c, s.epsilon, to + image + c);
          } else {
            const int64_t at = image + c * v.pixels;
            NormalizeRow(from + at, v.pixels, scale[c], offset[c], s.epsilon, to + at);
          }
        }
      });
  if (s.activation) {
    ParallelFor(x.num_elements(), 16384, [&](int64_t begin, int64_t end) {
      Isa().unary[static_cast<int>(*s.activation)](to + begin, to + begin, end - begin, s.alpha);
    });
  }
  return OkStatus();
}

// The remapper fuses floats alone.
constexpr Kernel kFusedNormTable[] = {
    {"_MklLayerNorm", "T", Types(Dtype::kFloat), "nn:layer_norm", RunFusedLayerNorm,
     PrepareLayerNorm},
    {"_MklFusedInstanceNorm", "T", Types(Dtype::kFloat), "nn:instance_norm", RunFusedInstanceNorm,
     PrepareFusedNorm},
};

}  // namespace

extern constinit const std::span<const Kernel> kFusedNormKernels = kFusedNormTable;

namespace nn {

std::unique_ptr<BoundKernel> BindLayerNorm(float epsilon, int64_t rows, int64_t depth) {
  return std::make_unique<BoundRowNorm>(epsilon, rows, depth, false, true, true);
}

std::unique_ptr<BoundKernel> BindAffineNorm(float epsilon, int64_t rows, int64_t depth,
                                            bool has_scale, bool has_offset) {
  return std::make_unique<BoundRowNorm>(epsilon, rows, depth, true, has_scale, has_offset);
}

std::unique_ptr<BoundKernel> BindNormOfSquares(float epsilon, int64_t rows, int64_t depth,
                                               bool has_scale) {
  return std::make_unique<BoundNormOfSquares>(epsilon, rows, depth, has_scale);
}

std::unique_ptr<BoundKernel> BindNarrowLayerNorm(float epsilon, int64_t rows, int64_t depth) {
  return std::make_unique<BoundNarrowLayerNorm>(epsilon, rows, depth);
}

}  // namespace nn

}  // namespace smelt
