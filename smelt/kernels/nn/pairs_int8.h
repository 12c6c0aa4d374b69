// Convolutions, depthwise ones and products of int8 numbers where no instruction multiplies bytes
// for sums of 32 bits: products of pairs of 16 bits (isa/exact_int8.h), whose sums are exact, and
// what follows them in float while they are in the nearest cache.
//
// The input is widened to int16 less its zero point, a band of lines at a time with the padding
// around it, so that each window is a few runs of numbers where they lie.
#ifndef SMELT_KERNELS_NN_PAIRS_INT8_H_
#define SMELT_KERNELS_NN_PAIRS_INT8_H_

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "smelt/base/aligned_vector.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/isa/int8_sums.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/nn/int8_image.h"

namespace smelt::nn {

// Why a layer is not worth pairs of 16 bits, or they are not worth it on this processor; nullptr:
// it is.
const char* WhyNoPairsInt8(const Int8Window& w);

// Weights laid out for the loops; for all windows that differ in the sizes of images only.
// Immutable, so thread safe.
class PairsInt8Weights {
 public:
  // weights: [kernel_h, kernel_w, depth / groups, units] as TensorFlow has them, or of a product
  // [units, depth] where `transposed`. Nothing of it is kept. REQUIRES: !WhyNoPairsInt8(w).
  PairsInt8Weights(const Int8Window& w, const int8_t* weights, bool transposed);

 private:
  friend class PairsInt8;

  AlignedVector<int8_t> tiles_;
  AlignedVector<int16_t> wide_;  // of depthwise layers
};

// What is done to the sums.
struct PairsInt8Steps {
  struct Step {
    enum class Kind : uint8_t { kActivation, kAddChannels, kAddFloats, kAddInt8 };
    Kind kind = Kind::kActivation;
    UnaryF32 act = UnaryF32::kIdentity;
    const void* constant = nullptr;  // what is added, or
    int input = -1;                  // which of the inputs of a run
  };
  std::span<const float> scales;  // one, or one for each unit
  const int32_t* bias = nullptr;  // one for each unit
  std::vector<Step> steps;        // at most one kAddInt8
  float alpha = 0;                // of activations
  bool to_int8 = false;
  float factor = 1;      // of what becomes int8
  Int8SumBlock numbers;  // zero, low, high, flip and how int8 numbers are added

  // A last activation that bounds what becomes int8 bounds it there.
  void Simplify();
  // Does nothing stand between scales and int8, but a sum of int8?
  bool IsDirect() const;
};

// A layer for known shapes. Immutable, so thread safe.
class PairsInt8 {
 public:
  // Made for as many threads as the calling one has. Of `steps` only constants of steps are kept.
  PairsInt8(std::shared_ptr<const PairsInt8Weights> weights, const Int8Window& window,
            int32_t x_zero, PairsInt8Steps steps);

  size_t scratch_bytes() const;
  // inputs[0] is [batch, in_h, in_w, depth], y [batch, out_h, out_w, units], int8 or float.
  void Run(const void* const* inputs, void* y, void* scratch) const;

 private:
  using Band = Int8Band;
  // Rows of sums that are finished together: outputs from `first` on, `columns` units of them from
  // `unit` on.
  struct Sums {
    int32_t* sums;
    int64_t rows, width, columns;
    int64_t first, unit;
    const float* scales;
  };
  void ChooseBands();
  void Fill(const Band& band, const int8_t* x, int16_t* image) const;
  void FillPixels(const int8_t* x, int16_t* to, int64_t pixels) const;
  void RunTiles(const Band& band, const int16_t* image, const void* const* inputs, void* y) const;
  void RunTileRows(const Band& band, const int16_t* image, int64_t from, int64_t to,
                   int64_t first_panel, int64_t last_panel, const void* const* inputs,
                   void* y) const;
  void RunDepthwise(const Band& band, const int16_t* image, const void* const* inputs,
                    void* y) const;
  Int8SumBlock BlockOf(int64_t first, int64_t unit, int64_t columns, const float* scales,
                       const void* const* inputs, void* y) const;
  void FinishSums(const Sums& s, const void* const* inputs, void* y) const;

  const ExactInt8Loops& loops_;
  const Int8SumLoops& sum_loops_;
  const std::shared_ptr<const PairsInt8Weights> weights_;
  const Int8Image image_;
  const Int8Window w_;
  const Int8Panels panels_;  // of a layer that is not depthwise
  const int32_t x_zero_;
  PairsInt8Steps steps_;
  bool direct_ = false;         // does nothing stand between scales and int8, but a sum of int8?
  std::vector<int32_t> start_;  // as the loops have them
  std::vector<float> scales_;   // as sums are written
  std::vector<float> factors_;
  int64_t band_images_ = 1, band_lines_ = 1;
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_PAIRS_INT8_H_
