// How deep recursion may go that input decides: as deep as the calling thread's stack allows.
#ifndef SMELT_BASE_STACK_H_
#define SMELT_BASE_STACK_H_

#include <cstddef>

namespace smelt {

// Bytes between the caller's frame and the end of the calling thread's stack, guard pages left out.
// The main thread's stack ends where the limit of the process ends it (`ulimit -s`) when the thread
// asks first. The largest size_t on a stack that is not the thread's own. Any thread; a few
// instructions after a thread's first call.
size_t StackLeft();

// What a function that goes on into recursion must find: room for the frames up to the next check
// and for the leaves, kernels and libraries among them. One that finds less returns
// RESOURCE_EXHAUSTED.
inline constexpr size_t kStackReserve = size_t{96} << 10;

inline bool StackIsShort() { return StackLeft() < kStackReserve; }

}  // namespace smelt

#endif  // SMELT_BASE_STACK_H_
