// Rows times the weights of the gates of a recurrence, side by side.
#ifndef SMELT_KERNELS_LITE_GATE_PRODUCT_H_
#define SMELT_KERNELS_LITE_GATE_PRODUCT_H_

#include <span>
#include <vector>

#include "smelt/kernels/lite/fixed_point.h"

namespace smelt::lite {

// Weights of float; or of int8 (StepsOf) with one scale each beside rows of float, which are
// quantized row by row as TensorFlow Lite's hybrid kernels do. Immutable once made.
class GateProduct {
 public:
  // Weights [units, depth] of one gate, or [units] of a diagonal matrix.
  struct Gate {
    const Tensor* weights;
    float scale;  // of int8
  };
  // INVALID_ARGUMENT unless all are float, or all int8, of the same shape. `asymmetric`: rows are
  // quantized with a zero point.
  static StatusOr<GateProduct> Make(std::span<const Gate> gates, bool asymmetric);

  int64_t depth() const { return depth_; }
  int64_t columns() const { return columns_; }  // units of all gates

  // sums[r] += weights * x[r] for rows of depth() and of columns(). Uses the calling thread's team
  // for many rows.
  void Add(const float* x, int64_t rows, float* sums) const;

 private:
  void AddFloat(const float* x, int64_t rows, float* sums) const;
  void AddQuantized(const float* x, float* sums) const;

  int64_t depth_ = 0, units_ = 0, columns_ = 0;
  bool diagonal_ = false, asymmetric_ = false;
  std::vector<float> packed_;    // of float, as Isa().dense_pack writes it; or the diagonals
  std::vector<int8_t> rows_;     // of int8: [columns, depth]
  std::vector<int32_t> totals_;  // of each of these rows
  std::vector<float> scales_;    // of each gate
};

// The numbers of a tensor of int8, or of uint8, as old files say of the same bytes; nullptr: none.
const int8_t* StepsOf(const Tensor& t);

// x[i] = steps[i] * scale - zero * scale, as TensorFlow Lite quantizes rows of float: to
// [-127, 127] about 0, or `asymmetric` to all of int8 with a zero point.
struct QuantizedRow {
  float scale = 1;
  int32_t zero = 0;
};
QuantizedRow QuantizeRow(const float* x, int64_t n, bool asymmetric, int8_t* steps);

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_GATE_PRODUCT_H_
