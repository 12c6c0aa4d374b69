#include "smelt/wire/options/option_fields.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/base/suggest.h"
#include "smelt/wire/proto/converter.pb.h"

namespace smelt {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// What a field says, and what leaving it out means; "" where that is nothing to speak of.
struct FieldLine {
  absl::string_view message, field, what, otherwise;
};
constexpr FieldLine kLines[] = {
    {"ConverterOptions", "tpu_functions", "a function to place on the TPU", "none"},
    {"ConverterOptions", "batch_options", "how requests are gathered; at most one", "no batching"},
    {"ConverterOptions", "disable_default_optimizations",
     "turns off what is on by default, except what is ENABLED", "false"},
    {"ConverterOptions", "io_shape_optimization",
     "tensors cross to the TPU in the form that fills its tiles",
     "on, unless disable_default_optimizations"},
    {"ConverterOptions", "bfloat16_optimization", "float variables and ops on the TPU as bfloat16",
     "on, unless disable_default_optimizations"},
    {"ConverterOptions", "bfloat16_optimization_options", "what becomes bfloat16", ""},
    {"ConverterOptions", "xla_sharding_options", "splits one replica over several cores", "one"},
    {"ConverterOptions", "external_feature_configs", "quantization, by its older place", ""},
    {"ConverterOptions", "quantization_options", "8-bit integers for float layers", "none"},
    {"TpuFunction", "function_alias", "by alias, as tf.saved_model.SaveOptions sets it", ""},
    {"TpuFunction", "concrete_function_name", "by its name in the function library", ""},
    {"TpuFunction", "signature_name", "all that a signature calls", ""},
    {"TpuFunction", "jit_compile_functions", "all that were exported with jit_compile=True", ""},
    {"BatchOptions", "num_batch_threads", "batches in flight at once; must be positive", ""},
    {"BatchOptions", "max_batch_size", "rows of a batch at most; must be positive", ""},
    {"BatchOptions", "batch_timeout_micros", "how long an incomplete batch waits, microseconds",
     "0"},
    {"BatchOptions", "allowed_batch_sizes",
     "sizes that batches are padded to, increasing, the last one max_batch_size", "no padding"},
    {"BatchOptions", "max_enqueued_batches", "beyond this many waiting, requests fail at once",
     "0"},
    {"BatchOptions", "disable_large_batch_splitting",
     "requests larger than max_batch_size fail instead of being split", "false"},
    {"BatchOptions", "experimental", "what is batched", "each TPU computation"},
    {"Experimental", "function_alias", "the function of this alias", ""},
    {"Experimental", "concrete_function_name", "the function of this name in the library", ""},
    {"Experimental", "signature_name", "the function that this signature calls", ""},
    {"Experimental", "assume_independent_rows",
     "batches functions whose rows are not proved independent, too", "false"},
    {"BFloat16OptimizationOptions", "scope", "the computation on the TPU, or on the CPU too",
     "TPU"},
    {"BFloat16OptimizationOptions", "skip_safety_checks",
     "convert a model that holds bfloat16 ops already", "false"},
    {"BFloat16OptimizationOptions", "filterlist", "op types that stay float32", "none"},
    {"BFloat16OptimizationOptions", "node_filterlist",
     "regular expressions of whole node names that stay float32", "none"},
    {"BFloat16OptimizationOptions", "before_int8", "what int8 layers quantize may be bfloat16, too",
     "false"},
    {"XlaShardingOptions", "num_cores_per_replica", "cores that one replica runs on", "1"},
    {"XlaShardingOptions", "device_assignment", "[x, y, z, core] of each core, one after the other",
     "from the topology"},
    {"XlaShardingOptions", "topology",
     "a serialized tensorflow.tpu.TopologyProto; needed for more than one core", ""},
    {"ExternalFeatureConfigs", "quantization_options", "the same as quantization_options", ""},
    {"QuantizationOptions", "quantization_method", "what becomes an integer, and when",
     "static range"},
    {"QuantizationOptions", "op_set", "how quantized layers are written; only XLA is supported",
     "XLA"},
    {"QuantizationOptions", "unit_wise_quantization_specs", "layers with a method of their own",
     "none"},
    {"QuantizationOptions", "tags", "of the MetaGraph; accepted", ""},
    {"QuantizationOptions", "signature_keys", "signatures whose layers are quantized",
     "those of representative_datasets, else all"},
    {"QuantizationOptions", "representative_datasets", "samples by signature key", ""},
    {"QuantizationOptions", "min_num_elements_for_weights",
     "smaller weights stay float, with dynamic range and weight only", "1024"},
    {"QuantizationOptions", "freeze_all_variables", "accepted; variables stay variables", ""},
    {"QuantizationOptions", "enable_per_channel_quantization",
     "a scale for each channel of the weights", "true for static range and weight only"},
    {"QuantizationOptions", "enable_two_input_tensors", "not supported", "false"},
    {"QuantizationOptions", "experimental_enable_tpu_model_support", "not supported", "false"},
    {"QuantizationOptions", "enable_legacy_weight_only", "refused, as TensorFlow does", "false"},
    {"QuantizationOptions", "force_graph_mode_calibration", "accepted; calibration is the same",
     "false"},
    {"QuantizationOptions", "calibration_options", "how ranges follow from samples", ""},
    {"QuantizationOptions", "debugger_config", "not supported: the report has each layer's error",
     ""},
    {"QuantizationMethod", "method", "preset_method in the spelling up to TensorFlow 2.13", ""},
    {"QuantizationMethod", "experimental_method", "the same as method", ""},
    {"QuantizationMethod", "preset_method", "the method", "METHOD_STATIC_RANGE_INT8"},
    {"QuantizationMethod", "quantization_component_specs", "types beside the preset's", ""},
    {"QuantizationComponentSpec", "quantization_component", "of which part of a layer", ""},
    {"QuantizationComponentSpec", "tensor_type",
     "8 bits for activations and weights, 32 for a bias", ""},
    {"UnitWiseQuantizationSpec", "unit", "the layers", ""},
    {"UnitWiseQuantizationSpec", "quantization_method",
     "METHOD_NO_QUANTIZE, or the method of the others", ""},
    {"QuantizationUnit", "op_type", "layers of this op", "any"},
    {"QuantizationUnit", "node_name", "regular expression of whole node names", "any"},
    {"QuantizationUnit", "func_name", "regular expression of whole function names", "any"},
    {"RepresentativeDatasetEntry", "key", "the signature whose inputs the samples are", ""},
    {"RepresentativeDatasetEntry", "value", "its file", ""},
    {"RepresentativeDatasetFile", "tfrecord_file_path", "TFRecord file of the samples", ""},
    {"RepresentativeDatasetFile", "prediction_log_path",
     "TFRecord file of PredictionLogs: its requests to the signature are the samples", ""},
    {"CalibrationOptions", "calibration_method", "how a range follows from what was seen",
     "CALIBRATION_METHOD_MIN_MAX"},
    {"CalibrationOptions", "calibration_parameters", "of the methods with histograms", ""},
    {"CalibrationOptions", "representative_datasets", "samples, by their newer place", ""},
    {"CalibrationOptions", "calibration_data_dir", "not supported: statistics stay in memory", ""},
    {"CalibrationOptions", "force_regenerate_calibration_data",
     "not supported: statistics are made anew each time", "false"},
    {"CalibrationParameters", "initial_num_bins", "of a histogram, 1 to 65536", "512"},
    {"CalibrationParameters", "num_bins", "the same, by its name in TensorFlow", "512"},
    {"CalibrationParameters", "min_percentile", "of values, 0 to 100", "0.001"},
    {"CalibrationParameters", "max_percentile", "of values, 0 to 100", "99.999"},
    {"RepresentativeDatasetConfig", "tf_record", "the file", ""},
    {"RepresentativeDatasetConfig", "signature_key", "whose inputs the samples are",
     "serving_default"},
    {"TfRecordFile", "path", "TFRecord file of the samples", ""},
    {"DebuggerConfig", "debugger_type", "not supported", ""},
    {"DebuggerConfig", "unquantized_dump_model_path", "not supported", ""},
    {"DebuggerConfig", "log_dir_path", "not supported", ""},
};

std::string Values(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return absl::StrJoin(names, ", ");
}

std::string TypeText(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM:
      return Values(*field.enum_type());
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true, false";
    case FieldDescriptor::CPPTYPE_STRING:
      return field.type() == FieldDescriptor::TYPE_BYTES ? "\"bytes\"" : "\"text\"";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "number";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return field.is_map() ? "{ key: \"text\" value { ... } }" : "{ ... }";
    default:
      return "integer";
  }
}

