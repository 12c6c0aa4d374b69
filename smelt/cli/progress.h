// What a command is doing, on one line of the terminal that is erased afterwards.
#ifndef SMELT_CLI_PROGRESS_H_
#define SMELT_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace smelt {

// The line appears once a step has taken a second, with its time and how far it is, and goes with
// the step or with this object. Where standard error is no terminal nothing is ever printed. All
// methods are thread safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // A step begins; "": none is under way.
  void Step(absl::string_view what);
  // So much of the step is done; `all` is 0 when it is not known.
  void Count(int64_t done, int64_t all);
  // Takes the line away so that something else can be printed. It comes back by itself.
  void Clear();

 private:
  void Paint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Repaint();

  absl::Mutex mutex_;
  std::string step_ ABSL_GUARDED_BY(mutex_);
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t all_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point start_ ABSL_GUARDED_BY(mutex_);
  bool shown_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread painter_;  // none where there is no terminal
};

}  // namespace smelt

#endif  // SMELT_CLI_PROGRESS_H_
