// A folder for a while, beside other temporary files (TMPDIR, else /tmp).
#ifndef SMELT_IO_TEMPORARY_FOLDER_H_
#define SMELT_IO_TEMPORARY_FOLDER_H_

#include <memory>
#include <string>

#include "smelt/base/status.h"
#include "smelt/io/signal_cleanup.h"

namespace smelt {

// Removed with all that is in it when the object goes, or the process is interrupted.
class TemporaryFolder {
 public:
  // Its name begins with `name`, and nobody else can know the rest. Errors carry the code of errno.
  static StatusOr<std::unique_ptr<TemporaryFolder>> Make(const std::string& name);
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)), goes_(path_) {}
  const std::string path_;
  const RemovedOnSignal goes_;
};

}  // namespace smelt

#endif  // SMELT_IO_TEMPORARY_FOLDER_H_
