#include "smelt/io/file_system.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "smelt/io/path.h"

namespace smelt {
namespace {

// Where a file that is opened lies. NOT_FOUND for a link that leads nowhere: it may come to lead
// anywhere. What lies behind a folder that cannot be searched cannot be opened either.
StatusOr<std::string> PlaceOf(const std::string& path) {
  ASSIGN_OR_RETURN(std::string resolved, ResolvedPath(path));
  std::error_code e;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(resolved, e))) {
    return NotFound(path, "; No such file or directory");
  }
  return resolved;
}

// A folder that cannot be resolved holds nothing that could be permitted.
std::vector<std::string> ResolvedPlaces(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    auto resolved = PlaceOf(path);
    if (resolved.ok() && std::ranges::find(out, *resolved) == out.end()) {
      out.push_back(*std::move(resolved));
    }
  }
  return out;
}

// The folder where a pattern begins: what stands before its first wildcard.
std::string StartOfPattern(const std::string& pattern) {
  const std::string plain = pattern.substr(0, pattern.find_first_of("*?[\\"));
  if (plain.size() == pattern.size()) return pattern;
  const size_t slash = plain.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : plain.substr(0, slash);
}

}  // namespace

FileSystem FileSystem::Whole() { return {}; }

FileSystem FileSystem::Nothing() { return Of({}, {}); }

FileSystem FileSystem::Of(const std::vector<std::string>& read,
                          const std::vector<std::string>& write) {
  FileSystem out;
  out.places_ = std::make_shared<Places>(Places{ResolvedPlaces(read), ResolvedPlaces(write)});
  return out;
}

FileSystem FileSystem::With(const std::vector<std::string>& read,
                            const std::vector<std::string>& write) const {
  if (places_ == nullptr) return *this;
  Places places = *places_;
  for (std::string& path : ResolvedPlaces(read)) places.read.push_back(std::move(path));
  for (std::string& path : ResolvedPlaces(write)) places.write.push_back(std::move(path));
  FileSystem out = *this;
  out.places_ = std::make_shared<Places>(std::move(places));
  return out;
}

FileSystem FileSystem::For(absl::string_view who) const {
  FileSystem out = *this;
  out.who_ = std::string(who);
  return out;
}

Status FileSystem::Check(const std::string& path, bool write) const {
  if (places_ == nullptr) return OkStatus();
  ASSIGN_OR_RETURN(const std::string resolved, PlaceOf(path));
  const auto holds = [&](const std::string& place) { return LiesIn(resolved, place); };
  if (std::ranges::any_of(places_->write, holds)) return OkStatus();
  if (!write && std::ranges::any_of(places_->read, holds)) return OkStatus();
  const std::vector<std::string>& places = write ? places_->write : places_->read;
  const std::string leads = resolved == path ? "" : absl::StrCat(" (which is ", resolved, ")");
  return absl::PermissionDeniedError(absl::StrCat(
      who_, " may not ", write ? "write " : "read ", path, leads, ": a model ",
      write ? "writes" : "reads", " ",
      places.empty() ? "nowhere" : absl::StrCat("inside of ", absl::StrJoin(places, ", "), " only"),
      "; ", write ? "--allow_write" : "--allow_read", " DIR permits a folder"));
}

Status FileSystem::MayRead(const std::string& path) const { return Check(path, false); }
Status FileSystem::MayWrite(const std::string& path) const { return Check(path, true); }

StatusOr<std::shared_ptr<const MappedFile>> FileSystem::Map(const std::string& path) const {
  RETURN_IF_ERROR(MayRead(path));
  return MapFile(path);
}

StatusOr<std::string> FileSystem::Read(const std::string& path) const {
  RETURN_IF_ERROR(MayRead(path));
  return ReadFile(path);
}

Status FileSystem::WriteAtomically(const std::string& path, absl::string_view bytes) const {
  RETURN_IF_ERROR(MayWrite(path));
  return WriteFileAtomically(path, bytes);
}

Status FileSystem::Append(const std::string& path, absl::string_view bytes) const {
  RETURN_IF_ERROR(MayWrite(path));
  return AppendToFile(path, bytes);
}

Status FileSystem::Make(const std::string& path, absl::string_view bytes) const {
  RETURN_IF_ERROR(MayWrite(path));
  return MakeFile(path, bytes);
}

Status FileSystem::Remove(const std::string& path) const {
  RETURN_IF_ERROR(MayWrite(path));
  return RemoveFile(path);
}

Status FileSystem::MakeFolders(const std::string& path) const {
  RETURN_IF_ERROR(MayWrite(path));
  return MakeDirs(path);
}

StatusOr<std::vector<std::string>> FileSystem::Matching(const std::string& pattern) const {
  RETURN_IF_ERROR(MayRead(StartOfPattern(pattern)));
  std::vector<std::string> paths = MatchingPaths(pattern);
  for (const std::string& path : paths) RETURN_IF_ERROR(MayRead(path));
  return paths;
}

}  // namespace smelt
