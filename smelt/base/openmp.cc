// The entry points of libgomp that oneDNN's library calls, on smelt's own teams: its names are
// looked up in the program first. libgomp's waiting threads spin for milliseconds, which on cores
// that others use too makes a loop of microseconds take as long as a scheduler's turn, and how long
// it spins can only be said before the program starts.
#include "smelt/base/team.h"

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned size, unsigned flags);
void GOMP_parallel(void (*body)(void*), void* data, unsigned size, unsigned) {
  smelt::RunTeam(size > 0 ? static_cast<int>(size) : smelt::WantedTeamSize(), [&] { body(data); });
}

void GOMP_barrier();
void GOMP_barrier() { smelt::TeamBarrier(); }

int omp_get_max_threads();
int omp_get_max_threads() { return smelt::WantedTeamSize(); }

int omp_get_num_threads();
int omp_get_num_threads() { return smelt::TeamSize(); }

int omp_get_thread_num();
int omp_get_thread_num() { return smelt::TeamIndex(); }

int omp_in_parallel();
int omp_in_parallel() { return smelt::InTeam() ? 1 : 0; }
}
