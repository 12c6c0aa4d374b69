// Batching: the rows of several requests become one batch, as TensorFlow's batch schedulers do it.
//
// A request brings rows and waits in its own thread. Its rows join the open batch of a queue; with
// splitting, rows that do not fit go on into further batches, piece by piece. A batch closes when
// it is full or when its first rows have waited for the timeout, and is processed in a thread of
// the scheduler. Threads are started when they are needed, at most as many as the options say.
// A request that is cancelled or past its deadline stops waiting and leaves its batch to the
// others; when all requests of a batch have left, the batch is cancelled.
#ifndef SMELT_KERNELS_BATCH_BATCH_SCHEDULER_H_
#define SMELT_KERNELS_BATCH_BATCH_SCHEDULER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/batch/batch_queue.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/kernels/step.h"

namespace smelt {

// Counts the requests that wait for a batch in process; cancels it when the last one leaves. Thread
// safe.
class BatchAudience {
 public:
  const Cancellation& cancellation() const { return cancellation_; }
  void Enter() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  // One waits less. false: it was the last, and the batch is cancelled.
  bool Leave() {
    if (waiting_.fetch_sub(1, std::memory_order_acq_rel) > 1) return true;
    cancellation_.Cancel();
    return false;
  }
  void Cancel() { cancellation_.Cancel(); }

 private:
  Cancellation cancellation_;
  std::atomic<int> waiting_{1};  // the maker counts as one until all requests have entered
};

// What one run of a batching op brings, and where it waits for its outputs. The op sets the public
// members before it schedules the request; then only the scheduler's threads use them. The
// functions are thread safe.
class BatchRequest {
 public:
  std::vector<Tensor> inputs;  // of `rows` rows each; the batch's thread may move them away
  int64_t rows = 0;
  std::vector<Tensor> captured;
  Callee function;
  int64_t id = 0;
  int threads = 1;  // size of the team that the batch's loops run on: that of the caller's thread
  // What the batch's own step takes over: resources, functions, allocator, seed, device. Without
  // the step's own resources and cancellation: a batch may outlive the step.
  Step step;

  // Waits until every piece is done; returns the first error of a piece. When `cancellation` comes
  // first, returns its error; the results of the pieces are then dropped.
  Status Wait(const Cancellation* cancellation);
  // Outputs by piece. REQUIRES: Wait returned OK.
  std::vector<std::vector<Tensor>>& pieces() { return pieces_; }

  // The rest is for the scheduler. SetPieces comes before any task of the request is in a batch.
  void SetPieces(size_t n);
  // Makes the request one of those that wait for a batch. false: it waits no more.
  bool Attend(const std::shared_ptr<BatchAudience>& audience);
  // One piece is done.
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

// A piece of a request in a batch: rows [first, first + rows).
struct BatchTask {
  std::shared_ptr<BatchRequest> request;
  size_t piece = 0;
  int64_t first = 0;
  int64_t rows = 0;
  std::vector<Tensor> outputs;  // set by the processor
};

using Batch = BatchOf<BatchTask>;

// Sets the outputs of every task, or returns an error that all its requests get. Called in a thread
// of the scheduler, for several batches at once; `batch` has at least one task.
using BatchProcessor = Status (*)(Batch& batch, const BatchOptions& options,
                                  const Cancellation& cancellation);

// Thread safe.
class BatchScheduler final : public Resource {
 public:
  static constexpr absl::string_view kKind = "batch_scheduler";
  absl::string_view kind() const override { return kKind; }

  BatchScheduler(BatchOptions options, BatchProcessor process);
  ~BatchScheduler() override { Shutdown(); }

  // Adds the rows of the request to the queue of that name, which is made when it is new, and
  // returns at once. UNAVAILABLE when the queue has no room, INVALID_ARGUMENT for a request that is
  // too large or for options that make no queue, FAILED_PRECONDITION in a thread of this scheduler,
  // CANCELLED after Shutdown.
  Status Schedule(const std::shared_ptr<BatchRequest>& request, absl::string_view queue);
  // How many tasks wait in batches that have not begun, those of requests that left included.
  int64_t waiting() const;
  // Requests whose batches have not begun get CANCELLED; batches that run are cancelled. Waits
  // until the scheduler's threads have ended.
  void Shutdown();

 private:
  struct Queue {
    std::string name;
    BatchQueue<BatchTask> rows;
  };

  Queue& FindQueue(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // When the first of all open batches closes.
  absl::Time NextDeadline() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the next batch, the queues in turn. false: no queue has work.
  bool TakeBatch(absl::Time now, Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes or starts a thread if there is a batch to process or an earlier deadline to wait for.
  void WakeThread(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status StartOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();  // of each thread
  void Process(Batch batch) ABSL_LOCKS_EXCLUDED(mutex_);

  const BatchOptions options_;
  const BatchProcessor process_;
  const size_t max_threads_;

  mutable absl::Mutex mutex_;
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
