// What StridedSlice and its relatives select: TensorFlow's sparse specification (begin, end,
// strides and five masks) resolved against a shape.
#ifndef SMELT_KERNELS_MOVEMENT_SLICE_SPEC_H_
#define SMELT_KERNELS_MOVEMENT_SLICE_SPEC_H_

#include "smelt/kernels/common/arguments.h"

namespace smelt {

// The attributes in the order in which ReadSliceMasks puts them.
StatusOr<std::unique_ptr<KernelState>> ReadSliceMasks(const Node& node);

struct SliceSpec {
  // By dimension of the sliced shape: first index, step, number of indices.
  Dims begin, stride, size;
  // The result: without the dimensions that an index removes, with the new axes.
  Shape shape;
  // Everything in order; or a range of dimension 0 in order.
  bool whole = false;
  bool rows = false;
};

// INVALID_ARGUMENT in TensorFlow's words. Any thread.
Status ResolveSlice(const Shape& shape, const Tensor& begin, const Tensor& end,
                    const Tensor& strides, const IntAttrs& masks, SliceSpec* spec);

}  // namespace smelt

#endif  // SMELT_KERNELS_MOVEMENT_SLICE_SPEC_H_
