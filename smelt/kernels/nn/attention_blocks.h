// How attention is cut for threads and caches.
#ifndef SMELT_KERNELS_NN_ATTENTION_BLOCKS_H_
#define SMELT_KERNELS_NN_ATTENTION_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/nn/attention.h"

namespace smelt::nn {

// Fewer queries do not pay for packed keys.
inline constexpr int64_t kFewQueries = 4;

// Blocks of each unit's queries, whose scores stay in the nearest caches; a slot is what a thread
// computes in.
class AttentionBlocks {
 public:
  explicit AttentionBlocks(const Attention& a) : queries_(a.queries) {
    constexpr int64_t kMostQueries = 64;
    // Multiplications that a thread is worth.
    constexpr int64_t kGrain = 1 << 17;
    const int64_t fit = NearCacheBytes(int64_t{256} << 10) / 8 / (4 * a.keys) / 8 * 8;
    block_ = std::min(a.queries, std::clamp<int64_t>(fit, 8, kMostQueries));
    blocks_ = (a.queries + block_ - 1) / block_;
    items_ = std::ssize(a.units) * blocks_;
    const int64_t work = std::ssize(a.units) * a.queries * a.keys * (a.depth + a.width);
    slots_ = std::min<int64_t>({Threads(), items_, std::max<int64_t>(1, work / kGrain)});
  }

  int64_t block() const { return block_; }  // queries of each but a unit's last
  int64_t slots() const { return slots_; }

  // Calls run(begin, end, slot) for items that cover all, on threads.
  template <typename F>
  void Run(F&& run) const {
    ParallelFor(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        run(items_ * slot / slots_, items_ * (slot + 1) / slots_, slot);
      }
    });
  }
  struct Item {
    size_t unit;
    int64_t first, count;  // queries
  };
  // Items of a unit are neighbors.
  Item At(int64_t item) const {
    const int64_t first = item % blocks_ * block_;
    return {static_cast<size_t>(item / blocks_), first, std::min(block_, queries_ - first)};
  }

 private:
  int64_t queries_, block_, blocks_, items_, slots_;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_ATTENTION_BLOCKS_H_
