// Threads whose start may fail.
#ifndef SMELT_BASE_THREAD_H_
#define SMELT_BASE_THREAD_H_

#include <system_error>
#include <thread>
#include <utility>

#include "smelt/base/status.h"

namespace smelt {

// RESOURCE_EXHAUSTED when the system gives no thread. REQUIRES: `body` does not throw.
template <typename Body>
StatusOr<std::thread> StartThread(Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& e) {
    return ResourceExhausted("the system gives no thread: ", e.what());
  }
}

}  // namespace smelt

#endif  // SMELT_BASE_THREAD_H_
