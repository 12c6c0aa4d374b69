#include "smelt/base/parallel.h"

#include <sched.h>

#include <algorithm>

#include "smelt/base/team.h"

namespace smelt {

void SetThreads(int n) { SetTeamSize(n); }

int Threads() { return WantedTeamSize(); }

int NumCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void ParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t parts = std::min<int64_t>(InTeam() ? 1 : Threads(), n / grain);
  if (parts <= 1) {
    body(0, n);
    return;
  }
  RunTeam(static_cast<int>(parts), [&] {
    for (int64_t i = TeamIndex(); i < parts; i += TeamSize()) {
      body(n * i / parts, n * (i + 1) / parts);
    }
  });
}

}  // namespace smelt
