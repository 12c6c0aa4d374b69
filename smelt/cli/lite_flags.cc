#include "smelt/cli/lite_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace smelt {
namespace {

constexpr std::pair<const char*, LiteQuantize> kModes[] = {{"none", LiteQuantize::kNone},
                                                           {"float16", LiteQuantize::kFloat16},
                                                           {"dynamic", LiteQuantize::kDynamic},
                                                           {"int8", LiteQuantize::kInt8},
                                                           {"int16x8", LiteQuantize::kInt16x8}};

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
    {"inference_type", "FLOAT,float32", "--quantize says how numbers are computed"},
    {"drop_control_dependency", "true", "operators keep the order of what they change"},
    {"reorder_across_fake_quant", "false", "FakeQuant nodes stay where they are"},
    {"change_concat_input_ranges", "false", "ranges are those of the samples"},
    {"mean_values", "", "--representative says what inputs are like"},
    {"std_dev_values", "", "--representative says what inputs are like"},
    {"default_ranges_min", "", "--representative says what ranges are"},
    {"default_ranges_max", "", "--representative says what ranges are"},
    {"custom_opdefs", "", "--allow_custom_ops needs no definitions"},
    {"dump_graphviz_dir", "", "smelt show draws files"},
    {"dump_graphviz_video", "false", "smelt show draws files"},
    {"conversion_summary_dir", "", "--explain and --json say what was done"},
    {"unfold_batchmatmul", "false", "BATCH_MATMUL is in every runtime since 2.3"},
    {"lower_tensor_list_ops", "true", "lists become tensors, for which there are operators"},
    {"legalize_custom_tensor_list_ops", "false", "lists become tensors"},
    {"default_to_single_batch_in_tensor_list_ops", "false", "--batch 1 pins the batch of inputs"},
    {"enable_dynamic_update_slice", "true", "writes into lists are DYNAMIC_UPDATE_SLICE"},
    {"guarantee_all_funcs_one_use", "true", "each branch and loop has functions of its own"},
    {"variable_quantization", "false", "variables stay float"},
    {"reduce_type_precision", "false", "types are the model's"},
    {"qdq_conversion_mode", "NONE", "pairs of QUANTIZE and DEQUANTIZE in models are kept"},
    {"strict_qdq", "false", "pairs of QUANTIZE and DEQUANTIZE in models are kept"},
    {"low_bit_qat", "false", "weights are int8"},
    {"calibrate_only", "false", "there is no form of a file that is only calibrated"},
    {"sparsify_model", "false", "sparse tensors are not written"},
    {"unfold_large_splat_constant", "false", "constants are written as they are"},
    {"use_stablehlo_quantizer", "false", "there is one quantizer"},
    {"unsafe_fuse_dynamic_shaped_broadcast", "false", "only what is safe is fused"},
    {"serialize_debug_metadata", "false", "files have no debug metadata"},
    {"exclude_conversion_metadata", "true", "conversion metadata is not written"},
    {"model_origin_framework", "UNSET,TENSORFLOW,KERAS,JAX,PYTORCH", "there is no such framework"},
    {"new_dynamic_range_quantizer", "true", "there is one quantizer"},
    {"enable_composite_direct_lowering", "true",
     "composites become operators where there are some"},
    {"supported_backends", "", "files are for the kernels of the runtime"},
    {"supported_accumulation_type", "float32", "how kernels add is the runtime's business"},
    {"tf_quantization_mode", "", "graphs of TensorFlow's quantized ops have no operators"},
    {"quantization_options", "", "--quantize and --float_op say how numbers are quantized"},
    {"stablehlo_quantizer_config", "", "there is one quantizer"},
    {"lower_to_saved_model", "true", "a model is read as it is saved"},
};

StatusOr<bool> Truth(const std::string& flag, const std::string& value) {
  const std::string low = absl::AsciiStrToLower(value);
  if (low == "true" || low == "1") return true;
  if (low == "false" || low == "0") return false;
  return InvalidArgument("--", flag, " wants true or false, not '", value, "'");
}