// The message that a field holds; a map's values' where it is a map.
const Descriptor* Within(const FieldDescriptor& field) {
  if (!field.is_map()) return field.message_type();
  return field.message_type()->map_value()->message_type();
}

struct NamedField {
  std::string path;
  const FieldDescriptor* field;
  std::string same_as;  // the path of a field that holds the same message, where that is told
};

class FieldList {
 public:
  FieldList() {
    FindPlaces();
    Add(*converter::ConverterOptions::descriptor(), "");
  }
  const std::vector<NamedField>& fields() const { return fields_; }

 private:
  // A message that may stand in several places is told in the outermost.
  void FindPlaces() {
    std::vector<std::pair<const Descriptor*, std::string>> queue = {
        {converter::ConverterOptions::descriptor(), ""}};
    for (size_t at = 0; at < queue.size(); ++at) {
      const auto [type, prefix] = queue[at];
      for (int i = 0; i < type->field_count(); ++i) {
        const Descriptor* inner = Within(*type->field(i));
        const std::string path = prefix + type->field(i)->name();
        if (inner != nullptr && places_.try_emplace(inner, path).second) {
          queue.emplace_back(inner, absl::StrCat(path, "."));
        }
      }
    }
  }

  void Add(const Descriptor& type, const std::string& prefix) {
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor* field = type.field(i);
      const std::string path = prefix + field->name();
      const Descriptor* inner = Within(*field);
      const bool here = inner != nullptr && places_[inner] == path;
      fields_.push_back({path, field, inner != nullptr && !here ? places_[inner] : ""});
      if (here) Add(*inner, absl::StrCat(path, "."));
    }
  }

  std::map<const Descriptor*, std::string> places_;
  std::vector<NamedField> fields_;
};

