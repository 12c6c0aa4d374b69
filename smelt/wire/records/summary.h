// Summaries, which TensorBoard shows, as serialized tensorflow.Summary messages.
//
// The bytes of two such messages one after the other are the merged message. All functions are
// thread safe.
#ifndef SMELT_WIRE_RECORDS_SUMMARY_H_
#define SMELT_WIRE_RECORDS_SUMMARY_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// TensorFlow's histogram: counts of values between limits that grow by a tenth from 1e-12 to 1e20,
// on either side of 0.
class SummaryHistogram {
 public:
  SummaryHistogram();
  void Add(double value);  // REQUIRES: finite

 private:
  friend std::string HistogramSummary(absl::string_view tag, const SummaryHistogram& histogram);
  std::vector<double> counts_;
  double min_, max_;
  double num_ = 0, sum_ = 0, squares_ = 0;
};

std::string ScalarSummary(absl::string_view tag, float value);
// Runs of empty buckets become one.
std::string HistogramSummary(absl::string_view tag, const SummaryHistogram& histogram);
// `metadata`: a serialized SummaryMetadata, if there is to be one. Tag and node name may be empty.
StatusOr<std::string> TensorSummary(absl::string_view tag, absl::string_view node_name,
                                    const Tensor& tensor,
                                    std::optional<absl::string_view> metadata);
// Samples as an encoded WAV file.
std::string AudioSummary(absl::string_view tag, float sample_rate, int64_t channels, int64_t frames,
                         absl::string_view wav);
// An image as an encoded PNG file.
std::string ImageSummary(absl::string_view tag, int64_t height, int64_t width, int64_t channels,
                         absl::string_view png);
// All values of the inputs. INVALID_ARGUMENT for bytes that do not parse, and for a tag that stands
// twice.
StatusOr<std::string> MergeSummaries(std::span<const std::string> summaries);

// Events of an event file: the version, which must come first; a summary; a serialized GraphDef.
// Times are seconds since 1970.
std::string VersionEvent(double wall_time);
StatusOr<std::string> SummaryEvent(double wall_time, int64_t step, absl::string_view summary);
std::string GraphEvent(double wall_time, int64_t step, absl::string_view graph_def);

}  // namespace smelt

#endif  // SMELT_WIRE_RECORDS_SUMMARY_H_