Status CheckFixed(const LiteCommandFlags& flags) {
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

// "a,b" given once, "a" and "b" given twice.
std::vector<std::string> Pieces(const std::vector<std::string>& given, char by = ',') {
  std::vector<std::string> out;
  for (const std::string& text : given) {
    for (absl::string_view piece : absl::StrSplit(text, by, absl::SkipEmpty())) {
      out.emplace_back(absl::StripAsciiWhitespace(piece));
    }
  }
  return out;
}

StatusOr<PartialShape> ParseSizes(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<int64_t> sizes;
  for (absl::string_view piece : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    piece = absl::StripAsciiWhitespace(piece);
    int64_t size = -1;
    if (piece != "?" && piece != "None" && (!absl::SimpleAtoi(piece, &size) || size < -1)) {
      return InvalidArgument("--input_shapes: '", text, "' is no shape");
    }
    sizes.push_back(size);
  }
  return PartialShape::Of(sizes);
}

// "x=1,2:y=3", or the shapes alone in the order of --input_arrays.
Status ReadShapes(LiteCommandFlags& flags) {
  const std::vector<std::string> arrays = Pieces(flags.input_arrays);
  std::vector<std::string> shapes;
  for (const std::string& text : flags.input_shapes) {
    // A ':' that separates stands before a size or a name with '='; one in "x:0=1,2" does not.
    for (absl::string_view piece : absl::StrSplit(text, ':')) {
      const bool port = absl::ascii_isdigit(piece.empty() ? 0 : piece[0]) &&
                        piece.find('=') != absl::string_view::npos && !shapes.empty() &&
                        shapes.back().find('=') == std::string::npos;
      if (port) {
        absl::StrAppend(&shapes.back(), ":", piece);
      } else {
        shapes.emplace_back(piece);
      }
    }
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const size_t equals = shapes[i].find('=');
    const bool named = equals != std::string::npos;
    if (!named && i >= arrays.size()) {
      return InvalidArgument("--input_shapes: '", shapes[i],
                             "' is of no input: write KEY=SIZES, or name --input_arrays");
    }
    const std::string name = named ? shapes[i].substr(0, equals) : arrays[i];
    ASSIGN_OR_RETURN(const PartialShape shape,
                     ParseSizes(named ? shapes[i].substr(equals + 1) : shapes[i]));
    if (!flags.lite.shapes.by_name.emplace(name, shape).second) {
      return InvalidArgument("--input_shapes: '", name, "' has two shapes");
    }
  }
  return OkStatus();
}

// The sets of --supported_ops that are named.
struct Sets {
  bool builtins = false, select = false, int8 = false, int16 = false;
};

StatusOr<Sets> ReadSets(LiteCommandFlags& flags) {
  Sets sets;
  for (const std::string& name : Pieces(flags.supported_ops)) {
    if (name == "TFLITE_BUILTINS") {
      sets.builtins = true;
    } else if (name == "SELECT_TF_OPS") {
      sets.select = true;
    } else if (name == "TFLITE_BUILTINS_INT8") {
      sets.int8 = true;
    } else if (name == "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8") {
      sets.int16 = true;
    } else {
      return InvalidArgument("--supported_ops: there is no set '", name,
                             "'. Sets: TFLITE_BUILTINS, SELECT_TF_OPS, TFLITE_BUILTINS_INT8, "
                             "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8");
    }
  }
  if (sets.int8 && sets.int16) {
    return InvalidArgument("--supported_ops: activations are int8 or int16, not both");
  }
  OperatorSets& out = flags.lite.operators;
  const bool only_select = sets.select && !sets.builtins && !sets.int8 && !sets.int16;
  out.select = flags.select_tf_ops || flags.force_select_tf_ops || sets.select;
  out.builtins = !flags.force_select_tf_ops && !only_select;
  const std::vector<std::string> users = Pieces(flags.user_select);
  out.user_select = {users.begin(), users.end()};
  if ((!users.empty() || out.any_select) && !out.select) {
    return InvalidArgument("ops are named as select ops, and --select_tf_ops is not there");
  }
  return sets;
}

// As TFLiteConverter's optimizations, op sets and types say it; --quantize says it outright.
StatusOr<LiteQuantize> ModeOf(const LiteCommandFlags& flags, const Sets& sets) {
  bool wanted = flags.quantize_weights, half = false;
  for (const std::string& name : Pieces(flags.optimizations)) {
    if (name == "EXPERIMENTAL_SPARSITY") {
      return InvalidArgument("--optimizations ", name,
                             " is not done: sparse tensors are not written");
    }
    if (name != "DEFAULT" && name != "OPTIMIZE_FOR_SIZE" && name != "OPTIMIZE_FOR_LATENCY") {
      return InvalidArgument("--optimizations: there is no '", name, "'");
    }
    wanted = true;
  }
  bool int8 = sets.int8;
  half = flags.quantize_to_half;
  for (const std::string& name : Pieces(flags.supported_types)) {
    const Dtype type = ParseDtype(name);
    if (type == Dtype::kHalf) {
      half = true;
    } else if (type == Dtype::kInt8) {
      int8 = true;
    } else if (type != Dtype::kFloat) {
      return InvalidArgument("--supported_types: weights are float32, float16 or int8, not '", name,
                             "'");
    }
  }
  if (!flags.quantize.empty()) {
    for (const auto& [name, mode] : kModes) {
      if (flags.quantize != name) continue;
      const bool contradicts =
          (mode == LiteQuantize::kNone && wanted) || (half && mode != LiteQuantize::kFloat16) ||
          (int8 && mode != LiteQuantize::kInt8) || (sets.int16 && mode != LiteQuantize::kInt16x8);
      if (!contradicts) return mode;
      return InvalidArgument("--quantize ", name,
                             " contradicts --optimizations, --supported_ops or --supported_types");
    }
  }
  if (!wanted) {
    if (int8 || half || sets.int16) {
      return InvalidArgument(
          "types are named, and --optimizations DEFAULT or --quantize is not "
          "there: nothing would be quantized");
    }
    return LiteQuantize::kNone;
  }
  if (half) return LiteQuantize::kFloat16;
  if (sets.int16) return LiteQuantize::kInt16x8;
  return int8 || !flags.representative.empty() ? LiteQuantize::kInt8 : LiteQuantize::kDynamic;
}

StatusOr<Dtype> BorderType(const std::string& flag, const std::string& value, LiteQuantize mode) {
  std::string name = absl::AsciiStrToLower(value);
  if (name == "float") name = "float32";
  if (name == "quantized_uint8") name = "uint8";
  const Dtype type = ParseDtype(name);
  const bool int8 = type == Dtype::kInt8 || type == Dtype::kUint8;
  if (type != Dtype::kFloat && type != Dtype::kInt16 && !int8) {
    return InvalidArgument("--", flag, " wants float32, int8, uint8 or int16, not '", value, "'");
  }
  const bool fits = type == Dtype::kFloat || (int8 && mode == LiteQuantize::kInt8) ||
                    (type == Dtype::kInt16 && mode == LiteQuantize::kInt16x8);
  if (fits) return type;
  return InvalidArgument("--", flag, " ", value, " needs ",
                         int8 ? "--quantize int8" : "--quantize int16x8");
}

// "0.01", the part of the signal, or "40dB".
StatusOr<double> ReadLoss(const std::string& text) {
  const bool decibels = absl::EndsWithIgnoreCase(text, "db");
  const auto number = absl::string_view(text).substr(0, text.size() - (decibels ? 2 : 0));
  double value = 0;
  if (!absl::SimpleAtod(absl::StripAsciiWhitespace(number), &value) || !std::isfinite(value) ||
      value < 0) {
    return InvalidArgument("--max_loss wants a part of the signal, as 0.01, or 40dB, not '", text,
                           "'");
  }
  return decibels ? std::pow(10.0, -value / 20) : value;
}

// `samples`: activations are integers.
Status ReadFloatLayers(LiteCommandFlags& flags, bool samples) {
  LiteFlags& lite = flags.lite;
  FloatLayerFlags& out = lite.float_layers;
  const bool dynamic = lite.quantize == LiteQuantize::kDynamic;
  bool automatic = false;
  // A ',' may stand in a pattern.
  for (const std::string& name : flags.float_layers) {
    if (name == "auto") {
      automatic = true;
    } else {
      out.patterns.push_back(name);
    }
  }
  if (automatic == flags.max_loss.empty()) {
    return InvalidArgument("--float_layers auto and --max_loss go together");
  }
  if (automatic) {
    ASSIGN_OR_RETURN(out.max_loss, ReadLoss(flags.max_loss));
  }
  out.measure = automatic || !flags.report.empty();
  const bool any = out.measure || !out.patterns.empty();
  if (any && !samples && !dynamic) {
    return InvalidArgument(
        "--report and --float_layers need --quantize dynamic, int8 or int16x8: no layer is "
        "quantized otherwise");
  }
  if (lite.integer.only_integer && (automatic || !out.patterns.empty())) {
    return InvalidArgument("--float_layers contradicts --only_integer");
  }
  if (!samples && out.measure != !flags.representative.empty()) {
    return InvalidArgument(out.measure ? "--report and --float_layers auto need --representative, "
                                         "samples of inputs"
                                       : "--representative is for --quantize int8 and int16x8, and "
                                         "for --report");
  }
  return OkStatus();
}

Status ReadWeightBits(const LiteCommandFlags& flags, LiteFlags& lite) {
  if (flags.weight_bits == "4") {
    if (lite.quantize != LiteQuantize::kDynamic && lite.quantize != LiteQuantize::kInt8) {
      return InvalidArgument("--weight_bits 4 needs --quantize dynamic or int8");
    }
    lite.integer.weight_bits = lite.dynamic.weight_bits = 4;
  } else if (!flags.weight_bits.empty() && flags.weight_bits != "8") {
    return InvalidArgument("--weight_bits is 8 or 4, not '", flags.weight_bits, "'");
  }
  if (flags.block_size.empty()) return OkStatus();
  if (lite.quantize != LiteQuantize::kDynamic || lite.dynamic.weight_bits != 4) {
    return InvalidArgument("--block_size needs --quantize dynamic and --weight_bits 4");
  }
  int64_t& size = lite.dynamic.block_size;
  if (!absl::SimpleAtoi(flags.block_size, &size) || size <= 0 || size % 32 != 0 ||
      size > INT32_MAX) {
    return InvalidArgument("--block_size is a multiple of 32, not '", flags.block_size, "'");
  }
  return OkStatus();
}

Status ReadQuantization(LiteCommandFlags& flags, const Sets& sets) {
  LiteFlags& lite = flags.lite;
  ASSIGN_OR_RETURN(lite.quantize, ModeOf(flags, sets));
  ASSIGN_OR_RETURN(lite.integer.input_type,
                   BorderType("inference_input_type", flags.input_type, lite.quantize));
  ASSIGN_OR_RETURN(lite.integer.output_type,
                   BorderType("inference_output_type", flags.output_type, lite.quantize));
  const bool samples =
      lite.quantize == LiteQuantize::kInt8 || lite.quantize == LiteQuantize::kInt16x8;
  const std::vector<std::string> ops = Pieces(flags.float_ops), nodes = Pieces(flags.float_nodes);
  // A flag that would do nothing is a mistake.
  const bool weights = samples || lite.quantize == LiteQuantize::kDynamic;
  if (!weights && (!ops.empty() || !nodes.empty())) {
    return InvalidArgument(
        "operators are left float, and nothing is quantized: --quantize "
        "dynamic, int8 or int16x8 is not there");
  }
  if (!weights && (flags.per_tensor || flags.per_tensor_dense)) {
    return InvalidArgument(
        "weights get one scale, and none are quantized: --quantize dynamic, "
        "int8 or int16x8 is not there");
  }
  if (!samples && lite.integer.only_integer) {
    return InvalidArgument("--only_integer needs --quantize int8 or int16x8");
  }
  const char* bias = lite.quantize == LiteQuantize::kInt16x8 ? "int64" : "int32";
  if (!flags.bias_type.empty() && (!samples || absl::AsciiStrToLower(flags.bias_type) != bias)) {
    return InvalidArgument("--full_integer_quantization_bias_type ", flags.bias_type,
                           " is not done: biases are int32 beside int8, int64 beside int16");
  }
  const bool builtins = sets.builtins || sets.select || Pieces(flags.supported_ops).empty();
  if (samples && !builtins) lite.integer.only_integer = true;
  lite.integer.per_channel = lite.dynamic.per_channel = !flags.per_tensor;
  lite.integer.per_channel_dense = lite.dynamic.per_channel_dense = !flags.per_tensor_dense;
  lite.integer.float_ops = lite.dynamic.float_ops = {ops.begin(), ops.end()};
  lite.integer.float_nodes = lite.dynamic.float_nodes = {nodes.begin(), nodes.end()};
  RETURN_IF_ERROR(ReadWeightBits(flags, lite));
  RETURN_IF_ERROR(ReadFloatLayers(flags, samples));
  if (!samples && !lite.float_layers.measure) return OkStatus();
  // A model may state what its activations are: whether samples are needed is known when it is
  // read.
  if (flags.representative.empty()) return OkStatus();
  ASSIGN_OR_RETURN(lite.samples, ReadLiteSamples(flags.representative));
  return OkStatus();
}

}  // namespace

