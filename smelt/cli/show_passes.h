// Flags that show the optimizer's passes at work: --verify_passes, --time_passes and --dump_dir.
#ifndef SMELT_CLI_SHOW_PASSES_H_
#define SMELT_CLI_SHOW_PASSES_H_

#include <string>

#include "CLI/CLI.hpp"
#include "smelt/optimize/pipeline.h"

namespace smelt {

struct PassFlags {
  bool verify = false, time = false;
  std::string dump;  // a folder, made where it is not there; empty: nothing is written
};

void AddPassFlags(CLI::App& app, PassFlags* flags);

// Options for SessionOptions::passes. With `verify`, a pass whose graph does not verify is undone
// and named on stderr. With `time`, what each took is printed there. With `dump`, the graph after
// each pass that changed it is written to DUMP/NNN-GRAPH-PASS.graph in the text form, beside it as
// .dot for graphviz and as .svg, where its program dot is installed (said on stderr where not); NNN
// counts all passes that ran. Files that cannot be written are named on stderr; an error only when
// the folder cannot be made.
StatusOr<PipelineOptions> PassOptions(const PassFlags& flags);

}  // namespace smelt

#endif  // SMELT_CLI_SHOW_PASSES_H_
