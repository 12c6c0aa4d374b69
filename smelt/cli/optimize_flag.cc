#include "smelt/cli/optimize_flag.h"

#include <CLI/CLI.hpp>

#include "smelt/io/fs.h"
#include "smelt/wire/options/rewriter_options.h"

namespace smelt {

void AddOptimizeFlag(CLI::App& app, std::string* value) {
  *value = "default";
  app.add_option("--optimize", *value,
                 "What is done to graphs before they run: off, default, aggressive, or a file with "
                 "a RewriterConfig or ConfigProto, text format")
      ->capture_default_str();
}

void AddCompileFlag(CLI::App& app, bool* value) {
  app.add_flag("--compile,!--no_compile", *value,
               "Compile regions of graphs into programs for the shapes that come (default: yes)");
}

StatusOr<RewriterConfig> RewriterOfFlag(const std::string& value) {
  RewriterConfig config;
  if (value == "off") {
    config.disable_meta_optimizer = true;
  } else if (value == "aggressive") {
    SetAggressive(config);
  } else if (value != "default") {
    ASSIGN_OR_RETURN(const std::string text, ReadInput(value));
    ASSIGN_OR_RETURN(config, ParseRewriterConfig(text));
  }
  return config;
}

}  // namespace smelt
