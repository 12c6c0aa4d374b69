#include "smelt/runtime/frozen.h"

#include "smelt/graph/verify.h"
#include "smelt/optimize/pipeline.h"

namespace smelt {
namespace {

// A variable that has been assigned this often under an executable is read at every step instead.
constexpr int kMaxChanges = 2;

}  // namespace

bool FrozenExecutable::Build::current() const {
  for (const auto& [variable, version] : frozen) {
    if (variable->version() != version) return false;
  }
  return true;
}

StatusOr<std::shared_ptr<const FrozenExecutable::Build>> FrozenExecutable::Get() {
  absl::MutexLock lock(&mutex_);
  if (build_ && build_->current()) return build_;
  if (build_) {
    for (const auto& [variable, version] : build_->frozen) {
      if (variable->version() != version) ++changes_[variable.get()];
    }
    // Given up before the next is made, so that a core need not hold the weights of both.
    build_ = nullptr;
  }
  ASSIGN_OR_RETURN(build_, Make());
  return build_;
}

StatusOr<std::shared_ptr<const FrozenExecutable::Build>> FrozenExecutable::Make() {
  auto build = std::make_shared<Build>();
  ASSIGN_OR_RETURN(auto graph, recipe_.graph());
  // Passes and executable rely on the rules that Verify checks.
  RETURN_IF_ERROR(VerifyChanges(*graph));
  if (recipe_.check) RETURN_IF_ERROR(recipe_.check(*graph));
  std::vector<std::unique_ptr<Graph>> scan_bodies;
  if (recipe_.rewriter != nullptr) {
    PassContext context;
    if (recipe_.compile) context.scan_bodies = &scan_bodies;
    context.config = *recipe_.rewriter;
    context.device_type = recipe_.device_type;
    context.frozen_value = [&](const Node& node) -> std::optional<Tensor> {
      mutex_.AssertHeld();
      std::shared_ptr<Variable> variable = recipe_.variable(node);
      if (!variable) return std::nullopt;
      if (auto it = changes_.find(variable.get());
          it != changes_.end() && it->second >= kMaxChanges) {
        return std::nullopt;
      }
      // The version first: a value assigned in between only makes the executable anew.
      const int64_t version = variable->version();
      Tensor value = variable->Read();
      if (!value.valid()) return std::nullopt;
      build->frozen.emplace_back(std::move(variable), version);
      return value;
    };
    PipelineOptions passes = recipe_.passes;
    passes.graph = recipe_.function;
    RETURN_IF_ERROR(Optimize(*graph, context, passes));
  }
  ASSIGN_OR_RETURN(build->executable, Executable::Make(std::move(graph), recipe_.function,
                                                       recipe_.compile, std::move(scan_bodies)));
  if (recipe_.tpu_program) build->program = std::make_unique<TpuProgram>(*build->executable);
  return build;
}

}  // namespace smelt
