#include "smelt/cli/lite_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "smelt/cli/lite_flag_groups.h"

namespace smelt {
namespace {

StatusOr<bool> Truth(const std::string& flag, const std::string& value) {
  const std::string low = absl::AsciiStrToLower(value);
  if (low == "true" || low == "1") return true;
  if (low == "false" || low == "0") return false;
  return InvalidArgument("--", flag, " wants true or false, not '", value, "'");
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
  const std::vector<std::string> arrays = FlagPieces(flags.input_arrays);
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

StatusOr<LiteSets> ReadSets(LiteCommandFlags& flags) {
  LiteSets sets;
  for (const std::string& name : FlagPieces(flags.supported_ops)) {
    if (name == "TFLITE_BUILTINS") {
      sets.builtins = true;
    } else if (name == "SELECT_TF_OPS") {
      sets.select = true;
    } else if (name == "TFLITE_BUILTINS_INT8") {
      sets.int8 = true;
    } else if (name == "EXPERIMENTAL_STABLEHLO_OPS") {
      return InvalidArgument(
          "--supported_ops EXPERIMENTAL_STABLEHLO_OPS is not done: operators of StableHLO are "
          "read, and not written: ops have builtin operators (TFLITE_BUILTINS) or become those of "
          "the Flex delegate (SELECT_TF_OPS)");
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
  const std::vector<std::string> users = FlagPieces(flags.user_select);
  out.user_select = {users.begin(), users.end()};
  if ((!users.empty() || out.any_select) && !out.select) {
    return InvalidArgument("ops are named as select ops, and --select_tf_ops is not there");
  }
  return sets;
}

}  // namespace

std::vector<std::string> FlagPieces(const std::vector<std::string>& given, char by) {
  std::vector<std::string> out;
  for (const std::string& text : given) {
    for (absl::string_view piece : absl::StrSplit(text, by, absl::SkipEmpty())) {
      out.emplace_back(absl::StripAsciiWhitespace(piece));
    }
  }
  return out;
}

Status ReadLiteFlags(LiteCommandFlags& flags) {
  if (!flags.keras_model.empty()) {
    return InvalidArgument("'", flags.keras_model,
                           "' is a Keras file, whose layers are code of "
                           "Keras: call model.export(FOLDER) there, and export the folder");
  }
  RETURN_IF_ERROR(CheckFixedLiteFlags(flags));
  ASSIGN_OR_RETURN(flags.lite.resource_variables,
                   Truth("enable_resource_variables", flags.resource_variables));
  ASSIGN_OR_RETURN(flags.lite.finite_constants,
                   Truth("canonicalizing_inf_as_min_max_float", flags.finite_constants));
  flags.lite.metadata.conversion = !flags.no_conversion_metadata;
  if (!flags.graph_def.empty()) flags.lite.metadata.source = LiteSource::kGraphDef;
  if (flags.unfold_products) flags.fusions.on.emplace_back("UnfoldBatchMatmul");
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
  ASSIGN_OR_RETURN(const LiteSets sets, ReadSets(flags));
  return ReadLiteQuantization(flags, sets);
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
  for (const auto& [name, mode] : kLiteModes) modes.emplace_back(name);
  app.add_option(
         "--quantize", flags.quantize,
         "float16: weights in half; dynamic: weights in int8, activations quantized as they "
         "come; int8, int16x8: all in integers, by --representative")
      ->check(CLI::IsMember(modes));
  list("--optimizations", flags.optimizations,
       "DEFAULT: quantize as the other flags say, weights alone where they say nothing; "
       "EXPERIMENTAL_SPARSITY: weights of many zeros leave these out");
  app.add_flag("--sparsify_model,--experimental_sparsify_model", flags.sparsify,
               "The same as --optimizations EXPERIMENTAL_SPARSITY");
  app.add_flag("--post_training_quantize,--quantize_weights", flags.quantize_weights,
               "The same as --optimizations DEFAULT");
  list("--supported_types", flags.supported_types,
       "float16, bfloat16 or int8, under --optimizations; float16,bfloat16: halves, and the file "
       "says that "
       "runtimes may compute in either");
  app.add_flag("--quantize_to_float16", flags.quantize_to_half,
               "The same as --supported_types float16");
  text("--representative,--representative_dataset", flags.representative,
       "Samples of inputs: a .npz file of stacked rows, or a TFRecord file of "
       "PredictionLogs or RepresentativeDataSamples");
  app.add_flag("--calibrate_only,--experimental_calibrate_only", flags.lite.calibrate_only,
               "Of int8 and int16x8: the file states what ranges samples showed, and stays float");
  text("--inference_input_type", flags.input_type,
       "float32, int8, uint8 or int16; left out: float32, and that of --inference_type");
  text("--inference_output_type", flags.output_type,
       "float32, int8, uint8 or int16; left out: float32, and that of --inference_type");
  text("--qdq_conversion_mode,--experimental_qdq_conversion_mode", flags.qdq_mode,
       "STATIC: integers where a model states ranges (FakeQuant), and nowhere else, inputs and "
       "results too where they have one; DYNAMIC: these stay float; NONE");
  app.add_flag("--low_bit_qat,--experimental_low_bit_qat", flags.lite.integer.low_bits,
               "Weights that training rounded to 4 bits (FakeQuant) are int4, where kernels take "
               "such weights");
  app.add_flag("--variable_quantization,--experimental_variable_quantization",
               flags.lite.integer.variables,
               "Of int8 and int16x8: variables that a signature writes hold integers as well");
  text(
      "--inference_type", flags.inference_type,
      "QUANTIZED_UINT8 or INT8: integers by the ranges that a model states (FakeQuant), as version "
      "1 of TensorFlow's converter makes them; FLOAT: --quantize says it");
  text("--mean_values", flags.mean_values,
       "Of --inference_type: the integers that stand for zero in inputs, in the order of "
       "--input_arrays, separated by ','");
  text("--std_dev_values", flags.deviations,
       "Of --inference_type: how many integers are one, by input: (q - mean) / std_dev");
  text("--default_ranges_min", flags.default_min,
       "Of --inference_type: the least of each result whose range the model does not state");
  text("--default_ranges_max", flags.default_max, "The greatest of it");
  app.add_flag("--only_integer", flags.lite.integer.only_integer,
               "An operator that stays float is an error");
  app.add_flag("--per_tensor,--disable_per_channel,--experimental_disable_per_channel",
               flags.per_tensor, "One scale for the weights of an operator");
  app.add_flag("--disable_per_channel_quantization_for_dense_layers", flags.per_tensor_dense,
               "One scale for the weights of FULLY_CONNECTED");
  text("--supported_accumulation_type,--experimental_supported_accumulation_type",
       flags.accumulation_type,
       "Of float16: float32, or float16 where runtimes may add up halves; the file says so");
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
       "Write what quantization adds to each layer, on the samples: JSON or CSV (as TensorFlow's "
       "debugger has it) where the name ends so, else text");
  text("--full_integer_quantization_bias_type,--experimental_full_integer_quantization_bias_type",
       flags.bias_type, "int32, or int64 beside int16");

  app.add_flag("--exclude_conversion_metadata,--experimental_exclude_conversion_metadata",
               flags.no_conversion_metadata,
               "The file does not say what it was made of and how (CONVERSION_METADATA)");
  list("--metadata", flags.metadata, "'NAME=FILE': the bytes of FILE become metadata");
  app.add_flag("--use_buffer_offset,--experimental_use_buffer_offset", flags.buffers_outside,
               "Constants lie behind the flatbuffer, as in files of 2 GiB and more");
  app.add_flag("--preserve_assert_op,--experimental_preserve_assert_op", flags.lite.keep_asserts,
               "Assert is an op like others, and not dropped");
  text("--enable_resource_variables,--experimental_enable_resource_variables",
       flags.resource_variables, "false: a variable that a signature writes is an error");
  text("--canonicalizing_inf_as_min_max_float", flags.finite_constants,
       "false: infinities in float constants stay; left out: they become the largest floats");
  app.add_flag("--unfold_batchmatmul,--experimental_unfold_batchmatmul", flags.unfold_products,
               "BATCH_MATMUL of known sizes is a FULLY_CONNECTED for each matrix: the same as "
               "--fusion UnfoldBatchMatmul");
  app.add_flag("--disable_fuse_mul_and_fc,--experimental_disable_fuse_mul_and_fc", flags.no_mul_fc,
               "Multiplications stay beside convolutions and products");
  app.add_flag("--json", flags.json, "Print as JSON what was written, or what was refused");
  app.add_flag("--list_ops", flags.list_ops,
               "Lists the ops that become builtin operators, and ends");
  AddFixedLiteFlags(app, flags);
}

}  // namespace smelt
