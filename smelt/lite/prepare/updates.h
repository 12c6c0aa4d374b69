// Ops that read or write a part of a variable, as ops on the whole of it.
#ifndef SMELT_LITE_PREPARE_UPDATES_H_
#define SMELT_LITE_PREPARE_UPDATES_H_

#include "smelt/graph/graph.h"

namespace smelt {

// ResourceGather becomes a read and a Gather, ResourceScatterAdd a read, a TensorScatterAdd and a
// write, and so on. Those for which there is no such op stay.
Status SpellUpdates(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_UPDATES_H_
