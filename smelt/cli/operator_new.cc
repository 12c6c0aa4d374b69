// The program's operator new: counts what it gives, and throws std::bad_alloc at the limit
// (base/heap.h). Part of the program alone: a library must leave its host's allocations alone.
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "smelt/base/heap.h"

namespace {

// Asked for before the allocation from this size on, so that the memory is not touched in vain.
constexpr size_t kLargeObject = 1 << 20;

bool TooLarge(size_t size) {
  return size >= kLargeObject && smelt::HeapLimit() != 0 &&
         (size > static_cast<size_t>(INT64_MAX) ||
          smelt::HeapLive() > smelt::HeapLimit() - static_cast<int64_t>(size));
}

void* Counted(void* p) {
  if (p == nullptr) return nullptr;
  const auto bytes = static_cast<int64_t>(malloc_usable_size(p));
  if (smelt::HeapChanged(bytes)) return p;
  smelt::HeapChanged(-bytes);
  std::free(p);
  return nullptr;
}

void* AllocateObject(size_t size, size_t alignment) {
  if (TooLarge(size)) return nullptr;
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return Counted(std::malloc(size));
  return Counted(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
}

void FreeObject(void* p) noexcept {
  if (p == nullptr) return;
  smelt::HeapChanged(-static_cast<int64_t>(malloc_usable_size(p)));
  std::free(p);
}

void* AllocateOrThrow(size_t size, size_t alignment) {
  void* p = AllocateObject(size, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(size_t size) { return AllocateOrThrow(size, 1); }
void* operator new[](size_t size) { return AllocateOrThrow(size, 1); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return AllocateObject(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return AllocateObject(size, 1);
}
void* operator new(size_t size, std::align_val_t a) {
  return AllocateOrThrow(size, static_cast<size_t>(a));
}
void* operator new[](size_t size, std::align_val_t a) {
  return AllocateOrThrow(size, static_cast<size_t>(a));
}
void* operator new(size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return AllocateObject(size, static_cast<size_t>(a));
}
void* operator new[](size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return AllocateObject(size, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { FreeObject(p); }
void operator delete[](void* p) noexcept { FreeObject(p); }
void operator delete(void* p, size_t) noexcept { FreeObject(p); }
void operator delete[](void* p, size_t) noexcept { FreeObject(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { FreeObject(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { FreeObject(p); }
void operator delete(void* p, std::align_val_t) noexcept { FreeObject(p); }
void operator delete[](void* p, std::align_val_t) noexcept { FreeObject(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { FreeObject(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { FreeObject(p); }
