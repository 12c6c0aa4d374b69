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

// A row of indices for each value, a column for each dimension. REQUIRES: a matrix, two vectors.
Status CheckSparseCounts(const Tensor& indices, const Tensor& values, const Tensor& shape);

// TensorFlow's wording of the errors: "Input indices ..." or "Sparse indices ...".
enum class SparseWords : uint8_t { kInput, kSparse };
// Checks ranks and sizes of the three, and with `bounds` that every index lies within the shape;
// without, nothing is asked of the shape's dimensions. INVALID_ARGUMENT says which input is wrong.
// Any thread.
StatusOr<SparseView> ViewSparse(const Tensor& indices, const Tensor& values, const Tensor& shape,
                                bool bounds, SparseWords words = SparseWords::kInput);

// INVALID_ARGUMENT, in TensorFlow's words for a sparse tensor's shape, unless the dimensions make
// one. Any thread.
StatusOr<Shape> BuiltShape(std::span<const int64_t> dims);

// Checks ranks, equal counts, and that the sizes make a shape. INVALID_ARGUMENT in the words of
// TensorFlow's SparseTensor class. Any thread.
Status CheckSparseParts(const Tensor& indices, const Tensor& values, const Tensor& shape);
// INVALID_ARGUMENT unless rows of indices lie within the shape, each larger than the one before.
// REQUIRES: CheckSparseParts.
Status CheckSparseOrder(const Tensor& indices, std::span<const int64_t> sizes);

// -1, 0 or 1: lexicographic order of two rows of n indices.
int CompareIndices(const int64_t* a, const int64_t* b, int n);
// The numbers of `count` rows of n indices in that order; equal rows stay as they are.
std::vector<int64_t> SortedRows(const int64_t* indices, int64_t count, int n);

// "[1,2]".
std::string IndicesText(const int64_t* row, int n);

}  // namespace smelt

#endif  // SMELT_KERNELS_SPARSE_SPARSE_TENSOR_H_
