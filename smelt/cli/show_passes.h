// What a user sees of the optimizer's passes: --verify_passes and --dump_passes.
#ifndef SMELT_CLI_SHOW_PASSES_H_
#define SMELT_CLI_SHOW_PASSES_H_

#include <string>

#include "CLI/CLI.hpp"
#include "smelt/optimize/pipeline.h"

namespace smelt {

struct PassFlags {
  bool verify = false;
  std::string dump;  // a folder, made where it is not there; empty: nothing is written
};

void AddPassFlags(CLI::App& app, PassFlags* flags);

// With `verify`, a pass that leaves a graph that does not verify is undone, and told on stderr.
// With `dump`, the graph after each pass that changed it is written to DUMP/NNN-GRAPH-PASS.graph,
// in the text form; what cannot be written is told on stderr.
StatusOr<PipelineOptions> PassOptions(const PassFlags& flags);

}  // namespace smelt

#endif  // SMELT_CLI_SHOW_PASSES_H_
