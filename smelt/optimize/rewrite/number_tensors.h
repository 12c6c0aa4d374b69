// Tensors whose elements are all one number. Thread safe.
#ifndef SMELT_OPTIMIZE_REWRITE_NUMBER_TENSORS_H_
#define SMELT_OPTIMIZE_REWRITE_NUMBER_TENSORS_H_

#include <optional>

#include "smelt/graph/attr.h"

namespace smelt {

// The number that every element is; nothing where elements differ, there are none, the type is no
// number or bool, or a complex element has an imaginary part. -0 is 0. Of integers above 2^53 the
// nearest double. Looks at stated values alone, however many elements these stand for.
std::optional<double> UniformValue(const TensorValue& t);
// A tensor of one number that states it once. INVALID_ARGUMENT for types that are no number or
// bool, and for integers that do not have the number.
StatusOr<Attr> UniformTensor(Dtype dtype, const Shape& shape, double value);
// The same that states every element.
StatusOr<Tensor> FilledTensor(Dtype dtype, const Shape& shape, double value);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_REWRITE_NUMBER_TENSORS_H_
