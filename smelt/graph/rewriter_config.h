// Which optimizers run and how: TensorFlow's RewriterConfig (core/protobuf/rewriter_config.proto)
// in smelt's own types. wire/options/rewriter_options.h reads the message.
#ifndef SMELT_GRAPH_REWRITER_CONFIG_H_
#define SMELT_GRAPH_REWRITER_CONFIG_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "smelt/graph/attr.h"

namespace smelt {

// Numbered as in the message.
enum class Toggle {
  kDefault,
  kOn,
  kOff,
  kAggressive,
  kExperimentalMlir,
  kExperimentalBoth,
};
enum class CpuLayout { kNoConversion, kNchwToNhwc, kNhwcToNchw };
enum class MemoryOptimization {
  kDefault,
  kNone,
  kManual,
  kHeuristics,
  kSwapping,
  kRecomputation,
  kScheduling,
};

// One of RewriterConfig.custom_optimizers.
struct CustomOptimizerConfig {
  std::string name;
  AttrMap parameters;
};

struct RewriterConfig {
  bool disable_meta_optimizer = false;
  bool disable_model_pruning = false;
  Toggle implementation_selector = Toggle::kDefault;
  Toggle function_optimization = Toggle::kDefault;
  Toggle common_subgraph_elimination = Toggle::kDefault;
  Toggle debug_stripper = Toggle::kDefault;
  Toggle constant_folding = Toggle::kDefault;
  Toggle shape_optimization = Toggle::kDefault;
  Toggle auto_mixed_precision = Toggle::kDefault;
  Toggle auto_mixed_precision_mkl = Toggle::kDefault;
  Toggle auto_mixed_precision_onednn_bfloat16 = Toggle::kDefault;
  Toggle auto_mixed_precision_cpu = Toggle::kDefault;
  Toggle pin_to_host_optimization = Toggle::kDefault;
  Toggle arithmetic_optimization = Toggle::kDefault;
  Toggle layout_optimizer = Toggle::kDefault;
  CpuLayout cpu_layout_conversion = CpuLayout::kNoConversion;
  Toggle remapping = Toggle::kDefault;
  Toggle loop_optimization = Toggle::kDefault;
  Toggle dependency_optimization = Toggle::kDefault;
  MemoryOptimization memory_optimization = MemoryOptimization::kDefault;
  std::string memory_optimizer_target_node_name_scope;  // empty: "gradients/"
  bool auto_parallel = false;
  int auto_parallel_replicas = 0;
  Toggle scoped_allocator_optimization = Toggle::kDefault;
  std::vector<std::string> scoped_allocator_ops;  // empty: CollectiveReduce
  Toggle use_plugin_optimizers = Toggle::kDefault;
  bool disable_tfg_optimizer = false;
  Toggle experimental_conditional_code_motion = Toggle::kDefault;
  bool disable_compressed_tensor_optimization = false;
  bool disable_folding_quantization_emulation = false;
  int meta_optimizer_iterations = 0;  // 0: kDefaultIterations
  int min_graph_nodes = 0;            // 0: kDefaultMinGraphNodes; negative: any graph is optimized
  int64_t meta_optimizer_timeout_ms = 0;  // 0 and below: none
  bool fail_on_optimizer_errors = false;
  // Not empty: these, in this order, in place of the default list.
  std::vector<std::string> optimizers;
  std::vector<CustomOptimizerConfig> custom_optimizers;
  bool verify_between_optimizers = false;  // inter_optimizer_verifier_config
  bool verify_at_the_end = false;          // post_optimization_verifier_config
  // false: who runs the graph wants If, Case and While as they are: the executor that the
  // ConfigProto around it asks for, or a loader of SavedModels, which lowers them itself.
  bool lower_control_flow = true;
  // The model's name in the session_metadata of the ConfigProto, where it has one.
  std::optional<std::string> session_model;
  // The ConfigProto around it lets XLA compile what it can (global_jit_level).
  bool global_jit = false;
};

// Makes what is on by default AGGRESSIVE, where the configuration says nothing else.
void SetAggressive(RewriterConfig& config);

inline constexpr int kDefaultIterations = 2;
inline constexpr int kDefaultMinGraphNodes = 4;

}  // namespace smelt

#endif  // SMELT_GRAPH_REWRITER_CONFIG_H_
