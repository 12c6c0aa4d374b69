#include "smelt/convert/advise/traffic.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_format.h"
#include "smelt/io/record.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {
namespace {

constexpr size_t kMaxSimulatedRequests = 1'000'000;
// A timeout counts microseconds: requests that come faster have nothing to be compared with.
constexpr double kMaxArrivalsPerSecond = 1e6;
constexpr int64_t kYear10000 = 253402300800;  // what is later is no time of a log
constexpr uint64_t kArrivalSeed = 1;

// In [0, 1), the same everywhere: distributions of the standard library are not.
double UnitNumber(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

class TrafficReader {
 public:
  TrafficReader(const std::string& log, const std::map<std::string, Signature>& signatures,
                std::optional<double> rate)
      : log_(log), signatures_(signatures), rate_(rate) {}

  StatusOr<Traffic> Run(const std::function<void(int64_t, int64_t)>& count) {
    if (rate_ && !(*rate_ > 0 && *rate_ <= kMaxArrivalsPerSecond)) {
      return InvalidArgument("--arrivals ", *rate_, " is no rate: it counts requests per second, ",
                             "above 0 and at most ", kMaxArrivalsPerSecond);
    }
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(log_));
    for (int64_t i = 0;; ++i) {
      ASSIGN_OR_RETURN(auto bytes, reader.Next());
      if (!bytes && i == 0) return InvalidArgument(log_, " holds no records");
      if (!bytes) break;
      if (count) count(i, 0);
      auto record = ParsePredictionLog(*bytes);
      Status s = record.ok() ? One(*record) : record.status();
      if (!s.ok()) return Prefix(s, absl::StrCat("record ", i, ": "));
    }
    rate_ ? Arrive() : SpreadOverSeconds();
    return std::move(out_);
  }

 private:
  Status One(const PredictionRecord& record) {
    ASSIGN_OR_RETURN(TrafficSignature * signature, Find(record.signature));
    ASSIGN_OR_RETURN(const int64_t rows, Rows(record, *signature));
    for (const auto& [name, tensor] : record.inputs) {
      auto [it, added] = signature->shapes.try_emplace(name, tensor.shape());
      PartialShape& most = it->second;
      if (added || most.rank() != tensor.rank()) continue;
      for (int d = 0; d < tensor.rank(); ++d) most.Set(d, std::max(most[d], tensor.dim(d)));
    }
    if (rows > 0 && signature->example.empty()) {
      signature->example.insert(record.inputs.begin(), record.inputs.end());
    }
    int64_t copies = 1;
    if (!rate_) {
      if (record.logged_at == 0) {
        return InvalidArgument("the request has no time (log_metadata.timestamp_secs): give the ",
                               "requests per second by --arrivals");
      }
      if (record.logged_at < 0 || record.logged_at >= kYear10000) {
        return InvalidArgument("log_metadata.timestamp_secs ", record.logged_at, " is no time");
      }
      ASSIGN_OR_RETURN(copies, Copies(record.sampling_rate));
    }
    if (out_.requests.size() + static_cast<size_t>(copies) > kMaxSimulatedRequests) {
      return ResourceExhausted("more than ", kMaxSimulatedRequests, " requests are too many");
    }
    const int index = static_cast<int>(signature - out_.signatures.data());
    for (; copies > 0; --copies) {
      out_.requests.push_back({absl::ZeroDuration(), rows, index});
      seconds_.push_back(record.logged_at);
    }
    return OkStatus();
  }

  StatusOr<TrafficSignature*> Find(const std::string& asked) {
    const std::string name = asked.empty() ? "serving_default" : asked;
    for (TrafficSignature& s : out_.signatures) {
      if (s.name == name) return &s;
    }
    const auto found = signatures_.find(name);
    if (found == signatures_.end()) return NotFound("the model has no signature '", name, "'");
    TrafficSignature& added = out_.signatures.emplace_back();
    added.name = name;
    for (const auto& [key, info] : found->second.inputs) {
      // The parts of a sparse tensor have sizes of their own.
      if (info.kind != TensorInfo::Kind::kDense) continue;
      if (info.shape.known_rank() && (info.shape.rank() == 0 || info.shape[0] >= 0)) continue;
      added.row_inputs.push_back(key);
    }
    if (added.row_inputs.empty()) {
      return InvalidArgument("signature '", name, "' has no dense input whose dimension 0 is ",
                             "open: its requests have no rows");
    }
    return &added;
  }

  static StatusOr<int64_t> Rows(const PredictionRecord& record, const TrafficSignature& signature) {
    int64_t rows = -1;
    std::string first;
    for (const auto& [name, tensor] : record.inputs) {
      if (std::ranges::find(signature.row_inputs, name) == signature.row_inputs.end()) continue;
      if (tensor.rank() == 0) {
        return InvalidArgument("Batching input tensors must have at least one dimension: input '",
                               name, "' of signature '", signature.name, "' is a scalar");
      }
      if (rows >= 0 && tensor.dim(0) != rows) {
        return InvalidArgument("inputs '", first, "' and '", name, "' of signature '",
                               signature.name, "' have ", rows, " and ", tensor.dim(0), " rows");
      }
      rows = tensor.dim(0);
      first = name;
    }
    if (rows < 0) {
      return InvalidArgument("the request for signature '", signature.name, "' lacks input '",
                             signature.row_inputs[0], "'");
    }
    return rows;
  }

  // How many requests of the traffic this one of a sample stands for. What a whole number leaves
  // over counts for the next ones.
  StatusOr<int64_t> Copies(double rate) {
    if (rate == 0) return 1;
    if (!(rate > 0 && rate <= 1)) {
      return InvalidArgument("sampling_config.sampling_rate ", rate, " is no share");
    }
    if (rate < 1) sampled_ = true;
    stand_for_ += 1 / rate;
    const double whole = std::min(std::floor(stand_for_), 1e15);
    stand_for_ -= whole;
    return static_cast<int64_t>(whole);
  }

  void SpreadOverSeconds() {
    int64_t disorder = 0;
    for (size_t i = 1; i < seconds_.size(); ++i) disorder += seconds_[i] < seconds_[i - 1] ? 1 : 0;
    std::vector<size_t> order(seconds_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return seconds_[i]; });
    std::vector<TrafficRequest> sorted;
    std::mt19937_64 random(kArrivalSeed);
    const int64_t begin = seconds_[order.front()];
    for (size_t i = 0; i < order.size();) {
      const int64_t second = seconds_[order[i]];
      std::vector<double> moments;
      size_t end = i;
      for (; end < order.size() && seconds_[order[end]] == second; ++end) {
        moments.push_back(UnitNumber(random));
      }
      std::ranges::sort(moments);
      for (size_t k = i; k < end; ++k) {
        sorted.push_back(out_.requests[order[k]]);
        sorted.back().at = absl::Seconds(second - begin) + absl::Seconds(moments[k - i]);
      }
      i = end;
    }
    out_.requests = std::move(sorted);
    out_.duration = absl::Seconds(seconds_[order.back()] - begin + 1);
    out_.arrivals = "times of the log, which are whole seconds: within one, drawn evenly";
    if (disorder > 0) {
      out_.notes.push_back(
          absl::StrCat(disorder, " requests are logged behind later ones: sorted"));
    }
    if (sampled_) {
      out_.notes.push_back("the log is a sample: its requests come as often as its rates say");
    }
  }

  void Arrive() {
    std::mt19937_64 random(kArrivalSeed);
    double at = 0;
    for (TrafficRequest& r : out_.requests) {
      at -= std::log1p(-UnitNumber(random)) / *rate_;
      r.at = absl::Seconds(at);
    }
    // What was drawn is compared with its own length: few requests may come much faster than the
    // rate, or slower.
    const double wanted = static_cast<double>(out_.requests.size()) / *rate_;
    out_.duration = absl::Seconds(std::max(at, wanted));
    out_.arrivals = absl::StrFormat("--arrivals: %g a second, independent of each other", *rate_);
  }

  const std::string& log_;
  const std::map<std::string, Signature>& signatures_;
  const std::optional<double> rate_;
  Traffic out_;
  std::vector<int64_t> seconds_;  // by request
  bool sampled_ = false;
  double stand_for_ = 0;
};

}  // namespace

StatusOr<Traffic> ReadTraffic(const std::string& log,
                              const std::map<std::string, Signature>& signatures,
                              std::optional<double> arrivals_per_second,
                              const std::function<void(int64_t, int64_t)>& count) {
  return TrafficReader(log, signatures, arrivals_per_second).Run(count);
}

}  // namespace smelt
