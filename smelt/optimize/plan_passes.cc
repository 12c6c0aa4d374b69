#include "smelt/optimize/plan_passes.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/device_properties.h"
#include "smelt/optimize/custom/custom_optimizer.h"

namespace smelt {
namespace {

// A configuration under which every pass runs.
RewriterConfig AllOn() {
  RewriterConfig all;
  for (Toggle* toggle :
       {&all.implementation_selector, &all.function_optimization, &all.common_subgraph_elimination,
        &all.debug_stripper, &all.constant_folding, &all.shape_optimization,
        &all.auto_mixed_precision, &all.auto_mixed_precision_mkl,
        &all.auto_mixed_precision_onednn_bfloat16, &all.auto_mixed_precision_cpu,
        &all.pin_to_host_optimization, &all.arithmetic_optimization, &all.layout_optimizer,
        &all.remapping, &all.loop_optimization, &all.dependency_optimization,
        &all.scoped_allocator_optimization}) {
    *toggle = Toggle::kOn;
  }
  all.auto_parallel = true;
  return all;
}

std::set<std::string> DeviceTypes(const Graph& graph) {
  absl::flat_hash_set<absl::string_view> devices;
  for (const Node* n : graph.Nodes()) devices.insert(n->device);
  std::set<std::string> types;
  for (const absl::string_view device : devices) types.insert(DeviceType(device));
  return types;
}

class PassPlanner {
 public:
  PassPlanner(const RewriterConfig& config, const Graph& graph)
      : config_(config), allowed_(AllOn()) {
    if (config.use_plugin_optimizers == Toggle::kOff) return;
    of_devices_ = DeviceOptimizers(DeviceTypes(graph));
    for (const DeviceOptimizerRow* row : of_devices_) row->turn_off(allowed_);
  }

  StatusOr<PassPlan> Plan() {
    for (const PassRow& row : AllPasses()) {
      const bool runs = config_.optimizers.empty() && IsFor(row, PassUse::kGraphs) &&
                        row.wanted(config_) && row.wanted(allowed_);
      if (runs) rows_.push_back(row);
    }
    std::set<absl::string_view> made;
    for (const std::string& name : config_.optimizers) {
      if (AddBuiltIn(name)) continue;
      ASSIGN_OR_RETURN(const bool found, AddCustom(name, ParametersOf(name)));
      if (found) made.insert(name);
      if (!found) plan_.unknown.push_back(name);
    }
    for (const CustomOptimizerConfig& custom : config_.custom_optimizers) {
      if (made.contains(custom.name)) continue;
      ASSIGN_OR_RETURN(const bool found, AddCustom(custom.name, &custom.parameters));
      if (!found && !AddBuiltIn(custom.name)) plan_.unknown.push_back(custom.name);
    }
    for (const DeviceOptimizerRow* row : of_devices_) Add(row->pass, row->make());
    const int configured = config_.meta_optimizer_iterations;
    plan_.passes = RepeatPasses(rows_, configured > 0 ? configured : kDefaultIterations);
    AddCompression();
    return std::move(plan_);
  }

 private:
  // Once, after the first pruning, or where the configuration has none.
  void AddCompression() {
    constexpr Pass kCompression = {"compress_constants", CompressConstants,
                                   "after pruning: what is not needed need not be looked at"};
    auto& passes = plan_.passes;
    if (passes.empty()) return;
    if (config_.disable_model_pruning) {
      passes.insert(passes.begin(), kCompression);
      return;
    }
    const auto pruning = std::ranges::find(passes, "model_pruner", &Pass::name);
    if (pruning != passes.end()) passes.insert(pruning + 1, kCompression);
  }

  // A pass that is turned off for the graph's devices counts as one that there is not.
  bool AddBuiltIn(absl::string_view key) {
    const auto row = std::ranges::find_if(AllPasses(), [&](const PassRow& r) {
      return !r.key.empty() && r.key == key && IsFor(r, PassUse::kGraphs);
    });
    if (row == AllPasses().end() || !row->wanted(allowed_)) return false;
    rows_.push_back(*row);
    return true;
  }

  StatusOr<bool> AddCustom(absl::string_view name, const AttrMap* parameters) {
    const CustomOptimizerRow* row = FindCustomOptimizer(name);
    if (row == nullptr) return false;
    ASSIGN_OR_RETURN(auto custom, row->make(config_, parameters));
    Add(row->pass, std::move(custom));
    return true;
  }

  void Add(absl::string_view pass, std::unique_ptr<CustomOptimizer> custom) {
    rows_.push_back({{pass, nullptr, "where the configuration has it", custom.get()}});
    plan_.custom.push_back(std::move(custom));
  }

  const AttrMap* ParametersOf(absl::string_view name) const {
    const auto it =
        std::ranges::find(config_.custom_optimizers, name, &CustomOptimizerConfig::name);
    return it == config_.custom_optimizers.end() ? nullptr : &it->parameters;
  }

  const RewriterConfig& config_;
  RewriterConfig allowed_;  // on: what no device's optimizer turns off
  std::vector<const DeviceOptimizerRow*> of_devices_;
  std::vector<PassRow> rows_;
  PassPlan plan_;
};

}  // namespace

StatusOr<PassPlan> PlanPasses(const RewriterConfig& config, const Graph& graph) {
  return PassPlanner(config, graph).Plan();
}

}  // namespace smelt
