// Datasets that choose, repeat, join and count the elements of others. Thread safe.
#ifndef SMELT_KERNELS_DATASET_TRANSFORMS_H_
#define SMELT_KERNELS_DATASET_TRANSFORMS_H_

#include <vector>

#include "smelt/kernels/dataset/dataset.h"

namespace smelt {

// The first `count` elements; all when it is negative.
MakeIterator TakeElements(DatasetRef input, int64_t count);
// Those behind the first `count`; none when it is negative.
MakeIterator SkipElements(DatasetRef input, int64_t count);
// `count` times; for ever when it is negative.
MakeIterator RepeatElements(DatasetRef input, int64_t count);
// Every element whose number, modulo `shards`, is `index`. `need`: INVALID_ARGUMENT when some shard
// gets none. REQUIRES: 0 <= index < shards.
MakeIterator ShardElements(DatasetRef input, int64_t shards, int64_t index, bool need);
// The components of one element of each, as long as every one has another.
MakeIterator ZipElements(std::vector<DatasetRef> inputs);
MakeIterator ConcatenateElements(DatasetRef a, DatasetRef b);
// The first of equal ones, which are scalars of int32, int64 or string.
MakeIterator UniqueElements(DatasetRef input, Dtype dtype);
// The next of inputs[1 + i], where i (int64) is the next of inputs[0]. `stop`: ends with the first
// that has none left; else those are passed over.
MakeIterator ChosenElements(std::vector<DatasetRef> inputs, bool stop);
// Goes on where making an element fails.
MakeIterator ElementsWithoutErrors(DatasetRef input);
// FAILED_PRECONDITION when there are more or fewer; kUnknownCount allows any number.
MakeIterator CountedElements(DatasetRef input, int64_t wanted);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_TRANSFORMS_H_
