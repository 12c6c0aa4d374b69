// Intra-op parallelism: one loop split over the calling thread's team.
//
// The team (team.h) is the one that oneDNN's primitives use, so that the two never compete for
// cores. Each calling thread has its own team size (SetThreads); concurrent callers are
// independent. Thread safe.
#ifndef SMELT_BASE_PARALLEL_H_
#define SMELT_BASE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace smelt {

// Team size of loops that this thread starts from now on. REQUIRES: n >= 1.
void SetThreads(int n);
int Threads();

// Another team size while it lives.
class ScopedThreads {
 public:
  explicit ScopedThreads(int n) : before_(Threads()) {
    if (n != before_) SetThreads(n);
  }
  ~ScopedThreads() {
    if (Threads() != before_) SetThreads(before_);
  }
  ScopedThreads(const ScopedThreads&) = delete;
  ScopedThreads& operator=(const ScopedThreads&) = delete;

 private:
  int before_;
};

// Cores that this process may use.
int NumCores();

// Calls body(begin, end) on disjoint ranges that cover [0, n). A range holds at least `grain`
// iterations (but the last); with n <= grain, or one thread, body(0, n) runs in the caller.
// body must not throw and must not depend on the order of ranges.
void ParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

}  // namespace smelt

#endif  // SMELT_BASE_PARALLEL_H_
