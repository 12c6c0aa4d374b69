// The executor of graphs without version 1 control flow: nodes run in one order fixed beforehand,
// so a step counts no pending inputs.
#ifndef SMELT_RUNTIME_SEQUENTIAL_H_
#define SMELT_RUNTIME_SEQUENTIAL_H_

#include "smelt/runtime/executable.h"

namespace smelt {

// For Executable::Make, which chooses the executor and documents arguments and errors.
StatusOr<std::unique_ptr<Executable>> MakeSequential(std::unique_ptr<Graph> graph,
                                                     std::string function,
                                                     std::vector<Region> regions = {});

}  // namespace smelt

#endif  // SMELT_RUNTIME_SEQUENTIAL_H_
