#include "smelt/convert/advise/simulate.h"

#include <queue>
#include <tuple>

namespace smelt {
namespace {

// A piece of a request.
struct Piece {
  size_t request;
  int64_t rows;
};

class Simulation {
 public:
  Simulation(const BatchOptions& options, const SimulatedLoad& load)
      : options_(options),
        load_(load),
        queues_(static_cast<size_t>(load.queues), Queue(options)),
        visits_(load.requests.size()),
        idle_cores_(load.cores) {}

  StatusOr<SimulationResult> Run() {
    size_t next = 0;
    while (next < load_.requests.size() || !events_.empty()) {
      // At one moment what ends goes first: its thread and its core are free for what comes.
      const bool comes =
          next < load_.requests.size() &&
          (events_.empty() || absl::UnixEpoch() + load_.requests[next].at < events_.top().at);
      if (comes) {
        now_ = absl::UnixEpoch() + load_.requests[next].at;
        RETURN_IF_ERROR(Arrive(next++));
        continue;
      }
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      switch (event.kind) {
        case Kind::kDone:
          RETURN_IF_ERROR(Done(event.index));
          break;
        case Kind::kPrepared:
          waiting_.push(event.index);
          StartComputing();
          break;
        case Kind::kDeadline:
          TakeBatches(event.index);
          break;
      }
    }
    return Summary();
  }

 private:
  enum class Kind { kDone, kPrepared, kDeadline };
  struct Event {
    absl::Time at;
    Kind kind;
    int64_t number;  // of two at one moment and of one kind, the one that was known first
    size_t index;    // of a batch that runs; of kDeadline the queue's
    bool operator<(const Event& other) const {  // the first is on top
      return std::tie(at, kind, number) > std::tie(other.at, other.kind, other.number);
    }
  };
  struct Queue {
    explicit Queue(const BatchOptions& options) : rows(options), idle(options.num_threads) {}
    BatchQueue<Piece> rows;
    int idle;
    absl::Time deadline = absl::InfiniteFuture();  // the last that there is an event for
    absl::Duration busy;
  };
  struct Running {
    BatchOf<Piece> batch;
    size_t queue = 0;
    BatchTime time;
  };
  // How far a request has come.
  struct Visit {
    size_t stage = 0;
    size_t unfinished = 0;  // pieces
    absl::Duration served;
  };

  void Push(absl::Time at, Kind kind, size_t index) { events_.push({at, kind, number_++, index}); }

  Status Arrive(size_t request) {
    Visit& visit = visits_[request];
    const SimulatedRequest& r = load_.requests[request];
    const std::vector<int>& route = load_.routes[static_cast<size_t>(r.route)];
    const auto index = static_cast<size_t>(route[visit.stage]);
    Queue& queue = queues_[index];
    if (Status s = queue.rows.CheckRoom(static_cast<uint64_t>(r.rows)); !s.ok()) {
      if (!absl::IsUnavailable(s)) return s;
      ++result_.rejected;
      return OkStatus();
    }
    const std::vector<int64_t> pieces = queue.rows.PiecesOf(r.rows);
    visit.unfinished = pieces.size();
    for (const int64_t rows : pieces) queue.rows.Add({request, rows}, now_);
    TakeBatches(index);
    return OkStatus();
  }

  void TakeBatches(size_t index) {
    Queue& queue = queues_[index];
    while (queue.idle > 0 && queue.rows.HasWork(now_)) {
      size_t slot = running_.size();
      if (free_.empty()) {
        running_.emplace_back();
      } else {
        slot = free_.back();
        free_.pop_back();
      }
      Running& r = running_[slot];
      r.batch = queue.rows.Take(now_);
      r.queue = index;
      const auto rows = static_cast<int64_t>(r.batch.rows);
      const int64_t padded = options_.PaddedRows(rows);
      r.time = load_.time(static_cast<int>(index), padded);
      result_.batches.push_back({static_cast<int>(index), rows, padded, now_ - absl::UnixEpoch()});
      --queue.idle;
      queue.busy += r.time.preparing + r.time.computing;
      computing_ += r.time.computing;
      Push(now_ + r.time.preparing, Kind::kPrepared, slot);
    }
    const absl::Time deadline = queue.rows.OpenUntil();
    if (deadline == absl::InfiniteFuture() || deadline <= now_ || deadline == queue.deadline)
      return;
    queue.deadline = deadline;
    Push(deadline, Kind::kDeadline, index);
  }

