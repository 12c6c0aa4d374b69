// A thin layer over oneDNN's C API: layouts, fused operations and compiled primitives.
//
// Everything that differs between the library's versions stays behind this header; no type of the
// library is named here. A Primitive is compiled for one set of shapes and for the number of
// threads that the compiling thread may use; small ones run in the calling thread.
#ifndef SMELT_KERNELS_ONEDNN_PRIMITIVE_H_
#define SMELT_KERNELS_ONEDNN_PRIMITIVE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "smelt/tensor/tensor.h"

namespace smelt::onednn {

// Element type, logical sizes, and where elements lie.
struct Layout {
  Dtype dtype = Dtype::kFloat;  // float, bfloat16, int32, int8 or uint8
  Dims dims;
  Dims strides;  // in elements

  bool present() const { return !dims.empty(); }
  // Row-major, without gaps.
  static Layout Dense(Dtype dtype, std::span<const int64_t> dims);
  // Logical order batch, channels, spatial; in memory the channels lie innermost, or second.
  static Layout Image(Dtype dtype, int64_t batch, int64_t channels,
                      std::span<const int64_t> spatial, bool channels_last);
};

// Applied to the result before it is stored, in order.
struct PostOp {
  enum class Kind : uint8_t {
    kRelu,  // alpha: slope of negative values
    kClip,  // to [alpha, beta]
    kElu,   // alpha
    kTanh,
    kLogistic,
    kGeluErf,
    kGeluTanh,
    kSwish,
    kHardSwish,
    kLinear,  // alpha * y + beta
    kAdd,     // a tensor of `operand`'s layout, sizes equal to the result's or 1
    kMul,
  };
  Kind kind = Kind::kRelu;
  float alpha = 0;
  float beta = 0;
  Layout operand;  // kAdd, kMul
  // kAdd: (operand - operand_zero) * operand_scale is added. Other than 1 and 0 only for the first
  // whole tensor that a convolution adds, of dst's type.
  float operand_scale = 1;
  int32_t operand_zero = 0;
  bool takes_tensor() const { return kind == Kind::kAdd || kind == Kind::kMul; }
};

// Of 8-bit operands: y = scale * (sum of (src - src_zero) * weights + bias), with an int32 bias and
// sums without rounding; padding stands for src_zero. An 8-bit result is rounded to nearest even
// and saturated.
struct Quantization {
  std::span<const float> scales;  // one, or one for each channel of the result
  int32_t src_zero = 0;
};

struct Window {
  Dims strides;
  Dims dilations;  // 1: dense
  Dims pad_before;
  Dims pad_after;
};

// Thread safe.
class Primitive {
 public:
  // UNIMPLEMENTED when the library has no code for the combination. The tensors of Run are, in this
  // order: src, weights, bias when present, dst, then the operands of the post-ops. The layout of
  // `weights` is the caller's; the library may want another (see PackWeights).
  static StatusOr<std::unique_ptr<Primitive>> Convolution(const Layout& src, const Layout& weights,
                                                          const Layout& bias, const Layout& dst,
                                                          const Window& window,
                                                          std::span<const PostOp> post_ops,
                                                          const Quantization* q = nullptr);
  // Convolution's transpose: spreads src over the larger dst.
  static StatusOr<std::unique_ptr<Primitive>> Deconvolution(const Layout& src,
                                                            const Layout& weights,
                                                            const Layout& dst,
                                                            const Window& window);
  // Convolution's gradient for the weights, whose layout is given. Run takes src, dst_grad,
  // weights_grad.
  static StatusOr<std::unique_ptr<Primitive>> ConvolutionWeightsGrad(const Layout& src,
                                                                     const Layout& dst_grad,
                                                                     const Layout& weights_grad,
                                                                     const Window& window);
  // `pack`: may the library want another layout of the weights?
  static StatusOr<std::unique_ptr<Primitive>> Matmul(const Layout& src, const Layout& weights,
                                                     bool pack, const Layout& bias,
                                                     const Layout& dst,
                                                     std::span<const PostOp> post_ops,
                                                     const Quantization* q = nullptr);
  // Averages leave padding out. Run takes src, dst.
  enum class Pool : uint8_t { kMax, kAvg };
  static StatusOr<std::unique_ptr<Primitive>> Pooling(Pool kind, const Layout& src,
                                                      const Layout& dst, const Window& window,
                                                      std::span<const int64_t> kernel);
  ~Primitive();

  // Does Run take weights that PackWeights has rearranged, and not the caller's?
  bool packs_weights() const;
  // Bytes of the weights in the layout that the primitive wants.
  size_t weights_bytes() const;
  // Does PackWeights of `o` write the same for the same weights?
  bool PacksAlike(const Primitive& o) const;
  // What PackWeights makes of weights, in words for forms that are kept (common/kept_form.h). Empty
  // where it is more than an order of them.
  std::string PackingText() const;
  // `packed` has weights_bytes() bytes.
  Status PackWeights(const void* weights, void* packed) const;
  // The same of weights multiplied by factors, which go along the first logical dimensions (groups,
  // channels of the result). False, and nothing is written, where the library has no fast code.
  // REQUIRES: float weights, packs_weights().
  StatusOr<bool> PackScaledWeights(const void* weights, std::span<const float> factors,
                                   void* packed) const;

  // Writes the result through its pointer in `tensors`, although that is const. `allocator` gives
  // scratch memory. REQUIRES: one pointer for each tensor, of the primitive's layouts.
  Status Run(std::span<const void* const> tensors, Allocator* allocator) const;
  // The same with scratch memory of scratch_bytes() bytes, aligned to kAlignment.
  Status Run(std::span<const void* const> tensors, void* scratch) const;
  size_t scratch_bytes() const;
  // The tensor of Run whose values dst takes first, to be added to: copied, unless it lies there.
  // -1: none.
  int summed_tensor() const;

  struct Impl;

 private:
  explicit Primitive(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_PRIMITIVE_H_
