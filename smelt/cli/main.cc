#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <span>

#include "absl/synchronization/mutex.h"
#include "smelt/base/out_of_memory.h"
#include "smelt/cli/command.h"
#include "smelt/cli/resource_flags.h"
#include "smelt/cli/standard_streams.h"
#include "smelt/cli/usage.h"
#include "smelt/io/signal_cleanup.h"
#include "smelt/kernels/custom/op_library.h"

namespace {

smelt::Status LoadOpLibraries(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    smelt::Status s = smelt::LoadOpLibrary(path);
    if (!s.ok()) return s;
  }
  return smelt::OkStatus();
}

// The command that the line names, or all of them: to set up all flags takes longer than some
// models take to answer.
std::span<const smelt::Command> CommandsToSetUp(int argc, const char* const* argv) {
  const std::vector<smelt::Command>& all = smelt::Commands();
  const auto named = std::ranges::find_if(
      all, [&](const smelt::Command& c) { return argc > 1 && c.name == argv[1]; });
  if (named == all.end()) return all;
  return {named, named + 1};
}

// Small objects lie in large pages: those of a graph would touch thousands of small ones, each of
// which the system clears and maps for itself. Advice: any pages will do.
void PrepareHeap() {
  constexpr int kGrowsBy = 16 << 20, kOwnMapping = 4 << 20;
  mallopt(M_TOP_PAD, kGrowsBy);
  // malloc finds no threshold of its own any more where one of these was set.
  mallopt(M_MMAP_THRESHOLD, kOwnMapping);
  mallopt(M_TRIM_THRESHOLD, 2 * kGrowsBy);
  constexpr uintptr_t kLargePage = 2 << 20;
  const auto before = reinterpret_cast<uintptr_t>(sbrk(0));
  void* volatile grown = std::malloc(kOwnMapping / 2);  // a compiler leaves out what nobody reads
  const auto behind = reinterpret_cast<uintptr_t>(sbrk(0));
  const uintptr_t first = (before + kLargePage - 1) / kLargePage * kLargePage;
  if (first < behind) madvise(reinterpret_cast<void*>(first), behind - first, MADV_HUGEPAGE);
  std::free(grown);
}

// Ends a command: the exit code of the process. Output that was lost is a failure of its own.
int Done(const smelt::StatusOr<int>& code) {
  smelt::Status printed = smelt::FinishOutput();
  for (const smelt::Status& status : {code.status(), printed}) {
    if (status.ok()) continue;
    std::fprintf(stderr, "error: %s: %s\n", std::string(smelt::CodeName(status.code())).c_str(),
                 std::string(status.message()).c_str());
  }
  if (smelt::ReaderLeft()) smelt::EndWithoutReader();
  return code.ok() && printed.ok() ? *code : smelt::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  using smelt::Command;
  PrepareHeap();
  smelt::PrepareStandardStreams();
#ifdef NDEBUG
  // Debian's abseil looks for deadlocks at each lock, which takes an eighth of a small request's
  // time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  // A file that grows beyond the limit of the shell is an error of write, no signal.
  std::signal(SIGXFSZ, SIG_IGN);
  smelt::RemoveStagedOnSignals();
  smelt::SetDefaultMemoryLimit();
  CLI::App app{"smelt: show, run, replay and convert TensorFlow SavedModels"};
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, smelt::CommandBody>> bodies;
  std::vector<std::string> op_libraries;
  const std::span<const Command> commands = CommandsToSetUp(argc, argv);
  for (const Command& command : commands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.what));
    sub->footer("Example:\n  " + std::string(command.example));
    bodies.emplace_back(sub, command.setup(*sub));
    sub->add_option(
        "--op_library", op_libraries,
        "Shared library with ops of your own (smelt/kernels/custom/smelt_op.h), or with custom "
        "operators of TensorFlow Lite (lite_op.h, lite_operator.h), LIB.so or "
        "LIB.so:NAME=SYMBOL,...");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return Done(app.exit(e));
    const std::string unknown = smelt::UnknownWord(app, argc, argv);
    if (!unknown.empty()) return smelt::UsageError(unknown);
    app.exit(e);
    return smelt::kExitUsage;
  }
  for (auto& [sub, body] : bodies) {
    if (!sub->parsed()) continue;
    smelt::Status loaded = LoadOpLibraries(op_libraries);
    smelt::StatusOr<int> code = loaded.ok() ? smelt::OrOutOfMemory(body) : loaded;
    return Done(code);
  }
  return smelt::kExitUsage;
}
