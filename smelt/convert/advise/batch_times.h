// How long batches take that no server has run yet. Not thread safe.
#ifndef SMELT_CONVERT_ADVISE_BATCH_TIMES_H_
#define SMELT_CONVERT_ADVISE_BATCH_TIMES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "smelt/convert/advise/simulate.h"
#include "smelt/convert/advise/traffic.h"
#include "smelt/convert/conversion.h"
#include "smelt/convert/report/report_data.h"

namespace smelt {

// The BatchFunctions that signatures of the traffic reach, in a model that has them.
struct BatchQueues {
  struct Queue {
    std::string title;         // of its function
    const Function* function;  // what it runs on a batch
    std::vector<const Node*> nodes;
    std::vector<std::string> at;  // by node, the function that it stands in; "": the main graph
  };
  std::vector<Queue> queues;
  std::vector<std::vector<int>> routes;  // by signature of the traffic; empty: it is not batched
};
BatchQueues FindBatchQueues(const Conversion& c, const Traffic& traffic);

// Times of batches of some sizes, for each queue.
struct BatchTimes {
  std::vector<std::map<int64_t, BatchTime>> of;
  std::string how;  // where they come from
  std::vector<std::string> notes;
};

// Computed for one core of the generation (docs/batching.md): what is multiplied and moved at its
// peak rates, transfers and a constant for each batch. Sets the shapes of the inputs in `c`, which
// is of no other use afterwards. FAILED_PRECONDITION for a queue that runs nothing on a TPU;
// INVALID_ARGUMENT where shapes contradict each other at some size.
StatusOr<BatchTimes> ComputedBatchTimes(Conversion& c, const BatchQueues& queues,
                                        const Traffic& traffic, const std::vector<int64_t>& sizes,
                                        const TpuGeneration& tpu);

// Measured on this machine: the model in `dir` answers each signature's example, its first row
// repeated, best of a few. Sizes after one that takes seconds are left out. UNIMPLEMENTED for a
// signature that passes several queues; errors of the model.
StatusOr<BatchTimes> MeasuredBatchTimes(const Conversion& c, const std::string& dir,
                                        const BatchQueues& queues, const Traffic& traffic,
                                        const std::vector<int64_t>& sizes,
                                        const std::function<void(int64_t, int64_t)>& count);

// As said: "ROWS:MICROSECONDS, ...", rows increasing. Between two points time grows evenly, below
// the first it is that of the first, above the last it grows with the rows. INVALID_ARGUMENT for
// what is no such list.
StatusOr<BatchTimes> SaidBatchTimes(const std::string& text, const BatchQueues& queues,
                                    const std::vector<int64_t>& sizes);

}  // namespace smelt

#endif  // SMELT_CONVERT_ADVISE_BATCH_TIMES_H_