Status ReadLiteFlags(LiteCommandFlags& flags) {
  if (!flags.keras_model.empty()) {
    return InvalidArgument("'", flags.keras_model,
                           "' is a Keras file, whose layers are code of "
                           "Keras: call model.export(FOLDER) there, and export the folder");
  }
  RETURN_IF_ERROR(CheckFixed(flags));
  ASSIGN_OR_RETURN(flags.lite.resource_variables,
                   Truth("enable_resource_variables", flags.resource_variables));
  ASSIGN_OR_RETURN(flags.lite.finite_constants,
                   Truth("canonicalizing_inf_as_min_max_float", flags.finite_constants));
  if (flags.no_mul_fc) {
    for (const char* name : {"FuseMulIntoAffine", "FuseMulBeforeAffine"}) {
      flags.fusions.off.emplace_back(name);
    }
  }
  if (flags.graph_def.empty() && !flags.output_arrays.empty()) {
    return InvalidArgument(
        "--output_arrays goes with --graph_def_file: the signatures of a "
        "SavedModel say what its outputs are");
  }
  RETURN_IF_ERROR(ReadShapes(flags));
  if (flags.graph_def.empty() && !flags.input_arrays.empty() && flags.input_shapes.empty()) {
    return InvalidArgument(
        "--input_arrays goes with --graph_def_file or --input_shapes: the "
        "signatures of a SavedModel say what its inputs are");
  }
  ASSIGN_OR_RETURN(const Sets sets, ReadSets(flags));
  return ReadQuantization(flags, sets);
}

