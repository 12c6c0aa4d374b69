// Which inputs of an op a compiler for accelerators must know before anything runs.
#ifndef SMELT_ANALYSIS_COMPILE_TIME_H_
#define SMELT_ANALYSIS_COMPILE_TIME_H_

#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// Numbers of the inputs that must be compile-time constants. StridedSlice, of which that depends on
// its masks, is not among them.
std::vector<int> CompileTimeInputs(const Node& n);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_COMPILE_TIME_H_
