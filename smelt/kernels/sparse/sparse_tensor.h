// Sparse tensors as ops pass them: indices [n, rank], values [n], shape [rank].
#ifndef SMELT_KERNELS_SPARSE_SPARSE_TENSOR_H_
#define SMELT_KERNELS_SPARSE_SPARSE_TENSOR_H_

#include "smelt/kernels/common/arguments.h"

namespace smelt {

// A view of three tensors, which must outlive it.
struct SparseView {
  const Tensor* indices = nullptr;
  const Tensor* values = nullptr;
  Dims shape;

  int64_t count() const { return indices->dim(0); }
  int rank() const { return static_cast<int>(shape.size()); }
  const int64_t* row(int64_t i) const { return indices->data<int64_t>() + i * rank(); }
};

// Checks ranks and sizes of the three, and that every index lies within the shape when `bounds`.
// INVALID_ARGUMENT says which input is wrong: ops that slice and concatenate speak of inputs, those
// that reorder and split of the sparse tensor. Any thread.
enum class SparseWords : uint8_t { kInput, kSparse };
StatusOr<SparseView> ViewSparse(const Tensor& indices, const Tensor& values, const Tensor& shape,
                                bool bounds, SparseWords words = SparseWords::kInput);

// What ops on whole sparse tensors ask of the three: ranks, equal counts, sizes that make a shape.
// In the words of TensorFlow's SparseTensor class. Any thread.
Status CheckSparseParts(const Tensor& indices, const Tensor& values, const Tensor& shape);
// Rows of indices within the shape, each larger than the one before. REQUIRES: CheckSparseParts.
Status CheckSparseOrder(const Tensor& indices, std::span<const int64_t> sizes);

// -1, 0 or 1: lexicographic order of two rows of n indices.
int CompareIndices(const int64_t* a, const int64_t* b, int n);

// "[1,2]".
std::string IndicesText(const int64_t* row, int n);

}  // namespace smelt

#endif  // SMELT_KERNELS_SPARSE_SPARSE_TENSOR_H_