  void StartComputing() {
    while (idle_cores_ > 0 && !waiting_.empty()) {
      const size_t slot = waiting_.front();
      waiting_.pop();
      --idle_cores_;
      Push(now_ + running_[slot].time.computing, Kind::kDone, slot);
    }
  }

  Status Done(size_t slot) {
    const Running done = std::exchange(running_[slot], {});
    free_.push_back(slot);
    ++idle_cores_;
    ++queues_[done.queue].idle;
    StartComputing();
    TakeBatches(done.queue);
    for (const Piece& piece : done.batch.tasks) {
      Visit& visit = visits_[piece.request];
      if (--visit.unfinished > 0) continue;
      visit.served += done.time.preparing + done.time.computing;
      const SimulatedRequest& r = load_.requests[piece.request];
      if (++visit.stage < load_.routes[static_cast<size_t>(r.route)].size()) {
        RETURN_IF_ERROR(Arrive(piece.request));
        continue;
      }
      const absl::Duration latency = now_ - absl::UnixEpoch() - r.at;
      latencies_.push_back(latency);
      waits_.push_back(latency - visit.served);
    }
    return OkStatus();
  }

  static void MeanAndP99(std::vector<absl::Duration>& all, absl::Duration* mean,
                         absl::Duration* p99) {
    if (all.empty()) return;
    absl::Duration sum;
    for (const absl::Duration d : all) sum += d;
    *mean = sum / static_cast<int64_t>(all.size());
    const size_t at = std::min(all.size() - 1, all.size() * 99 / 100);
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at), all.end());
    *p99 = all[at];
  }

  SimulationResult Summary() {
    MeanAndP99(latencies_, &result_.mean_latency, &result_.p99_latency);
    MeanAndP99(waits_, &result_.mean_wait, &result_.p99_wait);
    result_.answered = std::ssize(latencies_);
    int64_t rows = 0, padded = 0;
    for (const SimulatedBatch& b : result_.batches) rows += b.rows, padded += b.padded;
    const auto batches = static_cast<double>(result_.batches.size());
    if (padded > 0) result_.padding = static_cast<double>(padded - rows) / double(padded);
    if (batches > 0) result_.rows_per_batch = static_cast<double>(rows) / batches;
    result_.batches_per_second = batches / absl::ToDoubleSeconds(load_.duration);
    result_.core_load = absl::FDivDuration(computing_, load_.duration * load_.cores);
    for (const Queue& q : queues_) {
      const double load = absl::FDivDuration(q.busy, load_.duration * options_.num_threads);
      result_.thread_load = std::max(result_.thread_load, load);
    }
    return std::move(result_);
  }

  const BatchOptions& options_;
  const SimulatedLoad& load_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<Queue> queues_;
  std::vector<Visit> visits_;
  std::priority_queue<Event> events_;
  int64_t number_ = 0;
  std::vector<Running> running_;
  std::vector<size_t> free_;    // of running_
  std::queue<size_t> waiting_;  // for a core
  int idle_cores_;
  absl::Duration computing_;
  std::vector<absl::Duration> latencies_, waits_;
  SimulationResult result_;
};

}  // namespace

StatusOr<SimulationResult> SimulateBatching(const BatchOptions& options,
                                            const SimulatedLoad& load) {
  RETURN_IF_ERROR(options.Check());
  return Simulation(options, load).Run();
}

}  // namespace smelt
