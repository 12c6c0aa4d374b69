#include "smelt/model/model_cache.h"

#include "smelt/base/team.h"
#include "smelt/base/thread.h"
#include "smelt/io/sha256.h"

namespace smelt {

// The index holds the checksums of all data, and forms say how they were made: the graph is no
// part of the key.
ModelCache::ModelCache(const std::string& folder, const std::string& dir) {
  if (folder.empty()) return;
  const std::string prefix = dir + "/variables/variables";
  const auto index = MapFile(prefix + ".index");
  if (!index.ok()) return;  // there are no variables, or loading says what is wrong
  const std::string program = ProgramId();
  if (program.empty()) {
    no_forms_ = "nothing is cached: this program was linked without a build id";
    return;
  }
  forms_ = FormsFile::Open(folder,
                           absl::StrCat("variables\n", program, Sha256((*index)->bytes()), "\n"));
  KeepFormsOf(prefix + ".data-", forms_);
  if (NumCores() == 1) return;
  auto thread = StartThread<std::jthread>([this](const std::stop_token& stop) {
    const ScopedThreads alone(1);
    forms_->CheckAhead(stop);
  });
  if (thread.ok()) checks_ = *std::move(thread);
}

std::vector<std::string> ModelCache::Save() {
  std::vector<std::string> out;
  if (!no_forms_.empty()) out.push_back(no_forms_);
  if (forms_ == nullptr) return out;
  checks_ = {};
  const Status saved = forms_->Save();
  out = forms_->TakeWarnings();
  if (!saved.ok()) out.push_back(absl::StrCat("nothing is cached: ", saved.message()));
  return out;
}

}  // namespace smelt
