#include "smelt/model/model_folder.h"

#include <filesystem>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "smelt/io/archive.h"
#include "smelt/io/fs.h"

namespace smelt {
namespace {

bool HoldsSavedModel(const std::string& dir) {
  return Exists(JoinPath(dir, "saved_model.pb")) || Exists(JoinPath(dir, "saved_model.pbtxt"));
}

// How many folders around a model are looked through.
constexpr int kMaxFolders = 4;

// The SavedModel in `dir` or below it. "" when there is none.
StatusOr<std::string> FindSavedModel(const std::string& dir, int depth = 0) {
  if (HoldsSavedModel(dir)) return dir;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(dir));
  std::vector<std::string> models, folders;
  std::string newest;
  uint64_t highest = 0;
  for (const std::string& name : names) {
    const std::string sub = JoinPath(dir, name);
    if (!IsDir(sub)) continue;
    folders.push_back(sub);
    if (!HoldsSavedModel(sub)) continue;
    models.push_back(name);
    uint64_t version = 0;
    if (absl::SimpleAtoi(name, &version) && (newest.empty() || version > highest)) {
      newest = sub;
      highest = version;
    }
  }
  if (!newest.empty()) return newest;
  if (models.size() > 1) {
    return InvalidArgument(
        dir, " holds several SavedModels; give one of: ", absl::StrJoin(models, ", "));
  }
  if (models.size() == 1) return JoinPath(dir, models[0]);
  if (folders.size() != 1 || depth == kMaxFolders) return std::string();
  return FindSavedModel(folders[0], depth + 1);
}

}  // namespace

StatusOr<ModelFolder> ModelFolder::Open(const std::string& path) {
  ModelFolder folder;
  if (IsDir(path)) {
    ASSIGN_OR_RETURN(folder.dir_, FindSavedModel(path));
    // ReadSavedModel says what is missing.
    if (folder.dir_.empty()) folder.dir_ = path;
    return folder;
  }
  folder.dir_ = path;
  if (!Exists(path)) return folder;
  ASSIGN_OR_RETURN(folder.unpacked_, TemporaryFolder::Make("smelt_model"));
  RETURN_IF_ERROR(ExtractArchive(path, folder.unpacked_->path()));
  ASSIGN_OR_RETURN(folder.dir_, FindSavedModel(folder.unpacked_->path()));
  if (folder.dir_.empty()) {
    return NotFound("archive ", path, " holds no saved_model.pb or saved_model.pbtxt");
  }
  return folder;
}

std::vector<std::string> FoldersOfModel(const std::string& dir) {
  if (dir.empty()) return {};
  std::vector<std::string> folders = {dir};
  for (const char* name : {"saved_model.pb", "saved_model.pbtxt"}) {
    std::error_code e;
    const std::filesystem::path file = std::filesystem::canonical(JoinPath(dir, name), e);
    if (!e) folders.push_back(file.parent_path().string());
  }
  return folders;
}

}  // namespace smelt
