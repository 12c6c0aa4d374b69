#include "smelt/wire/options/converter_options.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "smelt/wire/options/option_fields.h"
#include "smelt/wire/options/options_text.h"
#include "smelt/wire/options/text_errors.h"
#include "smelt/wire/proto/converter.pb.h"
#include "smelt/wire/proto/quantization.pb.h"
#include "smelt/wire/proto/stablehlo_quantization.pb.h"

namespace smelt {
namespace {

OptionState State(converter::ConverterOptions::State s) {
  switch (s) {
    case converter::ConverterOptions::ENABLED:
      return OptionState::kEnabled;
    case converter::ConverterOptions::DISABLED:
      return OptionState::kDisabled;
    default:
      return OptionState::kDefault;
  }
}

TpuFunctionOption FromProto(const converter::TpuFunction& f) {
  TpuFunctionOption out;
  switch (f.name_case()) {
    case converter::TpuFunction::kFunctionAlias:
      out.kind = TpuFunctionOption::Kind::kAlias;
      out.name = f.function_alias();
      break;
    case converter::TpuFunction::kConcreteFunctionName:
      out.kind = TpuFunctionOption::Kind::kConcreteName;
      out.name = f.concrete_function_name();
      break;
    case converter::TpuFunction::kSignatureName:
      out.kind = TpuFunctionOption::Kind::kSignature;
      out.name = f.signature_name();
      break;
    case converter::TpuFunction::kJitCompileFunctions:
      out.kind = TpuFunctionOption::Kind::kJitCompiled;
      out.jit_compiled = f.jit_compile_functions();
      break;
    case converter::TpuFunction::NAME_NOT_SET:
      break;
  }
  return out;
}

BatchOption FromProto(const converter::BatchOptions& b) {
  BatchOption out;
  out.num_batch_threads = b.num_batch_threads();
  out.max_batch_size = b.max_batch_size();
  out.batch_timeout_micros = b.batch_timeout_micros();
  out.allowed_batch_sizes.assign(b.allowed_batch_sizes().begin(), b.allowed_batch_sizes().end());
  out.max_enqueued_batches = b.max_enqueued_batches();
  out.disable_large_batch_splitting = b.disable_large_batch_splitting();
  const auto& e = b.experimental();
  out.assume_independent_rows = e.assume_independent_rows();
  switch (e.batch_component_case()) {
    case converter::BatchOptions::Experimental::kFunctionAlias:
      out.component = BatchOption::Component::kAlias;
      out.component_name = e.function_alias();
      break;
    case converter::BatchOptions::Experimental::kConcreteFunctionName:
      out.component = BatchOption::Component::kConcreteName;
      out.component_name = e.concrete_function_name();
      break;
    case converter::BatchOptions::Experimental::kSignatureName:
      out.component = BatchOption::Component::kSignature;
      out.component_name = e.signature_name();
      break;
    default:
      break;
  }
  return out;
}

namespace tfq = tensorflow::quantization;
namespace shlo = stablehlo::quantization;

// The enums of converter_options.h have the protos' numbers.
template <typename Ours, typename Theirs>
Ours SameNumber(Theirs value) {
  return static_cast<Ours>(static_cast<int>(value));
}

StatusOr<QuantizationMethodOption> FromProto(const tfq::QuantizationMethod& m) {
  QuantizationMethodOption out;
  out.preset = SameNumber<QuantizationPreset>(m.preset_method());
  for (const auto method : {m.method(), m.experimental_method()}) {
    if (method == tfq::QuantizationMethod::EXPERIMENTAL_METHOD_UNSPECIFIED) continue;
    if (out.preset != QuantizationPreset::kUnspecified) {
      return InvalidArgument("quantization_method is given in two spellings");
    }
    out.preset = method == tfq::QuantizationMethod::STATIC_RANGE ? QuantizationPreset::kStaticRange
                 : method == tfq::QuantizationMethod::WEIGHT_ONLY
                     ? QuantizationPreset::kWeightOnly
                     : QuantizationPreset::kDynamicRange;
  }
  for (const auto& spec : m.quantization_component_specs()) {
    out.components.emplace_back(SameNumber<QuantizationComponent>(spec.quantization_component()),
                                SameNumber<QuantizationType>(spec.tensor_type()));
  }
  return out;
}

StatusOr<CalibrationOption> FromProto(const shlo::CalibrationOptions& c) {
  CalibrationOption out;
  const auto& p = c.calibration_parameters();
  if (p.num_bins() != 0 && p.initial_num_bins() != 0) {
    return InvalidArgument("calibration_options: initial_num_bins is given as num_bins, too");
  }
  out.method = SameNumber<CalibrationMethod>(c.calibration_method());
  out.num_bins = p.initial_num_bins() != 0 ? p.initial_num_bins() : p.num_bins();
  out.min_percentile = p.min_percentile();
  out.max_percentile = p.max_percentile();
  return out;
}

StatusOr<QuantizationOption> FromProto(const tfq::QuantizationOptions& q) {
  QuantizationOption out;
  ASSIGN_OR_RETURN(out.method, FromProto(q.quantization_method()));
  out.op_set = SameNumber<QuantizationOpSet>(q.op_set());
  for (const auto& spec : q.unit_wise_quantization_specs()) {
    UnitWiseQuantizationOption& unit_wise = out.unit_wise.emplace_back();
    for (const auto& u : spec.unit()) {
      unit_wise.units.push_back({u.op_type(), u.node_name(), u.func_name()});
    }
    ASSIGN_OR_RETURN(unit_wise.method, FromProto(spec.quantization_method()));
  }
  out.tags.assign(q.tags().begin(), q.tags().end());
  out.signature_keys.assign(q.signature_keys().begin(), q.signature_keys().end());
  const auto add = [&](const std::string& key, const std::string& path) -> Status {
    if (out.representative_datasets.try_emplace(key, path).second) return OkStatus();
    return InvalidArgument("representative_datasets: signature \"", key, "\" is given twice");
  };
  for (const auto& dataset : q.calibration_options().representative_datasets()) {
    const std::string& key = dataset.signature_key();
    RETURN_IF_ERROR(add(key.empty() ? "serving_default" : key, dataset.tf_record().path()));
  }
  for (const auto& entry : q.representative_datasets()) {
    const auto& file = entry.value();
    const bool log = file.has_prediction_log_path();
    RETURN_IF_ERROR(add(entry.key(), log ? file.prediction_log_path() : file.tfrecord_file_path()));
    if (log) out.prediction_logs.insert(entry.key());
  }
  out.min_num_elements_for_weights = q.min_num_elements_for_weights();
  if (q.has_freeze_all_variables()) out.freeze_all_variables = q.freeze_all_variables();
  if (q.has_enable_per_channel_quantization()) {
    out.per_channel = q.enable_per_channel_quantization();
  }
  out.two_input_tensors = q.enable_two_input_tensors();
  out.tpu_model_support = q.experimental_enable_tpu_model_support();
  out.legacy_weight_only = q.enable_legacy_weight_only();
  if (const auto& c = q.calibration_options();
      !c.calibration_data_dir().empty() || c.force_regenerate_calibration_data()) {
    return Unimplemented(
        "calibration_options: calibration_data_dir and force_regenerate_calibration_data are not "
        "supported: leave them out, statistics are kept in memory and made anew each time");
  }
  ASSIGN_OR_RETURN(out.calibration, FromProto(q.calibration_options()));
  if (q.has_debugger_config()) {
    const auto& d = q.debugger_config();
    out.debugger = QuantizationDebuggerOption{SameNumber<QuantizationDebugger>(d.debugger_type()),
                                              d.unquantized_dump_model_path(), d.log_dir_path()};
  }
  return out;
}

}  // namespace

StatusOr<ConverterOptions> ParseConverterOptions(const std::string& text) {
  ASSIGN_OR_RETURN(const std::string strict, StrictOptionsText(text));
  converter::ConverterOptions proto;
  google::protobuf::TextFormat::Parser parser;
  FirstOptionError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(32);
  if (!parser.ParseFromString(strict, &proto)) {
    return InvalidArgument(
        "the converter options do not parse: ", absl::StripSuffix(error.message(), "."),
        OptionErrorHint(error.message()));
  }
  ConverterOptions out;
  for (const auto& f : proto.tpu_functions()) out.tpu_functions.push_back(FromProto(f));
  for (const auto& b : proto.batch_options()) out.batch_options.push_back(FromProto(b));
  out.disable_default_optimizations = proto.disable_default_optimizations();
  out.io_shape_optimization = State(proto.io_shape_optimization());
  out.bfloat16_optimization = State(proto.bfloat16_optimization());
  if (proto.has_bfloat16_optimization_options()) {
    const auto& b = proto.bfloat16_optimization_options();
    out.bfloat16_optimization_options =
        Bfloat16Option{b.scope() == converter::BFloat16OptimizationOptions::ALL,
                       b.skip_safety_checks(),
                       {b.filterlist().begin(), b.filterlist().end()},
                       {b.node_filterlist().begin(), b.node_filterlist().end()},
                       b.before_int8()};
  }
  if (proto.has_xla_sharding_options()) {
    const auto& x = proto.xla_sharding_options();
    out.xla_sharding_options =
        XlaShardingOption{x.num_cores_per_replica(),
                          {x.device_assignment().begin(), x.device_assignment().end()},
                          x.topology()};
  }
  if (proto.has_quantization_options()) {
    ASSIGN_OR_RETURN(out.quantization_options, FromProto(proto.quantization_options()));
    out.quantization_options->field = "quantization_options";
  }
  if (proto.external_feature_configs().has_quantization_options()) {
    if (out.quantization_options) {
      return InvalidArgument(
          "quantization_options is given twice: by itself and in external_feature_configs");
    }
    ASSIGN_OR_RETURN(out.quantization_options,
                     FromProto(proto.external_feature_configs().quantization_options()));
    out.quantization_options->field = "external_feature_configs.quantization_options";
  }
  return out;
}

}  // namespace smelt
