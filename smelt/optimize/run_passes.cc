#include "smelt/optimize/run_passes.h"

#include <cstdlib>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "smelt/graph/verify.h"
#include "smelt/optimize/custom/custom_optimizer.h"
#include "smelt/optimize/rewrite/kept_shapes.h"

namespace smelt {
namespace {

class PassRunner {
 public:
  PassRunner(std::span<const Pass> passes, Graph& graph, const PassContext& context,
             const PipelineOptions& options)
      : passes_(passes), graph_(graph), context_(context), options_(options) {
    context_.shapes = &shapes_;
  }

  Status Run() {
    // A graph that does not verify before the first pass tells nothing of the passes.
    if (options_.verify != VerifyPasses::kOff && VerifyChanges(graph_).ok())
      verify_ = options_.verify;
    if (MayUndo()) {
      ASSIGN_OR_RETURN(original_, graph_.Clone());
    }
    for (size_t i = 0; i < passes_.size(); ++i) {
      if (absl::Now() > context_.deadline) {
        return DeadlineIsOver();
      }
      ASSIGN_OR_RETURN(const PassRun run, RunOne(i));
      if (options_.after) options_.after(run, graph_);
    }
    return OkStatus();
  }

 private:
  bool MayUndo() const { return verify_ == VerifyPasses::kUndo || options_.undo_failures; }

  bool NothingNew(const Pass& pass) const {
    if (pass.custom != nullptr) return false;
    const auto last = done_.find(pass.name);
    return last != done_.end() && last->second == graph_.version();
  }

  StatusOr<PassRun> RunOne(size_t i) {
    const Pass& pass = passes_[i];
    PassRun run;
    run.pass = pass.name;
    run.graph = options_.graph;
    run.nodes_before = run.nodes_after = graph_.num_nodes();
    if (NothingNew(pass)) {
      run.outcome = PassRun::Outcome::kSkipped;
      return run;
    }
    if (context_.log != nullptr) context_.log->Enter(pass.name, options_.graph);
    const int64_t version = graph_.version();
    bool changed = false;  // in a way that the version may not tell
    const absl::Time start = absl::Now();
    if (pass.custom != nullptr) RETURN_IF_ERROR(Remember(i));
    Status status =
        pass.custom == nullptr ? pass.run(graph_, context_) : RunCustom(*pass.custom, &changed);
    run.time = absl::Now() - start;
    if (!status.ok() && !(options_.undo_failures && original_)) {
      return Suffix(status, absl::StrCat(" (in pass ", pass.name, ")"));
    }
    if (status.ok() && verify_ != VerifyPasses::kOff) {
      status = VerifyChanges(graph_);
      if (!status.ok() && verify_ != VerifyPasses::kUndo) {
        const std::string what = absl::StrCat(
            "pass ", pass.name, " leaves a graph that does not verify: ", status.message());
        return verify_ == VerifyPasses::kFail ? Internal(what) : InvalidArgument(what);
      }
    }
    if (status.ok()) {
      changed |= graph_.version() != version;
      if (changed) run.outcome = PassRun::Outcome::kChanged;
      if (pass.custom == nullptr) {
        done_[pass.name] = graph_.version();
      } else if (changed) {
        done_.clear();
        shapes_ = {};
        RETURN_IF_ERROR(Remember(i + 1));
      }
    } else {
      run.outcome = PassRun::Outcome::kUndone;
      run.why_undone = std::string(status.message());
      RETURN_IF_ERROR(Undo(i));
    }
    run.nodes_after = graph_.num_nodes();
    return run;
  }

  Status RunCustom(CustomOptimizer& custom, bool* changed) {
    const auto did = custom.Optimize(graph_, context_);
    if (absl::IsAborted(did.status())) return OkStatus();
    RETURN_IF_ERROR(did.status());
    *changed = *did;
    return OkStatus();
  }

  // What is undone from now on is undone to what the graph is now, before pass `next`.
  Status Remember(size_t next) {
    if (!MayUndo() || next == remembered_) return OkStatus();
    ASSIGN_OR_RETURN(original_, graph_.Clone());
    remembered_ = next;
    return OkStatus();
  }

  // Makes the graph what it was before pass `last`, which is left out from now on.
  Status Undo(size_t last) {
    undone_.insert(last);
    ASSIGN_OR_RETURN(std::unique_ptr<Graph> copy, original_->Clone());
    graph_ = std::move(*copy);
    // Versions of another graph cannot be compared.
    done_.clear();
    shapes_ = {};
    PassContext quiet = context_;
    quiet.log = nullptr;
    for (size_t i = remembered_; i < last; ++i) {
      // A custom one that changed nothing: else what it made is remembered.
      if (undone_.contains(i) || passes_[i].custom != nullptr || NothingNew(passes_[i])) continue;
      RETURN_IF_ERROR(passes_[i].run(graph_, quiet));
      done_[passes_[i].name] = graph_.version();
    }
    return OkStatus();
  }

  std::span<const Pass> passes_;
  Graph& graph_;
  KeptShapes shapes_;
  PassContext context_;
  const PipelineOptions& options_;
  VerifyPasses verify_ = VerifyPasses::kOff;
  std::unique_ptr<Graph> original_;  // where passes may be undone: before pass remembered_
  size_t remembered_ = 0;
  std::set<size_t> undone_;
  // By pass: the graph's version after its last run.
  absl::flat_hash_map<absl::string_view, int64_t> done_;
};

}  // namespace

Status DeadlineIsOver() { return absl::DeadlineExceededError("meta_optimizer exceeded deadline."); }

VerifyPasses VerifyPassesByDefault() {
  static const VerifyPasses chosen = [] {
    const char* text = std::getenv("SMELT_VERIFY_PASSES");
    const absl::string_view wanted = text == nullptr ? "" : text;
    if (wanted == "undo") return VerifyPasses::kUndo;
    return wanted == "fail" ? VerifyPasses::kFail : VerifyPasses::kOff;
  }();
  return chosen;
}

Status RunPasses(std::span<const Pass> passes, Graph& graph, const PassContext& context,
                 const PipelineOptions& options) {
  return PassRunner(passes, graph, context, options).Run();
}

absl::string_view OutcomeWord(PassRun::Outcome outcome) {
  switch (outcome) {
    case PassRun::Outcome::kUnchanged:
      return "unchanged";
    case PassRun::Outcome::kChanged:
      return "changed";
    case PassRun::Outcome::kSkipped:
      return "nothing new";
    case PassRun::Outcome::kUndone:
      return "undone";
  }
  return "";
}

}  // namespace smelt
