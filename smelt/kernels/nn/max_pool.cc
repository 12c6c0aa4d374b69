#include "smelt/kernels/nn/max_pool.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "absl/container/inlined_vector.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/conv.h"

namespace smelt::nn {
namespace {

void Maxima(std::span<const float* const> taps, int64_t pixels, int64_t step, int64_t depth,
            float* y) {
  IsaConv().max_pool(taps.data(), std::ssize(taps), pixels, step, depth, y);
}
void Maxima(std::span<const uint16_t* const> taps, int64_t pixels, int64_t step, int64_t depth,
            uint16_t* y) {
  IsaConv().narrow_max_pool(taps.data(), std::ssize(taps), pixels, step, depth, y);
}

}  // namespace

bool MaxPool::Suits(const PoolProblem& p, Dtype dtype) {
  return p.channels_last && p.depth_window == 1 &&
         ((dtype == Dtype::kFloat && p.depth >= IsaConv().lanes) ||
          (dtype == Dtype::kBfloat16 && p.depth >= 2 * IsaConv().lanes));
}

MaxPool::MaxPool(const PoolProblem& p)
    : v_(p), batch_(p.batch), depth_(p.depth), whole_(v_.Whole(2)) {}

void MaxPool::Run(const float* x, float* y) const { RunOf(x, y); }
void MaxPool::Run(const uint16_t* x, uint16_t* y) const { RunOf(x, y); }

template <typename T>
void MaxPool::RunOf(const T* x, T* y) const {
  constexpr int64_t kPerThread = 1 << 15;  // elements that are worth a thread
  const int64_t width = v_.out[2] * depth_;
  const int64_t work = std::max<int64_t>(1, width * v_.taps());
  SharedParallelFor(batch_ * v_.out[0] * v_.out[1], std::max<int64_t>(1, kPerThread / work),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) Line(x, i, y + i * width);
                    });
}

template <typename T>
void MaxPool::Line(const T* x, int64_t line, T* y) const {
  const int64_t plane = line / v_.out[1];
  const T* image = x + plane / v_.out[0] * v_.in_pixels() * depth_;
  const PoolView::Range planes = v_.Inside(0, plane % v_.out[0]);
  const PoolView::Range lines = v_.Inside(1, line % v_.out[1]);
  absl::InlinedVector<const T*, 32> taps;
  for (int64_t column = 0; column < v_.out[2];) {
    const bool run = column >= whole_.from && column < whole_.to;
    const int64_t pixels = run ? whole_.to - column : 1;
    const PoolView::Range columns = v_.Inside(2, column);
    taps.clear();
    for (int64_t a = planes.from; a < planes.to; ++a) {
      for (int64_t b = lines.from; b < lines.to; ++b) {
        const T* row = image + (a * v_.in[1] + b) * v_.in[2] * depth_;
        for (int64_t c = columns.from; c < columns.to; ++c) taps.push_back(row + c * depth_);
      }
    }
    Maxima(taps, pixels, v_.stride[2] * depth_, depth_, y + column * depth_);
    column += pixels;
  }
}

}  // namespace smelt::nn
