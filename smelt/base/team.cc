#include "smelt/base/team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "smelt/base/denormals.h"
#include "smelt/base/processor.h"

namespace smelt {
namespace {

// Waking a sleeping thread costs some tens of microseconds, and the gaps between the loops of a
// model are shorter: a thread that waits spins first, then yields its core, then sleeps.
constexpr auto kYieldAfter = std::chrono::microseconds(20);
constexpr auto kSleepAfter = std::chrono::microseconds(300);
constexpr int kPausesBetweenLooks = 16;

// False when not ready within kSleepAfter.
template <typename Ready>
bool SpinUntil(Ready ready) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < kPausesBetweenLooks; ++i) {
      if (ready()) return true;
      CpuPause();
    }
    const auto elapsed = std::chrono::steady_clock::now() - begin;
    if (elapsed > kSleepAfter) return false;
    if (elapsed > kYieldAfter) sched_yield();
  }
}

void WaitUntilChanged(const std::atomic<uint32_t>& word, uint32_t seen) {
  const auto changed = [&] { return word.load(std::memory_order_acquire) != seen; };
  if (SpinUntil(changed)) return;
  while (!changed()) word.wait(seen, std::memory_order_acquire);
}

struct Region {
  absl::FunctionRef<void()> body;
  int size;
  int wanted;  // Threads() of its members
  FlushDenormals::Mode mode;
  std::atomic<uint32_t> arrived{0}, barriers{0};
  std::atomic<bool> threw{false};
  std::exception_ptr thrown;  // by the member that set `threw`

  void Run() {
    try {
      body();
    } catch (...) {
      if (!threw.exchange(true)) thrown = std::current_exception();
    }
  }
};

// The part of a thread in the region that it runs.
struct Member {
  Region* region = nullptr;
  int index = 0, size = 1;
  bool in_team = false;
  int wanted = 0;  // 0: SetThreads was never called
};
thread_local Member me;
thread_local int64_t regions_started = 0;

// Forks between the first process and this one. A crew that recruited under a smaller count has
// lost its workers: a fork copies only the thread that calls it.
std::atomic<int> forks{0};

// The workers of one thread, which end with it.
class Crew {
 public:
  ~Crew() {
    ForgetLost();
    for (auto& w : workers_) {
      w->stop.store(true, std::memory_order_relaxed);
      w->Call();
    }
    for (auto& w : workers_) pthread_join(w->thread, nullptr);
  }

  // After a fork: drops the workers of the parent process, which do not run here. Their objects are
  // leaked, not destroyed: the fork may have caught a worker in any state.
  void ForgetLost() {
    if (born_ == forks) return;
    for (auto& w : workers_) static_cast<void>(w.release());
    workers_.clear();
    working_ = 0;
    born_ = forks;
  }

  // Returns how many workers there are, at most `count`; fewer when threads cannot be made.
  int Recruit(int count) {
    while (std::ssize(workers_) < count) {
      auto w = std::make_unique<Worker>();
      w->crew = this;
      w->index = static_cast<int>(workers_.size()) + 1;
      if (pthread_create(&w->thread, nullptr, &Crew::Work, w.get()) != 0) break;
      workers_.push_back(std::move(w));
    }
    return std::min(count, static_cast<int>(workers_.size()));
  }

