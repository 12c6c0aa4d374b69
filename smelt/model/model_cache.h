// What is made of a model's variables, kept in a cache folder for later processes (docs/cache.md).
#ifndef SMELT_MODEL_MODEL_CACHE_H_
#define SMELT_MODEL_MODEL_CACHE_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "smelt/io/forms_file.h"

namespace smelt {

// Used by one thread; models may be asked in others meanwhile.
class ModelCache {
 public:
  // For what is loaded from the SavedModel's folder `dir` while this object lives. An empty
  // `folder`: nothing is kept.
  ModelCache(const std::string& folder, const std::string& dir);
  ModelCache(const ModelCache&) = delete;

  // Writes what is new. What could not be kept or not be used, for people: answers do not depend
  // on it.
  std::vector<std::string> Save();

 private:
  std::shared_ptr<FormsFile> forms_;  // nullptr: nothing is kept
  std::string no_forms_;              // why, where something was to be kept
  // Checks what was kept while the model's graph is read, which takes one thread.
  std::jthread checks_;
};

}  // namespace smelt

#endif  // SMELT_MODEL_MODEL_CACHE_H_
