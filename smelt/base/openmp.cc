// The entry points of libgomp that oneDNN's code calls, on smelt's own teams. smelt's copy of
// oneDNN asks for them by these names (cmake/private_onednn.py), which nobody else has: a process
// that loads smelt as a library may run another OpenMP. libgomp's waiting threads spin for
// milliseconds, which on cores that others use too makes a loop of microseconds take as long as a
// scheduler's turn.
#include "smelt/base/team.h"

#define SMELT_ENTRY extern "C" __attribute__((visibility("default")))

SMELT_ENTRY void smelt_GOMP_parallel(void (*body)(void*), void* data, unsigned size,
                                     unsigned flags);
SMELT_ENTRY void smelt_GOMP_barrier();
SMELT_ENTRY int smelt_omp_get_max_threads();
SMELT_ENTRY int smelt_omp_get_num_threads();
SMELT_ENTRY int smelt_omp_get_thread_num();
SMELT_ENTRY int smelt_omp_in_parallel();

void smelt_GOMP_parallel(void (*body)(void*), void* data, unsigned size, unsigned) {
  smelt::RunTeam(size > 0 ? static_cast<int>(size) : smelt::WantedTeamSize(), [&] { body(data); });
}
void smelt_GOMP_barrier() { smelt::TeamBarrier(); }
int smelt_omp_get_max_threads() { return smelt::WantedTeamSize(); }
int smelt_omp_get_num_threads() { return smelt::TeamSize(); }
int smelt_omp_get_thread_num() { return smelt::TeamIndex(); }
int smelt_omp_in_parallel() { return smelt::InTeam() ? 1 : 0; }

#undef SMELT_ENTRY
