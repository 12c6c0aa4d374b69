// What is wrong with a command line, and what was probably meant.
#ifndef SMELT_CLI_USAGE_H_
#define SMELT_CLI_USAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace smelt {

// Prints the text and where help is to stderr; returns kExitUsage.
int UsageError(absl::string_view text);

// Names the command or the flag that there is not, with the nearest ones, when that is why `app`
// did not parse; empty otherwise.
// REQUIRES: app.parse(argc, argv) threw.
std::string UnknownWord(const CLI::App& app, int argc, const char* const* argv);

// What a model may be, for --help.
inline constexpr char kModelHelp[] =
    "SavedModel: its folder or saved_model.pb, a folder of versions, or an archive";

// A path that is given by position or, as scripts for TensorFlow's tools do, by a flag.
class PathArgument {
 public:
  // The object must outlive the parse.
  void Add(CLI::App& app, const std::string& name, const std::string& flag,
           const std::string& what);
  // The path, empty when it is not given. Sets `error` when position and flag name different ones.
  std::string Get(std::string* error) const;

 private:
  std::string name_, flag_, by_position_, by_flag_;
};

}  // namespace smelt

#endif  // SMELT_CLI_USAGE_H_
