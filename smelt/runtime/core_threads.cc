#include "smelt/runtime/core_threads.h"

#include "smelt/base/team.h"
#include "smelt/base/thread.h"

namespace smelt {

CoreThreads::CoreThreads(int cores) {
  for (int i = 0; i < cores; ++i) cores_.push_back(std::make_unique<Core>());
}

CoreThreads::~CoreThreads() {
  for (auto& core : cores_) {
    std::thread thread;
    {
      absl::MutexLock lock(&core->mutex);
      core->end = true;
      thread = std::move(core->thread);
    }
    if (thread.joinable()) thread.join();
  }
}

void CoreThreads::Start(int core, std::function<void()> work) {
  Core& c = *cores_[core];
  {
    absl::MutexLock lock(&c.mutex);
    if (!c.thread.joinable()) {
      auto thread = StartThread([&c] { Serve(c); });
      if (thread.ok()) c.thread = *std::move(thread);
    }
    if (c.thread.joinable()) {
      c.work.push_back(std::move(work));
      return;
    }
  }
  const ScopedThreads restored(Threads());
  work();
}

void CoreThreads::Serve(Core& core) {
  for (;;) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&core.mutex);
      core.mutex.Await(absl::Condition(&core, &Core::HasWork));
      if (core.work.empty()) return;
      work = std::move(core.work.front());
      core.work.pop_front();
    }
    work();
  }
}

}  // namespace smelt
