#include "smelt/optimize/run_passes.h"

#include <cstdlib>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "smelt/graph/verify.h"

namespace smelt {
namespace {

class PassRunner {
 public:
  PassRunner(std::span<const Pass> passes, Graph& graph, const PassContext& context,
             const PipelineOptions& options)
      : passes_(passes), graph_(graph), context_(context), options_(options) {}

  Status Run() {
    // A graph that does not verify before the first pass tells nothing of the passes.
    if (options_.verify != VerifyPasses::kOff && Verify(graph_).ok()) verify_ = options_.verify;
    if (verify_ == VerifyPasses::kUndo || options_.undo_failures) {
      ASSIGN_OR_RETURN(original_, graph_.Clone());
    }
    for (size_t i = 0; i < passes_.size(); ++i) {
      if (absl::Now() > context_.deadline) {
        return absl::DeadlineExceededError("meta_optimizer exceeded deadline.");
      }
      ASSIGN_OR_RETURN(const PassRun run, RunOne(i));
      if (options_.after) options_.after(run, graph_);
    }
    return OkStatus();
  }

 private:
  bool NothingNew(const Pass& pass) const {
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
    const absl::Time start = absl::Now();
    Status status = pass.run(graph_, context_);
    run.time = absl::Now() - start;
    if (!status.ok() && !(options_.undo_failures && original_)) {
      return Suffix(status, absl::StrCat(" (in pass ", pass.name, ")"));
    }
    if (status.ok() && verify_ != VerifyPasses::kOff) {
      status = Verify(graph_);
      if (!status.ok() && verify_ == VerifyPasses::kFail) {
        return Internal("pass ", pass.name,
                        " leaves a graph that does not verify: ", status.message());
      }
    }
    if (status.ok()) {
      done_[pass.name] = graph_.version();
      if (graph_.version() != version) run.outcome = PassRun::Outcome::kChanged;
    } else {
      run.outcome = PassRun::Outcome::kUndone;
      run.why_undone = std::string(status.message());
      RETURN_IF_ERROR(Undo(i));
    }
    run.nodes_after = graph_.num_nodes();
    return run;
  }

  // Makes the graph what it was before pass `last`, which is left out from now on.
  Status Undo(size_t last) {
    undone_.insert(last);
    ASSIGN_OR_RETURN(std::unique_ptr<Graph> copy, original_->Clone());
    graph_ = std::move(*copy);
    // Versions of another graph cannot be compared.
    done_.clear();
    PassContext quiet = context_;
    quiet.log = nullptr;
    for (size_t i = 0; i < last; ++i) {
      if (undone_.contains(i) || NothingNew(passes_[i])) continue;
      RETURN_IF_ERROR(passes_[i].run(graph_, quiet));
      done_[passes_[i].name] = graph_.version();
    }
    return OkStatus();
  }

  std::span<const Pass> passes_;
  Graph& graph_;
  const PassContext& context_;
  const PipelineOptions& options_;
  VerifyPasses verify_ = VerifyPasses::kOff;
  std::unique_ptr<Graph> original_;  // where passes may be undone
  std::set<size_t> undone_;
  // By pass: the graph's version after its last run.
  absl::flat_hash_map<absl::string_view, int64_t> done_;
};

}  // namespace

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

}  // namespace smelt
