// What a process that is interrupted takes away with it: half-written files and folders.
//
// A program that calls RemoveStagedOnSignals answers SIGINT, SIGTERM and SIGHUP by removing what is
// registered, then dies of the signal. Elsewhere (a library in somebody's process) registering does
// nothing. What SIGKILL leaves is found by the next writer to the same place: staged_file.h,
// staged_folder.h.
#ifndef SMELT_IO_SIGNAL_CLEANUP_H_
#define SMELT_IO_SIGNAL_CLEANUP_H_

#include <string>

namespace smelt {

// Call once, before threads start. Signals that are ignored stay ignored.
void RemoveStagedOnSignals();

// While it lives, `path` (a file, or a folder with all that is in it) goes when the process is
// interrupted. Once a signal is being answered, making and destroying one waits for ever.
class RemovedOnSignal {
 public:
  explicit RemovedOnSignal(std::string path);
  ~RemovedOnSignal();
  RemovedOnSignal(const RemovedOnSignal&) = delete;
  RemovedOnSignal& operator=(const RemovedOnSignal&) = delete;

 private:
  const std::string path_;
};

// While it lives, signals wait: for steps that are done whole or not at all. May be nested.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
};

}  // namespace smelt

#endif  // SMELT_IO_SIGNAL_CLEANUP_H_
