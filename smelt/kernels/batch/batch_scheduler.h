// Batching: the rows of several requests that wait at one place become one batch.
//
// A request brings rows and waits in its own thread. Its rows join the open batch of a queue; with
// splitting, rows that do not fit go on into further batches, piece by piece. A batch closes when
// it is full or when its first rows have waited for the timeout, and is processed in a thread of
// the scheduler. Threads are started when they are needed, at most as many as the options say.
// Requests that stop waiting (cancelled, late) leave their batch to the others; when everybody has
// left, the batch is cancelled.
#ifndef SMELT_KERNELS_BATCH_BATCH_SCHEDULER_H_
#define SMELT_KERNELS_BATCH_BATCH_SCHEDULER_H_

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/kernels/step.h"

namespace smelt {

// As the attributes of the ops say; TensorFlow turns their int32 into sizes, so that what is
// negative stands for "no limit".
struct BatchOptions {
  // 0 or less: TensorFlow's adaptive scheduler. Here: one thread for each core, splitting on.
  int32_t num_threads = 1;
  int32_t max_batch_size = 0;  // the largest request; without splitting also the largest batch
  int32_t timeout_micros = 0;
  int32_t max_enqueued_batches = 10;
  // Sizes to which batches are padded, growing; none: no padding.
  std::vector<int32_t> allowed_batch_sizes;
  bool split = false;
  // A batch that closes at its timeout gives what exceeds an allowed size to the next one, where
  // requests end there.
  bool batch_down = false;

  bool adaptive() const { return num_threads <= 0; }
  // Rows of the largest batch.
  uint64_t Limit() const;
  // The smallest allowed size that takes so many rows; `rows` itself when there is none.
  int64_t PaddedRows(int64_t rows) const;
  // INVALID_ARGUMENT in TensorFlow's words, as its queues say it when they are made.
  Status Check() const;
};

// A batch that is processed tells here whether anybody still waits for it. Thread safe.
class BatchAudience {
 public:
  const Cancellation& cancellation() const { return cancellation_; }
  void Enter() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  // false: nobody is left.
  bool Leave() {
    if (waiting_.fetch_sub(1, std::memory_order_acq_rel) > 1) return true;
    cancellation_.Cancel();
    return false;
  }
  void Cancel() { cancellation_.Cancel(); }

 private:
  Cancellation cancellation_;
  std::atomic<int> waiting_{1};  // who makes it counts until all have entered
};

// What one call of an op brings, and where it waits for the answer.
class BatchRequest {
 public:
  // Set by the op before it is scheduled; read by the batch's thread afterwards.
  std::vector<Tensor> inputs;  // of `rows` rows each
  int64_t rows = 0;
  std::vector<Tensor> captured;
  Callee function;
  int64_t id = 0;
  int threads = 1;  // team of loops, as in the caller's thread
  // What the batch's own step takes over: resources, functions, allocator, seed, device. Nothing
  // of the request's own that ends with it.
  Step step;

  // Waits until every piece is done; the first error of a piece is the answer. The error of a
  // cancelled or late step when that comes first: the pieces are then left to themselves.
  Status Wait(const Cancellation* cancellation);
  // Outputs by piece. REQUIRES: Wait said OK.
  std::vector<std::vector<Tensor>>& pieces() { return pieces_; }

  // For the scheduler.
  void SetPieces(size_t n);
  // false: the request has left.
  bool Attend(const std::shared_ptr<BatchAudience>& audience);
  void Finish(size_t piece, const Status& status, std::vector<Tensor> outputs);

 private:
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<std::vector<Tensor>> pieces_;  // guarded by mutex_ until all are done
  size_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
  Status status_ ABSL_GUARDED_BY(mutex_);
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<BatchAudience>> audiences_ ABSL_GUARDED_BY(mutex_);
};

// Rows [first, first + rows) of a request.
struct BatchTask {
  std::shared_ptr<BatchRequest> request;
  size_t piece = 0;
  int64_t first = 0;
  int64_t rows = 0;
  std::vector<Tensor> outputs;  // set by the processor
};

struct Batch {
  std::vector<BatchTask> tasks;
  uint64_t rows = 0;
  absl::Time start;  // when the first task came
};

// Sets the outputs of every task, or says what becomes the answer of all. Called in a thread of the
// scheduler; `batch` has tasks, whose requests still waited when it began.
using BatchProcessor = Status (*)(Batch& batch, const BatchOptions& options,
                                  const Cancellation& cancellation);

// Thread safe.
class BatchScheduler final : public Resource {
 public:
  static constexpr absl::string_view kKind = "batch_scheduler";
  absl::string_view kind() const override { return kKind; }

  BatchScheduler(BatchOptions options, BatchProcessor process);
  ~BatchScheduler() override { Shutdown(); }

  // UNAVAILABLE when the queue has no room, INVALID_ARGUMENT for a request that is too large or
  // for options that make no queue. CANCELLED after the end.
  Status Schedule(const std::shared_ptr<BatchRequest>& request, absl::string_view queue);
  // Requests whose batches have not begun get CANCELLED; batches that run are cancelled.
  void Shutdown();

 private:
  // The last batch is open, those before it are closed.
  struct Queue {
    std::string name;
    std::deque<Batch> batches;
  };

  Queue& FindQueue(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckRoom(const Queue& queue, uint64_t rows) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time OpenUntil(const Batch& open) const;
  bool HasWork(const Queue& queue, absl::Time now) const;
  // When the next open batch closes.
  absl::Time NextDeadline() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeBatch(absl::Time now, Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseOpenBatch(Queue& queue, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sees to it that a thread looks after what there is to do, or to wait for.
  void WakeThread(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();
  void Process(Batch batch) ABSL_LOCKS_EXCLUDED(mutex_);

  const BatchOptions options_;
  const BatchProcessor process_;
  const uint64_t limit_;
  const size_t max_threads_;

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<Queue> queues_ ABSL_GUARDED_BY(mutex_);
  size_t next_queue_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  // The deadline that one of the idle threads waits for.
  absl::Time timer_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::vector<std::shared_ptr<BatchAudience>> running_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_BATCH_BATCH_SCHEDULER_H_
