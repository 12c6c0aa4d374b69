// A plain model's float computation made narrow for the sessions of this process: nothing is
// written. Not thread safe.
#ifndef SMELT_CONVERT_NARROW_H_
#define SMELT_CONVERT_NARROW_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "smelt/convert/conversion.h"
#include "smelt/model/loaded_model.h"

namespace smelt {

enum class Precision { kFloat32, kBfloat16, kInt8 };

struct NarrowFlags {
  Precision precision = Precision::kFloat32;
  // TFRecord file of PredictionLogs: the requests that the ranges of int8 come from.
  std::string calibration_log;
  FileSystem files = FileSystem::Nothing();  // what the model may use beside its own folder
  std::function<void(int64_t done, int64_t all)> count;  // of the requests; may be empty
};

// A model for LoadedModel::Load with the folder `dir`, whose checkpoint has what it does not hold
// itself. bfloat16 is what the converter makes of everything that is served, int8 its static range
// quantization of the signatures in the log. INVALID_ARGUMENT for a model that has accelerator or
// bfloat16 parts already, and for int8 without a log where training left no ranges; errors of
// Convert.
StatusOr<MetaGraph> Narrow(const MetaGraph& meta, const std::string& dir, const NarrowFlags& flags);

// How far a narrow model's answers are off from those of the float model.
struct NarrowError {
  double max_abs = 0, max_relative = 0;  // the latter to the range of the whole output
  std::string output;                    // the one with the largest relative error
  int64_t requests = 0;
  std::vector<std::string> odd;  // what no number tells: "output 'x' is NaN ..."
};
// Of these requests, by signature, in sessions of their own: state that requests change is that of
// the models as they are loaded. Requests that the float model refuses do not count; errors of
// loading, and of the narrow model where the float one answers.
StatusOr<NarrowError> MeasureNarrow(
    const MetaGraph& plain, const MetaGraph& narrow, const std::string& dir,
    const SessionOptions& options,
    const std::vector<std::pair<std::string, NamedTensors>>& requests);

}  // namespace smelt

#endif  // SMELT_CONVERT_NARROW_H_
