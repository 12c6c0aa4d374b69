// Where exceptions of the standard library end: memory that was refused becomes a Status.
#ifndef SMELT_BASE_OUT_OF_MEMORY_H_
#define SMELT_BASE_OUT_OF_MEMORY_H_

#include <new>
#include <stdexcept>
#include <utility>

#include "smelt/base/heap.h"

namespace smelt {

// What `work` returns (Status, or a StatusOr); RESOURCE_EXHAUSTED when it ran out of memory, or
// asked for a string or a vector larger than any can be. What `work` was changing is left as it
// was then: its owner must be able to drop it.
template <typename Work>
auto OrOutOfMemory(Work&& work) -> decltype(std::forward<Work>(work)()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return HeapExhausted(0);
  } catch (const std::length_error&) {
    return HeapExhausted(0);
  }
}

}  // namespace smelt

#endif  // SMELT_BASE_OUT_OF_MEMORY_H_
