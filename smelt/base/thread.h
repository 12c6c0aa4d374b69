// Threads whose start may fail.
#ifndef SMELT_BASE_THREAD_H_
#define SMELT_BASE_THREAD_H_

#include <system_error>
#include <thread>
#include <utility>

#include "smelt/base/status.h"

namespace smelt {

// RESOURCE_EXHAUSTED when the system gives no thread. REQUIRES: `body` does not throw.
// As a std::jthread it may take a std::stop_token, and is told to stop and waited for when the
// thread's object ends.
template <typename Thread = std::thread, typename Body>
StatusOr<Thread> StartThread(Body body) {
  try {
    return Thread(std::move(body));
  } catch (const std::system_error& e) {
    return ResourceExhausted("the system gives no thread: ", e.what());
  }
}

}  // namespace smelt

#endif  // SMELT_BASE_THREAD_H_
