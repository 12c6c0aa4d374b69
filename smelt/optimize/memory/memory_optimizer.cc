// TensorFlow's memory optimizer: what a graph keeps in memory, and for how long.
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/optimize/memory/parts.h"

namespace smelt {
namespace memory {

StatusOr<MemoryModel> MemoryModel::Of(const Graph& graph, const PassContext& context) {
  MemoryModel model{.placement = Placement(context.devices)};
  // Shapes that fed nodes state are taken for true: this only decides what is worth a change.
  model.shapes = InferSymbolicShapesBeside(
      graph, XlaShapeRules(), [](const Node&) { return false; }, /*into_functions=*/false);
  std::vector<const Node*> fetches;
  for (absl::string_view name : context.fetches) {
    name = absl::StripPrefix(name, "^");
    const Node* n = graph.Find(name.substr(0, name.find(':')));
    if (n != nullptr) fetches.push_back(n);
  }
  const auto is_fed = [](const Node& n) { return IsFed(n); };
  const auto duration = [&](const Node& n, int device) {
    return TimeOf(EstimateOp(n, model.shapes), model.placement.speed(device)).total;
  };
  ASSIGN_OR_RETURN(model.schedule,
                   SimulateRun(graph, model.placement, {fetches, is_fed, duration}));
  model.peaks = PeakMemoryOf(graph, model.shapes, model.placement, model.schedule);
  return model;
}

namespace {

// Rewrites may make others worth it, but a graph that will not fit is not rewritten for ever.
constexpr int kRounds = 25;

using Mode = MemoryOptimization;

// Those that a list of optimizers names follow marks alone.
Mode ModeOf(const RewriterConfig& config) {
  return config.optimizers.empty() ? config.memory_optimization : Mode::kManual;
}

std::string ScopeOf(const RewriterConfig& config) {
  const std::string& scope = config.memory_optimizer_target_node_name_scope;
  return config.optimizers.empty() && !scope.empty() ? scope : "gradients/";
}

// What needs to know the devices and what is fetched.
Status SaveMemory(Graph& graph, const PassContext& context, Mode mode) {
  const bool sums =
      mode == Mode::kDefault || mode == Mode::kScheduling || mode == Mode::kHeuristics;
  const bool finds = mode == Mode::kDefault || mode == Mode::kSwapping || mode == Mode::kHeuristics;
  const auto model_of = [&]() -> StatusOr<MemoryModel> {
    if (absl::Now() > context.deadline)
      return absl::DeadlineExceededError("meta_optimizer exceeded deadline.");
    return MemoryModel::Of(graph, context);
  };
  std::optional<MemoryModel> model;
  if (sums || finds) {
    auto made = model_of();
    // Of a graph of which nothing runs there is nothing to say.
    if (absl::IsInvalidArgument(made.status())) return OkStatus();
    ASSIGN_OR_RETURN(model, std::move(made));
  }
  for (int round = 0; sums && round < kRounds; ++round) {
    ASSIGN_OR_RETURN(const bool changed, AccumulateSums(graph, context, *model));
    if (!changed) break;
    ASSIGN_OR_RETURN(model, model_of());
  }
  if (!finds && mode != Mode::kManual) return OkStatus();
  return Swap(graph, context, model ? &*model : nullptr, finds);
}

}  // namespace
}  // namespace memory

Status OptimizeMemory(Graph& graph, const PassContext& context) {
  const MemoryOptimization mode = memory::ModeOf(context.config);
  if (mode == MemoryOptimization::kNone) return OkStatus();
  memory::RelaxAssigns(graph, context);
  const bool cheap_ones =
      mode == MemoryOptimization::kRecomputation || mode == MemoryOptimization::kHeuristics;
  if (cheap_ones || mode == MemoryOptimization::kManual) {
    RETURN_IF_ERROR(memory::Recompute(graph, context, memory::ScopeOf(context.config), cheap_ones));
  }
  if (context.fetches.empty() || context.devices.empty()) return OkStatus();
  return memory::SaveMemory(graph, context, mode);
}

}  // namespace smelt
