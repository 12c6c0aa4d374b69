// Executable: a callable graph made ready to run, any number of times and from any number of
// threads at once.
//
// Nodes lie in flat arrays: kernel, state, input and output slots. Graphs without version 1 control
// flow run in one topological order in the calling thread (kernels use the thread's team inside);
// graphs with it run by data flow, with frames, iterations and dead tensors.
#ifndef SMELT_RUNTIME_EXECUTABLE_H_
#define SMELT_RUNTIME_EXECUTABLE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/compile/regions.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/node_error.h"
#include "smelt/kernels/step_stats.h"
#include "smelt/runtime/compiled_item.h"

namespace smelt {

class Executable {
 public:
  // `graph` is a callable graph (optimize/passes.h); argument and result i are the _Arg and _Retval
  // with index i. `function` is named in errors; empty for a session's own graph. Kernels are found
  // and prepared here: NOT_FOUND names every op without a kernel and its nodes.
  // `compile`: regions of the graph become programs (compile/regions.h). `scan_bodies`: those of
  // the _Scan nodes, by number.
  static StatusOr<std::unique_ptr<Executable>> Make(
      std::unique_ptr<Graph> graph, std::string function, bool compile = false,
      std::vector<std::unique_ptr<Graph>> scan_bodies = {});
  virtual ~Executable() = default;

  int num_args() const { return static_cast<int>(arg_types_.size()); }
  int num_results() const { return static_cast<int>(results_.size()); }
  Dtype arg_type(int i) const { return arg_types_[i]; }  // kInvalid: an argument nobody reads
  const Graph& graph() const { return *graph_; }

  // Runs on args, which may be moved from. INVALID_ARGUMENT when there are too few or one has the
  // wrong type; errors of kernels name the node.
  virtual Status Run(std::span<Tensor> args, std::vector<Tensor>* results, Step& step) = 0;

  // The programs that nodes were compiled to so far, for people; empty: none. `reasons`: and why to
  // no more, and what runs node by node.
  std::string ProgramsText(bool reasons) const;
  void VisitPrograms(ProgramVisitor visit) const;
  // Does a run wait for nothing that another run does? Only compiled regions and nodes without
  // effects are known not to.
  bool waits_for_nobody() const { return waits_for_nobody_; }
  // Bytes of constants that the executable holds.
  int64_t constant_bytes() const { return constant_bytes_; }

  // One input of a node. Slots count the outputs of all nodes; a negative slot is constant -1-slot.
  struct Input {
    int slot;
    bool last_use;  // nobody reads the slot later: the kernel may write in place
    bool deref;     // a ref variable's handle that the kernel wants the value of
  };
  // A node that runs. Its inputs are a range of inputs_, its outputs a range of slots.
  struct Item {
    const Node* node = nullptr;
    const Kernel* kernel = nullptr;
    std::unique_ptr<KernelState> state;
    std::unique_ptr<CompiledItem> compiled;  // runs in the kernel's place, unless nullptr
    int first_input = 0, num_inputs = 0;
    int first_output = 0, num_outputs = 0;
  };

 protected:
  Executable() = default;
  // Fills the arrays below. `inline_constants`: Const nodes become constants instead of items.
  // `regions`: nodes of the graph that stand for graphs.
  Status Build(std::unique_ptr<Graph> graph, std::string function, bool inline_constants,
               std::vector<Region> regions = {});
  Status CheckArgs(std::span<const Tensor> args) const;
  // Runs one kernel; `inputs` and `last_use` lie in the caller's frame. Fills `outputs`.
  Status RunItem(const Item& item, Step& step, std::span<Tensor* const> inputs,
                 std::span<const bool> last_use, std::span<Tensor> outputs) const;

  std::string WhereItEnds(const Node& region) const;
  std::string WhyNoScan() const;
  std::string WhyAlone(const Node& node) const;

  std::unique_ptr<Graph> graph_;
  std::string function_;
  bool compiles_ = false;  // regions were looked for
  bool waits_for_nobody_ = false;
  std::vector<Item> items_;  // in running order; _Arg, _Retval and constants are not among them
  std::vector<Input> inputs_;
  std::vector<Tensor> constants_;
  int num_slots_ = 0;
  int max_inputs_ = 0;
  std::vector<Dtype> arg_types_;
  std::vector<int> arg_slots_;  // -1: not read
  std::vector<Input> results_;
  int64_t constant_bytes_ = 0;
};

// The value behind a ref variable's handle. FAILED_PRECONDITION while it has none.
Status ReadRef(const Tensor& handle, Tensor* value);

}  // namespace smelt

#endif  // SMELT_RUNTIME_EXECUTABLE_H_
