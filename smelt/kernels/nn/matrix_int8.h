// Convolutions and products of int8 numbers with int8 results by products of matrices of bytes
// (isa/matrix_tiles.h).
#ifndef SMELT_KERNELS_NN_MATRIX_INT8_H_
#define SMELT_KERNELS_NN_MATRIX_INT8_H_

#include <memory>
#include <span>
#include <vector>

#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/nn/matrix_rows.h"
#include "smelt/kernels/nn/pairs_int8.h"

namespace smelt::nn {

// What a node keeps for it: weights as the loops read them. Thread safe.
class MatrixInt8 {
 public:
  // Is this the way for the layer on this processor?
  static bool Suits(const Int8Window& w);

  // y = int8 of the sums, as `steps` say, of which only constants of steps are kept. nullptr where
  // they are more than a sum of int8 and a clamp, or results may leave int32. `weights`: as
  // PairsInt8Weights has them, or `transposed` ones of a product. `x_zero`: of numbers as they are
  // stored, with the bits of 0x80 turned over where `x_unsigned`. REQUIRES: Suits.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const Int8Window& w, const Tensor& weights,
                                              bool transposed, int32_t x_zero, bool x_unsigned,
                                              PairsInt8Steps steps);

  // y = clamp(rint(sums * scales) + zero, low, high) of sums that begin with the bias, which is how
  // TensorFlow Lite's layers round.
  struct Rounded {
    std::span<const float> scales;  // one, or one for each unit
    const int32_t* bias = nullptr;  // by unit; nullptr: none
    int8_t zero = 0, low = -128, high = 127;
  };
  // The same of `transposed` weights [units, kernel_h, kernel_w, depth], and of a signed x.
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const Int8Window& w, const Tensor& weights,
                                              int32_t x_zero, const Rounded& rounded);

 private:
  // What the sums of a layer begin with and are multiplied by.
  struct Sums {
    std::span<const float> scales;
    float factor = 1;  // of all scales
    const int32_t* bias = nullptr;
  };
  StatusOr<std::unique_ptr<BoundKernel>> BindRun(const Int8Window& w, const Tensor& weights,
                                                 bool transposed, int32_t x_zero, const Sums& sums,
                                                 const Int8MatrixRun& run,
                                                 const PairsInt8Steps::Step* added);

  ConstantForms<int64_t> packed_;  // by the number of a row's segments
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_MATRIX_INT8_H_
