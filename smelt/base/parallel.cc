#include "smelt/base/parallel.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "smelt/base/denormals.h"

namespace smelt {

void SetThreads(int n) { omp_set_num_threads(n); }

int Threads() { return omp_get_max_threads(); }

int NumCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void ParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t parts = std::min<int64_t>(omp_in_parallel() ? 1 : omp_get_max_threads(), n / grain);
  if (parts <= 1) {
    body(0, n);
    return;
  }
  // Where the caller flushes denormals, so does its team.
  const bool flush = FlushDenormals::On();
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (int64_t i = 0; i < parts; ++i) {
    if (flush) FlushDenormals::Start();
    body(n * i / parts, n * (i + 1) / parts);
  }
}

}  // namespace smelt
