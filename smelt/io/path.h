// Where a path leads, and whether that lies in a folder.
#ifndef SMELT_IO_PATH_H_
#define SMELT_IO_PATH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// The absolute path with every link and ".." followed, as far as it exists, without a slash at its
// end; what it leads to may be missing, and the last name may be a link that leads nowhere. ""
// stands for the current folder. INVALID_ARGUMENT for a path with a zero byte; the code of errno
// where a folder on the way cannot be searched or links go in a circle.
StatusOr<std::string> ResolvedPath(const std::string& path);

// Is `path` the folder, or below it? REQUIRES: both are resolved.
bool LiesIn(absl::string_view path, absl::string_view folder);

}  // namespace smelt

#endif  // SMELT_IO_PATH_H_
