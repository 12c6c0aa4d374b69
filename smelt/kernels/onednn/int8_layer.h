// What an int8 layer (_Int8Conv2D, _Int8MatMul; graph/ops/own_ops.txt) keeps of its node.
#ifndef SMELT_KERNELS_ONEDNN_INT8_LAYER_H_
#define SMELT_KERNELS_ONEDNN_INT8_LAYER_H_

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "smelt/kernels/fusible.h"
#include "smelt/kernels/nn/depthwise_int8.h"
#include "smelt/kernels/nn/matmul_reference.h"
#include "smelt/kernels/nn/matrix_int8.h"
#include "smelt/kernels/nn/pairs_int8.h"
#include "smelt/kernels/nn/swish_int8.h"
#include "smelt/kernels/onednn/float_conv.h"
#include "smelt/kernels/onednn/float_matmul.h"
#include "smelt/kernels/unsigned_int8.h"

namespace smelt::onednn {

struct Int8State;

// _Int8MatMul as a product of two matrices.
struct Int8MatMulShapes {
  Shape rows, matrix, output;
  nn::MatMulProblem problem;
};
// INVALID_ARGUMENT where the shapes do not fit.
StatusOr<Int8MatMulShapes> ShapesOfInt8MatMul(const Int8State& s, const Shape& x, const Shape& w);

// What a layer is for tensors of known shapes.
struct Int8Geometry {
  nn::ConvProblem window;     // of a convolution
  Int8MatMulShapes matrices;  // of a product
  Shape output;
  int64_t depth = 0;
};

// Thread safe but for what prepare fills in.
struct Int8State final : FusibleState, UnsignedInt8 {
  bool product = false;  // _Int8MatMul

  nn::ConvAttrs conv;
  bool transpose_b = false;
  int contracted = 1;
  std::vector<float> scales;
  int32_t x_zero = 0;
  bool int8_result = false;
  bool addend = false;
  std::string activation;  // of a float result: Identity, Relu or Relu6
  // A result is clamped to [low, high], infinite where there is nothing to clamp; zero is added to
  // an int8 result before.
  float zero = 0, low = 0, high = 0;
  bool constant_weights = false;

  PlanCache plans;
  SmallCache<nn::DepthwiseInt8, 1, 1> depthwise;
  SmallCache<nn::SwishInt8, 1, 1> swish;  // of rows that are stored unsigned
  SmallCache<std::shared_ptr<const nn::PairsInt8Weights>, 1, 1> pairs;
  nn::MatrixInt8 matrices;
  // The way through float.
  FloatConv float_conv;
  FloatMatMul float_matmul;
  ConstantForms<std::monostate> wide_weights;

  // In int8_bind.cc. nullptr where none of the library, nn::DepthwiseInt8 and nn::PairsInt8 does
  // it, or where the tensors do not fit, which a run words.
  StatusOr<std::unique_ptr<BoundKernel>> BindThen(const BindContext& context,
                                                  const FusedOps& then) override {
    return BindLayer(context, then, nullptr);
  }
  bool may_quantize() const override { return !int8_result; }
  StatusOr<std::unique_ptr<BoundKernel>> BindQuantized(const BindContext& context,
                                                       const FusedOps& then,
                                                       const QuantizedResult& result) override {
    return BindLayer(context, then, &result);
  }
  bool MayBeUnsigned(const BindContext& context) const override;

 private:
  // nullopt: it is not bound.
  std::optional<Int8Geometry> GeometryOf(const BindContext& context) const;
  // result == nullptr: of the type that the node has.
  StatusOr<std::unique_ptr<BoundKernel>> BindLayer(const BindContext& context, const FusedOps& then,
                                                   const QuantizedResult* result);
};

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_INT8_LAYER_H_
