#include "smelt/kernels/recurrent/checks.h"

namespace smelt {

Status CheckRanks(const OpContext& ctx, int first, std::initializer_list<RankCheck> checks) {
  int at = first;
  for (const RankCheck& c : checks) {
    const int rank = ctx.input(at++).rank();
    if (rank == c.rank) continue;
    return InvalidArgument(c.name, "_tensor must be rank ", c.rank, " but is rank ", rank, ".");
  }
  return OkStatus();
}

Status CheckSizes(const OpContext& ctx, std::initializer_list<SizeCheck> checks) {
  for (const SizeCheck& c : checks) {
    const int64_t size = ctx.input(c.input).dim(c.dim);
    if (size == c.want) continue;
    return InvalidArgument(c.what, " != ", c.size, ": ", size, " vs. ", c.want);
  }
  return OkStatus();
}

}  // namespace smelt
