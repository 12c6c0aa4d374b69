// An executable together with the variables that it took for constants.
#ifndef SMELT_RUNTIME_FROZEN_H_
#define SMELT_RUNTIME_FROZEN_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/optimize/pipeline.h"
#include "smelt/runtime/executable.h"
#include "smelt/runtime/tpu_program.h"

namespace smelt {

// Makes an executable when first asked, and again when a variable it took for constant has been
// assigned since. A variable that changes time and again is no longer taken. Thread safe.
class FrozenExecutable {
 public:
  struct Recipe {
    // The callable graph, fresh.
    std::function<StatusOr<std::unique_ptr<Graph>>()> graph;
    // The variable behind a node that yields its handle (or is a ref variable); nullptr: unknown.
    std::function<std::shared_ptr<Variable>(const Node&)> variable;
    std::string function;  // name for errors
    bool optimize = true;
    PipelineOptions passes;
    absl::string_view device_type = "CPU";  // for PassContext
    bool tpu_program = false;               // a program of accelerator cores
    // Called on the graph before optimising, unless empty.
    std::function<Status(const Graph&)> check;
  };
  // What is made at once and ends at once: with the last of those who run it, when it was replaced.
  // Requests that still run one that was replaced leave its memory booked beside that of the next.
  struct Build {
    std::unique_ptr<Executable> executable;
    std::unique_ptr<TpuProgram> program;  // of a Recipe that says so, else nullptr
    // The variables that were taken, in the version that was.
    std::vector<std::pair<std::shared_ptr<Variable>, int64_t>> frozen;
    bool current() const;
  };
  explicit FrozenExecutable(Recipe recipe) : recipe_(std::move(recipe)) {}

  // Never nullptr. Errors of the recipe, the passes and Executable::Make.
  StatusOr<std::shared_ptr<const Build>> Get();

 private:
  StatusOr<std::shared_ptr<const Build>> Make() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Recipe recipe_;
  absl::Mutex mutex_;
  std::shared_ptr<const Build> build_ ABSL_GUARDED_BY(mutex_);
  // How often each variable has spoiled an executable.
  absl::flat_hash_map<const Variable*, int> changes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_FROZEN_H_
