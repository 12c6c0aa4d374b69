// The parameter of the optimizer batch_op_rewrite (optimize/custom/batch_ops.cc): how the batch ops
// of models are to run, in place of what the models say. Any thread.
#ifndef SMELT_WIRE_OPTIONS_BATCH_OP_OPTIONS_H_
#define SMELT_WIRE_OPTIONS_BATCH_OP_OPTIONS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// How many batches are computed at a time, where the scheduler finds that out by itself.
struct AdaptiveBatchOptions {
  int64_t min_inflight_batches = 16;
  int64_t initial_inflight_batches = 16;
  int64_t max_inflight_batches = 64;
  int64_t batches_to_average_over = 10;
  int64_t full_batch_scheduling_boost_micros = -1;  // -1: not stated
};

// What is not stated stays as the model has it.
struct ModelBatchOptions {
  std::optional<int64_t> num_batch_threads, num_warmup_batch_threads, max_batch_size,
      batch_timeout_micros, max_enqueued_batches;
  std::vector<int64_t> allowed_batch_sizes;  // empty: not stated
  std::optional<bool> disable_large_batch_splitting;
  std::optional<AdaptiveBatchOptions> adaptive;
};

struct BatchOpOptions {
  // One team of threads for all batch ops.
  bool shared_thread_pool = false;
  // The field model_scheduler_options, which nothing reads any more, is stated.
  bool deprecated_scheduler_options = false;
  std::map<std::string, ModelBatchOptions> models;  // by the name in ConfigProto's session_metadata
  // The threads of one scheduler for all models, which serves requests by priority.
  std::optional<int64_t> global_prioritization_threads;
};

// Base64 of a serialized BatchOpRewriteConfig; empty: nothing is stated. INTERNAL, as in
// TensorFlow, when it does not parse.
StatusOr<BatchOpOptions> ParseBatchOpOptions(absl::string_view encoded);

}  // namespace smelt

#endif  // SMELT_WIRE_OPTIONS_BATCH_OP_OPTIONS_H_
