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

// TensorFlow's conversion of its int32 attributes.
uint64_t AsSize(int32_t n) { return static_cast<uint64_t>(static_cast<int64_t>(n)); }

// Cuts the batch to the largest allowed size that it fills and returns the tasks beyond; an empty
// batch when a task would have to be cut.
Batch TrimToAllowedSize(Batch& batch, const std::vector<int32_t>& allowed) {
  Batch rest;
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

}  // namespace

uint64_t BatchOptions::Limit() const {
  const bool cut = (split || adaptive()) && !allowed_batch_sizes.empty();
  return AsSize(cut ? allowed_batch_sizes.back() : max_batch_size);
}

int64_t BatchOptions::PaddedRows(int64_t rows) const {
  const auto it = std::ranges::lower_bound(allowed_batch_sizes, rows);
  return it == allowed_batch_sizes.end() ? rows : *it;
}

Status BatchOptions::Check() const {
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
  if (AsSize(max_batch_size) < Limit()) {
    // TensorFlow's text ends with these three values, with nothing between them.
    return InvalidArgument("When enable_large_batch_splitting is true, input_batch_size_limit ",
                           "must be greater than or equal to max_execution_batch_size.", 1,
                           AsSize(max_batch_size), Limit());
  }
  if (Limit() == 0) return InvalidArgument("max_execution_batch_size must be positive; was 0");
  return OkStatus();
}

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
      limit_(options_.Limit()),
      max_threads_(static_cast<size_t>(options_.adaptive() ? NumCores() : options_.num_threads)) {}

BatchScheduler::Queue& BatchScheduler::FindQueue(absl::string_view name) {
  for (Queue& q : queues_) {
    if (q.name == name) return q;
  }
  Queue& added = queues_.emplace_back();
  added.name = std::string(name);
  added.batches.emplace_back();
  return added;
}

// Sizes that stand for "no limit" wrap around here as they do in TensorFlow.
Status BatchScheduler::CheckRoom(const Queue& queue, uint64_t rows) const {
  const uint64_t open_rows = queue.batches.back().rows;
  const uint64_t batches = queue.batches.size();
  const uint64_t max_batches = AsSize(options_.max_enqueued_batches);
  const uint64_t room = (max_batches - batches) * limit_ + (limit_ - open_rows);
  if (options_.adaptive()) {
    if (rows > AsSize(options_.max_batch_size)) {
      return InvalidArgument("Task size ", rows, " is larger than max input task size ",
                             options_.max_batch_size);
    }
    if (rows > room) return absl::UnavailableError("The batch scheduling queue is full");
    return OkStatus();
  }
  if (rows > AsSize(options_.max_batch_size)) {
    return InvalidArgument("Task size ", rows, " is larger than maximum input batch size ",
                           AsSize(options_.max_batch_size));
  }
  if (options_.split) {
    if (rows <= room) return OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "The batch scheduling queue to which this task was submitted is full; task size is ", rows,
        " but scheduling capacity is only ", room, " (num_enqueued_batches=", batches,
        ", max_enqueued_batches=", max_batches, ", open_batch_size=", open_rows,
        ", max_execution_batch_size=", limit_, ")"));
  }
  if (open_rows + rows > limit_ && batches >= std::max<uint64_t>(max_batches, 1)) {
    return absl::UnavailableError(absl::StrCat(
        "The batch scheduling queue to which this task was submitted is full; currently ", batches,
        " batches enqueued and max_enqueued_batches is ", std::max<uint64_t>(max_batches, 1)));
  }
  return OkStatus();
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
  RETURN_IF_ERROR(CheckRoom(queue, static_cast<uint64_t>(rows)));
  // The first thread looks at the queues by itself.
  const bool first_thread = threads_.empty() && max_threads_ > 0;
  if (first_thread) RETURN_IF_ERROR(StartOne());
  // With splitting, the first piece fills the open batch, and those between it and the last fill a
  // batch each.
  std::vector<int64_t> sizes;
  const uint64_t room = limit_ - queue.batches.back().rows;
  if (!(options_.split || options_.adaptive()) || static_cast<uint64_t>(rows) <= room) {
    sizes.push_back(rows);
  } else {
    if (room > 0) sizes.push_back(static_cast<int64_t>(room));
    for (int64_t rest = rows - static_cast<int64_t>(room); rest > 0; rest -= sizes.back()) {
      sizes.push_back(std::min(rest, static_cast<int64_t>(limit_)));
    }
  }
  request->SetPieces(sizes.size());
  int64_t first = 0;
  for (size_t piece = 0; piece < sizes.size(); ++piece) {
    const int64_t size = sizes[piece];
    if (queue.batches.back().rows + static_cast<uint64_t>(size) > limit_) {
      queue.batches.emplace_back();
    }
    Batch& open = queue.batches.back();
    if (open.tasks.empty()) open.start = now;
    open.tasks.push_back({request, piece, first, size, {}});
    open.rows += static_cast<uint64_t>(size);
    first += size;
  }
  if (!first_thread) WakeThread(now);
  return OkStatus();
}

absl::Time BatchScheduler::OpenUntil(const Batch& open) const {
  if (open.tasks.empty()) return absl::InfiniteFuture();
  if (open.rows >= limit_) return absl::InfinitePast();
  return open.start + absl::Microseconds(options_.timeout_micros);
}

bool BatchScheduler::HasWork(const Queue& queue, absl::Time now) const {
  return queue.batches.size() > 1 || OpenUntil(queue.batches.back()) <= now;
}

absl::Time BatchScheduler::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Queue& q : queues_) next = std::min(next, OpenUntil(q.batches.back()));
  return next;
}

void BatchScheduler::CloseOpenBatch(Queue& queue, absl::Time now) {
  Batch& open = queue.batches.back();
  Batch rest;
  if (options_.batch_down && !options_.adaptive()) {
    const auto all = static_cast<double>(open.rows);
    rest = TrimToAllowedSize(open, options_.allowed_batch_sizes);
    // When the rest came is not known: its first row is taken to have come in proportion.
    rest.start = open.start + (now - open.start) * (static_cast<double>(open.rows) / all);
  }
  queue.batches.push_back(std::move(rest));
}

int64_t BatchScheduler::waiting() const {
  absl::MutexLock lock(&mutex_);
  int64_t tasks = 0;
  for (const Queue& queue : queues_) {
    for (const Batch& batch : queue.batches) tasks += std::ssize(batch.tasks);
  }
  return tasks;
}

bool BatchScheduler::TakeBatch(absl::Time now, Batch* batch) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    const size_t at = (next_queue_ + i) % queues_.size();
    Queue& queue = queues_[at];
    if (!HasWork(queue, now)) continue;
    if (queue.batches.size() == 1) CloseOpenBatch(queue, now);
    *batch = std::move(queue.batches.front());
    queue.batches.pop_front();
    next_queue_ = (at + 1) % queues_.size();
    return true;
  }
  return false;
}

void BatchScheduler::WakeThread(absl::Time now) {
  const bool work = std::ranges::any_of(queues_, [&](const Queue& q) { return HasWork(q, now); });
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
    for (const Batch& batch : queue.batches) {
      for (const BatchTask& task : batch.tasks) {
        task.request->Finish(task.piece, absl::CancelledError(kEnded), {});
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace smelt
