// Functions of their own for calls that stay calls, made of what is known of each.
#ifndef SMELT_OPTIMIZE_FUNCTIONS_SPECIALIZE_H_
#define SMELT_OPTIMIZE_FUNCTIONS_SPECIALIZE_H_

#include "smelt/optimize/passes.h"

namespace smelt {

// Types and numbers that a call gives, constants that it passes and results that nobody reads
// become part of a copy of the function, which calls that agree in all of them share.
Status SpecializeFunctions(Graph& graph, const PassContext& context);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_FUNCTIONS_SPECIALIZE_H_
