// Finds the SavedModel that a path stands for: its folder, a folder of versions, a folder around
// it, an archive.
#ifndef SMELT_MODEL_MODEL_FOLDER_H_
#define SMELT_MODEL_MODEL_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "smelt/base/status.h"
#include "smelt/io/temporary_folder.h"

namespace smelt {

// The folder of a SavedModel, and what was unpacked to reach it (removed with the object).
class ModelFolder {
 public:
  // `path` is one of
  //   a folder with saved_model.pb or saved_model.pbtxt, or one of these files: the folder;
  //   a folder with such folders whose names are numbers (as TensorFlow Serving reads it): the
  //   highest number; a folder with one folder in it that is one of these;
  //   a file: a tar archive, gzipped or not, unpacked beside other temporary files (TMPDIR), whose
  //   content is one of the above.
  //   a .tflite file: dir() is the file (lite/lite_file.h reads it).
  // A path where nothing is, or a folder without a SavedModel, is taken as it is: ReadSavedModel
  // says what is missing. NOT_FOUND for an archive without one; INVALID_ARGUMENT when there are
  // several without numbers.
  static StatusOr<ModelFolder> Open(const std::string& path);

  const std::string& dir() const { return dir_; }
  // The name of the version that was chosen in a folder of versions, else empty.
  const std::string& version() const { return version_; }

 private:
  ModelFolder() = default;
  std::string dir_, version_;
  std::unique_ptr<TemporaryFolder> unpacked_;
};

// The folders whose files are a model's own: `dir`, and where its model file really lies if that is
// a link (as download caches lay models out). None for "".
std::vector<std::string> FoldersOfModel(const std::string& dir);

}  // namespace smelt

#endif  // SMELT_MODEL_MODEL_FOLDER_H_
