#include "smelt/optimize/custom/plugin.h"

#include <dlfcn.h>

#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "smelt/optimize/custom/custom_optimizer.h"
#include "smelt/optimize/custom/plugin_abi.h"
#include "smelt/wire/graph_def/plugin_messages.h"

namespace smelt {
namespace {

constexpr OpSet kBoundary = {"_Arg", "_Retval"};

// What a library turns off, and the toggle that says so.
constexpr std::pair<TF_TriState TP_OptimizerConfigs::*, Toggle RewriterConfig::*> kToggles[] = {
    {&TP_OptimizerConfigs::implementation_selector, &RewriterConfig::implementation_selector},
    {&TP_OptimizerConfigs::function_optimization, &RewriterConfig::function_optimization},
    {&TP_OptimizerConfigs::common_subgraph_elimination,
     &RewriterConfig::common_subgraph_elimination},
    {&TP_OptimizerConfigs::arithmetic_optimization, &RewriterConfig::arithmetic_optimization},
    {&TP_OptimizerConfigs::debug_stripper, &RewriterConfig::debug_stripper},
    {&TP_OptimizerConfigs::constant_folding, &RewriterConfig::constant_folding},
    {&TP_OptimizerConfigs::shape_optimization, &RewriterConfig::shape_optimization},
    {&TP_OptimizerConfigs::auto_mixed_precision, &RewriterConfig::auto_mixed_precision},
    {&TP_OptimizerConfigs::auto_mixed_precision_onednn_bfloat16,
     &RewriterConfig::auto_mixed_precision_onednn_bfloat16},
    {&TP_OptimizerConfigs::auto_mixed_precision_mkl, &RewriterConfig::auto_mixed_precision_mkl},
    {&TP_OptimizerConfigs::pin_to_host_optimization, &RewriterConfig::pin_to_host_optimization},
    {&TP_OptimizerConfigs::layout_optimizer, &RewriterConfig::layout_optimizer},
    {&TP_OptimizerConfigs::remapping, &RewriterConfig::remapping},
    {&TP_OptimizerConfigs::loop_optimization, &RewriterConfig::loop_optimization},
    {&TP_OptimizerConfigs::dependency_optimization, &RewriterConfig::dependency_optimization},
    {&TP_OptimizerConfigs::scoped_allocator_optimization,
     &RewriterConfig::scoped_allocator_optimization},
};

void TurnOff(const TP_OptimizerConfigs& configs, RewriterConfig& config) {
  for (const auto& [theirs, ours] : kToggles) {
    if (configs.*theirs == TF_TriState_Off) config.*ours = Toggle::kOff;
  }
  if (configs.disable_model_pruning == TF_TriState_On) config.disable_model_pruning = true;
  if (configs.auto_parallel == TF_TriState_Off) config.auto_parallel = false;
  if (configs.memory_optimization == TF_TriState_Off) {
    config.memory_optimization = MemoryOptimization::kNone;
  }
}

// The marks of a graph's nodes, which no library sees.
class NodeMarks {
 public:
  explicit NodeMarks(const Graph& graph) {
    for (const Node* n : graph.Nodes()) {
      if (!IsRoot(*n) && !n->Is(kBoundary)) continue;
      kept_.push_back(n->name());
      if (IsFed(*n)) fed_.insert(n->name());
    }
  }
  const std::vector<std::string>& kept() const { return kept_; }
  const absl::flat_hash_set<std::string>& fed() const { return fed_; }

  // INTERNAL when a node that must stay is gone. `before`: the graph that the marks are of.
  Status PutOn(const Graph& before, Graph& graph) const {
    for (const std::string& name : kept_) {
      Node* n = graph.Find(name);
      const Node* old = before.Find(name);
      if (n == nullptr || (old->Is(kBoundary) && n->op() != old->op())) {
        return Internal("node '", name, "' is gone, and must stay");
      }
      if (IsRoot(*old)) AddRoot(n);
      if (IsFed(*old)) MarkFed(n);
    }
    return OkStatus();
  }

 private:
  std::vector<std::string> kept_;
  absl::flat_hash_set<std::string> fed_;
};

class PluginOptimizer final : public CustomOptimizer {
 public:
  explicit PluginOptimizer(const TP_Optimizer& optimizer) : optimizer_(optimizer) {
    if (optimizer_.create_func != nullptr) state_ = optimizer_.create_func();
  }
  ~PluginOptimizer() override {
    if (optimizer_.destroy_func != nullptr) optimizer_.destroy_func(state_);
  }
  PluginOptimizer(const PluginOptimizer&) = delete;
  PluginOptimizer& operator=(const PluginOptimizer&) = delete;

