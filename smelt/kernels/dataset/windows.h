// Datasets whose elements hold datasets: windows and groups. Thread safe.
#ifndef SMELT_KERNELS_DATASET_WINDOWS_H_
#define SMELT_KERNELS_DATASET_WINDOWS_H_

#include "smelt/kernels/common/bound_function.h"
#include "smelt/kernels/dataset/dataset.h"

namespace smelt {

struct WindowSizes {
  size_t size, shift, stride;
  bool drop;
  size_t span() const { return (size - 1) * stride + 1; }
};
// Windows over the input, each a dataset for each component. REQUIRES: sizes above 0.
MakeIterator WindowedElements(DatasetRef input, WindowSizes sizes);

// key(element) -> int64, window_size(key) -> int64, reduce(key, dataset of a group) -> dataset.
struct GroupFunctions {
  BoundFunction key, reduce, window_size;
};
// Elements by key; a group that is full, and at the end every group, is reduced to a dataset whose
// elements come next.
MakeIterator GroupedElements(DatasetRef input, GroupFunctions functions);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_WINDOWS_H_
