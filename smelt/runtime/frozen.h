// An executable whose graph holds values of variables as constants, made anew when they change.
#ifndef SMELT_RUNTIME_FROZEN_H_
#define SMELT_RUNTIME_FROZEN_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/base/resting.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/optimize/pipeline.h"
#include "smelt/runtime/executable.h"
#include "smelt/runtime/tpu_program.h"
#include "smelt/runtime/turnstile.h"

namespace smelt {

// Makes an executable when first asked, and again when one of the variables that it holds as
// constants has been assigned since. A variable that keeps changing is read at every step instead,
// so that the passes do not run time and again for it. Thread safe.
class FrozenExecutable {
 public:
  struct Recipe {
    // Makes the callable graph (optimize/passes.h) anew; the passes rewrite it.
    std::function<StatusOr<std::unique_ptr<Graph>>()> graph;
    // The variable behind a node that yields its handle (or is a ref variable); nullptr: unknown.
    std::function<std::shared_ptr<Variable>(const Node&)> variable;
    std::string function;  // name for errors
    // Which passes run; nullptr: none. Outlives the executable.
    const RewriterConfig* rewriter = nullptr;
    PipelineOptions passes;
    bool compile = false;                   // Executable::Make
    absl::string_view device_type = "CPU";  // for PassContext
    bool tpu_program = false;               // whether a Build has a TpuProgram
    // Called on the graph before the passes, unless empty; its error is that of Get.
    std::function<Status(const Graph&)> check;
  };
  // What Use refers to. One that was replaced lives until the last request that runs it is done;
  // until then its memory stays booked beside that of its successor.
  struct Build {
    std::unique_ptr<Executable> executable;
    std::unique_ptr<TpuProgram> program;  // of a Recipe that says so, else nullptr
    // The variables held as constants, with the Variable::version() whose value is held.
    std::vector<std::pair<std::shared_ptr<Variable>, int64_t>> frozen;
    // None of them has been assigned since.
    bool current() const;
    mutable RunTime run_time;  // of the executable
  };
  explicit FrozenExecutable(Recipe recipe) : recipe_(std::move(recipe)) {}

 private:
  // A reference to the current build, kept for later requests: they write to no number that others
  // read or write.
  struct Reference {
    std::shared_ptr<const Build> build;
    int64_t number;  // builds_ when it was made
  };

 public:
  // A build that a request runs. Moved, not copied; does not outlive the executable.
  class Use {
   public:
    Use(Use&&) = default;
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (reference_ != nullptr) of_->Rest(std::move(reference_));
    }
    const Build* operator->() const { return reference_->build.get(); }
    const Build& operator*() const { return *reference_->build; }

   private:
    friend class FrozenExecutable;
    Use(FrozenExecutable* of, std::unique_ptr<Reference> reference)
        : of_(of), reference_(std::move(reference)) {}
    FrozenExecutable* of_;
    std::unique_ptr<Reference> reference_;
  };
  // Errors of the recipe, Verify, the passes and Executable::Make. Other callers wait while one
  // makes it.
  StatusOr<Use> Get();
  // Executable::ProgramsText of what was built; empty: nothing was.
  std::string ProgramsText(bool reasons) {
    absl::MutexLock lock(&mutex_);
    return build_ == nullptr ? "" : build_->executable->ProgramsText(reasons);
  }
  void VisitPrograms(ProgramVisitor visit) {
    absl::MutexLock lock(&mutex_);
    if (build_ != nullptr) build_->executable->VisitPrograms(visit);
  }

 private:
  StatusOr<std::shared_ptr<const Build>> Make() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Rest(std::unique_ptr<Reference> reference);

  const Recipe recipe_;
  Resting<Reference> references_;
  std::atomic<int64_t> builds_{0};  // written under mutex_
  absl::Mutex mutex_;
  std::shared_ptr<const Build> build_ ABSL_GUARDED_BY(mutex_);
  // How often an assignment of each variable made a build out of date.
  absl::flat_hash_map<const Variable*, int> changes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_FROZEN_H_