  void Start(Region& region) {
    working_.store(region.size - 1, std::memory_order_relaxed);
    for (int i = 0; i + 1 < region.size; ++i) {
      workers_[i]->region.store(&region, std::memory_order_release);
      workers_[i]->Call();
    }
  }
  // Who has not come yet, as others use its core, comes for nothing: fn(index) is called in its
  // place.
  template <typename F>
  void RunInPlaceOfTheLate(const Region& region, F fn) {
    for (int i = 0; i + 1 < region.size; ++i) {
      Worker& w = *workers_[i];
      if (w.region.exchange(nullptr, std::memory_order_acq_rel) == nullptr) continue;
      fn(w.index);
      working_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
  void WaitForAll() {
    const auto done = [&] { return working_.load(std::memory_order_acquire) == 0; };
    if (SpinUntil(done)) return;
    for (uint32_t n = 0; (n = working_.load(std::memory_order_acquire)) != 0;) {
      working_.wait(n, std::memory_order_acquire);
    }
  }

 private:
  struct alignas(64) Worker {
    std::atomic<uint32_t> calls{0};
    std::atomic<Region*> region{nullptr};  // that it is to run, until somebody does
    std::atomic<bool> stop{false};
    int index = 0;  // TeamIndex() in every region; the caller is 0
    Crew* crew = nullptr;
    pthread_t thread;
    void Call() {
      calls.fetch_add(1, std::memory_order_release);
      calls.notify_one();
    }
  };

  static void* Work(void* self) {
    auto& w = *static_cast<Worker*>(self);
    for (uint32_t seen = 0;; ++seen) {
      WaitUntilChanged(w.calls, seen);
      if (w.stop.load(std::memory_order_relaxed)) return nullptr;
      Region* r = w.region.exchange(nullptr, std::memory_order_acq_rel);
      if (r == nullptr) continue;
      FlushDenormals::SetMode(r->mode);
      me = {r, w.index, r->size, true, r->wanted};
      r->Run();
      me = {};
      if (w.crew->working_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        w.crew->working_.notify_one();
      }
    }
  }

  int born_ = forks;
  std::vector<std::unique_ptr<Worker>> workers_;
  alignas(64) std::atomic<uint32_t> working_{0};
};

// The calling thread's workers; nullptr once they were destroyed, while other thread-local objects
// of an ending thread still are.
Crew* MyCrew() {
  thread_local bool ended = false;
  struct Holder {
    Crew crew;
    ~Holder() { ended = true; }
  };
  if (ended) return nullptr;
  static const int watched = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(watched);
  thread_local Holder holder;
  holder.crew.ForgetLost();
  return &holder.crew;
}

}  // namespace

void RunTeam(int size, absl::FunctionRef<void()> body) {
  const Member before = me;
  Crew* crew = size > 1 && !before.in_team ? MyCrew() : nullptr;
  const int workers = crew != nullptr ? crew->Recruit(size - 1) : 0;
  if (workers == 0) {
    me = {nullptr, 0, 1, before.in_team, before.wanted};
    Region alone{body, 1, 0, FlushDenormals::CurrentMode()};
    alone.Run();
    me = before;
    if (alone.threw) std::rethrow_exception(alone.thrown);
    return;
  }
  Region region{body, workers + 1, Threads(), FlushDenormals::CurrentMode()};
  ++regions_started;
  crew->Start(region);
  const auto run_as = [&](int index) {
    me = {&region, index, region.size, true, region.wanted};
    region.Run();
  };
  run_as(0);
  crew->RunInPlaceOfTheLate(region, run_as);
  me = before;
  crew->WaitForAll();
  if (region.threw) std::rethrow_exception(region.thrown);
}

int TeamIndex() { return me.index; }
int TeamSize() { return me.size; }
int64_t RegionsStarted() { return regions_started; }
bool InTeam() { return me.in_team; }

OutsideTeam::OutsideTeam()
    : region_(me.region), index_(me.index), size_(me.size), in_team_(me.in_team) {
  me = {nullptr, 0, 1, false, me.wanted};
}
OutsideTeam::~OutsideTeam() {
  me = {static_cast<Region*>(region_), index_, size_, in_team_, me.wanted};
}

void TeamBarrier() {
  Region* r = me.region;
  if (r == nullptr) return;
  const uint32_t round = r->barriers.load(std::memory_order_acquire);
  if (r->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(r->size)) {
    r->arrived.store(0, std::memory_order_relaxed);
    r->barriers.fetch_add(1, std::memory_order_release);
    r->barriers.notify_all();
    return;
  }
  WaitUntilChanged(r->barriers, round);
}

int NumCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void SetThreads(int n) { me.wanted = n; }

int Threads() {
  static const int cores = NumCores();
  return me.wanted > 0 ? me.wanted : cores;
}

}  // namespace smelt
