// Staging maps: tuples by key, which may arrive and leave component by component. The ordered kind
// gives the least key out first, the other one any.
#ifndef SMELT_KERNELS_QUEUE_STAGING_MAP_H_
#define SMELT_KERNELS_QUEUE_STAGING_MAP_H_

#include <cstdint>
#include <map>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/queue/staging.h"

namespace smelt {

// One key order does for both kinds. Thread safe.
template <bool kOrdered>
class StagingMap final : public Resource {
 public:
  static constexpr absl::string_view kKind = kOrdered ? "ordered_staging_map" : "staging_map";
  absl::string_view kind() const override { return kKind; }
  StagingMap(StagingLimits limits, size_t components) : limits_(limits), components_(components) {}

  // Components `indices` of the tuple of that key. A whole tuple beside one of the same key is
  // dropped.
  Status Put(int64_t key, std::span<const int32_t> indices, Tuple tuple, const Step& step);
  // Components `indices` of the tuple of *key; `any`: of the first one there is, whose key *key
  // becomes. Waits until it is there. They go unless `keep`.
  StatusOr<Tuple> Get(int64_t* key, bool any, bool keep, std::span<const int32_t> indices,
                      const Step& step);

  int64_t size();
  int64_t incomplete_size();
  void Clear();

 private:
  Status CheckComponent(int64_t key, int32_t index) const;

  const StagingLimits limits_;
  const size_t components_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<int64_t, Tuple> tuples_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Tuple> incomplete_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_QUEUE_STAGING_MAP_H_
