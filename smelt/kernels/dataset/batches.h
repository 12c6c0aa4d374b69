// Elements put together into batches, and taken apart. Thread safe.
#ifndef SMELT_KERNELS_DATASET_BATCHES_H_
#define SMELT_KERNELS_DATASET_BATCHES_H_

#include <functional>
#include <vector>

#include "smelt/kernels/dataset/dataset.h"

namespace smelt {

// What elements of one batch must have in common: TensorFlow has both, with words of their own.
enum class BatchRule { kSameShapes, kSameSizes };
// Rows of a batch: elements put together along a new first dimension, in the shape of the first
// one. INVALID_ARGUMENT when they do not agree. REQUIRES: at least one.
StatusOr<Element> BatchElements(const std::vector<Element>& elements, BatchRule rule, Step& step);

// The same for elements of different shapes: component c is padded with values[c] (a scalar) to
// shapes[c], or to the largest size where that one is unknown. INVALID_ARGUMENT for other ranks or
// types, DATA_LOSS for an element that is larger. REQUIRES: known ranks, one value for each shape.
StatusOr<Element> PadElements(const std::vector<Element>& elements,
                              const std::vector<PartialShape>& shapes,
                              const std::vector<Tensor>& values, Step& step);

// Puts the elements of a batch together.
using ElementJoiner = std::function<StatusOr<Element>(const std::vector<Element>&, Step&)>;
// Every `size` elements; `drop`: without what is left at the end. REQUIRES: size > 0.
MakeIterator Batches(DatasetRef input, int64_t size, bool drop, ElementJoiner join);

// The rows of elements. INVALID_ARGUMENT for elements whose components have no equal number.
MakeIterator UnbatchedElements(DatasetRef input);
// Batches of other sizes: `sizes`, over and over. REQUIRES: none negative, one above 0.
MakeIterator Rebatched(DatasetRef input, std::vector<int64_t> sizes, bool drop);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_BATCHES_H_
