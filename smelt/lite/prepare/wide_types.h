// Ops of types that no operator takes, computed in wider ones.
#ifndef SMELT_LITE_PREPARE_WIDE_TYPES_H_
#define SMELT_LITE_PREPARE_WIDE_TYPES_H_

#include "smelt/graph/graph.h"

namespace smelt {

// float16 and bfloat16 become float for one op at a time and are rounded behind it, as TensorFlow's
// kernels round (some of them within sums, too); small integers become int32 or int64, whose
// results wrap around as theirs do when they are cast back. What an operator takes as it is stays.
//
// REQUIRES: a graph of TensorFlow's ops, with its calls inlined.
Status WidenTypes(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_WIDE_TYPES_H_
