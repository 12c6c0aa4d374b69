// FileSystem: the files that somebody may read and write.
//
// A model comes from a stranger, and its ops name files. A Session is given a FileSystem, and
// whatever its kernels do with files goes through it: a path outside of the permitted folders, also
// one that only leaves them through a link or "..", is PERMISSION_DENIED before the disk is asked
// whether it exists. Cheap to copy; thread safe.
#ifndef SMELT_IO_FILE_SYSTEM_H_
#define SMELT_IO_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"
#include "smelt/io/fs.h"

namespace smelt {

class FileSystem {
 public:
  // Whatever the process may: for files that the user names.
  static FileSystem Whole();
  // No file at all.
  static FileSystem Nothing();
  // Folders (with all below them) or single files; what may be written may be read too. They are
  // resolved now: links in them count as what they lead to now.
  static FileSystem Of(const std::vector<std::string>& read, const std::vector<std::string>& write);

  // The same files and these too.
  FileSystem With(const std::vector<std::string>& read,
                  const std::vector<std::string>& write = {}) const;
  // The same files for `who` (the name of an op), which the errors name.
  FileSystem For(absl::string_view who) const;

  // PERMISSION_DENIED names who asks, the path, and the flag that permits it.
  Status MayRead(const std::string& path) const;
  Status MayWrite(const std::string& path) const;

  // As the functions of fs.h, where they are permitted.
  StatusOr<std::shared_ptr<const MappedFile>> Map(const std::string& path) const;
  StatusOr<std::string> Read(const std::string& path) const;
  Status WriteAtomically(const std::string& path, absl::string_view bytes) const;
  // Adds to the end of the file, which is made where it is missing.
  Status Append(const std::string& path, absl::string_view bytes) const;
  Status Make(const std::string& path, absl::string_view bytes) const;
  Status Remove(const std::string& path) const;
  Status MakeFolders(const std::string& path) const;
  // Each path that is found must be permitted, and the folder where the pattern begins.
  StatusOr<std::vector<std::string>> Matching(const std::string& pattern) const;

 private:
  struct Places {
    std::vector<std::string> read, write;  // resolved
  };

  Status Check(const std::string& path, bool write) const;

  std::shared_ptr<const Places> places_;  // nullptr: everything
  std::string who_ = "the model";
};

}  // namespace smelt

#endif  // SMELT_IO_FILE_SYSTEM_H_
