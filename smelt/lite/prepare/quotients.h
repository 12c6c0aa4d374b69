// Quotients of integers, which Python's `/` computes in doubles: h / 2 of a size, cast back.
#ifndef SMELT_LITE_PREPARE_QUOTIENTS_H_
#define SMELT_LITE_PREPARE_QUOTIENTS_H_

#include "smelt/graph/graph.h"

namespace smelt {

// There are no operators on doubles. What a cast to integers makes of a quotient of int32 by
// positive numbers, rounded down, up or not before, is a quotient of integers; what a cast to
// floats makes of one is a quotient of floats, the same but for what a float cannot say.
//
// REQUIRES: a graph of TensorFlow's ops, with its calls inlined.
Status DivideWithoutDoubles(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_QUOTIENTS_H_
