// Hands out memory that is already planned for what a kernel is about to make.
#ifndef SMELT_COMPILE_PLACING_ALLOCATOR_H_
#define SMELT_COMPILE_PLACING_ALLOCATOR_H_

#include <atomic>
#include <deque>

#include "smelt/tensor/buffer.h"

namespace smelt {

// The first request of a place's size gets the place; every other goes to the fallback. Offer,
// Withdraw and set_fallback belong to one thread; Allocate is thread safe.
class PlacingAllocator final : public Allocator {
 public:
  // A place until Withdraw. REQUIRES: aligned to kAlignment.
  void Offer(void* place, size_t bytes);
  // REQUIRES: nobody holds a buffer that a place was handed out as.
  void Withdraw() { used_ = 0; }
  void set_fallback(Allocator* allocator) { fallback_ = allocator; }

  StatusOr<BufferRef> Allocate(size_t size) override;

 private:
  // Bytes of somebody else; lives in the allocator, whoever refers to it.
  class Place final : public Buffer {
   public:
    Place() : Buffer(nullptr, 0) {}
    void Set(void* place, size_t bytes) {
      data_ = place;
      size_ = bytes;
      taken_.store(false, std::memory_order_relaxed);
    }
    bool TryTake() { return !taken_.exchange(true, std::memory_order_relaxed); }

   private:
    void Destroy() override { ResetRefs(); }
    std::atomic<bool> taken_{false};
  };

  std::deque<Place> places_;  // the first used_ are offered
  size_t used_ = 0;
  Allocator* fallback_ = nullptr;
};

}  // namespace smelt

#endif  // SMELT_COMPILE_PLACING_ALLOCATOR_H_
