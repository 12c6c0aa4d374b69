// Step: what the kernels of one run of a graph share. The runtime fills it in; kernels only read
// it. It belongs to the thread that runs it; what its pointers name is thread safe.
#ifndef SMELT_KERNELS_STEP_H_
#define SMELT_KERNELS_STEP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "smelt/io/file_system.h"
#include "smelt/kernels/callee.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

struct Function;
struct Step;

// Calls functions of the model's library. Thread safe.
class FunctionRunner {
 public:
  virtual ~FunctionRunner() = default;
  // Runs `f` on args in this thread, within the step. NOT_FOUND when the library has no such
  // function; RESOURCE_EXHAUSTED when calls nest too deep. Arguments that are moved in may be
  // changed in place.
  virtual Status Call(const Callee& f, std::vector<Tensor> args, std::vector<Tensor>* results,
                      Step& step) = 0;
  // Runs `f` on the accelerator core `ordinal`; ordinal < 0 lets the runtime choose the core.
  // INVALID_ARGUMENT when there is no such core or the function cannot run on one.
  virtual Status CallOnTpu(const Callee& f, int64_t ordinal, std::vector<Tensor> args,
                           std::vector<Tensor>* results, Step& step) = 0;
  // The function as the model states it, for kernels that have a faster way for a simple one (a
  // reducer that only adds); nullptr when there is none. Valid as long as the runner.
  virtual const Function* FindBody(absl::string_view name) const = 0;
  // For resources with threads of their own: `stop` is called once, when the runner ends, and must
  // not return before those threads have ended: they refer to the runner and its resources.
  virtual void AtEnd(std::function<void()> stop) = 0;
};

// Whether a step should stop: it was cancelled, which any thread may do, or its deadline has
// passed. Executors check it between nodes, kernels that loop or wait check it themselves.
class Cancellation {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void SetDeadline(absl::Time deadline) { deadline_ = deadline; }
  bool has_deadline() const { return deadline_ != absl::InfiniteFuture(); }
  // OK, CANCELLED or DEADLINE_EXCEEDED.
  Status Check() const;

 private:
  std::atomic<bool> cancelled_{false};
  absl::Time deadline_ = absl::InfiniteFuture();  // set before the step starts
};

class Device;
class StepStats;

struct Step {
  int64_t id = 0;
  // Resources that outlive the step: variables, tables.
  ResourceManager* resources = nullptr;
  // Resources of this step alone: tensor arrays, stacks.
  ResourceManager* step_resources = nullptr;
  FunctionRunner* functions = nullptr;
  Allocator* allocator = HeapAllocator();
  const Cancellation* cancellation = nullptr;
  // The files that kernels may use; nullptr: none.
  const FileSystem* files = nullptr;
  // The seed of stateful random ops whose own seeds are both 0; 0: they draw one for themselves.
  uint64_t random_seed = 0;
  // When kernels run is noted there, those of functions that kernels call, too; nullptr: nowhere.
  StepStats* stats = nullptr;
  int call_depth = 0;  // how many calls of functions the step is in
  // The accelerator core on which the step runs, nullptr on the host.
  Device* tpu_core = nullptr;
  // The name of the device; outlives the step.
  absl::string_view device = "/job:localhost/replica:0/task:0/device:CPU:0";
};

}  // namespace smelt

#endif  // SMELT_KERNELS_STEP_H_
