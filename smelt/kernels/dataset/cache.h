// Elements kept in memory, or in a file for other processes too: a variable bundle whose tensors
// are the components of the elements, in order.
#ifndef SMELT_KERNELS_DATASET_CACHE_H_
#define SMELT_KERNELS_DATASET_CACHE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/dataset/dataset.h"
#include "smelt/kernels/resource_manager.h"

namespace smelt {

// The elements of a dataset, once one iterator has seen them all. Thread safe.
class MemoryCache final : public Resource {
 public:
  static constexpr absl::string_view kKind = "memory_cache";
  absl::string_view kind() const override { return kKind; }

  // All elements; nullptr before Complete.
  std::shared_ptr<const std::vector<Element>> Elements() {
    absl::MutexLock lock(&mutex_);
    return elements_;
  }
  // The first call counts.
  void Complete(std::vector<Element> elements) {
    absl::MutexLock lock(&mutex_);
    if (elements_ == nullptr) {
      elements_ = std::make_shared<const std::vector<Element>>(std::move(elements));
    }
  }

 private:
  absl::Mutex mutex_;
  std::shared_ptr<const std::vector<Element>> elements_ ABSL_GUARDED_BY(mutex_);
};

// The elements of the cache, or those of the input, which complete it.
MakeIterator CachedInMemory(DatasetRef input, std::shared_ptr<MemoryCache> cache);
// The same with a bundle of the prefix `file`. ALREADY_EXISTS while another iterator writes it.
MakeIterator CachedInFile(DatasetRef input, std::string file, FileSystem files);

}  // namespace smelt

#endif  // SMELT_KERNELS_DATASET_CACHE_H_
