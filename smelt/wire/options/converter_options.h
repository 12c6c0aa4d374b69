// ConverterOptions, as users write them in protobuf text format, in smelt's own types.
#ifndef SMELT_WIRE_OPTIONS_CONVERTER_OPTIONS_H_
#define SMELT_WIRE_OPTIONS_CONVERTER_OPTIONS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "smelt/base/status.h"

namespace smelt {

enum class OptionState { kDefault, kEnabled, kDisabled };

struct TpuFunctionOption {
  enum class Kind { kNone, kAlias, kConcreteName, kSignature, kJitCompiled };
  Kind kind = Kind::kNone;
  std::string name;          // of the first three kinds
  bool jit_compiled = true;  // the value given to jit_compile_functions
};

struct BatchOption {
  int num_batch_threads = 0, max_batch_size = 0, batch_timeout_micros = 0;
  std::vector<int> allowed_batch_sizes;
  int max_enqueued_batches = 0;
  bool disable_large_batch_splitting = false;
  enum class Component { kAllTpuFunctions, kAlias, kConcreteName, kSignature };
  Component component = Component::kAllTpuFunctions;
  std::string component_name;
  bool assume_independent_rows = false;
};

struct Bfloat16Option {
  bool scope_all = false;
  bool skip_safety_checks = false;
  std::vector<std::string> filterlist;
  std::vector<std::string> node_filterlist;  // regular expressions for the whole name
  bool before_int8 = false;
};

struct XlaShardingOption {
  int num_cores_per_replica = 0;
  std::vector<int> device_assignment;
  std::string topology;  // serialized tensorflow.tpu.TopologyProto
};

// Numbered as the enums of the protos. CheckQuantizationOptions (convert/stages.h) replaces
// kUnspecified by the default.
enum class QuantizationPreset {
  kUnspecified,
  kNoQuantize,
  kStaticRange,
  kDynamicRange,
  kWeightOnly
};
enum class QuantizationOpSet { kUnspecified, kTf, kXla, kUniformQuantized, kStableHlo };
enum class QuantizationComponent { kUnspecified, kActivation, kWeight, kBias };
enum class QuantizationType { kUnspecified, kInt4, kInt8, kInt32 };
enum class CalibrationMethod {
  kUnspecified,
  kMinMax,
  kAverageMinMax,
  kHistogramPercentile,
  kHistogramMseBruteforce,
  kHistogramMseMaxFrequency,
  kHistogramMseSymmetric
};
enum class QuantizationDebugger { kUnspecified, kWholeModel, kIntPerLayer, kFloatPerLayer };

struct QuantizationMethodOption {
  QuantizationPreset preset = QuantizationPreset::kUnspecified;
  // What overrides the preset.
  std::vector<std::pair<QuantizationComponent, QuantizationType>> components;
};

struct QuantizationUnitOption {
  std::string op_type;
  std::string node_name, func_name;  // regular expressions for the whole name
};

struct UnitWiseQuantizationOption {
  std::vector<QuantizationUnitOption> units;
  QuantizationMethodOption method;
};

struct CalibrationOption {
  CalibrationMethod method = CalibrationMethod::kUnspecified;
  int num_bins = 0;
  float min_percentile = 0, max_percentile = 0;
};

struct QuantizationDebuggerOption {
  QuantizationDebugger type = QuantizationDebugger::kUnspecified;
  std::string unquantized_dump_model_path, log_dir_path;
};

struct QuantizationOption {
  std::string field;  // the name of the field that the user wrote it in, for errors
  QuantizationMethodOption method;
  QuantizationOpSet op_set = QuantizationOpSet::kUnspecified;
  std::vector<UnitWiseQuantizationOption> unit_wise;
  std::vector<std::string> tags, signature_keys;
  std::map<std::string, std::string> representative_datasets;  // signature key to file, or ""
  std::set<std::string> prediction_logs;  // signatures whose file holds PredictionLogs
  int64_t min_num_elements_for_weights = 0;
  std::optional<bool> freeze_all_variables, per_channel;
  bool two_input_tensors = false, tpu_model_support = false, legacy_weight_only = false;
  CalibrationOption calibration;
  std::optional<QuantizationDebuggerOption> debugger;
};

struct ConverterOptions {
  std::vector<TpuFunctionOption> tpu_functions;
  std::vector<BatchOption> batch_options;
  bool disable_default_optimizations = false;
  OptionState io_shape_optimization = OptionState::kDefault;
  OptionState bfloat16_optimization = OptionState::kDefault;
  std::optional<Bfloat16Option> bfloat16_optimization_options;
  std::optional<XlaShardingOption> xla_sharding_options;
  std::optional<QuantizationOption> quantization_options;
};

// Parses the text, also as people paste it from shell examples (options_text.h). INVALID_ARGUMENT
// with line and column of what does not parse: for an unknown field or value with the nearest and
// all that there are; for a brace without its other half, with the place of the one that is there.
StatusOr<ConverterOptions> ParseConverterOptions(const std::string& text);

}  // namespace smelt

#endif  // SMELT_WIRE_OPTIONS_CONVERTER_OPTIONS_H_
