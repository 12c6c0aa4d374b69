// Intra-op parallelism: one loop split over the calling thread's team.
//
// The team (team.h) is the one that oneDNN's primitives use, so that the two never compete for
// cores. Each calling thread has its own team size (SetThreads); concurrent callers are
// independent. Thread safe.
#ifndef SMELT_BASE_PARALLEL_H_
#define SMELT_BASE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "smelt/base/team.h"

namespace smelt {

// Calls body(begin, end) on disjoint ranges that cover [0, n), and returns when all are done. A
// range holds at least `grain` iterations; with n < 2 * grain, one thread, or within another loop,
// body(0, n) runs in the caller. What body throws is thrown again in the caller. body must not
// depend on the order of ranges.
void ParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

// The same in more ranges than there are threads where the grain allows it: each thread begins with
// ranges of its own, one behind the other, and one that is done takes the last of another's. For
// loops that take long enough for a core to be slowed by its neighbors, and whose body costs little
// to begin.
void SharedParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

}  // namespace smelt

#endif  // SMELT_BASE_PARALLEL_H_
