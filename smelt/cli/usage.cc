#include "smelt/cli/usage.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/base/suggest.h"
#include "smelt/cli/command.h"

namespace smelt {
namespace {

// Dashes are no part of what is compared: they are the same in every flag.
std::string NearestFlags(absl::string_view flag, const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  std::vector<std::string> nearest = Nearest(absl::StripPrefix(flag, "--"), names);
  for (std::string& name : nearest) name.insert(0, "--");
  return DidYouMean(nearest);
}

}  // namespace

int UsageError(absl::string_view text) {
  std::fprintf(stderr, "%s\nRun with --help for more information.\n", std::string(text).c_str());
  return kExitUsage;
}

std::string UnknownWord(const CLI::App& app, int argc, const char* const* argv) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  if (parsed.empty()) {
    if (argc < 2) return "";
    const absl::string_view word = argv[1];
    std::vector<std::string> names;
    for (const Command& command : Commands()) names.emplace_back(command.name);
    return absl::StrCat("there is no command \"", word, "\"", Suggest(word, names),
                        ". Commands: ", absl::StrJoin(names, ", "));
  }
  for (const std::string& word : parsed[0]->remaining()) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    return absl::StrCat("smelt ", parsed[0]->get_name(), " has no flag \"", flag, "\"",
                        NearestFlags(flag, *parsed[0]));
  }
  return "";
}

void PathArgument::Add(CLI::App& app, const std::string& name, const std::string& flag,
                       const std::string& what) {
  name_ = name;
  flag_ = flag;
  app.add_option(name, by_position_, what);
  app.add_option(flag, by_flag_, absl::StrCat("The same as ", name, ", for scripts"));
}

std::string PathArgument::Get(std::string* error) const {
  if (by_position_.empty()) return by_flag_;
  if (!by_flag_.empty() && by_flag_ != by_position_) {
    *error = absl::StrCat(name_, " is given twice: as \"", by_position_, "\" and by ", flag_,
                          " as \"", by_flag_, "\"");
  }
  return by_position_;
}

}  // namespace smelt