void AddLiteFlags(CLI::App& app, LiteCommandFlags& flags) {
  const auto text = [&](const char* name, std::string& to, const char* what) {
    return app.add_option(name, to, what);
  };
  const auto list = [&](const char* name, std::vector<std::string>& to, const char* what) {
    return app.add_option(name, to, what)->allow_extra_args(false);
  };
  flags.model.Add(app, "model", "--saved_model_dir", kModelHelp);
  flags.output.Add(app, "output", "--output_file", "The .tflite file to write");
  text("--graph_def_file,--graph_def", flags.graph_def,
       "A frozen graph in place of a SavedModel; the first path is the output then");
  list("--input_arrays", flags.input_arrays,
       "Tensors of the frozen graph to feed, separated by ','; left out: its Placeholders");
  list("--output_arrays", flags.output_arrays,
       "Tensors of the frozen graph to answer; left out: those that no node reads");
  text("--keras_model_file", flags.keras_model, "Not read: says what to do instead");
  text("--tag_set,--saved_model_tag_set", flags.tag_set, "Tags of the MetaGraph, separated by ','");
  list("--signature,--saved_model_signature_key", flags.lite.signatures,
       "A signature to export, several times for several; left out: all");
  list("--input_shapes", flags.input_shapes,
       "Shapes for inputs with free sizes: 'KEY=1,224,224,3', separated by ':'; of a frozen graph "
       "also the shapes alone, in the order of --input_arrays");
  app.add_option("--batch", flags.lite.shapes.batch, "The first size of inputs that leave it free")
      ->check(CLI::PositiveNumber);

  app.add_flag("--select_tf_ops", flags.select_tf_ops,
               "Ops without a builtin become operators of TensorFlow's Flex delegate");
  app.add_flag("--force_select_tf_ops", flags.force_select_tf_ops, "All ops become such operators");
  app.add_flag("--allow_custom_ops", flags.lite.operators.custom,
               "Ops without a builtin become custom operators of their names");
  list("--supported_ops,--target_ops", flags.supported_ops,
       "Sets of operators, separated by ',': TFLITE_BUILTINS, SELECT_TF_OPS, TFLITE_BUILTINS_INT8, "
       "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8");
  list("--select_user_tf_ops,--experimental_select_user_tf_ops", flags.user_select,
       "Ops of your own that are select ops too");
  app.add_flag("--allow_all_select_tf_ops,--experimental_allow_all_select_tf_ops",
               flags.lite.operators.any_select,
               "Ops are select ops whether TensorFlow's converter knows them or not");

  std::vector<std::string> modes;
  for (const auto& [name, mode] : kModes) modes.emplace_back(name);
  app.add_option(
         "--quantize", flags.quantize,
         "float16: weights in half; dynamic: weights in int8, activations quantized as they "
         "come; int8, int16x8: all in integers, by --representative")
      ->check(CLI::IsMember(modes));
  list("--optimizations", flags.optimizations,
       "DEFAULT: quantize as the other flags say, weights alone where they say nothing");
  app.add_flag("--post_training_quantize,--quantize_weights", flags.quantize_weights,
               "The same as --optimizations DEFAULT");
  list("--supported_types", flags.supported_types, "float16 or int8, under --optimizations");
  app.add_flag("--quantize_to_float16", flags.quantize_to_half,
               "The same as --supported_types float16");
  text("--representative,--representative_dataset", flags.representative,
       "Samples of inputs: a .npz file of stacked rows, or a TFRecord file of "
       "PredictionLogs or RepresentativeDataSamples");
  text("--inference_input_type", flags.input_type, "float32, int8, uint8 or int16");
  text("--inference_output_type", flags.output_type, "float32, int8, uint8 or int16");
  app.add_flag("--only_integer", flags.lite.integer.only_integer,
               "An operator that stays float is an error");
  app.add_flag("--per_tensor,--disable_per_channel,--experimental_disable_per_channel",
               flags.per_tensor, "One scale for the weights of an operator");
  app.add_flag("--disable_per_channel_quantization_for_dense_layers", flags.per_tensor_dense,
               "One scale for the weights of FULLY_CONNECTED");
  text(
      "--weight_bits", flags.weight_bits,
      "8, or 4 for weights of operators whose kernels take int4, under --quantize dynamic or int8");
  text(
      "--block_size", flags.block_size,
      "Of --weight_bits 4 under --quantize dynamic: so many weights of a row have a scale of their "
      "own, where kernels take that; a multiple of 32");
  list("--float_op,--denylisted_ops", flags.float_ops,
       "An operator that is left float, as CONV_2D; several times for several");
  list("--float_node,--denylisted_nodes", flags.float_nodes, "A node that is left float");
  list(
      "--float_layers", flags.float_layers,
      "Layers that are left float, by name or RE2 of whole names, several times for several; auto: "
      "as many as --max_loss needs");
  text("--max_loss", flags.max_loss,
       "Of --float_layers auto: the most that the worst output may differ from float's on the "
       "samples, root mean square: 0.01 of the signal, which is 40dB of signal to noise");
  text("--report", flags.report,
       "Write what quantization adds to each layer, on the samples: JSON where the name ends so, "
       "else text");
  text("--full_integer_quantization_bias_type,--experimental_full_integer_quantization_bias_type",
       flags.bias_type, "int32, or int64 beside int16");

  list("--metadata", flags.metadata, "'NAME=FILE': the bytes of FILE become metadata");
  app.add_flag("--use_buffer_offset,--experimental_use_buffer_offset", flags.buffers_outside,
               "Constants lie behind the flatbuffer, as in files of 2 GiB and more");
  app.add_flag("--preserve_assert_op,--experimental_preserve_assert_op", flags.lite.keep_asserts,
               "Assert is an op like others, and not dropped");
  text("--enable_resource_variables,--experimental_enable_resource_variables",
       flags.resource_variables, "false: a variable that a signature writes is an error");
  text("--canonicalizing_inf_as_min_max_float", flags.finite_constants,
       "false: infinities in float constants stay; left out: they become the largest floats");
  app.add_flag("--disable_fuse_mul_and_fc,--experimental_disable_fuse_mul_and_fc", flags.no_mul_fc,
               "Multiplications stay beside convolutions and products");
  app.add_flag("--json", flags.json, "Print as JSON what was written, or what was refused");
  app.add_flag("--list_ops", flags.list_ops,
               "Lists the ops that become builtin operators, and ends");
  // docs/lite.md lists them.
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
