// Single lines of float numbers, as many at once as vectors have lanes, computed in float as
// TensorFlow does. For the files of this folder.
#ifndef SMELT_KERNELS_FFT_FLOAT_LINES_H_
#define SMELT_KERNELS_FFT_FLOAT_LINES_H_

#include <memory>
#include <optional>
#include <vector>

#include "smelt/kernels/fft/lines.h"
#include "smelt/kernels/fft/plan.h"

namespace smelt::fft {

// Immutable, so thread safe.
class FloatLines {
 public:
  // nullopt: the plan has more than one dimension, or a length that LinePlan does not suit.
  static std::optional<FloatLines> Of(const FftPlan& plan);

  // `lines` lines that lie one after another, in parallel; complex numbers are two floats.
  void Run(const float* in, float* out, int64_t lines) const;

 private:
  struct Buffers;
  FloatLines(const FftPlan& plan, std::shared_ptr<const LinePlan<float>> line, bool half)
      : plan_(plan), half_(half), line_(std::move(line)) {}

  void Batch(const float* in, float* out, int64_t rows, Buffers& buffers) const;
  // The values that are transformed, in buffers.a.
  void Fill(const float* in, int64_t rows, Buffers& buffers) const;

  FftPlan plan_;
  // An even real line is a complex one of half the length: even places are real parts.
  bool half_;
  std::shared_ptr<const LinePlan<float>> line_;
};

}  // namespace smelt::fft

#endif  // SMELT_KERNELS_FFT_FLOAT_LINES_H_
