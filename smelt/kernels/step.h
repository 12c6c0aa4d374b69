// Step: what one run of a graph shares between its kernels. Runtime fills it in; kernels only read
// it. The members are thread safe or belong to the step's thread, as said.
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
  // Runs `f` as compiled for an accelerator core; ordinal < 0 lets the runtime choose the core.
  virtual Status CallOnTpu(const Callee& f, int64_t ordinal, std::vector<Tensor> args,
                           std::vector<Tensor>* results, Step& step) = 0;
  // The function as the model states it, for kernels that know plain ones by sight (a reducer that
  // only adds); nullptr when there is none. Valid as long as the runner.
  virtual const Function* FindBody(absl::string_view name) const = 0;
  // For resources with threads of their own: `stop` is called once, before what the threads refer
  // to ends, and returns when they have ended.
  virtual void AtEnd(std::function<void()> stop) = 0;
};

// Set from any thread, seen by long kernels and between nodes.
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

struct Step {
  int64_t id = 0;
  // Resources that outlive the step: variables, tables.
  ResourceManager* resources = nullptr;
  // Resources of this step alone: tensor arrays, stacks.
  ResourceManager* step_resources = nullptr;
  FunctionRunner* functions = nullptr;
  Allocator* allocator = HeapAllocator();
  const Cancellation* cancellation = nullptr;
  // The seed of stateful random ops whose own seeds are both 0.
  uint64_t random_seed = 0;
  int call_depth = 0;
  // The accelerator core on which the step runs, nullptr on the host.
  Device* tpu_core = nullptr;
  // The name of the device; outlives the step.
  absl::string_view device = "/job:localhost/replica:0/task:0/device:CPU:0";
};

}  // namespace smelt

#endif  // SMELT_KERNELS_STEP_H_
