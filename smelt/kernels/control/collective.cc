// Collectives of a group of one: CollectiveReduce.
#include "smelt/kernels/common/arguments.h"

namespace smelt {
namespace {

// A mean or a sum over one member is what it has.
Status RunCollectiveReduce(OpContext& ctx) {
  const int64_t members = ctx.node().Int("group_size");
  if (members <= 0) {
    return InvalidArgument("group_size must be positive integer but is ", members);
  }
  if (members > 1) {
    return Unimplemented("a collective of ", members,
                         " members: smelt runs those of one, there are no others to wait for");
  }
  ctx.set_output(0, ctx.TakeInput(0));
  return OkStatus();
}

constexpr Kernel kCollectiveTable[] = {
    {"CollectiveReduce", "", kAnyType, "control:collective_of_one", RunCollectiveReduce},
};

}  // namespace

extern constinit const std::span<const Kernel> kCollectiveKernels = kCollectiveTable;

}  // namespace smelt
