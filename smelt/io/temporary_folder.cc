#include "smelt/io/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "smelt/io/descriptor.h"
#include "smelt/io/fs.h"

namespace smelt {

StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make(const std::string& name) {
  const char* tmp = std::getenv("TMPDIR");
  std::string path = JoinPath(tmp != nullptr && *tmp != 0 ? tmp : "/tmp", name + "_XXXXXX");
  const SignalsWait whole;  // from its making on the folder goes with the process
  if (mkdtemp(path.data()) == nullptr) {
    return Prefix(FileError(path, errno), "cannot make a temporary folder: ");
  }
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(std::move(path)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // what cannot be removed there harms nobody
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace smelt
