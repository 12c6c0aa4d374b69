// A vector whose numbers begin where a line of the caches does: loads of whole vectors, of which
// each would else reach into two lines, take one.
#ifndef SMELT_BASE_ALIGNED_VECTOR_H_
#define SMELT_BASE_ALIGNED_VECTOR_H_

#include <cstddef>
#include <new>
#include <vector>

namespace smelt {

template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <typename U>
  LineAllocator(const LineAllocator<U>&) {}

  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const LineAllocator&) const { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace smelt

#endif  // SMELT_BASE_ALIGNED_VECTOR_H_
