#include "smelt/kernels/queue/barrier.h"

#include <algorithm>
#include <utility>

#include "smelt/kernels/common/rows.h"

namespace smelt {

Status Barrier::InsertMany(std::span<const std::string> keys, int64_t component,
                           const Tensor& values, const Step& step) {
  absl::MutexLock lock(&mutex_);
  if (closed_ && (cancelled_ || (!keys.empty() && incomplete_.empty()))) {
    return absl::CancelledError(
        absl::StrCat("Barrier ", name_, " is closed.  Pending enqueues cancelled: ", cancelled_,
                     ".  Number of new insertions: ", keys.size(),
                     ".  Number of incomplete keys: ", incomplete_.size(), "."));
  }
  bool added = false;
  std::vector<Tuple> whole;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    RETURN_IF_ERROR(InsertOne(keys[i], row, component, RowOf(values, row), &added, &whole));
  }
  if (added) ++next_index_;
  for (Tuple& tuple : whole) RETURN_IF_ERROR(ready_.Enqueue(std::move(tuple), step));
  if (closed_ && incomplete_.empty() && !ready_.closed()) return ready_.Close(false);
  return OkStatus();
}

StatusOr<Tuple> Barrier::TakeMany(int64_t n, bool small, const Step& step) {
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) {
      int64_t there = ready_.size();
      if (small) {
        n = std::min(n, there);
      } else {
        there += static_cast<int64_t>(incomplete_.size());
      }
      if (there < std::max<int64_t>(n, 1)) {
        return OutOfRange("Barrier '", name_, "' is closed and has insufficient elements ",
                          "(requested ", n, ", total size ", there, ")");
      }
    }
  }
  return ready_.DequeueMany(n, small, step);
}

Status Barrier::Close(bool cancel) {
  absl::MutexLock lock(&mutex_);
  // A second time only to cancel what the first one left pending.
  if (closed_ && (cancelled_ || !cancel)) {
    return absl::CancelledError(absl::StrCat("Barrier '", name_, "' is already closed."));
  }
  closed_ = true;
  cancelled_ = cancel;
  if (cancel) incomplete_.clear();
  if (incomplete_.empty() && !ready_.closed()) return ready_.Close(cancel);
  return OkStatus();
}

int64_t Barrier::incomplete_size() {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(incomplete_.size());
}

Status Barrier::InsertOne(const std::string& key, int64_t row, int64_t component, Tensor value,
                          bool* added, std::vector<Tuple>* whole) {
  auto at = incomplete_.find(key);
  if (at == incomplete_.end()) {
    if (closed_) {
      return absl::CancelledError(absl::StrCat(
          "Barrier ", name_, " is closed, but attempted to insert a brand new key: ", key,
          ".  Pending enqueues cancelled: ", cancelled_, ".  Insertion index: ", row,
          ".  Number of incomplete keys: ", incomplete_.size(), "."));
    }
    Tuple tuple(types().size());
    tuple[0] = Tensor::Scalar(next_index_);
    tuple[1] = Tensor::Scalar(key);
    at = incomplete_.emplace(key, std::move(tuple)).first;
    *added = true;
  }
  Tensor& part = at->second[static_cast<size_t>(component) + 2];
  if (part.valid()) {
    return InvalidArgument("Key ", key, " already has a value for component ", component,
                           " in barrier ", name_);
  }
  part = std::move(value);
  if (std::ranges::all_of(at->second, &Tensor::valid)) {
    whole->push_back(std::move(at->second));
    incomplete_.erase(at);
  }
  return OkStatus();
}

}  // namespace smelt
