#include "smelt/wire/options/rewriter_options.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/strip.h"
#include "smelt/wire/graph_def/attr_proto.h"
#include "smelt/wire/options/option_fields.h"
#include "smelt/wire/options/options_text.h"
#include "smelt/wire/options/text_errors.h"
#include "smelt/wire/proto/config.pb.h"

namespace smelt {
namespace {

// TensorFlow's default for a toggle that has a value which it does not know.
Toggle ToggleOf(tensorflow::RewriterConfig::Toggle value) {
  return tensorflow::RewriterConfig::Toggle_IsValid(value) ? static_cast<Toggle>(value)
                                                           : Toggle::kDefault;
}

bool Verifies(const tensorflow::VerifierConfig& config) {
  return config.structure_verifier() == tensorflow::VerifierConfig::ON;
}

RewriterConfig FromProto(tensorflow::RewriterConfig& proto) {
  RewriterConfig out;
  out.disable_meta_optimizer = proto.disable_meta_optimizer();
  out.disable_model_pruning = proto.disable_model_pruning();
  out.implementation_selector = ToggleOf(proto.implementation_selector());
  out.function_optimization = ToggleOf(proto.function_optimization());
  out.common_subgraph_elimination = ToggleOf(proto.common_subgraph_elimination());
  out.debug_stripper = ToggleOf(proto.debug_stripper());
  out.constant_folding = ToggleOf(proto.constant_folding());
  out.shape_optimization = ToggleOf(proto.shape_optimization());
  out.auto_mixed_precision = ToggleOf(proto.auto_mixed_precision());
  out.auto_mixed_precision_mkl = ToggleOf(proto.auto_mixed_precision_mkl());
  out.auto_mixed_precision_onednn_bfloat16 = ToggleOf(proto.auto_mixed_precision_onednn_bfloat16());
  out.auto_mixed_precision_cpu = ToggleOf(proto.auto_mixed_precision_cpu());
  out.pin_to_host_optimization = ToggleOf(proto.pin_to_host_optimization());
  out.arithmetic_optimization = ToggleOf(proto.arithmetic_optimization());
  out.layout_optimizer = ToggleOf(proto.layout_optimizer());
  if (tensorflow::RewriterConfig::CpuLayout_IsValid(proto.cpu_layout_conversion())) {
    out.cpu_layout_conversion = static_cast<CpuLayout>(proto.cpu_layout_conversion());
  }
  out.remapping = ToggleOf(proto.remapping());
  out.loop_optimization = ToggleOf(proto.loop_optimization());
  out.dependency_optimization = ToggleOf(proto.dependency_optimization());
  if (tensorflow::RewriterConfig::MemOptType_IsValid(proto.memory_optimization())) {
    out.memory_optimization = static_cast<MemoryOptimization>(proto.memory_optimization());
  }
  out.memory_optimizer_target_node_name_scope = proto.memory_optimizer_target_node_name_scope();
  out.auto_parallel = proto.auto_parallel().enable();
  out.auto_parallel_replicas = proto.auto_parallel().num_replicas();
  out.scoped_allocator_optimization = ToggleOf(proto.scoped_allocator_optimization());
  for (const auto& op : proto.scoped_allocator_opts().enable_op()) {
    out.scoped_allocator_ops.push_back(op);
  }
  out.use_plugin_optimizers = ToggleOf(proto.use_plugin_optimizers());
  out.disable_tfg_optimizer = proto.disable_tfg_optimizer();
  out.experimental_conditional_code_motion = ToggleOf(proto.experimental_conditional_code_motion());
  out.disable_compressed_tensor_optimization =
      proto.experimental_disable_compressed_tensor_optimization();
  out.disable_folding_quantization_emulation =
      proto.experimental_disable_folding_quantization_emulation();
  // Numbered by what they say: ONE is 1.
  out.meta_optimizer_iterations = static_cast<int>(proto.meta_optimizer_iterations());
  out.min_graph_nodes = proto.min_graph_nodes();
  out.meta_optimizer_timeout_ms = proto.meta_optimizer_timeout_ms();
  out.fail_on_optimizer_errors = proto.fail_on_optimizer_errors();
  out.optimizers.assign(proto.optimizers().begin(), proto.optimizers().end());
  for (auto& custom : *proto.mutable_custom_optimizers()) {
    out.custom_optimizers.push_back({custom.name(), TakeAttrs(custom.mutable_parameter_map())});
  }
  out.verify_between_optimizers = Verifies(proto.inter_optimizer_verifier_config());
  out.verify_at_the_end = Verifies(proto.post_optimization_verifier_config());
  return out;
}

RewriterConfig FromProto(tensorflow::ConfigProto& session) {
  RewriterConfig out = FromProto(*session.mutable_graph_options()->mutable_rewrite_options());
  const auto& experimental = session.experimental();
  out.lower_control_flow =
      experimental.executor_type() != "SINGLE_THREADED_EXECUTOR" && !experimental.use_tfrt();
  if (experimental.has_session_metadata()) {
    out.session_model = experimental.session_metadata().name();
  }
  const auto jit = session.graph_options().optimizer_options().global_jit_level();
  out.global_jit =
      jit == tensorflow::OptimizerOptions::ON_1 || jit == tensorflow::OptimizerOptions::ON_2;
  return out;
}

Status ParseText(const std::string& text, google::protobuf::Message* proto) {
  google::protobuf::TextFormat::Parser parser;
  FirstOptionError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(32);
  if (parser.ParseFromString(text, proto)) return OkStatus();
  return InvalidArgument("the optimizer's configuration does not parse: ",
                         absl::StripSuffix(error.message(), "."), OptionErrorHint(error.message()));
}

}  // namespace

StatusOr<RewriterConfig> ParseRewriterConfig(absl::string_view text) {
  ASSIGN_OR_RETURN(const std::string strict, StrictOptionsText(text));
  tensorflow::ConfigProto session;
  if (ParseText(strict, &session).ok() && session.has_graph_options()) {
    return FromProto(session);
  }
  tensorflow::RewriterConfig proto;
  RETURN_IF_ERROR(ParseText(strict, &proto));
  return FromProto(proto);
}

StatusOr<RewriterConfig> RewriterConfigOfSession(absl::string_view config_proto) {
  tensorflow::ConfigProto session;
  if (!session.ParseFromArray(config_proto.data(), static_cast<int>(config_proto.size()))) {
    return InvalidArgument("Unparseable ConfigProto");
  }
  return FromProto(session);
}

}  // namespace smelt
