// What a server's batching does to requests whose times and sizes are known: a simulation by
// events, without a model. Deterministic; all functions are thread safe.
//
// Each queue is a BatchFunction's: its batches wait for one of the queue's threads, which prepares
// the batch (transfers, dispatch), waits for a core of the accelerator in order of arrival, and
// holds both until the batch is done. Threads wake at once, and no two events take place at the
// same moment: requests of one time come one after the other.
#ifndef SMELT_CONVERT_ADVISE_SIMULATE_H_
#define SMELT_CONVERT_ADVISE_SIMULATE_H_

#include <functional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "smelt/kernels/batch/batch_queue.h"

namespace smelt {

struct SimulatedRequest {
  absl::Duration at;  // since the beginning; not before that of the request in front
  int64_t rows = 0;
  int route = 0;  // which of the routes it takes
};

// How long a batch takes when nothing is in its way.
struct BatchTime {
  absl::Duration preparing;  // the thread alone
  absl::Duration computing;  // the thread and a core
};

struct SimulatedLoad {
  std::vector<SimulatedRequest> requests;
  // The queues that a request passes one after the other; each has at least one.
  std::vector<std::vector<int>> routes;
  int queues = 1;
  int cores = 1;
  absl::Duration duration;  // that the requests come in; positive
  // Of a batch with its padding. Called from several threads.
  std::function<BatchTime(int queue, int64_t rows)> time;
};

struct SimulatedBatch {
  int queue = 0;
  int64_t rows = 0, padded = 0;
  absl::Duration start;  // when a thread took it
};

struct SimulationResult {
  int64_t answered = 0, rejected = 0;
  // A request's latency ends with the last of its batches. What those took by themselves is no
  // waiting; for others of the batch to come, for a thread and for a core is.
  absl::Duration mean_wait, p99_wait, mean_latency, p99_latency;
  double padding = 0;  // rows that pad, as a share of all rows that are computed
  double rows_per_batch = 0, batches_per_second = 0;
  // Time of computing by what the cores had, and time of both kinds by what the threads of the
  // busiest queue had. Above 1 what comes is more than what can be done.
  double core_load = 0, thread_load = 0;
  std::vector<SimulatedBatch> batches;  // by start

  bool KeepsUp() const { return rejected == 0 && core_load < 1 && thread_load < 1; }
};

// INVALID_ARGUMENT in the words of the queues for options that make none and for a request above
// max_batch_size. REQUIRES: options.num_threads > 0.
StatusOr<SimulationResult> SimulateBatching(const BatchOptions& options, const SimulatedLoad& load);

}  // namespace smelt

#endif  // SMELT_CONVERT_ADVISE_SIMULATE_H_
