// Convolutions, depthwise convolutions and products of int8 weights with what follows them, for
// known shapes and constant weights: packed once, and nothing is allocated in a run. Of int8
// numbers to int8 ones, or of float ones to float, which are quantized on the way.
//
// The input is widened to int16 less its zero point, in an image that has the padding around it, so
// that each window is a few runs of numbers where they lie (isa/exact_int8.h multiplies them).
// Where the processor multiplies bytes it becomes bytes that count from 0, and what that adds to a
// sum is taken away: the same for each window, as the weights' sum times where 0 stands.
#ifndef SMELT_KERNELS_LITE_INT8_LAYER_H_
#define SMELT_KERNELS_LITE_INT8_LAYER_H_

#include <span>
#include <vector>

#include "smelt/base/aligned_vector.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/lite/fixed_point.h"
#include "smelt/kernels/nn/int8_image.h"

namespace smelt::lite {

struct Int8Numbers {
  int32_t in_zero = 0, out_zero = 0;
  // Of sums: one, or one for each unit. `factors` in their place where TensorFlow Lite's own
  // kernels run the layer, not XNNPACK.
  std::span<const float> scales;
  std::span<const Factor> factors;
  // How many first units of factors are rounded by TimesUp (FirstRoundedUp), the others by Times.
  int64_t rounded_up = 0;
  Range range;
  const int32_t* bias = nullptr;  // nullptr: none
};

// Float numbers x are quantized, x = scale * (q - zero) with q of int8 and 0 among what that can
// say: each row of a product by itself, else each image. Roundings are those of what runs the layer
// in TensorFlow Lite by default, as steps that flip here and there become visible behind a few
// layers: XNNPACK, and for depthwise layers TensorFlow Lite's own kernel.
struct HybridNumbers {
  bool by_row = false;
  bool about_zero = false;        // steps of [-127, 127], of which 0 is the zero point
  std::span<const float> scales;  // of weights: one, or one for each unit
  float low = 0, high = 0;        // what results are clamped to
  const float* bias = nullptr;    // nullptr: none
};

// Immutable once made, so thread safe.
class Int8Layer {
 public:
  // weights: [units, kernel_h, kernel_w, depth / groups], or [kernel_h, kernel_w, units] of a
  // depthwise layer. Nothing of the arguments is kept. REQUIRES: the shape is consistent, with no
  // dimension of 0.
  Int8Layer(const nn::Int8Window& shape, const Int8Numbers& numbers, const int8_t* weights);
  Int8Layer(const nn::Int8Window& shape, const HybridNumbers& numbers, const int8_t* weights);

  // Bytes of scratch memory.
  size_t scratch_bytes() const;
  // x is [batch, in_h, in_w, depth] and y [batch, out_h, out_w, units], which may lie where x
  // does. By the calling thread's team.
  void Run(const int8_t* x, int8_t* y, void* scratch) const;
  // The same of a layer of HybridNumbers.
  void Run(const float* x, float* y, void* scratch) const;

 private:
  // How numbers of the input become those of the image.
  using Scaled = ExactInt8Steps;

  void SetShape();
  void Pack(const int8_t* weights);
  void PackTiles(const int8_t* weights);
  // Where a unit's numbers stand.
  int64_t PlaceOf(int64_t unit) const {
    return s_.depthwise ? nn::DepthwisePlaceOf(unit) : panels_.PlaceOf(unit);
  }
  // T: int8_t or float. N, numbers of the image: int16_t or uint8_t.
  template <typename T, typename N>
  void FillImage(const T* x, N* image, const Scaled* scaled) const;
  // Pixels of one line, in the image from `to` on.
  void FillPixels(const int8_t* x, int16_t* to, int64_t pixels, const Scaled* scaled) const;
  void FillPixels(const float* x, int16_t* to, int64_t pixels, const Scaled* scaled) const;
  void FillPixels(const int8_t* x, uint8_t* to, int64_t pixels, const Scaled* scaled) const;
  void FillPixels(const float* x, uint8_t* to, int64_t pixels, const Scaled* scaled) const;
  // The number of the image that stands for 0.
  template <typename N>
  N ZeroOfImage(const Scaled* how) const;
  // Of a depthwise layer's input within [low, high], of which 0 is one.
  static Scaled ScaledOfRange(float low, float high);
  static Scaled ScaledAboutZero(float most);
  void FindScales(const float* x, Scaled* scaled) const;
  template <typename N, typename T>
  void RunTiles(const N* image, const Scaled* scaled, T* y) const;
  template <typename N, typename T>
  void RunTileRows(const N* image, const Scaled* scaled, int64_t from, int64_t to,
                   int64_t first_panel, int64_t last_panel, T* y) const;
  // Of one_row_.
  void RunRow(const int8_t* x, uint8_t* image, int8_t* y) const;
  template <typename T>
  void RunAny(const T* x, const Scaled* scaled, void* image, T* y) const;
  template <typename T>
  void RunDepthwise(const int16_t* image, const Scaled* scaled, T* y) const;
  int64_t num_scaled() const { return by_row_ ? s_.out_w : s_.batch; }
  const Scaled& HowOf(const Scaled* scaled, int64_t output) const;
  void* ImageIn(void* scratch) const;
  nn::Int8Band AllOfIt() const { return {.images = s_.batch, .lines = s_.out_h}; }
  int64_t rows_of_tile() const { return matrices_ ? loops_.matrix_rows : loops_.rows; }
  ExactInt8Scales ScalesAt(int64_t place) const;
  // Of layers with factors: what becomes of sums of units [unit, unit + n).
  void FinishByFactors(const int32_t* sums, int64_t unit, int64_t n, int8_t* y) const;

  const ExactInt8Loops& loops_;
  const nn::Int8Window s_;
  int32_t in_zero_ = 0;
  bool hybrid_ = false, by_row_ = false, about_zero_ = false;
  const nn::Int8Image image_;
  const bool bytes_;             // is the image of bytes?
  const bool matrices_;          // are these multiplied as matrices?
  const nn::Int8Panels panels_;  // of a layer that is not depthwise
  // Is it one row that one thread multiplies? It has no windows to find and no work to share out,
  // which would take as long as its numbers.
  const bool one_row_;
  AlignedVector<int8_t> weights_;
  AlignedVector<int16_t> wide_weights_;  // of depthwise layers
  // By place; weight sums of an image of bytes.
  std::vector<int32_t> start_, weight_sums_;
  std::vector<float> scale_of_sum_;
  ExactInt8Scales ends_;
  std::vector<Factor> factors_;  // by unit; empty: scales
  int64_t rounded_up_ = 0;
  // By unit, of a hybrid layer.
  std::vector<float> scales_, bias_;
  float low_ = 0, high_ = 0;
};

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_INT8_LAYER_H_
