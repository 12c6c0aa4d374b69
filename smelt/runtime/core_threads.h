// A host thread for each accelerator core, for programs that run on several.
#ifndef SMELT_RUNTIME_CORE_THREADS_H_
#define SMELT_RUNTIME_CORE_THREADS_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace smelt {

// Thread safe. Threads start when they are first needed and end with the object, which waits for
// the work it was given.
class CoreThreads {
 public:
  explicit CoreThreads(int cores);
  ~CoreThreads();
  // Queues `work` for the core's thread and returns; where the system gives no thread, does it at
  // once. REQUIRES: 0 <= core < cores; `work` does not
  // throw, and keeps what it refers to alive.
  void Start(int core, std::function<void()> work);

 private:
  struct Core {
    absl::Mutex mutex;
    std::deque<std::function<void()>> work ABSL_GUARDED_BY(mutex);
    bool end ABSL_GUARDED_BY(mutex) = false;
    bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return end || !work.empty(); }
    std::thread thread ABSL_GUARDED_BY(mutex);
  };
  static void Serve(Core& core);
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_CORE_THREADS_H_
