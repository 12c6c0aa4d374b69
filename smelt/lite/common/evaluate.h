// Constants of constants, computed by our own kernels.
#ifndef SMELT_LITE_COMMON_EVALUATE_H_
#define SMELT_LITE_COMMON_EVALUATE_H_

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/io/file_system.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// The outputs of one op of TensorFlow. Errors of its kernel. Thread safe.
// `files`: those that it may read; nullptr: none.
StatusOr<std::vector<Tensor>> Evaluate(OpName op, std::vector<Tensor> inputs, AttrMap attrs,
                                       const FileSystem* files = nullptr);

// Dimension i of the result is dimension permutation[i] of `t`.
StatusOr<Tensor> Transposed(const Tensor& t, std::span<const int64_t> permutation);
inline StatusOr<Tensor> Transposed(const Tensor& t, std::initializer_list<int64_t> permutation) {
  return Transposed(t, std::span<const int64_t>(permutation.begin(), permutation.size()));
}
// "Add", "Mul" and so on of two tensors of one type, broadcast.
StatusOr<Tensor> Binary(OpName op, const Tensor& a, const Tensor& b);

}  // namespace smelt

#endif  // SMELT_LITE_COMMON_EVALUATE_H_
