#include "smelt/io/path.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "smelt/io/descriptor.h"

namespace smelt {

namespace stdfs = std::filesystem;

StatusOr<std::string> ResolvedPath(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("a path with a zero byte: ", path.substr(0, path.find('\0')));
  }
  std::error_code e;
  const stdfs::path absolute = stdfs::absolute(path.empty() ? "." : path, e);
  if (e) return FileError(path, e.value());
  const stdfs::path resolved = stdfs::weakly_canonical(absolute, e);
  if (e) return FileError(path, e.value());
  std::string text = resolved.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool LiesIn(absl::string_view path, absl::string_view folder) {
  if (folder == "/") return true;
  return absl::StartsWith(path, folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace smelt
