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

StatusOr<FrozenExecutable::Use> FrozenExecutable::Get() {
  if (auto resting = references_.Take()) {
    if (resting->build->current()) return Use(this, std::move(resting));
  }
  absl::MutexLock lock(&mutex_);
  const auto use = [&] {
    mutex_.AssertHeld();
    return Use(this, std::make_unique<Reference>(
                         Reference{build_, builds_.load(std::memory_order_relaxed)}));
  };
  if (build_ && build_->current()) return use();
  if (build_) {
    for (const auto& [variable, version] : build_->frozen) {
      if (variable->version() != version) ++changes_[variable.get()];
    }
    // Given up before the next is made, so that a core need not hold the weights of both.
    builds_.fetch_add(1);
    build_ = nullptr;
    while (references_.Take() != nullptr) {
    }
  }
  ASSIGN_OR_RETURN(build_, Make());
  return use();
}

void FrozenExecutable::Rest(std::unique_ptr<Reference> reference) {
  const int64_t number = reference->number;
  if (number != builds_.load()) return;
  references_.Rest(std::move(reference));
  // Where the build was given up meanwhile, what rests may have come too late to be taken.
  if (number == builds_.load()) return;
  std::vector<std::unique_ptr<Reference>> current;
  while (auto late = references_.Take()) {
    if (late->number == builds_.load()) current.push_back(std::move(late));
  }
  for (auto& reference_of_now : current) Rest(std::move(reference_of_now));
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
