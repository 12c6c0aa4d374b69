// Maxima over windows of an image of floats, by a loop of our own.
#ifndef SMELT_KERNELS_NN_MAX_POOL_H_
#define SMELT_KERNELS_NN_MAX_POOL_H_

#include "smelt/kernels/nn/pool.h"

namespace smelt::nn {

// What PoolReference makes of a maximum, several channels at once. Thread safe.
class MaxPool {
 public:
  // Channels that lie side by side and fill a vector, windows in space.
  static bool Suits(const PoolProblem& p);

  // REQUIRES: Suits(p).
  explicit MaxPool(const PoolProblem& p);
  // x: [batch, in..., depth]; y: [batch, out..., depth], overlaps nothing.
  void Run(const float* x, float* y) const;

 private:
  void Line(const float* x, int64_t line, float* y) const;

  const PoolView v_;
  const int64_t batch_, depth_;
  const PoolView::Range whole_;  // columns
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_MAX_POOL_H_
