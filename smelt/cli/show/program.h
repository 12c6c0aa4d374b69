// What a signature is compiled to, and why to no more.
#ifndef SMELT_CLI_SHOW_PROGRAM_H_
#define SMELT_CLI_SHOW_PROGRAM_H_

#include <string>

#include "smelt/cli/sample_request.h"

namespace smelt {

// Loads the model, runs one request (sample_request.h) and returns the text; `memory_svg`: writes
// the memory plans as a picture there unless it is empty. Errors of loading; those of the request
// where nothing was compiled for it.
StatusOr<std::string> ProgramText(const std::string& model, const SampleFlags& flags,
                                  const std::string& memory_svg);

}  // namespace smelt

#endif  // SMELT_CLI_SHOW_PROGRAM_H_
