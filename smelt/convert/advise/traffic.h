// Recorded requests as a server met them: when each came, and how many rows it brought. Not thread
// safe.
#ifndef SMELT_CONVERT_ADVISE_TRAFFIC_H_
#define SMELT_CONVERT_ADVISE_TRAFFIC_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "smelt/model/loaded_model.h"

namespace smelt {

struct TrafficRequest {
  absl::Duration at;  // since the beginning, in order
  int64_t rows = 0;
  int signature = 0;  // in Traffic::signatures
};

// What the log's requests for a signature have in common.
struct TrafficSignature {
  std::string name;
  std::vector<std::string> row_inputs;         // whose dimension 0 is open: the rows
  std::map<std::string, PartialShape> shapes;  // of the dense inputs, the largest of each size
  NamedTensors example;                        // the inputs of one request that has rows
};

struct Traffic {
  std::vector<TrafficSignature> signatures;
  std::vector<TrafficRequest> requests;
  absl::Duration duration;  // that they came in; positive
  std::string arrivals;     // where the times come from
  std::vector<std::string> notes;
};

// Reads a TFRecord file of PredictionLogs about a model with these signatures.
//
// The format has whole seconds: within one, requests come in the log's order at moments drawn
// evenly, with a fixed seed. A log that holds a sample stands for the whole: each request comes as
// often as its sampling rate says. With `arrivals_per_second` requests come at that rate instead,
// independently of each other, in the log's order; times and rates of the log are not read.
//
// INVALID_ARGUMENT for a log without records, a request without a time, a rate that is none, inputs
// of one request that differ in rows; NOT_FOUND for a signature that the model lacks;
// RESOURCE_EXHAUSTED for more requests than a simulation takes. Errors name the record.
StatusOr<Traffic> ReadTraffic(const std::string& log,
                              const std::map<std::string, Signature>& signatures,
                              std::optional<double> arrivals_per_second,
                              const std::function<void(int64_t done, int64_t all)>& count);

}  // namespace smelt

#endif  // SMELT_CONVERT_ADVISE_TRAFFIC_H_
