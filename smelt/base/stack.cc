#include "smelt/base/stack.h"

#include <pthread.h>

#include <cstdint>
#include <limits>

namespace smelt {
namespace {

struct Bounds {
  uintptr_t low = 0, high = 0;
};

// Of the calling thread; {0, 0} when the system does not say.
Bounds FindBounds() {
  pthread_attr_t attr;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return {};
  void* low = nullptr;
  size_t size = 0, guard = 0;
  const bool known = pthread_attr_getstack(&attr, &low, &size) == 0 &&
                     pthread_attr_getguardsize(&attr, &guard) == 0;
  pthread_attr_destroy(&attr);
  if (!known) return {};
  const auto begin = reinterpret_cast<uintptr_t>(low);
  // A thread's guard pages are part of what is called its stack.
  return {begin + guard, begin + size};
}

}  // namespace

size_t StackLeft() {
  thread_local const Bounds bounds = FindBounds();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here < bounds.low || here >= bounds.high) return std::numeric_limits<size_t>::max();
  return here - bounds.low;
}

}  // namespace smelt
