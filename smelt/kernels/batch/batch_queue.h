// The rows that wait for batches, as the queues of TensorFlow's batch schedulers keep them: no
// threads, no clock. BatchScheduler drives queues with both; a simulation with a clock of its own
// meets the same rules.
#ifndef SMELT_KERNELS_BATCH_BATCH_QUEUE_H_
#define SMELT_KERNELS_BATCH_BATCH_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "smelt/base/status.h"

namespace smelt {

// As the attributes of the ops say; TensorFlow turns their int32 into sizes, so that what is
// negative stands for "no limit".
struct BatchOptions {
  // 0 or less: TensorFlow's adaptive scheduler. Here: one thread for each core, splitting on.
  int32_t num_threads = 1;
  int32_t max_batch_size = 0;  // rows of the largest request; without splitting also of a batch
  int32_t timeout_micros = 0;
  int32_t max_enqueued_batches = 10;
  // Sizes to which batches are padded, in increasing order; none: no padding.
  std::vector<int32_t> allowed_batch_sizes;
  bool split = false;  // a request may lie in several batches
  // A batch that closes at its timeout leaves the rows above the largest allowed size that it fills
  // to the next batch, if no piece of a request would be cut.
  bool batch_down = false;

  bool adaptive() const { return num_threads <= 0; }
  // Rows of the largest batch.
  uint64_t Limit() const;
  // The smallest allowed size that takes so many rows; `rows` itself when there is none.
  int64_t PaddedRows(int64_t rows) const;
  // INVALID_ARGUMENT, in the words of TensorFlow's queues, for options that make no queue.
  Status Check() const;
};

// Tasks that run as one. A Task is a piece of a request; its `rows` are an int64_t.
template <typename Task>
struct BatchOf {
  std::vector<Task> tasks;
  uint64_t rows = 0;
  absl::Time start;  // when the first task came
};

// One queue. Not thread safe. The last batch is open, those before it are closed.
template <typename Task>
class BatchQueue {
 public:
  using Batch = BatchOf<Task>;

  // REQUIRES: the options pass Check and outlive the queue.
  explicit BatchQueue(const BatchOptions& options) : options_(&options), limit_(options.Limit()) {
    batches_.emplace_back();
  }

  // INVALID_ARGUMENT for a request that is too large, UNAVAILABLE when there is no room for it; the
  // texts are TensorFlow's.
  Status CheckRoom(uint64_t rows) const;
  // The pieces that a request of so many rows comes in. With splitting, the first one fills the
  // open batch, and those between it and the last fill a batch each.
  std::vector<int64_t> PiecesOf(int64_t rows) const;
  // Adds a piece. REQUIRES: CheckRoom let its request in, and pieces come as PiecesOf says.
  void Add(Task task, absl::Time now);

  // When the open batch closes: never while it is empty, at once when it is full.
  absl::Time OpenUntil() const;
  // Whether there is a closed batch, or the open one is to be closed.
  bool HasWork(absl::Time now) const { return batches_.size() > 1 || OpenUntil() <= now; }
  // Takes the next batch. REQUIRES: HasWork(now).
  Batch Take(absl::Time now);

  const std::deque<Batch>& batches() const { return batches_; }

 private:
  void CloseOpenBatch(absl::Time now);

  const BatchOptions* options_;
  uint64_t limit_;
  std::deque<Batch> batches_;
};

// ---- definitions

// TensorFlow's conversion of its int32 attributes.
inline uint64_t AsBatchSize(int32_t n) { return static_cast<uint64_t>(static_cast<int64_t>(n)); }

inline uint64_t BatchOptions::Limit() const {
  const bool cut = (split || adaptive()) && !allowed_batch_sizes.empty();
  return AsBatchSize(cut ? allowed_batch_sizes.back() : max_batch_size);
}

inline int64_t BatchOptions::PaddedRows(int64_t rows) const {
  const auto it = std::ranges::lower_bound(allowed_batch_sizes, rows);
  return it == allowed_batch_sizes.end() ? rows : *it;
}

inline Status BatchOptions::Check() const {
  if (adaptive()) {
    const auto limit = static_cast<int64_t>(Limit());
    if (limit <= 0) return InvalidArgument("max_batch_size must be positive; was ", limit);
    if (max_enqueued_batches <= 0) {
      return InvalidArgument("max_enqueued_batches must be positive; was ", max_enqueued_batches);
    }
    if (max_batch_size < limit) {
      return InvalidArgument("max_input_task_size must be larger than or equal to max_batch_size;",
                             "got max_input_task_size as ", max_batch_size,
                             " and max_batch_size as ", limit);
    }
    return OkStatus();
  }
  if (max_batch_size == 0) {
    return InvalidArgument("input_batch_size_limit must be positive; was 0");
  }
  if (timeout_micros < 0) {
    return InvalidArgument("batch_timeout_micros must be non-negative; was ", timeout_micros);
  }
  if (!split) return OkStatus();
  if (max_enqueued_batches == 0) {
    return InvalidArgument("max_enqueued_batches must be positive; was 0");
  }
  if (AsBatchSize(max_batch_size) < Limit()) {
    // TensorFlow's text ends with these three values, with nothing between them.
    return InvalidArgument("When enable_large_batch_splitting is true, input_batch_size_limit ",
                           "must be greater than or equal to max_execution_batch_size.", 1,
                           AsBatchSize(max_batch_size), Limit());
  }
  if (Limit() == 0) return InvalidArgument("max_execution_batch_size must be positive; was 0");
  return OkStatus();
}

// What BatchQueue::CheckRoom finds, by numbers alone: of closed and open batches, and of rows in
// the open one. Sizes that stand for "no limit" wrap around here as they do in TensorFlow.
inline Status CheckBatchRoom(const BatchOptions& options, uint64_t batches, uint64_t open_rows,
                             uint64_t rows) {
  const uint64_t limit = options.Limit();
  const uint64_t max_batches = AsBatchSize(options.max_enqueued_batches);
  const uint64_t room = (max_batches - batches) * limit + (limit - open_rows);
  if (options.adaptive()) {
    if (rows > AsBatchSize(options.max_batch_size)) {
      return InvalidArgument("Task size ", rows, " is larger than max input task size ",
                             options.max_batch_size);
    }
    if (rows > room) return absl::UnavailableError("The batch scheduling queue is full");
    return OkStatus();
  }
  if (rows > AsBatchSize(options.max_batch_size)) {
    return InvalidArgument("Task size ", rows, " is larger than maximum input batch size ",
                           AsBatchSize(options.max_batch_size));
  }
  if (options.split) {
    if (rows <= room) return OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "The batch scheduling queue to which this task was submitted is full; task size is ", rows,
        " but scheduling capacity is only ", room, " (num_enqueued_batches=", batches,
        ", max_enqueued_batches=", max_batches, ", open_batch_size=", open_rows,
        ", max_execution_batch_size=", limit, ")"));
  }
  if (open_rows + rows > limit && batches >= std::max<uint64_t>(max_batches, 1)) {
    return absl::UnavailableError(absl::StrCat(
        "The batch scheduling queue to which this task was submitted is full; currently ", batches,
        " batches enqueued and max_enqueued_batches is ", std::max<uint64_t>(max_batches, 1)));
  }
  return OkStatus();
}

