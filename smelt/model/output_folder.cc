#include "smelt/model/output_folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "absl/strings/str_join.h"
#include "smelt/io/descriptor.h"
#include "smelt/io/fs.h"
#include "smelt/io/path.h"

namespace smelt {
namespace {

namespace stdfs = std::filesystem;

constexpr char kModelFile[] = "saved_model.pb";
// What TensorFlow and Keras write into a SavedModel's folder.
constexpr absl::string_view kModelEntries[] = {
    kModelFile,     "saved_model.pbtxt", "saved_model.cpb", "fingerprint.pb", "variables", "assets",
    "assets.extra", "keras_metadata.pb", "tfhub_module.pb", "debug",          "aot"};

Status CheckApart(const OutputPlace& place) {
  ASSIGN_OR_RETURN(const std::string output, ResolvedPath(place.output));
  for (const std::string& from : {place.input, place.model_dir}) {
    ASSIGN_OR_RETURN(const std::string input, ResolvedPath(from));
    if (input == output) {
      return InvalidArgument("the output folder ", place.output, " is the input");
    }
    if (LiesIn(input, output)) {
      return InvalidArgument("the output folder ", place.output, " holds the input ", from);
    }
  }
  ASSIGN_OR_RETURN(const std::string model, ResolvedPath(place.model_dir));
  if (LiesIn(output, model)) {
    return InvalidArgument("the output folder ", place.output, " lies in the input ",
                           place.model_dir);
  }
  return OkStatus();
}

Status CheckReplaceable(const OutputPlace& place, const std::vector<std::string>& names) {
  if (!place.overwrite) {
    return AlreadyExists("the output folder ", place.output, " is not empty (use --overwrite)");
  }
  const auto is_model = [](const std::string& name) {
    return name == kModelFile || name == "saved_model.pbtxt";
  };
  if (std::ranges::none_of(names, is_model)) {
    return FailedPrecondition("the output folder ", place.output,
                              " holds no SavedModel, and nothing else is replaced");
  }
  // A model carries what its users put beside it; what neither it nor the input has is not ours.
  std::set<std::string> ours(std::begin(kModelEntries), std::end(kModelEntries));
  ours.insert(place.also.begin(), place.also.end());
  ASSIGN_OR_RETURN(const std::vector<std::string> input, ListDir(place.model_dir));
  ours.insert(input.begin(), input.end());
  std::vector<std::string> others;
  for (const std::string& name : names) {
    if (!ours.contains(name)) others.push_back(name);
  }
  if (others.empty()) return OkStatus();
  return FailedPrecondition("the output folder ", place.output,
                            " holds more than a SavedModel, which --overwrite does not remove: ",
                            absl::StrJoin(others, ", "));
}

// `within`: the folders that are being copied, outermost first.
Status CopyEntry(const stdfs::path& from, const stdfs::path& to, const FileSystem& files,
                 std::vector<stdfs::path>& within) {
  RETURN_IF_ERROR(files.MayRead(from.string()));
  std::error_code e;
  const stdfs::file_status status = stdfs::status(from, e);
  if (e) return FileError(from.string(), e.value());
  if (stdfs::is_regular_file(status)) {
    return CopyFile(from.string(), to.string());
  }
  if (!stdfs::is_directory(status)) {
    return InvalidArgument(from.string(), " is neither a file nor a folder");
  }
  const stdfs::path resolved = stdfs::canonical(from, e);
  if (e) return FileError(from.string(), e.value());
  if (std::ranges::find(within, resolved) != within.end()) return FileError(from.string(), ELOOP);
  stdfs::create_directory(to, e);
  if (e) return FileError(to.string(), e.value());
  within.push_back(resolved);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(from.string()));
  for (const std::string& name : names) {
    RETURN_IF_ERROR(CopyEntry(from / name, to / name, files, within));
  }
  within.pop_back();
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<StagedFolder>> StageOutput(const OutputPlace& place) {
  RETURN_IF_ERROR(CheckApart(place));
  return StagedFolder::Make(place.output, kModelFile, [&](const std::vector<std::string>& names) {
    return CheckReplaceable(place, names);
  });
}

Status CopyRest(const std::string& from, const std::string& to,
                const std::set<std::string>& without, const FileSystem& files) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(from));
  std::vector<stdfs::path> within;
  for (const std::string& name : names) {
    if (name == kModelFile || name == "saved_model.pbtxt" || name == "fingerprint.pb" ||
        without.contains(name)) {
      continue;
    }
    RETURN_IF_ERROR(CopyEntry(stdfs::path(from) / name, stdfs::path(to) / name, files, within));
  }
  return OkStatus();
}

}  // namespace smelt
