#include "smelt/kernels/fft/float_lines.h"

#include <algorithm>
#include <cstring>

#include "smelt/base/parallel.h"
#include "smelt/tensor/buffer.h"

namespace smelt::fft {

namespace {

// Buffers begin at cache lines.
constexpr int64_t Aligned(int64_t floats) {
  constexpr auto kUnit = static_cast<int64_t>(kAlignment / sizeof(float));
  return (floats + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

// Working memory of one thread. In `bins` are what a real transform has beside its values.
struct FloatLines::Buffers {
  float *a, *b, *scratch, *bins;
};

std::optional<FloatLines> FloatLines::Of(const FftPlan& plan) {
  const int64_t n = plan.length[2];
  const bool real = plan.kind == FftKind::kReal || plan.kind == FftKind::kInverseReal;
  const bool half = real && n % 2 == 0;
  const int64_t length = half ? n / 2 : n;
  if (plan.rank != 1 || !LinePlan<float>::Suits(length)) return std::nullopt;
  return FloatLines(plan, LinePlan<float>::Of(length), half);
}

int64_t FloatLines::PartSize() const {
  return 3 * Aligned(line_->buffer_size()) + Aligned(2 * IsaFft<float>().lanes) +
         Aligned(line_->scratch_size());
}

int64_t FloatLines::Parts(int64_t lines) const {
  const int64_t lanes = IsaFft<float>().lanes, batches = (lines + lanes - 1) / lanes;
  const int64_t grain = std::max<int64_t>(1, 4096 / plan_.length[2]);
  return std::clamp<int64_t>(batches / grain, 1, threads_);
}

void FloatLines::Run(const float* in, float* out, int64_t lines, float* scratch) const {
  const int64_t lanes = IsaFft<float>().lanes, batches = (lines + lanes - 1) / lanes;
  const int64_t in_line = plan_.in[2] * (plan_.kind == FftKind::kReal ? 1 : 2);
  const int64_t out_line = plan_.out[2] * (plan_.kind == FftKind::kInverseReal ? 1 : 2);
  const int64_t parts = Parts(lines), size = Aligned(line_->buffer_size());
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      float* a = scratch + part * PartSize();
      const Buffers buffers = {a, a + size, a + 3 * size + Aligned(2 * lanes), a + 2 * size};
      for (int64_t b = batches * part / parts; b < batches * (part + 1) / parts; ++b) {
        const int64_t from = b * lanes;
        Batch(in + from * in_line, out + from * out_line, std::min(lanes, lines - from), buffers);
      }
    }
  });
}

void FloatLines::Fill(const float* in, int64_t rows, const Buffers& buffers) const {
  const FftLineLoops& loops = IsaFftLines();
  const int64_t lanes = IsaFft<float>().lanes, n = plan_.length[2];
  const size_t vector = static_cast<size_t>(lanes) * sizeof(float);
  float *values = buffers.a, *bins = buffers.bins;
  if (plan_.kind == FftKind::kInverseReal) {
    loops.turn(in, 2 * plan_.in[2], rows, 2 * (n / 2 + 1), bins);
    if (half_) return loops.join(bins, n / 2, line_->roots_of_twice().data(), values);
    // Bins above the middle are the conjugates of stored ones; the first one counts as real.
    for (int64_t k = 0; k < n; ++k) {
      const float* bin = bins + 2 * lanes * std::min(k, n - k);
      float* to = values + 2 * lanes * k;
      std::memcpy(to, bin, vector);
      for (int64_t i = lanes; i < 2 * lanes; ++i) {
        to[i] = k == 0 ? 0 : 2 * k > n ? -bin[i] : bin[i];
      }
    }
    return;
  }
  if (plan_.kind == FftKind::kReal && !half_) {
    loops.turn(in, plan_.in[2], rows, n, bins);
    for (int64_t k = 0; k < n; ++k) {
      std::memcpy(values + 2 * lanes * k, bins + lanes * k, vector);
      std::memset(values + 2 * lanes * k + lanes, 0, vector);
    }
    return;
  }
  const int64_t numbers = half_ ? n : 2 * n;
  loops.turn(in, half_ ? plan_.in[2] : 2 * plan_.in[2], rows, numbers, values);
}

void FloatLines::Batch(const float* in, float* out, int64_t rows, const Buffers& buffers) const {
  const FftLineLoops& loops = IsaFftLines();
  const int64_t lanes = IsaFft<float>().lanes, n = plan_.length[2], length = line_->length();
  Fill(in, rows, buffers);
  // The inverse exchanges real and imaginary parts on both sides.
  if (plan_.inverse()) loops.exchange(length, buffers.a);
  float* y = line_->Run(buffers.a, buffers.b, buffers.scratch);
  if (plan_.inverse()) loops.exchange(length, y);
  const float scale = plan_.inverse() ? 1.0F / static_cast<float>(n) : 1.0F;
  if (plan_.kind == FftKind::kInverseReal) {
    if (!half_) {
      for (int64_t k = 1; k < n; ++k) {
        std::memcpy(y + lanes * k, y + 2 * lanes * k, static_cast<size_t>(lanes) * sizeof(float));
      }
    }
    return loops.turn_back(y, n, rows, n, scale, out);
  }
  const float* bins = y;
  if (plan_.kind == FftKind::kReal && half_) {
    loops.split(y, length, line_->roots_of_twice().data(), buffers.bins);
    bins = buffers.bins;
  }
  loops.turn_back(bins, 2 * plan_.out[2], rows, 2 * plan_.out[2], scale, out);
}

}  // namespace smelt::fft
