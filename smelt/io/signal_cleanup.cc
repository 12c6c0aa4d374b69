#include "smelt/io/signal_cleanup.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

namespace smelt {
namespace {

// The rest of the program may still be writing into a folder that is being removed.
constexpr int kTimesToRemove = 200;

struct Registered {
  std::recursive_mutex mutex;
  std::vector<std::string> paths;  // guarded by mutex
};

// Never destroyed: a signal may come while the process ends.
Registered& AllRegistered() {
  static auto* all = new Registered;
  return *all;
}

std::atomic<int> signal_seen{0};
sem_t signal_came;

void OnSignal(int number) {
  const int before = errno;
  signal_seen = number;
  sem_post(&signal_came);
  errno = before;
}

void RemovePath(const std::string& path) {
  for (int i = 0; i < kTimesToRemove; ++i) {
    std::error_code e;
    std::filesystem::remove_all(path, e);
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, e))) return;
    usleep(1000);
  }
}

void* AnswerSignals(void*) {
  while (sem_wait(&signal_came) != 0) {
  }
  const int number = signal_seen;
  // Held until the end of the process: whoever publishes is done, nobody begins.
  AllRegistered().mutex.lock();
  for (const std::string& path : AllRegistered().paths) RemovePath(path);
  signal(number, SIG_DFL);
  sigset_t these;
  sigemptyset(&these);
  sigaddset(&these, number);
  pthread_sigmask(SIG_UNBLOCK, &these, nullptr);
  kill(getpid(), number);
  for (;;) pause();
}

}  // namespace

void RemoveStagedOnSignals() {
  AllRegistered();
  sem_init(&signal_came, 0, 0);
  // The thread takes no signals itself: those of the process go to the others.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool answered = pthread_create(&thread, nullptr, AnswerSignals, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // Without the thread, signals end the process at once, and the next writer tidies up.
  if (!answered) return;
  pthread_detach(thread);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old, now = {};
    if (sigaction(number, nullptr, &old) != 0 || old.sa_handler == SIG_IGN) continue;
    now.sa_handler = OnSignal;
    now.sa_flags = SA_RESTART;
    sigaction(number, &now, nullptr);
  }
}

RemovedOnSignal::RemovedOnSignal(std::string path) : path_(std::move(path)) {
  const std::lock_guard lock(AllRegistered().mutex);
  AllRegistered().paths.push_back(path_);
}

RemovedOnSignal::~RemovedOnSignal() {
  const std::lock_guard lock(AllRegistered().mutex);
  auto& paths = AllRegistered().paths;
  if (const auto at = std::ranges::find(paths, path_); at != paths.end()) paths.erase(at);
}

SignalsWait::SignalsWait() { AllRegistered().mutex.lock(); }
SignalsWait::~SignalsWait() { AllRegistered().mutex.unlock(); }

}  // namespace smelt
