// Lets few long requests run at a time. Where more threads compute than there are cores, the system
// stops each in the middle for milliseconds, and the caches hold nobody's values: of 32 clients a
// request takes longer, and the slowest many times as long.
#ifndef SMELT_RUNTIME_TURNSTILE_H_
#define SMELT_RUNTIME_TURNSTILE_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/step.h"

namespace smelt {

// Who comes first is let in first. Thread safe.
class Turnstile {
 public:
  // REQUIRES: at_once >= 1.
  explicit Turnstile(int at_once);
  Turnstile(const Turnstile&) = delete;
  Turnstile& operator=(const Turnstile&) = delete;

  // The process's own: one more than there are cores, which is under way where one has to be woken.
  static Turnstile& OfProcess();

  // Waits until the caller is let in, and gives the lane that is its own until it leaves: below
  // at_once, and the one that was left last. CANCELLED or DEADLINE_EXCEEDED, as `cancellation`
  // (nullptr: none) says meanwhile; then the caller is not in.
  StatusOr<int> Enter(const Cancellation* cancellation);
  void Leave(int lane);
  int waiting() const {
    absl::MutexLock lock(&mutex_);
    return static_cast<int>(queue_.size());
  }

 private:
  static constexpr int kNone = -1;
  struct Waiter {
    int lane = kNone;
    absl::CondVar changed;
  };
  mutable absl::Mutex mutex_;
  std::vector<int> free_ ABSL_GUARDED_BY(mutex_);
  std::list<Waiter*> queue_ ABSL_GUARDED_BY(mutex_);
};

// How long the runs of something take at least, of late; what a few of them tell. Thread safe.
class RunTime {
 public:
  // What the calling thread has computed so far, in nanoseconds: it stands still while the system
  // lets others compute.
  static int64_t OfThread();
  // Shall the run with this number be timed?
  static bool Samples(int64_t run) { return run % 16 == 0; }
  void Note(int64_t nanoseconds) {
    const int64_t before = least_.load(std::memory_order_relaxed);
    // The first makes what later ones have, and of larger requests nobody knows.
    const bool slower = before > 0 && nanoseconds > before;
    const int64_t now = slower ? before + (nanoseconds - before) / 64 : nanoseconds;
    least_.store(now, std::memory_order_relaxed);
  }
  int64_t nanoseconds() const { return least_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> least_{0};  // 0: none is known
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_TURNSTILE_H_
