#include "smelt/runtime/turnstile.h"

#include <ctime>

#include "absl/time/time.h"
#include "smelt/base/team.h"

namespace smelt {
namespace {

// How often one who waits looks whether its request is still wanted.
constexpr absl::Duration kLooks = absl::Milliseconds(5);

}  // namespace

int64_t RunTime::OfThread() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Turnstile::Turnstile(int at_once) {
  for (int lane = at_once; lane-- > 0;) free_.push_back(lane);
}

Turnstile& Turnstile::OfProcess() {
  static Turnstile* const own = new Turnstile(NumCores() + 1);
  return *own;
}

StatusOr<int> Turnstile::Enter(const Cancellation* cancellation) {
  absl::MutexLock lock(&mutex_);
  if (!free_.empty()) {
    const int lane = free_.back();
    free_.pop_back();
    return lane;
  }
  Waiter waiter;
  const auto place = queue_.insert(queue_.end(), &waiter);
  while (waiter.lane == kNone) {
    if (cancellation == nullptr) {
      waiter.changed.Wait(&mutex_);
      continue;
    }
    waiter.changed.WaitWithTimeout(&mutex_, kLooks);
    if (waiter.lane != kNone) break;
    if (Status wanted = cancellation->Check(); !wanted.ok()) {
      queue_.erase(place);
      return wanted;
    }
  }
  return waiter.lane;
}

void Turnstile::Leave(int lane) {
  absl::MutexLock lock(&mutex_);
  if (queue_.empty()) {
    free_.push_back(lane);
    return;
  }
  queue_.front()->lane = lane;
  queue_.front()->changed.Signal();
  queue_.pop_front();
}

}  // namespace smelt
