// Datasets that call functions on the elements of others. A function that ends with OUT_OF_RANGE
// ends the dataset. Thread safe.
#ifndef SMELT_KERNELS_DATASET_FUNCTIONS_H_
#define SMELT_KERNELS_DATASET_FUNCTIONS_H_

#include "smelt/kernels/common/bound_function.h"
#include "smelt/kernels/dataset/dataset.h"

namespace smelt {

// f(element). `preserve`: as many elements as the input has, so that OUT_OF_RANGE is an error.
MakeIterator MapElements(DatasetRef input, BoundFunction f, bool preserve);
// Those of which the predicate, a scalar bool, holds; or only those before the first of which it
// does not.
MakeIterator FilterElements(DatasetRef input, BoundFunction predicate);
MakeIterator ElementsWhile(DatasetRef input, BoundFunction predicate);
// f(state, element) -> (next state, output). REQUIRES: f returns no fewer values than the state
// has.
MakeIterator ScanElements(DatasetRef input, BoundFunction f, Element initial, bool preserve);
// The elements of the datasets that f makes of elements, one dataset after another; or taking turns
// among `cycle` of them, `block` elements at a time. REQUIRES: both above 0.
MakeIterator FlatMapElements(DatasetRef input, BoundFunction f);
MakeIterator InterleaveElements(DatasetRef input, BoundFunction f, int64_t cycle, int64_t block);
// next(state) until OUT_OF_RANGE, for state = init(); then finalize(state).
MakeIterator GeneratedElements(BoundFunction init, BoundFunction next, BoundFunction finalize);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_FUNCTIONS_H_
