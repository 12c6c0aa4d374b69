#include "smelt/kernels/batch/batch_scheduler.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "smelt/base/out_of_memory.h"
#include "smelt/base/parallel.h"
#include "smelt/base/thread.h"

namespace smelt {
namespace {

// How often a waiting request checks for cancellation, which signals no condition variable. Not
// more often, as many requests may wait.
constexpr absl::Duration kCancellationPeriod = absl::Milliseconds(10);

constexpr absl::string_view kEnded = "The batching queue has ended";

// The scheduler whose thread this is, nullptr in other threads.
thread_local const BatchScheduler* working_for = nullptr;

}  // namespace

// ---- requests ----

Status BatchRequest::Wait(const Cancellation* cancellation) {
  std::vector<std::shared_ptr<BatchAudience>> audiences;
  Status status;
  {
    absl::MutexLock lock(&mutex_);
    while (unfinished_ > 0) {
      if (cancellation == nullptr) {
        changed_.Wait(&mutex_);
        continue;
      }
      status = cancellation->Check();
      if (!status.ok()) break;
      changed_.WaitWithTimeout(&mutex_, kCancellationPeriod);
    }
    if (unfinished_ == 0) return status_;
    left_ = true;
    audiences.swap(audiences_);
  }
  for (const auto& audience : audiences) audience->Leave();
  return status;
}

void BatchRequest::SetPieces(size_t n) {
  absl::MutexLock lock(&mutex_);
  pieces_.resize(n);
  unfinished_ = n;
}

bool BatchRequest::Attend(const std::shared_ptr<BatchAudience>& audience) {
  absl::MutexLock lock(&mutex_);
  if (left_) return false;
  audience->Enter();
  audiences_.push_back(audience);
  return true;
}

void BatchRequest::Finish(size_t piece, const Status& status, std::vector<Tensor> outputs) {
  absl::MutexLock lock(&mutex_);
  if (left_) return;
  status_.Update(status);
  pieces_[piece] = std::move(outputs);
  if (--unfinished_ == 0) changed_.Signal();
}

// ---- the scheduler ----

BatchScheduler::BatchScheduler(BatchOptions options, BatchProcessor process)
    : options_(std::move(options)),
      process_(process),
      max_threads_(static_cast<size_t>(options_.adaptive() ? NumCores() : options_.num_threads)) {}

BatchScheduler::Queue& BatchScheduler::FindQueue(absl::string_view name) {
  for (Queue& q : queues_) {
    if (q.name == name) return q;
  }
  return queues_.emplace_back(Queue{std::string(name), BatchQueue<BatchTask>(options_)});
}

Status BatchScheduler::Schedule(const std::shared_ptr<BatchRequest>& request,
                                absl::string_view queue_name) {
  if (working_for == this) {
    return FailedPrecondition("a function that is run on a batch cannot bring rows to the queue ",
                              "of that batch: it would wait for itself");
  }
  RETURN_IF_ERROR(options_.Check());
  const int64_t rows = request->rows;
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&mutex_);
  if (ended_) return absl::CancelledError(kEnded);
  Queue& queue = FindQueue(queue_name);
  RETURN_IF_ERROR(queue.rows.CheckRoom(static_cast<uint64_t>(rows)));
  // The first thread looks at the queues by itself.
  const bool first_thread = threads_.empty() && max_threads_ > 0;
  if (first_thread) RETURN_IF_ERROR(StartOne());
  const std::vector<int64_t> sizes = queue.rows.PiecesOf(rows);
  request->SetPieces(sizes.size());
  int64_t first = 0;
  for (size_t piece = 0; piece < sizes.size(); ++piece) {
    const int64_t size = sizes[piece];
    queue.rows.Add({request, piece, first, size, {}}, now);
    first += size;
  }
  if (!first_thread) WakeThread(now);
  return OkStatus();
}

absl::Time BatchScheduler::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Queue& q : queues_) next = std::min(next, q.rows.OpenUntil());
  return next;
}

int64_t BatchScheduler::waiting() const {
  absl::MutexLock lock(&mutex_);
  int64_t tasks = 0;
  for (const Queue& queue : queues_) {
    for (const Batch& batch : queue.rows.batches()) tasks += std::ssize(batch.tasks);
  }
  return tasks;
}

bool BatchScheduler::TakeBatch(absl::Time now, Batch* batch) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    const size_t at = (next_queue_ + i) % queues_.size();
    Queue& queue = queues_[at];
    if (!queue.rows.HasWork(now)) continue;
    *batch = queue.rows.Take(now);
    next_queue_ = (at + 1) % queues_.size();
    return true;
  }
  return false;
}

void BatchScheduler::WakeThread(absl::Time now) {
  const bool work =
      std::ranges::any_of(queues_, [&](const Queue& q) { return q.rows.HasWork(now); });
  if (!work && NextDeadline() >= timer_) return;
  if (idle_ > 0) {
    changed_.Signal();
  } else if (threads_.size() < max_threads_ && !ended_) {
    StartOne().IgnoreError();  // the threads that there are do the work
  }
}

Status BatchScheduler::StartOne() {
  ASSIGN_OR_RETURN(std::thread thread, StartThread([this] { Loop(); }));
  threads_.push_back(std::move(thread));
  return OkStatus();
}

void BatchScheduler::Loop() {
  working_for = this;
  while (true) {
    Batch batch;
    {
      absl::MutexLock lock(&mutex_);
      while (true) {
        if (ended_) return;
        const absl::Time now = absl::Now();
        if (TakeBatch(now, &batch)) {
          WakeThread(now);
          break;
        }
        const absl::Time deadline = NextDeadline();
        ++idle_;
        if (deadline < timer_) {
          timer_ = deadline;
          changed_.WaitWithDeadline(&mutex_, deadline);
          if (timer_ == deadline) timer_ = absl::InfiniteFuture();
        } else {
          changed_.Wait(&mutex_);
        }
        --idle_;
      }
    }
    Process(std::move(batch));
  }
}

void BatchScheduler::Process(Batch batch) {
  const auto audience = std::make_shared<BatchAudience>();
  std::erase_if(batch.tasks, [&](const BatchTask& task) {
    if (task.request->Attend(audience)) return false;
    batch.rows -= static_cast<uint64_t>(task.rows);
    return true;
  });
  if (!audience->Leave()) return;
  {
    absl::MutexLock lock(&mutex_);
    running_.push_back(audience);
    if (ended_) audience->Cancel();
  }
  const Status status =
      OrOutOfMemory([&] { return process_(batch, options_, audience->cancellation()); });
  {
    absl::MutexLock lock(&mutex_);
    std::erase(running_, audience);
  }
  for (BatchTask& task : batch.tasks) {
    task.request->Finish(task.piece, status, std::move(task.outputs));
  }
}

void BatchScheduler::Shutdown() {
  std::vector<std::thread> threads;
  std::vector<Queue> queues;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    threads.swap(threads_);
    queues.swap(queues_);
    for (const auto& audience : running_) audience->Cancel();
    changed_.SignalAll();
  }
  for (const Queue& queue : queues) {
    for (const Batch& batch : queue.rows.batches()) {
      for (const BatchTask& task : batch.tasks) {
        task.request->Finish(task.piece, absl::CancelledError(kEnded), {});
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace smelt
