// Logged Predict calls, as warm-up files and request logs hold them: the records of a TFRecord file
// are PredictionLog messages. All functions are thread safe; bytes are untrusted.
#ifndef SMELT_WIRE_RECORDS_PREDICTION_LOG_H_
#define SMELT_WIRE_RECORDS_PREDICTION_LOG_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

struct PredictionRecord {
  std::string signature;  // empty: the default one
  std::string model;
  std::vector<std::string> tags;                        // of the MetaGraph that answered
  std::vector<std::pair<std::string, Tensor>> inputs;   // by name
  std::vector<std::pair<std::string, Tensor>> outputs;  // by name; with has_response
  bool has_response = false;
  int64_t logged_at = 0;     // seconds of Unix time, as precise as the format is; 0: not said
  double sampling_rate = 0;  // the share of all requests that the log holds; 0: not said; read only
  std::string extra;         // serialized PredictionLog with every other field
};

// DATA_LOSS when the bytes do not parse; UNIMPLEMENTED naming the kind of a log other than of
// Predict; INVALID_ARGUMENT naming a tensor whose shape and values disagree.
StatusOr<PredictionRecord> ParsePredictionLog(absl::string_view bytes);
// Deterministic. UNIMPLEMENTED for tensors of handles and variants.
StatusOr<std::string> SerializePredictionLog(const PredictionRecord& record);

}  // namespace smelt

#endif  // SMELT_WIRE_RECORDS_PREDICTION_LOG_H_
