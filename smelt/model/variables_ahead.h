// Checksums of a SavedModel's variables, computed while its graph is read.
#ifndef SMELT_MODEL_VARIABLES_AHEAD_H_
#define SMELT_MODEL_VARIABLES_AHEAD_H_

#include <memory>
#include <string>
#include <thread>

#include "smelt/runtime/session.h"
#include "smelt/wire/bundle/bundle.h"

namespace smelt {

// What is read as soon as the model is loaded: bytes of variables whose pages stay resident.
inline constexpr int64_t kVariablesSoonRead = int64_t{128} << 20;

// Exists from before the model's graph is read until the model is loaded: a thread verifies the
// variables of the SavedModel in the folder `dir` meanwhile, and restoring them waits for it at
// most. Without variables, with one thread, or where the system gives no thread, it does nothing;
// what is wrong is for the restoring to say.
class VariablesAhead {
 public:
  // `soon`: see BundleReader::LeavePages. 0: BundleReader::SpareMemory, too.
  VariablesAhead(const std::string& dir, const SessionOptions& options,
                 int64_t soon = kVariablesSoonRead);
  ~VariablesAhead();
  VariablesAhead(const VariablesAhead&) = delete;

 private:
  std::shared_ptr<BundleReader> reader_;  // that of the restore ops, too
  std::jthread thread_;
};

}  // namespace smelt

#endif  // SMELT_MODEL_VARIABLES_AHEAD_H_
