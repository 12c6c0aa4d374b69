#include <CLI/CLI.hpp>
#include <cstdio>

#include "smelt/cli/command.h"

int main(int argc, char** argv) {
  using smelt::Command;
  CLI::App app{"smelt: show, run, replay and convert TensorFlow SavedModels"};
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, smelt::CommandBody>> bodies;
  for (const Command& command : smelt::Commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.what));
    sub->footer("Example:\n  " + std::string(command.example));
    bodies.emplace_back(sub, command.setup(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? smelt::kExitOk : smelt::kExitUsage;
  }
  for (auto& [sub, body] : bodies) {
    if (!sub->parsed()) continue;
    smelt::StatusOr<int> code = body();
    if (code.ok()) return *code;
    std::fflush(stdout);
    std::fprintf(stderr, "error: %s: %s\n",
                 std::string(smelt::CodeName(code.status().code())).c_str(),
                 std::string(code.status().message()).c_str());
    return smelt::kExitFailed;
  }
  return smelt::kExitUsage;
}
