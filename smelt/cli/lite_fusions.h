// Flags of smelt lite that are about fusions.
#ifndef SMELT_CLI_LITE_FUSIONS_H_
#define SMELT_CLI_LITE_FUSIONS_H_

#include <string>
#include <vector>

#include "smelt/lite/export.h"

namespace CLI {
class App;
}

namespace smelt {

struct FusionFlags {
  std::string file;                    // --fusions
  std::vector<std::string> libraries;  // --fusion_library
  std::vector<std::string> off, on;
  bool list = false, explain = false;
};
void AddFusionFlags(CLI::App& app, FusionFlags& flags);
// INVALID_ARGUMENT for a file that does not parse, with its line, and for names that no fusion has;
// errors of LoadFusionLibrary.
StatusOr<FusionChoice> ChooseFusions(const FusionFlags& flags);

// One line for each fusion, on stdout.
void ListFusions(const FusionChoice& choice);
// What fired, and what nearly did.
void ExplainFusions(const FusionChoice& choice, const std::vector<FusionNote>& notes);

}  // namespace smelt

#endif  // SMELT_CLI_LITE_FUSIONS_H_
