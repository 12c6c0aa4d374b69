// --precision: plain models that answer in bfloat16 or int8 without being converted.
#ifndef SMELT_CLI_PRECISION_FLAG_H_
#define SMELT_CLI_PRECISION_FLAG_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "smelt/model/loaded_model.h"

namespace CLI {
class App;
}

namespace smelt {

struct PrecisionFlags {
  std::string precision = "float32", calibration_log;

  bool narrow() const { return precision != "float32"; }
};

// Adds --precision and --calibration_log. REQUIRES: `flags` outlives the app.
void AddPrecisionFlags(CLI::App& app, PrecisionFlags* flags);

using NamedRequests = std::vector<std::pair<std::string, NamedTensors>>;  // by signature

// LoadedModel::Load of the model as the flags say. Of a narrow one standard error gets a line with
// the largest differences from the float model's answers: on the requests of --calibration_log,
// else on `requests`, a bounded number of either. Errors of Narrow (convert/narrow.h).
StatusOr<std::unique_ptr<LoadedModel>> LoadInPrecision(MetaGraph meta, const std::string& dir,
                                                       const SessionOptions& options,
                                                       const PrecisionFlags& flags,
                                                       NamedRequests requests);

// The first requests of a TFRecord file of PredictionLogs, at most as many as are measured.
StatusOr<NamedRequests> FirstRequests(const std::string& log);

}  // namespace smelt

#endif  // SMELT_CLI_PRECISION_FLAG_H_
