// Defaults and checks of quantization_options: those of TensorFlow's quantize_saved_model, with its
// texts.
#include <re2/re2.h>

#include <algorithm>

#include "smelt/convert/stages.h"

namespace smelt {
namespace {

// TensorFlow's default: smaller weights stay float with dynamic range and weight-only quantization.
constexpr int64_t kMinElements = 1024;
constexpr int kHistogramBins = 512;

using Preset = QuantizationPreset;

Status FillComponents(QuantizationMethodOption& method) {
  std::map<QuantizationComponent, QuantizationType> all;
  const bool range =
      method.preset == Preset::kStaticRange || method.preset == Preset::kDynamicRange;
  if (range || method.preset == Preset::kWeightOnly) {
    all[QuantizationComponent::kWeight] = QuantizationType::kInt8;
  }
  if (range) {
    all[QuantizationComponent::kActivation] = QuantizationType::kInt8;
    all[QuantizationComponent::kBias] = QuantizationType::kInt32;
  }
  for (const auto& [component, type] : method.components) {
    if (component == QuantizationComponent::kWeight ||
        component == QuantizationComponent::kActivation) {
      if (type != QuantizationType::kInt8) {
        return InvalidArgument("Only int8 precision is supported for input operands.");
      }
    } else if (type != QuantizationType::kInt32) {
      return InvalidArgument("Only int32 precision is supported for bias.");
    }
    all[component] = type;
  }
  method.components.assign(all.begin(), all.end());
  if (range && all.size() != 3) {
    return InvalidArgument("Only 3 components are needed for the quantization method");
  }
  if (method.preset == Preset::kWeightOnly && all.size() != 1) {
    return InvalidArgument("At least one component spec needs to be specified.");
  }
  return OkStatus();
}

Status CheckRegex(const std::string& text) {
  const RE2 re(text, RE2::Quiet);
  if (!re.ok()) {
    return InvalidArgument("unit_wise_quantization_specs: \"", text,
                           "\" is no regular expression: ", re.error());
  }
  return OkStatus();
}

Status CheckUnits(QuantizationOption& q) {
  for (UnitWiseQuantizationOption& spec : q.unit_wise) {
    if (spec.units.empty()) {
      return InvalidArgument("UnitWiseQuantizationSpec must contain at least one unit.");
    }
    for (const QuantizationUnitOption& unit : spec.units) {
      if (unit.op_type.empty() && unit.node_name.empty()) {
        return InvalidArgument("Either `op_type` or `node_name` must be specified.");
      }
      RETURN_IF_ERROR(CheckRegex(unit.node_name));
      RETURN_IF_ERROR(CheckRegex(unit.func_name));
    }
    RETURN_IF_ERROR(FillComponents(spec.method));
    // Static and dynamic range have the same components and are two methods.
    const Preset preset = spec.method.preset;
    const bool other = preset != Preset::kUnspecified && preset != Preset::kNoQuantize &&
                       preset != q.method.preset;
    if (other ||
        (!spec.method.components.empty() && spec.method.components != q.method.components)) {
      return InvalidArgument(
          "Currently unit-wise quantization spec only supports NO_QUANTIZE and same quantization "
          "method as the top-level `quantization_method`");
    }
  }
  return OkStatus();
}

Status FillCalibration(QuantizationOption& q) {
  CalibrationOption& cal = q.calibration;
  if (cal.num_bins < 0 || cal.num_bins > 1 << 16) {
    return InvalidArgument("calibration_options: initial_num_bins must be in [1, 65536], not ",
                           cal.num_bins);
  }
  if (cal.method == CalibrationMethod::kUnspecified) cal.method = CalibrationMethod::kMinMax;
  if (cal.num_bins == 0) cal.num_bins = kHistogramBins;
  if (cal.min_percentile == 0) cal.min_percentile = 0.001f;
  if (cal.max_percentile == 0) cal.max_percentile = 99.999f;
  if (!(cal.min_percentile >= 0 && cal.min_percentile < cal.max_percentile &&
        cal.max_percentile <= 100)) {
    return InvalidArgument(
        "calibration_options: percentiles must be in [0, 100] and in order, not ",
        cal.min_percentile, " and ", cal.max_percentile);
  }
  return OkStatus();
}

Status CheckDebugger(QuantizationOption& q) {
  if (!q.debugger) return OkStatus();
  if (q.debugger->log_dir_path.empty()) q.debugger->log_dir_path = "/tmp/dumps";
  if (q.debugger->type == QuantizationDebugger::kUnspecified) {
    return InvalidArgument("Debugger is enabled but debugger type was not specified.");
  }
  if (q.debugger->type == QuantizationDebugger::kWholeModel &&
      q.debugger->unquantized_dump_model_path.empty()) {
    return InvalidArgument(
        "Debugger type whole model verify was used but unquantized_dump_model_path was not "
        "specified.");
  }
  return Unimplemented(
      "debugger_config is not supported: leave it out, the conversion reports each layer's error");
}

Status CheckOpSet(const QuantizationOption& q) {
  const Preset preset = q.method.preset;
  if (q.per_channel.value_or(false) && q.op_set != QuantizationOpSet::kUniformQuantized &&
      preset != Preset::kWeightOnly &&
      !((q.op_set == QuantizationOpSet::kXla || q.op_set == QuantizationOpSet::kStableHlo) &&
        preset == Preset::kStaticRange)) {
    return InvalidArgument(
        "Currently, per-channel quantization is supported for Uniform Quantized opset, weight only "
        "quantization, or XLA/StableHLO opset with static range quantization.");
  }
  if (preset == Preset::kWeightOnly &&
      (q.op_set == QuantizationOpSet::kUniformQuantized || q.op_set == QuantizationOpSet::kTf)) {
    return InvalidArgument("TF/Uniform quantized opset does not support weight-only.");
  }
  if (q.op_set == QuantizationOpSet::kStableHlo && preset != Preset::kStaticRange &&
      preset != Preset::kWeightOnly) {
    return InvalidArgument(
        "StableHLO quantized opset currently only supports static range quantization and "
        "weight-only quantizationvia TF Quantizer.");
  }
  return OkStatus();
}

}  // namespace

Status CheckQuantizationOptions(QuantizationOption& q) {
  if (q.op_set == QuantizationOpSet::kUnspecified) q.op_set = QuantizationOpSet::kXla;
  if (q.legacy_weight_only) {
    return InvalidArgument(
        "Legacy weight-only is deprecated. Use weight-only quantization method.");
  }
  if (q.method.preset == Preset::kUnspecified) q.method.preset = Preset::kStaticRange;
  if (q.min_num_elements_for_weights < 0) {
    return InvalidArgument("min_num_elements_for_weights must not be negative, is ",
                           q.min_num_elements_for_weights);
  }
  RETURN_IF_ERROR(CheckOpSet(q));
  RETURN_IF_ERROR(CheckDebugger(q));
  RETURN_IF_ERROR(FillComponents(q.method));
  RETURN_IF_ERROR(CheckUnits(q));
  if (q.method.preset == Preset::kStaticRange) RETURN_IF_ERROR(FillCalibration(q));
  if (q.op_set != QuantizationOpSet::kXla) {
    const char* const names[] = {"", "TF", "XLA", "UNIFORM_QUANTIZED", "STABLEHLO"};
    return Unimplemented(q.field, ": op_set ", names[static_cast<int>(q.op_set)],
                         " is not supported: leave it out, or use XLA");
  }
  if (q.two_input_tensors) {
    return Unimplemented(q.field, ": enable_two_input_tensors is not supported");
  }
  if (q.tpu_model_support) {
    return Unimplemented(q.field,
                         ": experimental_enable_tpu_model_support is not supported: quantize the "
                         "model before it is converted for the TPU");
  }
  if (!q.signature_keys.empty() && !q.representative_datasets.empty()) {
    std::vector<std::string> keys = q.signature_keys, datasets;
    for (const auto& [key, path] : q.representative_datasets) datasets.push_back(key);
    std::sort(keys.begin(), keys.end());
    if (keys != datasets) {
      return InvalidArgument(
          "The signature keys and the keys of representative dataset map do not match. Signature "
          "keys: ",
          KeySetText(keys), ", representative dataset map: ", KeySetText(datasets), ".");
    }
  }
  for (const auto& [key, path] : q.representative_datasets) {
    if (path.empty()) return InvalidArgument("Unsupported Representative Dataset filetype");
  }
  if (q.min_num_elements_for_weights == 0) q.min_num_elements_for_weights = kMinElements;
  return OkStatus();
}

std::string KeySetText(const std::vector<std::string>& keys) {
  std::string out = "{";
  for (const std::string& key : keys) {
    absl::StrAppend(&out, out.size() > 1 ? ", " : "", "'", key, "'");
  }
  return out + "}";
}

}  // namespace smelt
