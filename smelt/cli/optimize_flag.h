// --optimize: what sessions do with graphs before they run them.
#ifndef SMELT_CLI_OPTIMIZE_FLAG_H_
#define SMELT_CLI_OPTIMIZE_FLAG_H_

#include <string>

#include "smelt/base/status.h"
#include "smelt/graph/rewriter_config.h"

namespace CLI {
class App;
}

namespace smelt {

// Adds the flag; `value` is "default" where it is left out. REQUIRES: `value` outlives the app.
void AddOptimizeFlag(CLI::App& app, std::string* value);

// SessionOptions::compile. REQUIRES: `value` outlives the app.
void AddCompileFlag(CLI::App& app, bool* value);

// SessionOptions::rewriter for "off", "default", "aggressive" or the path of a RewriterConfig or
// ConfigProto in text format. Errors of reading and parsing the file.
StatusOr<RewriterConfig> RewriterOfFlag(const std::string& value);

}  // namespace smelt

#endif  // SMELT_CLI_OPTIMIZE_FLAG_H_