const std::vector<NamedField>& AllFields() {
  static const auto* list = new FieldList;
  return list->fields();
}

const FieldLine* LineOf(const FieldDescriptor& field) {
  const auto it = std::ranges::find_if(kLines, [&](const FieldLine& line) {
    return line.message == field.containing_type()->name() && line.field == field.name();
  });
  return it == std::end(kLines) ? nullptr : &*it;
}

// What stands between the quotes behind `before`; empty when the text is not there.
absl::string_view QuotedAfter(absl::string_view text, absl::string_view before) {
  const size_t at = text.find(before);
  if (at == absl::string_view::npos) return "";
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find('"'));
}

bool NameIs(const NamedField& f, absl::string_view name) {
  return f.path == name || f.field->name() == name;
}

}  // namespace

StatusOr<std::string> ExplainOptions(absl::string_view name) {
  std::set<const FieldLine*> used;
  std::set<std::string> names;
  std::string out;
  for (const NamedField& f : AllFields()) {
    const FieldLine* line = LineOf(*f.field);
    if (line == nullptr) return Internal("no line explains ", f.field->full_name());
    used.insert(line);
    names.insert(f.field->name());
    // What is inside of a field is told with it.
    const bool wanted = std::ranges::any_of(AllFields(), [&](const NamedField& outer) {
      return (name.empty() || NameIs(outer, name)) &&
             (outer.path == f.path || absl::StartsWith(f.path, outer.path + "."));
    });
    if (!wanted) continue;
    absl::StrAppend(&out, f.path, f.field->is_repeated() && !f.field->is_map() ? " (repeated)" : "",
                    ": ", TypeText(*f.field), "\n    ", line->what,
                    f.same_as.empty() ? "" : absl::StrCat("; as ", f.same_as),
                    line->otherwise.empty() ? "" : absl::StrCat(". Default: ", line->otherwise),
                    "\n");
  }
  for (const FieldLine& line : kLines) {
    if (!used.contains(&line)) {
      return Internal("no option is named ", line.message, ".", line.field);
    }
  }
  if (out.empty()) {
    return NotFound("the converter options have no field \"", name, "\"",
                    Suggest(name, {names.begin(), names.end()}));
  }
  return out;
}

std::string OptionErrorHint(absl::string_view message) {
  if (const absl::string_view type = QuotedAfter(message, "Message type \""); !type.empty()) {
    const Descriptor* found =
        DescriptorPool::generated_pool()->FindMessageTypeByName(std::string(type));
    if (found == nullptr) return "";
    std::vector<std::string> names;
    for (int i = 0; i < found->field_count(); ++i) names.push_back(found->field(i)->name());
    const absl::string_view name = QuotedAfter(message, "has no field named \"");
    return absl::StrCat(Suggest(name, names), ". Fields: ", absl::StrJoin(names, ", "));
  }
  const absl::string_view value = QuotedAfter(message, "Unknown enumeration value of \"");
  const absl::string_view name = QuotedAfter(message, "field \"");
  if (name.empty()) return "";
  // The message does not say in which message the field stands.
  std::set<const EnumDescriptor*> types;
  std::vector<std::string> names;
  bool boolean = false;
  for (const NamedField& f : AllFields()) {
    if (f.field->name() != name) continue;
    boolean |= f.field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
    const EnumDescriptor* type = f.field->enum_type();
    if (type == nullptr || !types.insert(type).second) continue;
    for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  }
  if (names.empty()) return boolean ? ". Allowed values: true, false" : "";
  return absl::StrCat(Suggest(value, names), ". Allowed values: ", absl::StrJoin(names, ", "));
}

}  // namespace smelt
