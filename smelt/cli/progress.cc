#include "smelt/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "smelt/base/thread.h"

namespace smelt {
namespace {

constexpr absl::Duration kBetweenPaints = absl::Milliseconds(200);
constexpr std::chrono::seconds kQuiet(1);

bool OnTerminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (term == nullptr || absl::string_view(term) != "dumb");
}

// A line that wraps could not be erased.
size_t TerminalWidth() {
  winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1 : 79;
}

}  // namespace

ProgressLine::ProgressLine() {
  if (!OnTerminal()) return;
  // Without a thread there is no line.
  auto painter = StartThread([this] { Repaint(); });
  if (painter.ok()) painter_ = *std::move(painter);
}

ProgressLine::~ProgressLine() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    Erase();
  }
  if (painter_.joinable()) painter_.join();
}

void ProgressLine::Step(absl::string_view what) {
  absl::MutexLock lock(&mutex_);
  Erase();
  step_ = std::string(what);
  done_ = all_ = 0;
  start_ = std::chrono::steady_clock::now();
}

void ProgressLine::Count(int64_t done, int64_t all) {
  absl::MutexLock lock(&mutex_);
  done_ = done;
  all_ = all;
}

void ProgressLine::Clear() {
  absl::MutexLock lock(&mutex_);
  Erase();
}

void ProgressLine::Erase() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void ProgressLine::Paint() {
  const auto took = std::chrono::steady_clock::now() - start_;
  if (step_.empty() || took < kQuiet) return;
  std::string text = step_;
  if (done_ > 0) absl::StrAppend(&text, " ", done_);
  if (all_ > 0) absl::StrAppend(&text, done_ > 0 ? "" : " 0", " of ", all_);
  absl::StrAppendFormat(&text, ", %d s",
                        std::chrono::duration_cast<std::chrono::seconds>(took).count());
  text.resize(std::min(text.size(), TerminalWidth()));
  std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
  shown_ = true;
}

void ProgressLine::Repaint() {
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&ended_), kBetweenPaints)) Paint();
}

}  // namespace smelt
