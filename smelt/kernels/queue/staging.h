// What staging areas and staging maps share: limits, finding one by name, giving tuples out.
#ifndef SMELT_KERNELS_QUEUE_STAGING_H_
#define SMELT_KERNELS_QUEUE_STAGING_H_

#include <memory>
#include <string>
#include <vector>

#include "smelt/kernels/queue/queue.h"

namespace smelt {

inline constexpr absl::string_view kStagingCancelled = "Step was cancelled";

// 0: no limit.
struct StagingLimits {
  int64_t capacity = 0;
  int64_t memory = 0;

  // RESOURCE_EXHAUSTED for a tuple that never fits.
  Status Check(int64_t bytes) const;
  // Must a tuple of so many bytes wait beside what is held?
  bool Full(int64_t held, int64_t held_bytes, int64_t bytes) const {
    return (capacity > 0 && held >= capacity) || (memory > 0 && held_bytes + bytes > memory);
  }
};

int64_t TupleBytes(const Tuple& tuple);

struct StagingState final : KernelState {
  std::string container;
  std::string name;
  StagingLimits limits;
  std::vector<Dtype> dtypes;
};
StatusOr<std::unique_ptr<KernelState>> PrepareStaging(const Node& node);

// The resource of that name, made by make(state) where there is none.
template <typename R, typename Make>
StatusOr<std::shared_ptr<R>> FindStaging(OpContext& ctx, Make make) {
  const auto& s = ctx.state<StagingState>();
  ResourceManager* resources = ctx.step().resources;
  if (resources == nullptr) {
    return FailedPrecondition("staging area '", s.name, "' is used where there are no resources");
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<Resource> found,
      resources->FindOrCreate(s.container, R::kKind, s.name,
                              [&]() -> StatusOr<std::shared_ptr<Resource>> { return make(s); }));
  return std::static_pointer_cast<R>(std::move(found));
}

// Outputs from `first` on; INTERNAL when a tensor is not of the type that the node states.
Status SetStagedOutputs(OpContext& ctx, int first, Tuple tuple);

}  // namespace smelt

#endif  // SMELT_KERNELS_QUEUE_STAGING_H_
