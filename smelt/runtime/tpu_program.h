// What an accelerator asks of a function before it runs it: that it can be compiled, and that its
// weights and activations fit into the memory of a core.
#ifndef SMELT_RUNTIME_TPU_PROGRAM_H_
#define SMELT_RUNTIME_TPU_PROGRAM_H_

#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/analysis/split_rows.h"
#include "smelt/device/device.h"
#include "smelt/kernels/step.h"
#include "smelt/runtime/executable.h"

namespace smelt {

// How a function is spread, from its TPUReplicateMetadata.
struct TpuReplica {
  int cores = 1;          // num_cores_per_replica
  bool assigned = false;  // device_assignment names the cores

  static TpuReplica Of(const Function& function);
};

// One function that TPUPartitionedCall names. Thread safe.
class TpuProgram {
 public:
  // Checks the function's graph as TensorFlow's runtime does, with its texts: one cluster at most,
  // one replica, no more cores than there are, and in the cluster (calls followed) only ops that
  // can be compiled, without strings; not the latter when the cluster allows soft placement.
  Status Check(const Graph& graph, int num_cores) const;

  // Books the constants of `executable`, made the `build`th time, on a core: once for each core.
  // RESOURCE_EXHAUSTED when they do not fit.
  Status Reserve(const Executable& executable, int64_t build, Device& core);

  // Whether arguments of these shapes can be split into parts of `part` of `rows` rows. Kept for
  // the next request of the same shapes.
  std::shared_ptr<const RowSplit> Split(const Executable& executable, int64_t build,
                                        std::span<const PartialShape> args, int64_t rows,
                                        int64_t part);

 private:
  struct Booking {
    int64_t build = -1;
    std::shared_ptr<const void> token;
  };
  absl::Mutex mutex_;
  std::map<std::pair<const Device*, const Executable*>, Booking> bookings_ ABSL_GUARDED_BY(mutex_);
  std::map<std::vector<int64_t>, std::shared_ptr<const RowSplit>> splits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_TPU_PROGRAM_H_
