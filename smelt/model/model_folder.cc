#include "smelt/model/model_folder.h"

#include <cstdlib>
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
  const char* tmp = std::getenv("TMPDIR");
  folder.unpacked_ = JoinPath(tmp != nullptr && *tmp != 0 ? tmp : "/tmp", "smelt_model_XXXXXX");
  if (mkdtemp(folder.unpacked_.data()) == nullptr) {
    const std::string wanted = std::exchange(folder.unpacked_, "");
    return Internal("cannot make a temporary folder ", wanted);
  }
  RETURN_IF_ERROR(ExtractArchive(path, folder.unpacked_));
  ASSIGN_OR_RETURN(FoundModel found, FindSavedModel(folder.unpacked_));
  folder.dir_ = std::move(found.dir);
  folder.version_ = std::move(found.version);
  if (folder.dir_.empty()) {
    return NotFound("archive ", path, " holds no saved_model.pb or saved_model.pbtxt");
  }
  return folder;
}

ModelFolder::~ModelFolder() {
  if (unpacked_.empty()) return;
  std::error_code ignored;  // a folder in TMPDIR that cannot be removed harms nobody
  std::filesystem::remove_all(unpacked_, ignored);
}

}  // namespace smelt
