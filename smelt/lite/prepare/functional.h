// Control flow of version 1 as branches and loops that call functions, which a .tflite file has.
#ifndef SMELT_LITE_PREPARE_FUNCTIONAL_H_
#define SMELT_LITE_PREPARE_FUNCTIONAL_H_

#include "smelt/graph/graph.h"

namespace smelt {

// Frames (Enter, Merge, Switch, NextIteration, Exit) become While nodes, what Switch and Merge
// choose between If nodes, and TensorArrays lists. Their functions join the graph's library. Nodes
// that this cannot be done for stay, and have the attribute kWhyNot (common/attributes.h).
//
// REQUIRES: a callable graph (optimize/passes.h) with its calls inlined.
Status MakeFunctional(Graph& graph);

// ---- what the files of this folder share

// TensorArrays whose every reader is known, as lists.
Status ArraysToLists(Graph& graph);
// The innermost frames first. A loop's functions may still have switches.
Status FramesToLoops(Graph& graph);
// Those around others first.
Status SwitchesToBranches(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_FUNCTIONAL_H_
