// Teams of threads that run one function together: what ParallelFor and, by the entry points of
// libgomp that openmp.cc provides, oneDNN's loops run on.
//
// Each thread that starts regions keeps workers of its own between them, so that concurrent callers
// are independent. Who waits, for work or for others, spins a little, then lets others have the
// core, then sleeps: a thread that spins for long on a core that others need holds up its own team.
// After a fork the child's threads find workers of their own; none may fork within a region.
#ifndef SMELT_BASE_TEAM_H_
#define SMELT_BASE_TEAM_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace smelt {

// Calls body once in each of `size` threads, one of them the caller, and returns when all are done.
// Within a region, and where no thread can be had, body runs in fewer: TeamSize() tells. Workers
// compute with the caller's floating-point mode. body must not throw.
void RunTeam(int size, absl::FunctionRef<void()> body);

// Of the region that the calling thread is in; outside of regions 0 and 1.
int TeamIndex();
int TeamSize();
// How many regions of several threads the calling thread has started so far: tells whether the
// loops of a library run on smelt's teams.
int64_t RegionsStarted();
// Does the thread take part in a region of several threads?
bool InTeam();
// Waits until every member of the region has come here.
void TeamBarrier();

// How many threads regions that this thread starts are to have; members of a team inherit it.
// At first: the cores that the process may use. REQUIRES: size >= 1.
void SetTeamSize(int size);
int WantedTeamSize();

}  // namespace smelt

#endif  // SMELT_BASE_TEAM_H_
