// Teams of threads that run one function together: what ParallelFor and, by the entry points of
// libgomp that openmp.cc provides, oneDNN's loops run on.
//
// A region is one run of such a function. Each thread that starts regions keeps workers of its own
// between them, so that concurrent callers are independent. A thread that waits, for work or for
// others, spins a little, then yields its core, then sleeps: one that spins for long on a core that
// others need holds up its own team. After a fork the child starts workers of its own; a member of
// a team must not fork within a region.
#ifndef SMELT_BASE_TEAM_H_
#define SMELT_BASE_TEAM_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace smelt {

// Calls body once as each of `size` members, of which the caller is one and other threads are the
// rest, and returns when all are done. A member whose thread has not come when the caller is done
// with its own part, as another process has the core, is the caller's part too.
// Within a region of several threads body runs in the caller alone, and where threads cannot be
// made in fewer: TeamSize() tells. Workers compute in the caller's floating-point mode
// (denormals.h). What body throws, one of it, is thrown again in the caller once all are done; a
// body that uses TeamBarrier must not throw.
void RunTeam(int size, absl::FunctionRef<void()> body);

// The calling thread's number in its region, and the region's threads; 0 and 1 outside of one.
int TeamIndex();
int TeamSize();
// How many regions of several threads the calling thread has started so far: tells whether the
// loops of a library run on smelt's teams.
int64_t RegionsStarted();
// Does the thread take part in a region of several threads?
bool InTeam();
// Waits until every member of the region has called it; returns at once outside of one.
void TeamBarrier();

// Cores that the calling thread may run on (its affinity mask); at least 1.
int NumCores();
// How many threads the regions and loops that the calling thread starts are to have; members of a
// team inherit it. At first as many as NumCores() said to the first who asked. REQUIRES: n >= 1.
void SetThreads(int n);
int Threads();

// Sets the calling thread's number while it lives. Destroyed by the thread that made it.
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

// While it lives the calling thread is as one outside of all regions, with the same Threads(). For
// code of a library that asks for threads in order to plan, not to run.
class OutsideTeam {
 public:
  OutsideTeam();
  ~OutsideTeam();
  OutsideTeam(const OutsideTeam&) = delete;
  OutsideTeam& operator=(const OutsideTeam&) = delete;

 private:
  void* region_;
  int index_, size_;
  bool in_team_;
};

}  // namespace smelt

#endif  // SMELT_BASE_TEAM_H_
