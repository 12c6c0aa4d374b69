#include "smelt/kernels/nn/all_modest.h"

#include <atomic>

#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/columns.h"

namespace smelt::nn {

bool AllModest(const void* x, int64_t n, Dtype dtype) {
  constexpr int64_t kGrain = 1 << 16;
  if (dtype != Dtype::kFloat && dtype != Dtype::kBfloat16) return false;
  std::atomic<bool> modest{true};
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    const bool here =
        dtype == Dtype::kFloat
            ? IsaColumns().modest(static_cast<const float*>(x) + begin, end - begin)
            : IsaColumns().narrow_modest(static_cast<const uint16_t*>(x) + begin, end - begin);
    if (!here) modest.store(false, std::memory_order_relaxed);
  });
  return modest.load(std::memory_order_relaxed);
}

bool AllModest(const float* x, int64_t n) { return AllModest(x, n, Dtype::kFloat); }

}  // namespace smelt::nn
