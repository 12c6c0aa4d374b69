#include "smelt/model/model_folder.h"

#include <filesystem>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "smelt/io/archive.h"
#include "smelt/io/fs.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {
namespace {

bool HoldsSavedModel(const std::string& dir) {
  return Exists(JoinPath(dir, "saved_model.pb")) || Exists(JoinPath(dir, "saved_model.pbtxt"));
}

// How many folders around a model are looked through.
constexpr int kMaxFolders = 4;

struct FoundModel {
  std::string dir;      // empty: there is none
  std::string version;  // the number that was the highest
};

// The SavedModel in `dir` or below it.
StatusOr<FoundModel> FindSavedModel(const std::string& dir, int depth = 0) {
  if (HoldsSavedModel(dir)) return FoundModel{dir, ""};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(dir));
  std::vector<std::string> models, folders;
  FoundModel newest;
  uint64_t highest = 0;
  for (const std::string& name : names) {
    const std::string sub = JoinPath(dir, name);
    if (!IsDir(sub)) continue;
    folders.push_back(sub);
    if (!HoldsSavedModel(sub)) continue;
    models.push_back(name);
    uint64_t version = 0;
    if (absl::SimpleAtoi(name, &version) && (newest.dir.empty() || version > highest)) {
      newest = {sub, name};
      highest = version;
    }
  }
  if (!newest.dir.empty()) return newest;
  if (models.size() > 1) {
    return InvalidArgument(
        dir, " holds several SavedModels; give one of: ", absl::StrJoin(models, ", "));
  }
  if (models.size() == 1) return FoundModel{JoinPath(dir, models[0]), ""};
  if (folders.size() != 1 || depth == kMaxFolders) return FoundModel();
  return FindSavedModel(folders[0], depth + 1);
}

// The folder of a path that names the model's own file; empty for other paths. INVALID_ARGUMENT for
// a text form that is not what its folder means.
StatusOr<std::string> FolderOfModelFile(const std::string& path) {
  const std::filesystem::path file(path);
  const bool text = file.filename() == "saved_model.pbtxt";
  if ((!text && file.filename() != "saved_model.pb") || !Exists(path)) return std::string();
  const std::string parent = file.has_parent_path() ? file.parent_path().string() : ".";
  if (text && Exists(JoinPath(parent, "saved_model.pb"))) {
    return InvalidArgument(path, " stands beside saved_model.pb, which is the one that is read");
  }
  return parent;
}

}  // namespace

StatusOr<ModelFolder> ModelFolder::Open(const std::string& path) {
  ModelFolder folder;
  if (IsDir(path)) {
    ASSIGN_OR_RETURN(FoundModel found, FindSavedModel(path));
    folder.dir_ = std::move(found.dir);
    folder.version_ = std::move(found.version);
    // ReadSavedModel says what is missing.
    if (folder.dir_.empty()) folder.dir_ = path;
    return folder;
  }
  ASSIGN_OR_RETURN(folder.dir_, FolderOfModelFile(path));
  if (!folder.dir_.empty()) return folder;
  folder.dir_ = path;
  if (!Exists(path)) return folder;
  if (const auto file = MapFile(path); file.ok() && IsTflite((*file)->bytes())) return folder;
  ASSIGN_OR_RETURN(folder.unpacked_, TemporaryFolder::Make("smelt_model"));
  RETURN_IF_ERROR(ExtractArchive(path, folder.unpacked_->path()));
  ASSIGN_OR_RETURN(FoundModel found, FindSavedModel(folder.unpacked_->path()));
  folder.dir_ = std::move(found.dir);
  folder.version_ = std::move(found.version);
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
