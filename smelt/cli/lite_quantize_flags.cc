// Flags of smelt lite that say how numbers are stored and computed.
#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/cli/lite_flag_groups.h"

namespace smelt {
namespace {

// What --optimizations, sets and types name.
struct Wanted {
  bool optimized = false, sparse = false, half = false, bfloat16 = false, int8 = false,
       int16 = false;
  bool any_type() const { return half || bfloat16 || int8 || int16; }
};

StatusOr<Wanted> ReadWanted(const LiteCommandFlags& flags, const LiteSets& sets) {
  Wanted out;
  out.optimized = flags.quantize_weights;
  out.sparse = flags.sparsify;
  for (const std::string& name : FlagPieces(flags.optimizations)) {
    if (name == "EXPERIMENTAL_SPARSITY") {
      out.sparse = true;
      continue;
    }
    if (name != "DEFAULT" && name != "OPTIMIZE_FOR_SIZE" && name != "OPTIMIZE_FOR_LATENCY") {
      return InvalidArgument("--optimizations: there is no '", name, "'");
    }
    out.optimized = true;
  }
  out.int8 = sets.int8;
  out.int16 = sets.int16;
  out.half = flags.quantize_to_half;
  for (const std::string& name : FlagPieces(flags.supported_types)) {
    switch (ParseDtype(name)) {
      case Dtype::kHalf:
        out.half = true;
        break;
      case Dtype::kBfloat16:
        out.bfloat16 = true;
        break;
      case Dtype::kInt8:
        out.int8 = true;
        break;
      case Dtype::kFloat:
        break;
      default:
        return InvalidArgument(
            "--supported_types: weights are float32, float16, bfloat16 or int8, "
            "not '",
            name, "'");
    }
  }
  return out;
}

// As TFLiteConverter's optimizations, op sets and types say it; --quantize says it outright.
StatusOr<LiteQuantize> ModeOf(const LiteCommandFlags& flags, const Wanted& wanted) {
  if (wanted.bfloat16 && (wanted.int8 || wanted.int16)) {
    return InvalidArgument("--supported_types: bfloat16 goes with float16 and float32 alone");
  }
  if (!flags.quantize.empty()) {
    for (const auto& [name, mode] : kLiteModes) {
      if (flags.quantize != name) continue;
      const bool contradicts = (mode == LiteQuantize::kNone && wanted.optimized) ||
                               (wanted.half && mode != LiteQuantize::kFloat16) ||
                               (wanted.bfloat16 && mode != LiteQuantize::kFloat16) ||
                               (wanted.int8 && mode != LiteQuantize::kInt8) ||
                               (wanted.int16 && mode != LiteQuantize::kInt16x8);
      if (!contradicts) return mode;
      return InvalidArgument("--quantize ", name,
                             " contradicts --optimizations, --supported_ops or --supported_types");
    }
  }
  if (!wanted.optimized) {
    if (wanted.any_type()) {
      return InvalidArgument(
          "types are named, and --optimizations DEFAULT or --quantize is not "
          "there: nothing would be quantized");
    }
    return LiteQuantize::kNone;
  }
  if (wanted.half) return LiteQuantize::kFloat16;
  if (wanted.bfloat16) return LiteQuantize::kNone;
  if (wanted.int16) return LiteQuantize::kInt16x8;
  return wanted.int8 || !flags.representative.empty() ? LiteQuantize::kInt8
                                                      : LiteQuantize::kDynamic;
}

// What runtimes are told of sums.
Status ReadAccumulation(const LiteCommandFlags& flags, LiteFlags& lite) {
  if (flags.accumulation_type.empty()) return OkStatus();
  const Dtype type = ParseDtype(flags.accumulation_type);
  if (type != Dtype::kHalf && type != Dtype::kFloat) {
    return InvalidArgument("--supported_accumulation_type is float32 or float16, not '",
                           flags.accumulation_type, "'");
  }
  lite.metadata.half_sums = type == Dtype::kHalf;
  if (lite.metadata.half_sums && lite.quantize != LiteQuantize::kFloat16 &&
      !lite.metadata.bfloat16) {
    return InvalidArgument(
        "--supported_accumulation_type float16 needs --quantize float16, or --supported_types "
        "bfloat16: sums are float32 otherwise");
  }
  return OkStatus();
}

// "QUANTIZED_UINT8", "uint8": as both versions of the converter have them. Empty: float.
Dtype NamedType(const std::string& value) {
  const std::string name = absl::AsciiStrToLower(value);
  if (name.empty() || name == "float") return Dtype::kFloat;
  return ParseDtype(absl::StripPrefix(name, "quantized_"));
}

StatusOr<Dtype> BorderType(const std::string& flag, const std::string& value, LiteQuantize mode) {
  const Dtype type = NamedType(value);
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

StatusOr<std::vector<double>> ReadNumbers(const std::string& flag, const std::string& text) {
  std::vector<double> out;
  for (const absl::string_view piece : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    double& value = out.emplace_back();
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(piece), &value) || !std::isfinite(value)) {
      return InvalidArgument("--", flag, " wants numbers, not '", piece, "'");
    }
  }
  return out;
}

Status ReadInputStats(const LiteCommandFlags& flags, LiteFlags& lite) {
  ASSIGN_OR_RETURN(const auto means, ReadNumbers("mean_values", flags.mean_values));
  ASSIGN_OR_RETURN(const auto deviations, ReadNumbers("std_dev_values", flags.deviations));
  const std::vector<std::string> names = FlagPieces(flags.input_arrays);
  if (means.size() != deviations.size() || (!names.empty() && names.size() != means.size())) {
    return InvalidArgument("--mean_values, --std_dev_values and --input_arrays have ", means.size(),
                           ", ", deviations.size(), " and ", names.size(),
                           " entries, and want as many as there are inputs");
  }
  if (means.empty() && lite.integer.input_type != Dtype::kFloat) {
    return InvalidArgument(
        "--mean_values and --std_dev_values must say what integers of inputs stand for, or "
        "--inference_input_type FLOAT leaves inputs float");
  }
  if (means.size() > 1 && names.empty()) {
    return InvalidArgument("--mean_values of several inputs: name them in --input_arrays");
  }
  const double low = lite.integer.uint8 ? 0 : -128, high = lite.integer.uint8 ? 255 : 127;
  for (size_t i = 0; i < means.size(); ++i) {
    if (std::round(means[i]) != means[i] || means[i] < low || means[i] > high) {
      return InvalidArgument("--mean_values are integers from ", low, " to ", high,
                             ", for zero to be one of them, not ", means[i]);
    }
    if (deviations[i] <= 0) {
      return InvalidArgument("--std_dev_values are greater than zero, not ", deviations[i]);
    }
    lite.input_stats.push_back({names.empty() ? "" : names[i], means[i], deviations[i]});
  }
  return OkStatus();
}

Status ReadDefaultRange(const LiteCommandFlags& flags, LiteFlags& lite) {
  ASSIGN_OR_RETURN(const auto low, ReadNumbers("default_ranges_min", flags.default_min));
  ASSIGN_OR_RETURN(const auto high, ReadNumbers("default_ranges_max", flags.default_max));
  if (low.empty() && high.empty()) return OkStatus();
  if (low.size() != 1 || high.size() != 1 || low[0] >= high[0]) {
    return InvalidArgument(
        "--default_ranges_min and --default_ranges_max are one number each, the "
        "second greater than the first");
  }
  lite.integer.default_range = {static_cast<float>(low[0]), static_cast<float>(high[0])};
  return OkStatus();
}

// Flags of version 1 of the converter: integers by ranges that are stated. Nothing: they are not
// there.
StatusOr<bool> ReadInferenceType(const LiteCommandFlags& flags, const Wanted& wanted,
                                 LiteFlags& lite) {
  const auto quantized = [](Dtype t) { return t == Dtype::kUint8 || t == Dtype::kInt8; };
  const Dtype stated = NamedType(flags.inference_type), input = NamedType(flags.input_type);
  if (stated != Dtype::kFloat && !quantized(stated)) {
    return InvalidArgument("--inference_type is FLOAT, INT8 or QUANTIZED_UINT8, not '",
                           flags.inference_type, "'");
  }
  const bool stats = !flags.mean_values.empty() || !flags.deviations.empty();
  const bool ranges = !flags.default_min.empty() || !flags.default_max.empty();
  // Integers at inputs make all integers there.
  const Dtype type = quantized(input) && (stats || quantized(stated)) ? input : stated;
  if (!quantized(type)) {
    if (!stats && !ranges) return false;
    return InvalidArgument(stats ? "--mean_values and --std_dev_values need "
                                 : "--default_ranges_min and --default_ranges_max need ",
                           "--inference_type INT8 or QUANTIZED_UINT8");
  }
  if (!flags.quantize.empty() || wanted.optimized || wanted.any_type() ||
      !flags.representative.empty() || lite.calibrate_only) {
    return InvalidArgument(
        "--inference_type ", flags.inference_type,
        " takes ranges that the model and flags state; --quantize, --optimizations and "
        "--representative quantize in another way");
  }
  lite.quantize = LiteQuantize::kInt8;
  lite.by_ranges = lite.integer.some_borders = true;
  lite.metadata.version_one = true;
  lite.integer.uint8 = type == Dtype::kUint8;
  const bool float_input = !flags.input_type.empty() && input == Dtype::kFloat;
  lite.integer.input_type = float_input ? Dtype::kFloat : type;
  lite.integer.output_type = lite.integer.input_type;
  if (!flags.output_type.empty()) {
    const Dtype output = NamedType(flags.output_type);
    if (output != Dtype::kFloat && output != type) {
      return InvalidArgument("--inference_output_type ", flags.output_type, " contradicts ",
                             DtypeName(type), " of --inference_type");
    }
    lite.integer.output_type = output;
  }
  RETURN_IF_ERROR(ReadInputStats(flags, lite));
  RETURN_IF_ERROR(ReadDefaultRange(flags, lite));
  return true;
}

// A model that states ranges, in integers by these alone. False: that is not asked for.
StatusOr<bool> ReadQdqMode(const LiteCommandFlags& flags, const Wanted& wanted, LiteFlags& lite) {
  const std::string mode = absl::AsciiStrToUpper(flags.qdq_mode);
  if (mode.empty() || mode == "NONE") return false;
  if (mode != "STATIC" && mode != "DYNAMIC") {
    return InvalidArgument("--qdq_conversion_mode is NONE, STATIC or DYNAMIC, not '",
                           flags.qdq_mode, "'");
  }
  if (!flags.quantize.empty() || wanted.optimized || wanted.any_type() ||
      !flags.representative.empty() || !flags.input_type.empty() || !flags.output_type.empty()) {
    return InvalidArgument("--qdq_conversion_mode ", mode,
                           " takes ranges that the model states; --quantize, --optimizations, "
                           "--representative and types of inputs and outputs say otherwise");
  }
  lite.quantize = LiteQuantize::kInt8;
  lite.by_ranges = lite.integer.only_stated = lite.integer.some_borders = true;
  if (mode == "STATIC") lite.integer.input_type = lite.integer.output_type = Dtype::kInt8;
  return true;
}

Status CheckVariables(const LiteFlags& lite, bool samples) {
  if (lite.integer.variables && !samples) {
    return InvalidArgument(
        "--variable_quantization needs --quantize int8 or int16x8, and --representative, samples "
        "of inputs");
  }
  const bool trained =
      lite.quantize == LiteQuantize::kInt8 || lite.quantize == LiteQuantize::kDynamic;
  if (lite.integer.low_bits && !trained) {
    return InvalidArgument("--low_bit_qat needs --quantize int8 or dynamic");
  }
  return OkStatus();
}

Status ReadBiasType(const LiteCommandFlags& flags, LiteFlags& lite) {
  if (flags.bias_type.empty()) return OkStatus();
  const std::string type = absl::AsciiStrToLower(flags.bias_type);
  const bool int8 = lite.quantize == LiteQuantize::kInt8;
  const bool int16 = lite.quantize == LiteQuantize::kInt16x8;
  lite.integer.bias32 = int16 && type == "int32";
  if ((int8 && type == "int32") || (int16 && (type == "int32" || type == "int64"))) {
    return OkStatus();
  }
  return InvalidArgument("--full_integer_quantization_bias_type ", flags.bias_type,
                         " is not done: biases are int32 beside int8, int32 or int64 beside int16");
}

// Files that state ranges stay float.
Status CheckCalibrateOnly(const LiteCommandFlags& flags, const LiteFlags& lite) {
  if (!lite.calibrate_only) return OkStatus();
  const bool integers =
      lite.quantize == LiteQuantize::kInt8 || lite.quantize == LiteQuantize::kInt16x8;
  if (!integers || flags.representative.empty()) {
    return InvalidArgument(
        "--calibrate_only needs --quantize int8 or int16x8, and --representative, samples of "
        "inputs");
  }
  if (lite.integer.input_type != Dtype::kFloat || lite.integer.output_type != Dtype::kFloat) {
    return InvalidArgument("--calibrate_only leaves inputs and outputs float");
  }
  if (!flags.report.empty() || !flags.float_layers.empty()) {
    return InvalidArgument(
        "--calibrate_only quantizes no layer, of which --report and "
        "--float_layers could be");
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

}  // namespace

Status ReadLiteQuantization(LiteCommandFlags& flags, const LiteSets& sets) {
  LiteFlags& lite = flags.lite;
  ASSIGN_OR_RETURN(const Wanted wanted, ReadWanted(flags, sets));
  ASSIGN_OR_RETURN(bool by_ranges, ReadInferenceType(flags, wanted, lite));
  if (!by_ranges) {
    ASSIGN_OR_RETURN(by_ranges, ReadQdqMode(flags, wanted, lite));
  } else if (!flags.qdq_mode.empty()) {
    return InvalidArgument("--inference_type and --qdq_conversion_mode are one or the other");
  }
  if (!by_ranges) {
    ASSIGN_OR_RETURN(lite.quantize, ModeOf(flags, wanted));
  }
  lite.metadata.bfloat16 = wanted.bfloat16;
  lite.sparse = wanted.sparse;
  RETURN_IF_ERROR(ReadAccumulation(flags, lite));
  if (!by_ranges) {
    ASSIGN_OR_RETURN(lite.integer.input_type,
                     BorderType("inference_input_type", flags.input_type, lite.quantize));
    ASSIGN_OR_RETURN(lite.integer.output_type,
                     BorderType("inference_output_type", flags.output_type, lite.quantize));
  }
  const bool samples =
      lite.quantize == LiteQuantize::kInt8 || lite.quantize == LiteQuantize::kInt16x8;
  const std::vector<std::string> ops = FlagPieces(flags.float_ops),
                                 nodes = FlagPieces(flags.float_nodes);
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
  RETURN_IF_ERROR(ReadBiasType(flags, lite));
  const bool builtins = sets.builtins || sets.select || FlagPieces(flags.supported_ops).empty();
  if (samples && !builtins) lite.integer.only_integer = true;
  lite.integer.per_channel = lite.dynamic.per_channel = !flags.per_tensor;
  lite.integer.per_channel_dense = lite.dynamic.per_channel_dense = !flags.per_tensor_dense;
  lite.integer.float_ops = lite.dynamic.float_ops = {ops.begin(), ops.end()};
  lite.integer.float_nodes = lite.dynamic.float_nodes = {nodes.begin(), nodes.end()};
  RETURN_IF_ERROR(ReadWeightBits(flags, lite));
  RETURN_IF_ERROR(CheckCalibrateOnly(flags, lite));
  RETURN_IF_ERROR(CheckVariables(lite, samples && !by_ranges && !flags.representative.empty()));
  RETURN_IF_ERROR(ReadFloatLayers(flags, samples));
  if (!samples && !lite.float_layers.measure) return OkStatus();
  // A model may state what its activations are: whether samples are needed is known when it is
  // read.
  if (flags.representative.empty()) return OkStatus();
  ASSIGN_OR_RETURN(lite.samples, ReadLiteSamples(flags.representative));
  return OkStatus();
}

}  // namespace smelt
