#include "smelt/compile/placing_allocator.h"

namespace smelt {

void PlacingAllocator::Offer(void* place, size_t bytes) {
  if (used_ == places_.size()) places_.emplace_back();
  places_[used_++].Set(place, bytes);
}

StatusOr<BufferRef> PlacingAllocator::Allocate(size_t size) {
  for (size_t i = 0; i < used_; ++i) {
    if (places_[i].size() == size && places_[i].TryTake()) return BufferRef(&places_[i]);
  }
  return fallback_->Allocate(size);
}

}  // namespace smelt
