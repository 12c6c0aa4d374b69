#include "smelt/kernels/recurrent/checks.h"

namespace smelt {

Status CheckRanks(const OpContext& ctx, int first, RankWords words,
                  std::initializer_list<RankCheck> checks) {
  int at = first;
  for (const RankCheck& c : checks) {
    const int rank = ctx.input(at++).rank();
    if (rank == c.rank) continue;
    switch (words) {
      case RankWords::kTensor:
        return InvalidArgument(c.name, "_tensor must be rank ", c.rank, " but is rank ", rank, ".");
      case RankWords::kPlain:
        return InvalidArgument(c.name, " must be rank ", c.rank, " but is rank ", rank);
      case RankWords::kDimensions:
        return InvalidArgument(c.name, " must be ", c.rank, "D");
      case RankWords::kRankOf:
        return InvalidArgument("Rank of ", c.name, " must be ", c.rank, ", got ", rank);
    }
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
