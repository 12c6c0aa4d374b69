// A random generator that is a variable.
#ifndef SMELT_KERNELS_RANDOM_GENERATOR_H_
#define SMELT_KERNELS_RANDOM_GENERATOR_H_

#include "absl/functional/function_ref.h"
#include "smelt/kernels/random/random.h"

namespace smelt {

// Calls use(generator, words of the state) under the lock of the variable that input 0 names, then
// moves the generator on by so many blocks. A use that fails leaves it where it was.
// INVALID_ARGUMENT for a variable that is no generator or an unknown algorithm, UNIMPLEMENTED for
// ThreeFry. Any thread.
Status UseGenerator(const OpContext& ctx, int64_t algorithm, uint64_t blocks,
                    absl::FunctionRef<Status(const Philox&, const int64_t*)> use);

}  // namespace smelt

#endif  // SMELT_KERNELS_RANDOM_GENERATOR_H_
