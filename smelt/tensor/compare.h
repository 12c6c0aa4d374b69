// Are two tensors the same answer?
#ifndef SMELT_TENSOR_COMPARE_H_
#define SMELT_TENSOR_COMPARE_H_

#include <string>

#include "smelt/tensor/tensor.h"

namespace smelt {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-4;
};

struct Comparison {
  bool equal = false;
  // Over elements that are finite in both. Relative to the wanted value where that is not zero.
  double max_abs = 0;
  double max_rel = 0;
  double max_wanted = 0;  // the largest of |wanted|, of floating and complex types
  std::string why;        // what differs, when something does
};

// Floating and complex types: |got - want| <= atol + rtol * |want|, NaN equals NaN, infinities by
// sign. Everything else exactly. Dtype and shape must be the same.
Comparison Compare(const Tensor& want, const Tensor& got, const Tolerance& tolerance);

}  // namespace smelt

#endif  // SMELT_TENSOR_COMPARE_H_
