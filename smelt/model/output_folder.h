// Where a rewritten model is written: what may stand there, and what comes along from the input.
#ifndef SMELT_MODEL_OUTPUT_FOLDER_H_
#define SMELT_MODEL_OUTPUT_FOLDER_H_

#include <set>
#include <string>
#include <vector>

#include "smelt/io/file_system.h"
#include "smelt/io/staged_folder.h"

namespace smelt {

struct OutputPlace {
  std::string input;      // as the user gives it: a folder or an archive
  std::string model_dir;  // the folder of the model in it
  std::string output;
  bool overwrite = false;
  // Entries that are written into the output folder beside the model.
  std::vector<std::string> also;
};

// The place, locked for this process, with a folder to write into. Only a SavedModel's folder or an
// empty one is ever replaced. INVALID_ARGUMENT when the output is the input, holds it, or lies in
// it; ALREADY_EXISTS when something stands there and `overwrite` is false; FAILED_PRECONDITION when
// that is no SavedModel, or more than one; ABORTED while another process writes there.
StatusOr<std::unique_ptr<StagedFolder>> StageOutput(const OutputPlace& place);

// Copies all of a SavedModel's folder but what the writer makes itself (the model file and its
// fingerprint) and the entries `without`. PERMISSION_DENIED for a link that leads out
// of what `files` permits, INVALID_ARGUMENT for what is neither a file nor a folder.
Status CopyRest(const std::string& from, const std::string& to,
                const std::set<std::string>& without, const FileSystem& files);

}  // namespace smelt

#endif  // SMELT_MODEL_OUTPUT_FOLDER_H_
