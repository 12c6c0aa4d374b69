#include "smelt/kernels/step.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "smelt/kernels/resource_manager.h"

namespace smelt {

Status Cancellation::Check() const {
  if (cancelled_.load(std::memory_order_relaxed)) {
    return absl::CancelledError("Step was cancelled");
  }
  if (has_deadline() && absl::Now() > deadline_) {
    return absl::DeadlineExceededError("Timed out waiting for operation to complete");
  }
  return OkStatus();
}

ResourceName::ResourceName(const Node& node)
    : container(node.String("container")), name(node.String("shared_name")) {
  if (container.empty()) container = "localhost";
  if (name.empty()) name = node.name();
}

std::shared_ptr<Resource> ResourceManager::Find(absl::string_view container, absl::string_view kind,
                                                absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  auto it = resources_.find(Key(container, kind, name));
  return it == resources_.end() ? nullptr : it->second;
}

StatusOr<std::shared_ptr<Resource>> ResourceManager::FindOrCreate(
    absl::string_view container, absl::string_view kind, absl::string_view name,
    const std::function<StatusOr<std::shared_ptr<Resource>>()>& make) {
  absl::MutexLock lock(&mutex_);
  auto [it, added] = resources_.try_emplace(Key(container, kind, name));
  if (added) {
    auto made = make();
    if (!made.ok()) {
      resources_.erase(it);
      return made.status();
    }
    it->second = *std::move(made);
  }
  return it->second;
}

bool ResourceManager::Remove(absl::string_view container, absl::string_view kind,
                             absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  return resources_.erase(Key(container, kind, name)) > 0;
}

bool ResourceManager::HoldsOnly(std::initializer_list<absl::string_view> kinds) const {
  absl::MutexLock lock(&mutex_);
  return std::ranges::all_of(resources_, [&](const auto& r) {
    return std::ranges::find(kinds, r.second->kind()) != kinds.end();
  });
}

Tensor Variable::Read() const {
  absl::MutexLock lock(&mutex_);
  return value_;
}

void Variable::Assign(Tensor value) {
  Tensor old = std::move(value);
  {
    absl::MutexLock lock(&mutex_);
    std::swap(value_, old);
    version_.fetch_add(1, std::memory_order_release);
  }
}

Status Variable::Update(const std::function<Status(Tensor&)>& update) {
  absl::MutexLock lock(&mutex_);
  if (value_.valid() && !value_.Writable()) {
    ASSIGN_OR_RETURN(value_, value_.Clone());
  }
  version_.fetch_add(1, std::memory_order_release);
  return update(value_);
}

}  // namespace smelt
