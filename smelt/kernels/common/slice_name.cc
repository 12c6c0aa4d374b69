#include "smelt/kernels/common/slice_name.h"

#include "absl/strings/str_join.h"

namespace smelt {

std::string SliceName(const Shape& shape, int64_t flat) {
  if (shape.rank() == 0) return "";
  Dims index(shape.rank());
  for (int d = shape.rank(); d-- > 0;) {
    index[d] = shape[d] == 0 ? 0 : flat % shape[d];
    flat = shape[d] == 0 ? 0 : flat / shape[d];
  }
  return absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

NdIndices::NdIndices(const Tensor& indices, const Shape& shape)
    : indices_(indices), shape_(shape), depth_(indices.shape().back()) {
  rows_ = indices.shape().Product(0, indices.rank() - 1);
  slice_ = shape.num_elements() == 0 ? 0 : shape.Product(static_cast<int>(depth_), shape.rank());
}

std::string NdIndices::Describe(int64_t row) const {
  Dims values;
  for (int64_t k = 0; k < depth_; ++k) values.push_back(IntAt(indices_, row * depth_ + k));
  const auto dims = indices_.shape().dims();
  return absl::StrCat("indices", SliceName(Shape(dims.first(dims.size() - 1)), row), " = [",
                      absl::StrJoin(values, ", "), "]");
}

}  // namespace smelt
