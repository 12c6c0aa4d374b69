// ConverterOptions, as users write them in protobuf text format, in our own types.
#ifndef SMELT_WIRE_CONVERTER_OPTIONS_H_
#define SMELT_WIRE_CONVERTER_OPTIONS_H_

#include <optional>
#include <string>
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
};

struct Bfloat16Option {
  bool scope_all = false;
  bool skip_safety_checks = false;
  std::vector<std::string> filterlist;
};

struct XlaShardingOption {
  int num_cores_per_replica = 0;
  std::vector<int> device_assignment;
  std::string topology;  // serialised tensorflow.tpu.TopologyProto
};

struct ConverterOptions {
  std::vector<TpuFunctionOption> tpu_functions;
  std::vector<BatchOption> batch_options;
  bool disable_default_optimizations = false;
  OptionState io_shape_optimization = OptionState::kDefault;
  OptionState bfloat16_optimization = OptionState::kDefault;
  std::optional<Bfloat16Option> bfloat16_optimization_options;
  std::optional<XlaShardingOption> xla_sharding_options;
  // Serialised tensorflow.quantization.QuantizationOptions, by the spelling that was used.
  std::optional<std::string> quantization_options;
  std::string quantization_field;
};

// Parses the text, also as people paste it from shell examples: a backslash before a line end or
// before a brace's line is dropped, `field=value` is read as `field: value`, True and False as true
// and false. INVALID_ARGUMENT with line and column of what does not parse, the unknown field by
// name, or the ${VARIABLE} that the shell did not expand.
StatusOr<ConverterOptions> ParseConverterOptions(const std::string& text);

}  // namespace smelt

#endif  // SMELT_WIRE_CONVERTER_OPTIONS_H_
