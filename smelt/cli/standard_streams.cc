#include "smelt/cli/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace smelt {

void PrepareStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free descriptor is this one. Opened the wrong way round: reading from it or
    // writing to it fails as on a closed one.
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) break;
  }
  std::signal(SIGPIPE, SIG_IGN);
}

bool OutputLost() { return std::ferror(stdout) != 0; }

bool ReaderLeft() {
  pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  return OutputLost() && poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

Status FinishOutput() {
  const bool lost_before = OutputLost();
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if ((!lost_before && flushed) || ReaderLeft()) return OkStatus();
  // The reason of an earlier failure is gone unless the stream fails again.
  return DataLoss("standard output cannot be written",
                  flushed || errno == 0 ? "" : absl::StrCat(": ", std::strerror(errno)));
}

void EndWithoutReader() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  std::_Exit(128 + SIGPIPE);  // SIGPIPE is blocked
}

}  // namespace smelt
