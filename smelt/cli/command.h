// Subcommands of the program: one file each, one row each in commands.cc.
#ifndef SMELT_CLI_COMMAND_H_
#define SMELT_CLI_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace CLI {
class App;
}

namespace smelt {

// Exit codes: 0 done, 1 the work failed or differs, 2 wrong use of the command line.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// What a subcommand does once its flags are read: the exit code, or an error to print.
using CommandBody = std::function<StatusOr<int>()>;

struct Command {
  absl::string_view name;
  absl::string_view what;     // one line for --help
  absl::string_view example;  // a command line, shown at the end of its --help
  // Adds flags to the subcommand and returns its body.
  CommandBody (*setup)(CLI::App& app);
};

const std::vector<Command>& Commands();

CommandBody SetupShow(CLI::App& app);
CommandBody SetupRun(CLI::App& app);
CommandBody SetupReplay(CLI::App& app);
CommandBody SetupBench(CLI::App& app);
CommandBody SetupConvert(CLI::App& app);
CommandBody SetupOptimize(CLI::App& app);
CommandBody SetupLite(CLI::App& app);
CommandBody SetupOps(CLI::App& app);
CommandBody SetupVersion(CLI::App& app);

// Adds --unpack_limit, which holds as soon as the flags are read.
void AddUnpackLimitFlag(CLI::App& app);

// "serve,gpu" -> {"serve", "gpu"}; empty -> {}. Blanks and empty tags are kept.
std::vector<std::string> SplitTags(const std::string& tags);

}  // namespace smelt

#endif  // SMELT_CLI_COMMAND_H_
