// What the reports of a conversion say, gathered once: plain data.
#ifndef SMELT_CONVERT_REPORT_REPORT_DATA_H_
#define SMELT_CONVERT_REPORT_REPORT_DATA_H_

#include <map>
#include <string>
#include <vector>

#include "smelt/convert/conversion.h"
#include "smelt/model/model_folder.h"

namespace smelt {

// A generation of TPUs, by what one chip has.
struct TpuGeneration {
  absl::string_view name;
  int64_t hbm_bytes;
  double peak_flops;  // bfloat16, a multiplication and its addition counted as two
  double hbm_bytes_per_second;
};
// nullptr for a name that is none.
const TpuGeneration* FindTpuGeneration(absl::string_view name);
std::vector<std::string> TpuGenerationNames();
inline constexpr char kDefaultTpuGeneration[] = "v5e";

// The model that was converted.
struct ReportModel {
  struct File {
    std::string path;    // within the SavedModel
    std::string sha256;  // see io/sha256.h
  };
  std::string path;     // as it was given
  std::string version;  // that was chosen in a folder of versions, or empty
  std::vector<std::string> tags;
  std::string tensorflow_version;  // that wrote it
  std::vector<File> files;         // saved_model.pb, and what is in variables/
  // Of the lines "SHA256  PATH" of the files: what `sha256sum FILES | sha256sum` prints.
  std::string sha256;
};

struct ReportFunction {
  std::string name;
  std::string alias;  // of function_aliases; a body has that of the function that it is made of
  std::string label;  // of the placement whose body it is, or empty
  bool on_tpu = false;
  int64_t cost = 0;  // of its own nodes; what it calls is left out
  int nodes = 0;
  std::vector<std::string> calls;  // functions of this list
  // No signature reaches it any more: it became part of those that called it.
  bool inlined = false;
};

struct ReportSignature {
  std::string name;
  std::vector<std::string> calls;
};

// What a placed function costs.
struct ReportPlacement {
  std::string label, function, body;
  int64_t cost = 0;
  bool existing = false;
  // Bytes on a core. A variable counts for the first placement that reads it alone.
  int64_t variable_bytes = 0, constant_bytes = 0;
  // Estimates of what is alive at once while it runs.
  int64_t activation_bytes = 0, activation_bytes_at_batch = 0;
};

struct ReportData {
  int64_t cpu_cost = 0, tpu_cost = 0, total_cost = 0;
  std::vector<ReportPlacement> placements;
  std::vector<ReportSignature> signatures;
  // What the signatures reach, callers before callees where there are no cycles; behind them what
  // the records name beside that.
  std::vector<ReportFunction> functions;
  ReportModel model;  // empty unless a report file is written
  Verification verification;
  TrainingParts training;
  std::string options;  // the text of the converter options, as given
  BatchingAdvice advice;
  // Checkpoint key -> what Python called the variable, where one name means one variable.
  std::map<std::string, std::string> variable_names;

  // "dense_1/kernel"; a key that has no name is its object's path.
  std::string VariableName(const std::string& key) const;
  // nullptr for what is none of the functions.
  const ReportFunction* FindFunction(absl::string_view name) const;
  // How a reader knows the function: by label, alias or name.
  std::string FunctionTitle(const std::string& name) const;

  const TpuGeneration* tpu = nullptr;
  int cores = 1;          // that a placement runs on
  int64_t batch = 1;      // the largest that batching makes
  int64_t hbm_bytes = 0;  // of one core: all weights, and the largest activations at `batch`
  // Sums over what crosses; 0 when no stage recorded it.
  int64_t transfer_bytes_before = 0, transfer_bytes = 0;
};

// REQUIRES: the conversion is done. Reads the checkpoint's index; where that fails, a note says
// that the memory estimate lacks variables.
StatusOr<ReportData> MakeReportData(Conversion& c, const TpuGeneration& tpu);

// Reads and hashes the model's files. `path`: as the user gave it.
StatusOr<ReportModel> DescribeModel(const std::string& path, const ModelFolder& folder,
                                    const MetaGraph& meta);

// "functional_1/conv1/convolution" of "StatefulPartitionedCall/functional_1/conv1/convolution": the
// name of a node without the calls that were inlined.
std::string WithoutCalls(absl::string_view node);
// "functional_1/conv1": the name scope of that, which names layers.
std::string LayerOf(absl::string_view node);

// The text report, in the inference converter's form.
std::string ConversionReport(const ReportData& data);

}  // namespace smelt

#endif  // SMELT_CONVERT_REPORT_REPORT_DATA_H_
