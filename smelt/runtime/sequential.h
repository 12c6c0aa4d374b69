// The executor of graphs without version 1 control flow: one order, no counting, no locks.
#ifndef SMELT_RUNTIME_SEQUENTIAL_H_
#define SMELT_RUNTIME_SEQUENTIAL_H_

#include "smelt/runtime/executable.h"

namespace smelt {

StatusOr<std::unique_ptr<Executable>> MakeSequential(std::unique_ptr<Graph> graph,
                                                     std::string function);

}  // namespace smelt

#endif  // SMELT_RUNTIME_SEQUENTIAL_H_