// Cuts the batch to the largest allowed size that it fills and returns the tasks beyond; an empty
// batch when a task would have to be cut.
template <typename Task>
BatchOf<Task> TrimToAllowedSize(BatchOf<Task>& batch, const std::vector<int32_t>& allowed) {
  BatchOf<Task> rest;
  const auto rows = static_cast<int64_t>(batch.rows);
  const auto above = std::ranges::lower_bound(allowed, rows);
  if (above == allowed.begin() || above == allowed.end() || *above == rows) return rest;
  const int64_t target = *std::prev(above);
  int64_t kept = 0;
  auto task = batch.tasks.begin();
  while (task != batch.tasks.end() && kept + task->rows <= target) {
    kept += task->rows;
    ++task;
  }
  if (kept < target) return rest;
  rest.tasks.assign(std::make_move_iterator(task), std::make_move_iterator(batch.tasks.end()));
  rest.rows = batch.rows - static_cast<uint64_t>(kept);
  batch.tasks.erase(task, batch.tasks.end());
  batch.rows = static_cast<uint64_t>(kept);
  return rest;
}

template <typename Task>
Status BatchQueue<Task>::CheckRoom(uint64_t rows) const {
  return CheckBatchRoom(*options_, batches_.size(), batches_.back().rows, rows);
}

template <typename Task>
std::vector<int64_t> BatchQueue<Task>::PiecesOf(int64_t rows) const {
  const uint64_t room = limit_ - batches_.back().rows;
  if (!(options_->split || options_->adaptive()) || static_cast<uint64_t>(rows) <= room) {
    return {rows};
  }
  std::vector<int64_t> sizes;
  if (room > 0) sizes.push_back(static_cast<int64_t>(room));
  for (int64_t rest = rows - static_cast<int64_t>(room); rest > 0; rest -= sizes.back()) {
    sizes.push_back(std::min(rest, static_cast<int64_t>(limit_)));
  }
  return sizes;
}

template <typename Task>
void BatchQueue<Task>::Add(Task task, absl::Time now) {
  const auto rows = static_cast<uint64_t>(task.rows);
  if (batches_.back().rows + rows > limit_) batches_.emplace_back();
  Batch& open = batches_.back();
  if (open.tasks.empty()) open.start = now;
  open.tasks.push_back(std::move(task));
  open.rows += rows;
}

template <typename Task>
absl::Time BatchQueue<Task>::OpenUntil() const {
  const Batch& open = batches_.back();
  if (open.tasks.empty()) return absl::InfiniteFuture();
  if (open.rows >= limit_) return absl::InfinitePast();
  return open.start + absl::Microseconds(options_->timeout_micros);
}

template <typename Task>
void BatchQueue<Task>::CloseOpenBatch(absl::Time now) {
  Batch& open = batches_.back();
  Batch rest;
  if (options_->batch_down && !options_->adaptive()) {
    const auto all = static_cast<double>(open.rows);
    rest = TrimToAllowedSize(open, options_->allowed_batch_sizes);
    // When the rest came is not known: its first row is taken to have come in proportion.
    rest.start = open.start + (now - open.start) * (static_cast<double>(open.rows) / all);
  }
  batches_.push_back(std::move(rest));
}

template <typename Task>
BatchOf<Task> BatchQueue<Task>::Take(absl::Time now) {
  if (batches_.size() == 1) CloseOpenBatch(now);
  Batch batch = std::move(batches_.front());
  batches_.pop_front();
  return batch;
}

}  // namespace smelt

#endif  // SMELT_KERNELS_BATCH_BATCH_QUEUE_H_
