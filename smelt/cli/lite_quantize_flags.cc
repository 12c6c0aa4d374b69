// Flags of smelt lite that say how numbers are stored and computed.
#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "smelt/cli/lite_flag_groups.h"

namespace smelt {
namespace {

// What --optimizations, sets and types name.
struct Wanted {
  bool optimized = false, half = false, bfloat16 = false, int8 = false, int16 = false;
  bool any_type() const { return half || bfloat16 || int8 || int16; }
};

StatusOr<Wanted> ReadWanted(const LiteCommandFlags& flags, const LiteSets& sets) {
  Wanted out;
  out.optimized = flags.quantize_weights;
  for (const std::string& name : FlagPieces(flags.optimizations)) {
    if (name == "EXPERIMENTAL_SPARSITY") {
      return InvalidArgument("--optimizations ", name,
                             " is not done: sparse tensors are not written");
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

}  // namespace

Status ReadLiteQuantization(LiteCommandFlags& flags, const LiteSets& sets) {
  LiteFlags& lite = flags.lite;
  ASSIGN_OR_RETURN(const Wanted wanted, ReadWanted(flags, sets));
  ASSIGN_OR_RETURN(lite.quantize, ModeOf(flags, wanted));
  lite.metadata.bfloat16 = wanted.bfloat16;
  RETURN_IF_ERROR(ReadAccumulation(flags, lite));
  ASSIGN_OR_RETURN(lite.integer.input_type,
                   BorderType("inference_input_type", flags.input_type, lite.quantize));
  ASSIGN_OR_RETURN(lite.integer.output_type,
                   BorderType("inference_output_type", flags.output_type, lite.quantize));
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
  const char* bias = lite.quantize == LiteQuantize::kInt16x8 ? "int64" : "int32";
  if (!flags.bias_type.empty() && (!samples || absl::AsciiStrToLower(flags.bias_type) != bias)) {
    return InvalidArgument("--full_integer_quantization_bias_type ", flags.bias_type,
                           " is not done: biases are int32 beside int8, int64 beside int16");
  }
  const bool builtins = sets.builtins || sets.select || FlagPieces(flags.supported_ops).empty();
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

}  // namespace smelt
