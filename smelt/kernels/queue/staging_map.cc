#include "smelt/kernels/queue/staging_map.h"

#include <algorithm>
#include <utility>

namespace smelt {

template <bool kOrdered>
Status StagingMap<kOrdered>::Put(int64_t key, std::span<const int32_t> indices, Tuple tuple,
                                 const Step& step) {
  const int64_t bytes = TupleBytes(tuple);
  RETURN_IF_ERROR(limits_.Check(bytes));
  absl::MutexLock lock(&mutex_);
  const bool whole = indices.size() == components_;
  while (limits_.Full(whole ? static_cast<int64_t>(tuples_.size()) : -1, bytes_, bytes)) {
    RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kStagingCancelled));
  }
  if (!whole) {
    auto at = incomplete_.find(key);
    Tuple parts = at == incomplete_.end() ? Tuple(components_) : at->second;
    for (size_t i = 0; i < indices.size(); ++i) {
      RETURN_IF_ERROR(CheckComponent(key, indices[i]));
      Tensor& part = parts[static_cast<size_t>(indices[i])];
      if (part.valid()) {
        return InvalidArgument("The tensor for index '", indices[i], "' for key '", key,
                               "' was already initialized '", components_, "'.");
      }
      part = std::move(tuple[i]);
    }
    bytes_ += bytes;
    for (const Tensor& part : parts) {
      if (part.valid()) continue;
      incomplete_[key] = std::move(parts);
      return OkStatus();
    }
    if (at != incomplete_.end()) incomplete_.erase(at);
    if (!tuples_.emplace(key, parts).second) bytes_ -= TupleBytes(parts);
  } else if (tuples_.emplace(key, std::move(tuple)).second) {
    bytes_ += bytes;
  }
  changed_.SignalAll();
  return OkStatus();
}

template <bool kOrdered>
StatusOr<Tuple> StagingMap<kOrdered>::Get(int64_t* key, bool any, bool keep,
                                          std::span<const int32_t> indices, const Step& step) {
  absl::MutexLock lock(&mutex_);
  auto find = [&] {
    mutex_.AssertHeld();
    return any ? tuples_.begin() : tuples_.find(*key);
  };
  auto at = find();
  for (; at == tuples_.end(); at = find()) {
    RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kStagingCancelled));
  }
  *key = at->first;
  Tuple out;
  for (const int32_t index : indices) {
    RETURN_IF_ERROR(CheckComponent(*key, index));
    const Tensor& part = at->second[static_cast<size_t>(index)];
    if (!part.valid()) {
      return InvalidArgument("Tensor at index '", index, "' for key '", *key,
                             "' has already been removed.");
    }
    out.push_back(part);
  }
  if (keep) return out;
  for (const int32_t index : indices) at->second[static_cast<size_t>(index)] = Tensor();
  bytes_ -= TupleBytes(out);
  if (std::ranges::none_of(at->second, &Tensor::valid)) tuples_.erase(at);
  changed_.SignalAll();
  return out;
}

template <bool kOrdered>
int64_t StagingMap<kOrdered>::size() {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(tuples_.size());
}

template <bool kOrdered>
int64_t StagingMap<kOrdered>::incomplete_size() {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(incomplete_.size());
}

template <bool kOrdered>
void StagingMap<kOrdered>::Clear() {
  absl::MutexLock lock(&mutex_);
  tuples_.clear();
  incomplete_.clear();
  bytes_ = 0;
  changed_.SignalAll();
}

template <bool kOrdered>
Status StagingMap<kOrdered>::CheckComponent(int64_t key, int32_t index) const {
  const auto at = static_cast<size_t>(int64_t{index});
  if (at < components_) return OkStatus();
  return InvalidArgument("Index '", at, "' for key '", key, "' was out of bounds '", components_,
                         "'.");
}

template class StagingMap<false>;
template class StagingMap<true>;

}  // namespace smelt
