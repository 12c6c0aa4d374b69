// Ops that answer with the handle of a resource that nodes share by name: queues, readers, barriers
// and the like. Used by the kernels that have such an op.
#ifndef SMELT_KERNELS_COMMON_SHARED_HANDLE_H_
#define SMELT_KERNELS_COMMON_SHARED_HANDLE_H_

#include "absl/functional/function_ref.h"
#include "smelt/kernels/common/handle_cache.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// What such a node keeps. Thread safe.
struct SharedHandle {
  explicit SharedHandle(const Node& node) : at(node) {}
  const ResourceName at;
  HandleCache cache;
};

struct SharedKind {
  absl::string_view kind;    // Resource::kind()
  absl::string_view called;  // in messages: "queue"
};

// Output 0 becomes the handle of the resource, which is made when it is not there. What was there
// must pass `check`.
Status AnswerWithHandle(
    OpContext& ctx, SharedHandle& shared, const SharedKind& kind,
    absl::FunctionRef<std::shared_ptr<Resource>()> make,
    absl::FunctionRef<Status(const Resource&)> check = [](const Resource&) { return OkStatus(); });

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_SHARED_HANDLE_H_
