// Which values a device's kernels leave in the memory of its host, whatever kind of device it is.
// Immutable; any thread.
#ifndef SMELT_OPTIMIZE_HOST_MEMORY_H_
#define SMELT_OPTIMIZE_HOST_MEMORY_H_

#include "smelt/graph/graph.h"

namespace smelt {

// Kernels of every device leave these results in the host's memory.
extern const OpSet kGiveToHost;
// Kernels of every device read and write int32 in the host's memory.
bool IsOfIntegersOnHost(const Node& n);
// Does a node of a GPU leave the value with the host?
bool IsInHostMemory(Endpoint e);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_HOST_MEMORY_H_
