// What calibration keeps of a tensor's values, and the range that a calibration method makes of it
// (TensorFlow's calibration_options). Not thread safe.
#ifndef SMELT_CONVERT_QUANTIZE_STATISTICS_H_
#define SMELT_CONVERT_QUANTIZE_STATISTICS_H_

#include <optional>
#include <vector>

#include "smelt/convert/quantize/quantize.h"

namespace smelt::quantize {

class TensorStatistics {
 public:
  // The values of one run. NaN and infinities are passed over, other types than float too. Always
  // with the same option.
  void Add(const Tensor& value, const CalibrationOption& option);
  // Empty when there were no values.
  std::optional<Range> RangeOf(const CalibrationOption& option) const;

  // Runs that had finite values.
  int64_t samples() const { return samples_; }

 private:
  void AddToHistogram(std::span<const float> values, float low, float high, int bins);

  int64_t samples_ = 0;
  float min_ = 0, max_ = 0;
  double min_sum_ = 0, max_sum_ = 0;
  // Bin i holds [lower_ + i * width_, lower_ + (i + 1) * width_).
  double width_ = 0, lower_ = 0;
  std::vector<double> counts_;
};

}  // namespace smelt::quantize

#endif  // SMELT_CONVERT_QUANTIZE_STATISTICS_H_
