// Convolutions, depthwise convolutions and products of int16 numbers and int8 weights, for known
// shapes and constant weights. Sums have 64 bits: as many products at a time as 32 bits hold are
// summed by the loops of int8 (isa/exact_int8.h), whose numbers are int16 as these are.
#ifndef SMELT_KERNELS_LITE_INT16_LAYER_H_
#define SMELT_KERNELS_LITE_INT16_LAYER_H_

#include <span>
#include <vector>

#include "smelt/base/aligned_vector.h"
#include "smelt/kernels/isa/exact_int8.h"
#include "smelt/kernels/lite/fixed_point.h"
#include "smelt/kernels/nn/int8_image.h"

namespace smelt::lite {

struct Int16Numbers {
  std::span<const Factor> factors;  // of sums: one, or one for each unit
  bool narrow = false;              // these have 32 bits (TimesUp)
  std::span<const double> doubles;  // as many, by which others are multiplied (TimesInDouble)
  Range range;
  const int64_t* bias = nullptr;  // by unit; nullptr: none
};

// Immutable once made, so thread safe.
class Int16Layer {
 public:
  // Are there so few taps that loops of 32 bits sum a channel's?
  static bool Suits(const nn::Int8Window& shape);
  // weights as Int8Layer has them. Nothing of the arguments is kept. REQUIRES: Suits; the shape is
  // consistent, with no dimension of 0.
  Int16Layer(const nn::Int8Window& shape, const Int16Numbers& numbers, const int8_t* weights);

  size_t scratch_bytes() const;
  // x is [batch, in_h, in_w, depth], y [batch, out_h, out_w, units], which may lie where x does. By
  // the calling thread's team.
  void Run(const int16_t* x, int16_t* y, void* scratch) const;

 private:
  // What 32 bits hold the sum of: groups [group, group + groups) of some segments of a window.
  struct Part {
    int64_t segment, segments, group, groups;
  };
  nn::Int8Band AllOfIt() const { return {.images = s_.batch, .lines = s_.out_h}; }
  void FillImage(const int16_t* x, int16_t* image) const;
  void RunTiles(const int16_t* image, int16_t* y) const;
  void RunRows(const int16_t* image, int64_t from, int64_t to, int64_t first_panel,
               int64_t last_panel, int16_t* y) const;
  void RunDepthwise(const int16_t* image, int16_t* y) const;
  // `sums` of units from `unit` on, without their biases.
  void Finish(int64_t* sums, int64_t unit, int64_t n, int16_t* y) const;

  const ExactInt8Loops& loops_;
  const nn::Int8Window s_;
  const nn::Int8Image image_;
  const nn::Int8Panels panels_;  // of a layer that is not depthwise
  const bool narrow_;
  const Range range_;
  std::vector<Part> parts_;
  AlignedVector<int8_t> weights_;
  AlignedVector<int16_t> wide_weights_;  // of depthwise layers
  // By unit.
  std::vector<int64_t> bias_;
  // One of these: with shifts, of 32 bits, or doubles.
  std::vector<int64_t> factors_, shifts_;
  std::vector<Factor> narrow_factors_;
  std::vector<double> doubles_;
};

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_INT16_LAYER_H_
