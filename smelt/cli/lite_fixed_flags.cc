#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "smelt/cli/lite_flag_groups.h"

namespace smelt {
namespace {

// What TFLiteConverter and tflite_convert let users set, and smelt does in one way.
struct FixedFlag {
  const char* name;
  const char* values;  // those that say what smelt does, separated by ','
  const char* why;     // nothing else is done
};
constexpr FixedFlag kFixed[] = {
    {"experimental_new_converter", "true", "there is one converter"},
    {"experimental_new_quantizer", "true", "there is one quantizer"},
    {"enable_v1_converter", "true,false", ""},  // models of both versions are read
    {"output_format", "TFLITE", "smelt show draws files"},
    {"drop_control_dependency", "true", "operators keep the order of what they change"},
    {"reorder_across_fake_quant", "false", "FakeQuant nodes stay where they are"},
    {"change_concat_input_ranges", "false", "ranges are those of the samples"},
    {"custom_opdefs", "", "--allow_custom_ops needs no definitions"},
    {"dump_graphviz_dir", "", "smelt show draws files"},
    {"dump_graphviz_video", "false", "smelt show draws files"},
    {"conversion_summary_dir", "", "--explain and --json say what was done"},
    {"lower_tensor_list_ops", "true", "lists become tensors, for which there are operators"},
    {"legalize_custom_tensor_list_ops", "false", "lists become tensors"},
    {"default_to_single_batch_in_tensor_list_ops", "false", "--batch 1 pins the batch of inputs"},
    {"enable_dynamic_update_slice", "true", "writes into lists are DYNAMIC_UPDATE_SLICE"},
    {"guarantee_all_funcs_one_use", "true", "each branch and loop has functions of its own"},
    {"reduce_type_precision", "false", "types are the model's: --weight_bits 4 makes weights int4"},
    {"strict_qdq", "false", "--qdq_conversion_mode takes what a model states, and no more"},
    {"unfold_large_splat_constant", "false", "constants are written as they are"},
    {"use_stablehlo_quantizer", "false", "there is one quantizer"},
    {"unsafe_fuse_dynamic_shaped_broadcast", "false", "only what is safe is fused"},
    {"serialize_debug_metadata", "false", "files have no debug metadata"},
    {"model_origin_framework", "UNSET,TENSORFLOW,KERAS,JAX,PYTORCH", "there is no such framework"},
    {"new_dynamic_range_quantizer", "true", "there is one quantizer"},
    {"enable_composite_direct_lowering", "true",
     "composites become operators where there are some"},
    {"supported_backends", "", "files are for the kernels of the runtime"},
    {"tf_quantization_mode", "", "graphs of TensorFlow's quantized ops have no operators"},
    {"quantization_options", "", "--quantize and --float_op say how numbers are quantized"},
    {"stablehlo_quantizer_config", "", "there is one quantizer"},
    {"lower_to_saved_model", "true", "a model is read as it is saved"},
};

}  // namespace

Status CheckFixedLiteFlags(const LiteCommandFlags& flags) {
  for (const FixedFlag& f : kFixed) {
    const auto it = flags.fixed.find(f.name);
    if (it == flags.fixed.end() || it->second.empty()) continue;
    std::string value = it->second;
    if (value == "1" || value == "True") value = "true";
    if (value == "0" || value == "False") value = "false";
    const std::vector<std::string> good = absl::StrSplit(f.values, ',');
    if (std::ranges::find(good, value) != good.end()) continue;
    return InvalidArgument("--", f.name, " ", it->second, " is not done: ", f.why);
  }
  return OkStatus();
}

void AddFixedLiteFlags(CLI::App& app, LiteCommandFlags& flags) {
  for (const FixedFlag& f : kFixed) {
    const absl::string_view values = f.values;
    const bool truth = values == "true" || values == "false" || values == "true,false";
    std::string names = absl::StrCat("--", f.name);
    if (!absl::StartsWith(f.name, "experimental_")) {
      absl::StrAppend(&names, ",--experimental_", f.name);
    }
    std::string& value = flags.fixed[f.name];
    (truth ? app.add_flag(names, value) : app.add_option(names, value))->group("");
  }
}

}  // namespace smelt
