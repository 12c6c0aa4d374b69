// A file that appears whole or not at all: written beside its place, then renamed.
//
// What stands at the place decides how. A link is followed: its target is what is replaced. A
// regular file keeps its permissions. What is no regular file (a device, a pipe, a terminal) is
// written through, when the file is published. A file that cannot be renamed over (mounted by
// itself, or in a folder that may not be written) is written in place. What a killed process left
// beside the place is used up by the next one that writes there.
#ifndef SMELT_IO_STAGED_FILE_H_
#define SMELT_IO_STAGED_FILE_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// When somebody else is writing to the same place: wait, or ABORTED.
enum class OtherWriter { kWait, kRefuse };

// Used by one thread at a time. Errors name the path and carry the code of errno.
class StagedFile {
 public:
  // The folder must exist. FAILED_PRECONDITION when a folder stands at `path`.
  static StatusOr<std::unique_ptr<StagedFile>> Make(const std::string& path, OtherWriter other);
  // Without Publish, nothing is left.
  virtual ~StagedFile() = default;
  // Adds to what the file is to hold.
  virtual Status Write(absl::string_view bytes) = 0;
  // Syncs and puts the file in its place. REQUIRES: called once, last.
  virtual Status Publish() = 0;
};

}  // namespace smelt

#endif  // SMELT_IO_STAGED_FILE_H_
