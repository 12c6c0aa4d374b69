// When each kernel of a step ran, for traces. Thread safe.
#ifndef SMELT_KERNELS_STEP_STATS_H_
#define SMELT_KERNELS_STEP_STATS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "smelt/graph/graph.h"

namespace smelt {

class StepStats {
 public:
  // One run of one kernel.
  struct Event {
    std::string node;
    std::string op;
    absl::string_view kernel;  // Kernel::name, which is static
    int64_t start_ns;          // since the epoch, as end_ns
    int64_t end_ns;
    uint64_t thread;  // a hash of the thread's id
    int64_t output_bytes;
    const void* what;  // a PlanAction of a program (compile/plan.h), else the node
  };
  // The kernel ran from start_ns until now, in the calling thread. `what`: nullptr: the node.
  void Add(const Node& node, absl::string_view kernel, int64_t start_ns, int64_t output_bytes,
           const void* what = nullptr);
  std::vector<Event> events() const {
    absl::MutexLock lock(&mutex_);
    return events_;
  }
  // Chrome's trace event format (chrome://tracing, Perfetto): complete events in microseconds.
  std::string ChromeTrace() const;

 private:
  mutable absl::Mutex mutex_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_KERNELS_STEP_STATS_H_
