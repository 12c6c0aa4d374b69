#include "smelt/wire/records/summary.h"

#include <algorithm>
#include <limits>
#include <set>

#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/summary.pb.h"

namespace smelt {
namespace {

const std::vector<double>& BucketLimits() {
  static const auto* limits = [] {
    constexpr double kMax = std::numeric_limits<double>::max();
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    positive.push_back(kMax);
    auto* all = new std::vector<double>;
    for (auto it = positive.rbegin(); it != positive.rend(); ++it) all->push_back(-*it);
    all->push_back(0);
    all->insert(all->end(), positive.begin(), positive.end());
    return all;
  }();
  return *limits;
}

}  // namespace

SummaryHistogram::SummaryHistogram()
    : counts_(BucketLimits().size()), min_(BucketLimits().back()), max_(-BucketLimits().back()) {}

void SummaryHistogram::Add(double value) {
  const std::vector<double>& limits = BucketLimits();
  const auto at = std::upper_bound(limits.begin(), limits.end(), value) - limits.begin();
  counts_[std::min(static_cast<size_t>(at), counts_.size() - 1)] += 1;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  num_ += 1;
  sum_ += value;
  squares_ += value * value;
}

std::string ScalarSummary(absl::string_view tag, float value) {
  tensorflow::Summary summary;
  auto* v = summary.add_value();
  v->set_tag(std::string(tag));
  v->set_simple_value(value);
  return summary.SerializeAsString();
}

std::string HistogramSummary(absl::string_view tag, const SummaryHistogram& histogram) {
  tensorflow::Summary summary;
  auto* v = summary.add_value();
  v->set_tag(std::string(tag));
  auto* h = v->mutable_histo();
  h->set_min(histogram.min_);
  h->set_max(histogram.max_);
  h->set_num(histogram.num_);
  h->set_sum(histogram.sum_);
  h->set_sum_squares(histogram.squares_);
  const std::vector<double>& limits = BucketLimits();
  const std::vector<double>& counts = histogram.counts_;
  for (size_t i = 0; i < counts.size(); ++i) {
    while (counts[i] == 0 && i + 1 < counts.size() && counts[i + 1] == 0) ++i;
    h->add_bucket_limit(limits[i]);
    h->add_bucket(counts[i]);
  }
  return summary.SerializeAsString();
}

StatusOr<std::string> TensorSummary(absl::string_view tag, absl::string_view node_name,
                                    const Tensor& tensor,
                                    std::optional<absl::string_view> metadata) {
  tensorflow::Summary summary;
  auto* v = summary.add_value();
  if (metadata) {
    // As in TensorFlow, bytes that cease to parse are left out without an error.
    (void)v->mutable_metadata()->ParseFromString(std::string(*metadata));
  }
  v->set_tag(std::string(tag));
  v->set_node_name(std::string(node_name));
  RETURN_IF_ERROR(TensorToProto(tensor, v->mutable_tensor()));
  return summary.SerializeAsString();
}

std::string AudioSummary(absl::string_view tag, float sample_rate, int64_t channels, int64_t frames,
                         absl::string_view wav) {
  tensorflow::Summary summary;
  auto* v = summary.add_value();
  v->set_tag(std::string(tag));
  auto* audio = v->mutable_audio();
  audio->set_sample_rate(sample_rate);
  audio->set_num_channels(channels);
  audio->set_length_frames(frames);
  audio->set_encoded_audio_string(std::string(wav));
  audio->set_content_type("audio/wav");
  return summary.SerializeAsString();
}

std::string ImageSummary(absl::string_view tag, int64_t height, int64_t width, int64_t channels,
                         absl::string_view png) {
  tensorflow::Summary summary;
  auto* v = summary.add_value();
  v->set_tag(std::string(tag));
  auto* image = v->mutable_image();
  image->set_height(static_cast<int>(height));
  image->set_width(static_cast<int>(width));
  image->set_colorspace(static_cast<int>(channels));
  image->set_encoded_image_string(std::string(png));
  return summary.SerializeAsString();
}

StatusOr<std::string> MergeSummaries(std::span<const std::string> summaries) {
  tensorflow::Summary all;
  std::set<std::string> tags;
  for (const std::string& bytes : summaries) {
    tensorflow::Summary one;
    if (!one.ParseFromString(bytes)) {
      return InvalidArgument("Could not parse one of the summary inputs");
    }
    for (const auto& value : one.value()) {
      if (!value.tag().empty() && !tags.insert(value.tag()).second) {
        return InvalidArgument("Duplicate tag ", value.tag(), " found in summary inputs ");
      }
    }
    all.MergeFrom(one);
  }
  return all.SerializeAsString();
}

std::string VersionEvent(double wall_time) {
  tensorflow::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  return event.SerializeAsString();
}

StatusOr<std::string> SummaryEvent(double wall_time, int64_t step, absl::string_view summary) {
  tensorflow::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  RETURN_IF_ERROR(ParseBinaryProto(summary, "summary", event.mutable_summary()));
  return event.SerializeAsString();
}

std::string GraphEvent(double wall_time, int64_t step, absl::string_view graph_def) {
  tensorflow::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  event.set_graph_def(std::string(graph_def));
  return event.SerializeAsString();
}

}  // namespace smelt
