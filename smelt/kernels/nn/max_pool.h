// Maxima over windows of an image of floats or bfloat16, by a loop of our own.
#ifndef SMELT_KERNELS_NN_MAX_POOL_H_
#define SMELT_KERNELS_NN_MAX_POOL_H_

#include <cstdint>

#include "smelt/kernels/nn/pool.h"

namespace smelt::nn {

// What PoolReference makes of a maximum, several channels at once. Thread safe.
class MaxPool {
 public:
  // Channels of floats or bfloat16 that lie side by side and fill a vector, windows in space.
  static bool Suits(const PoolProblem& p, Dtype dtype);

  // REQUIRES: Suits(p, the type of what Run gets).
  explicit MaxPool(const PoolProblem& p);
  // x: [batch, in..., depth]; y: [batch, out..., depth], overlaps nothing.
  void Run(const float* x, float* y) const;
  // The same of the bits of bfloat16.
  void Run(const uint16_t* x, uint16_t* y) const;

 private:
  template <typename T>
  void RunOf(const T* x, T* y) const;
  template <typename T>
  void Line(const T* x, int64_t line, T* y) const;

  const PoolView v_;
  const int64_t batch_, depth_;
  const PoolView::Range whole_;  // columns
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_MAX_POOL_H_
