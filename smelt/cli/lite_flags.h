// Flags of smelt lite: smelt's own, and those of TFLiteConverter and tflite_convert (docs/lite.md).
#ifndef SMELT_CLI_LITE_FLAGS_H_
#define SMELT_CLI_LITE_FLAGS_H_

#include <map>
#include <string>
#include <vector>

#include "smelt/cli/lite_fusions.h"
#include "smelt/cli/usage.h"
#include "smelt/lite/export.h"

namespace CLI {
class App;
}

namespace smelt {

struct LiteCommandFlags {
  PathArgument model, output;
  std::string graph_def, keras_model, tag_set;
  std::vector<std::string> input_arrays, output_arrays, input_shapes;
  std::string quantize, representative, input_type, output_type;
  std::string bias_type, report, max_loss, weight_bits, block_size, accumulation_type;
  std::string qdq_mode, inference_type, mean_values, deviations, default_min, default_max;
  std::vector<std::string> optimizations, supported_ops, supported_types;
  std::vector<std::string> float_ops, float_nodes, float_layers, user_select, metadata;
  bool quantize_weights = false, quantize_to_half = false, per_tensor = false,
       per_tensor_dense = false;
  bool select_tf_ops = false, force_select_tf_ops = false;
  bool buffers_outside = false, json = false, no_mul_fc = false, list_ops = false;
  bool no_conversion_metadata = false, unfold_products = false, sparsify = false;
  std::string resource_variables = "true", finite_constants = "true";
  // Flags of TFLiteConverter that have one value here, by name.
  std::map<std::string, std::string> fixed;
  LiteFlags lite;
  FusionFlags fusions;
};

void AddLiteFlags(CLI::App& app, LiteCommandFlags& flags);

// What the flags say together, in flags.lite. INVALID_ARGUMENT for flags that contradict each
// other and for what smelt does not do, with a reason.
Status ReadLiteFlags(LiteCommandFlags& flags);

}  // namespace smelt

#endif  // SMELT_CLI_LITE_FLAGS_H_
