#include "smelt/kernels/queue/staging_area.h"

#include <utility>

namespace smelt {

Status StagingArea::Put(Tuple tuple, const Step& step) {
  const int64_t bytes = TupleBytes(tuple);
  RETURN_IF_ERROR(limits_.Check(bytes));
  absl::MutexLock lock(&mutex_);
  while (limits_.Full(static_cast<int64_t>(tuples_.size()), bytes_, bytes)) {
    RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kStagingCancelled));
  }
  bytes_ += bytes;
  tuples_.push_back(std::move(tuple));
  changed_.SignalAll();
  return OkStatus();
}

StatusOr<Tuple> StagingArea::Get(const Step& step) {
  absl::MutexLock lock(&mutex_);
  while (tuples_.empty()) {
    RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kStagingCancelled));
  }
  Tuple tuple = std::move(tuples_.front());
  tuples_.pop_front();
  bytes_ -= TupleBytes(tuple);
  changed_.SignalAll();
  return tuple;
}

StatusOr<Tuple> StagingArea::Peek(size_t index, const Step& step) {
  absl::MutexLock lock(&mutex_);
  while (tuples_.size() <= index) {
    RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kStagingCancelled));
  }
  return tuples_[index];
}

int64_t StagingArea::size() {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(tuples_.size());
}

void StagingArea::Clear() {
  absl::MutexLock lock(&mutex_);
  tuples_.clear();
  bytes_ = 0;
  changed_.SignalAll();
}

}  // namespace smelt
