// Unbatch gives each step its rows of a batch that one of them computed on; UnbatchGrad brings them
// together again. Steps wait for each other here, by the ids that Batch gave them.
#ifndef SMELT_KERNELS_BATCH_UNBATCH_H_
#define SMELT_KERNELS_BATCH_UNBATCH_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/kernels/step.h"

namespace smelt {

// A step that waits, in its own stack.
struct UnbatchWaiter;

// Gives each step its rows. Thread safe.
class Unbatcher final : public Resource {
 public:
  static constexpr absl::string_view kKind = "unbatch";
  absl::string_view kind() const override { return kKind; }
  // Steps wait for their tensor no longer than `timeout`.
  explicit Unbatcher(absl::Duration timeout) : timeout_(timeout) {}

  // The tensor for `id`: one of `pieces`, which are for `ids`, or what another step brings.
  StatusOr<Tensor> Exchange(int64_t id, std::span<const int64_t> ids, std::vector<Tensor> pieces,
                            const Step& step);

 private:
  struct Ready {
    Tensor tensor;
    absl::Time until;
  };
  const absl::Duration timeout_;
  absl::Mutex mutex_;
  std::map<int64_t, Ready> ready_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, UnbatchWaiter*> waiting_ ABSL_GUARDED_BY(mutex_);
};

// Brings them together again. Thread safe.
class Rebatcher final : public Resource {
 public:
  static constexpr absl::string_view kKind = "unbatch_grad";
  absl::string_view kind() const override { return kKind; }

  // Brings the gradient of step `id`. A step that owns a batch waits for the gradients of all `ids`
  // and is given them, joined in that order. REQUIRES: grad has rows.
  StatusOr<Tensor> Exchange(int64_t id, const Tensor& grad, bool owner,
                            std::span<const int64_t> ids, const Step& step);

 private:
  struct Incomplete {
    std::set<int64_t> missing;
    std::vector<int64_t> ids;
    UnbatchWaiter* owner;
    Allocator* allocator;
  };

  // Tells the batch that wants the gradient, and its owner when it was the last.
  void Arrived(int64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StatusOr<Tensor> Join(std::span<const int64_t> ids, Allocator* allocator)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::map<int64_t, Tensor> grads_ ABSL_GUARDED_BY(mutex_);
  // By the owner's id.
  std::map<int64_t, Incomplete> batches_ ABSL_GUARDED_BY(mutex_);
  // A gradient that has not come, and the owner of the batch that wants it.
  std::map<int64_t, int64_t> wanted_ ABSL_GUARDED_BY(mutex_);
};

// The rows that batch_index names, and whose they are.
Status CutBatch(const Tensor& data, const Tensor& index, std::vector<int64_t>* ids,
                std::vector<Tensor>* pieces);

}  // namespace smelt

#endif  // SMELT_KERNELS_BATCH_UNBATCH_H_