  StatusOr<bool> Optimize(Graph& graph, const PassContext& context) override {
    const NodeMarks marks(graph);
    ASSIGN_OR_RETURN(const std::unique_ptr<Graph> plain, graph.Clone());
    ClearMarks(*plain);
    ASSIGN_OR_RETURN(const std::string before, SerializeWithoutBodies(*plain, context.versions));
    const TF_GrapplerItem item{
        plain.get(), marks.fed(), marks.kept(), {context.fetches.begin(), context.fetches.end()}};
    ASSIGN_OR_RETURN(const std::string after, Call(before, item));
    if (after == before) return false;
    ASSIGN_OR_RETURN(std::unique_ptr<Graph> made, ParseNodes(after, graph.library()));
    // Names of outputs that only nodes of unknown ops have.
    for (Node* n : made->Nodes()) {
      const Node* old = n->def() == nullptr ? graph.Find(n->name()) : nullptr;
      if (old != nullptr && old->op() == n->op()) n->opaque_outputs = old->opaque_outputs;
    }
    RETURN_IF_ERROR(marks.PutOn(graph, *made));
    graph = std::move(*made);
    return true;
  }

 private:
  StatusOr<std::string> Call(const std::string& graph, const TF_GrapplerItem& item) const {
    const TF_Buffer in{graph.data(), graph.size(), nullptr};
    TF_Buffer* out = TF_NewBuffer();
    TF_Status status;
    const absl::Cleanup free = [out] { TF_DeleteBuffer(out); };
    optimizer_.optimize_func(state_, &in, &item, out, &status);
    RETURN_IF_ERROR(status.status);
    return std::string(BytesOf(*out));
  }

  const TP_Optimizer optimizer_;
  void* state_ = nullptr;
};

Status CheckSize(size_t size, absl::string_view type, absl::string_view constant) {
  if (size != 0) return OkStatus();
  return FailedPrecondition("struct_size field in ", type, " must be set to ", constant, ".");
}

Status CheckMember(bool set, absl::string_view type, absl::string_view member) {
  if (set) return OkStatus();
  return FailedPrecondition("'", member, "' field in ", type, " must be set.");
}

}  // namespace

Status InitOptimizerPlugin(void (*init)(TP_OptimizerRegistrationParams* params,
                                        TF_Status* status)) {
  TP_OptimizerRegistrationParams params{};
  TP_Optimizer optimizer{};
  TP_OptimizerConfigs configs{};
  params.struct_size = TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
  params.patch_version = 1;
  params.optimizer = &optimizer;
  params.optimizer_configs = &configs;
  optimizer.struct_size = TP_OPTIMIZER_STRUCT_SIZE;
  configs.struct_size = TP_OPTIMIZER_CONFIGS_STRUCT_SIZE;
  TF_Status status;
  init(&params, &status);
  RETURN_IF_ERROR(status.status);
  RETURN_IF_ERROR(CheckSize(params.struct_size, "TP_OptimizerRegistrationParams",
                            "TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE"));
  RETURN_IF_ERROR(
      CheckMember(params.device_type != nullptr, "TP_OptimizerRegistrationParams", "device_type"));
  RETURN_IF_ERROR(CheckSize(optimizer.struct_size, "TP_Optimizer", "TP_OPTIMIZER_STRUCT_SIZE"));
  RETURN_IF_ERROR(CheckMember(optimizer.optimize_func != nullptr, "TP_Optimizer", "optimize_func"));
  RETURN_IF_ERROR(
      CheckSize(configs.struct_size, "TP_OptimizerConfigs", "TP_OPTIMIZER_CONFIGS_STRUCT_SIZE"));
  return AddDeviceOptimizer({params.device_type, "PluggableGraphOptimizer",
                             [configs](RewriterConfig& config) { TurnOff(configs, config); },
                             [optimizer] { return std::make_unique<PluginOptimizer>(optimizer); }});
}

Status LoadOptimizerLibrary(const std::string& path) {
  // A name without a slash would be looked for in the system's folders.
  const std::string file = absl::StrContains(path, '/') ? path : absl::StrCat("./", path);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotFound("cannot load optimizer library: ", dlerror());
  void* symbol = dlsym(library, "TF_InitGraph");
  if (symbol == nullptr) {
    return NotFound("optimizer library ", path, ": undefined symbol: TF_InitGraph");
  }
  void (*init)(TP_OptimizerRegistrationParams*, TF_Status*) = nullptr;
  std::memcpy(&init, &symbol, sizeof(symbol));
  return Prefix(InitOptimizerPlugin(init), absl::StrCat("optimizer library ", path, ": "));
}

}  // namespace smelt
