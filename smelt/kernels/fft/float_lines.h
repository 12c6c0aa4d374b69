// Single lines of float numbers, as many at once as vectors have lanes, computed in float as
// TensorFlow does. For the files of this folder.
#ifndef SMELT_KERNELS_FFT_FLOAT_LINES_H_
#define SMELT_KERNELS_FFT_FLOAT_LINES_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "smelt/base/team.h"
#include "smelt/kernels/fft/lines.h"
#include "smelt/kernels/fft/plan.h"

namespace smelt::fft {

// Immutable, so thread safe.
class FloatLines {
 public:
  // nullopt: the plan has more than one dimension, or a length that LinePlan does not suit. It is
  // for as many threads as the caller may use (base/team.h).
  static std::optional<FloatLines> Of(const FftPlan& plan);

  // Floats of Run's scratch.
  int64_t scratch_size(int64_t lines) const { return Parts(lines) * PartSize(); }
  // `lines` lines that lie one after another, in parallel; complex numbers are two floats.
  // REQUIRES: `scratch` has scratch_size(lines) floats, aligned to kAlignment.
  void Run(const float* in, float* out, int64_t lines, float* scratch) const;

 private:
  struct Buffers;
  FloatLines(const FftPlan& plan, std::shared_ptr<const LinePlan<float>> line, bool half)
      : plan_(plan), half_(half), threads_(Threads()), line_(std::move(line)) {}

  // Parts that threads take, each with buffers of its own.
  int64_t Parts(int64_t lines) const;
  int64_t PartSize() const;
  void Batch(const float* in, float* out, int64_t rows, const Buffers& buffers) const;
  // The values that are transformed, in buffers.a.
  void Fill(const float* in, int64_t rows, const Buffers& buffers) const;

  FftPlan plan_;
  // An even real line is a complex one of half the length: even places are real parts.
  bool half_;
  int threads_;
  std::shared_ptr<const LinePlan<float>> line_;
};

}  // namespace smelt::fft

#endif  // SMELT_KERNELS_FFT_FLOAT_LINES_H_
