// Files of the local disk, as whole values: read, map, write beside and rename, list.
//
// Errors name the path and carry the code of errno (NOT_FOUND, PERMISSION_DENIED, ...). Thread
// safe.
#ifndef SMELT_IO_FS_H_
#define SMELT_IO_FS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// A file's bytes, mapped read-only (private pages) for as long as the object lives. The file must
// not be truncated meanwhile: replace files by renaming, as WriteFileAtomically does.
class MappedFile {
 public:
  MappedFile(const void* data, size_t size) : data_(data), size_(size) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const char* data() const { return static_cast<const char*>(data_); }
  size_t size() const { return size_; }
  absl::string_view bytes() const { return {data(), size_}; }

 private:
  const void* data_;
  size_t size_;
};

// FAILED_PRECONDITION for a folder.
StatusOr<std::shared_ptr<const MappedFile>> MapFile(const std::string& path);
// All bytes up to the end; also of what cannot be mapped (pipes).
StatusOr<std::string> ReadFile(const std::string& path);

// Writes beside `path`, syncs, and renames into place: readers see the old bytes or the new ones,
// also after a crash. The folder must exist. Links, devices and mounts: staged_file.h.
Status WriteFileAtomically(const std::string& path, absl::string_view bytes);
// Makes a new file of the same bytes and permissions. ALREADY_EXISTS when `to` exists; after
// another error it does not.
Status CopyFile(const std::string& from, const std::string& to);
// Adds to the end of the file, which is made where it is missing.
Status AppendToFile(const std::string& path, absl::string_view bytes);

// Makes a new file of these bytes, without a sync. ALREADY_EXISTS when the path exists, so that the
// file can serve as a lock.
Status MakeFile(const std::string& path, absl::string_view bytes);
// NOT_FOUND when the path does not exist.
Status RemoveFile(const std::string& path);

// Makes the folder and those above it, where they do not exist.
Status MakeDirs(const std::string& path);
// Names in the folder, sorted, without "." and "..".
StatusOr<std::vector<std::string>> ListDir(const std::string& path);
// Existing paths that match the pattern, sorted; none where a folder cannot be read. *, ? and [..]
// match within one name: a slash only matches itself.
std::vector<std::string> MatchingPaths(const std::string& pattern);
bool Exists(const std::string& path);
bool IsDir(const std::string& path);
StatusOr<int64_t> FileSize(const std::string& path);

// "dir/name"; "name" alone for an empty dir.
std::string JoinPath(absl::string_view dir, absl::string_view name);

}  // namespace smelt

#endif  // SMELT_IO_FS_H_
