// A kernel bound to tensors of known shapes: what is left to do when everything that a run need not
// do has been done (compile/program.h).
#ifndef SMELT_KERNELS_BOUND_KERNEL_H_
#define SMELT_KERNELS_BOUND_KERNEL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

class LineKernel;

// Bytes [from, from + bytes) of an input, which become bytes [to, to + bytes) of an output.
struct CopiedRun {
  int input = 0, output = 0;
  int64_t from = 0, to = 0, bytes = 0;
};

// Elements of an input, in the order of row-major elements of an output: those that nested loops,
// outermost first, reach from element `first` on.
struct BoundView {
  struct Loop {
    int64_t size, step;
  };
  int input = 0;
  int64_t first = 0;
  std::vector<Loop> loops;
};

// Made for one node, for tensors of these shapes and for the number of threads that the binding
// thread may use (base/team.h). Thread safe.
class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  // inputs[i] and outputs[i] are the bytes of the node's tensors, row-major without gaps: outputs
  // aligned to kAlignment, inputs to their elements; what input i and output j share says
  // may_overwrite. `scratch` has scratch_bytes() bytes, aligned to kAlignment, of any contents.
  virtual Status Run(const void* const* inputs, void* const* outputs, void* scratch) const = 0;
  virtual size_t scratch_bytes() const { return 0; }
  // May output 0 lie where input i lies? Asked where both have as many bytes.
  virtual bool may_overwrite(int /*i*/) const { return false; }
  // Of a kernel that does nothing but copy runs of bytes, which together are its outputs: the runs.
  // Empty: it does more than that, or no such list is worth making.
  virtual std::span<const CopiedRun> copied_runs() const { return {}; }
  // What output i is, where it is nothing but elements of an input.
  virtual std::optional<BoundView> view(int /*i*/) const { return std::nullopt; }
  // The same kernel by lines (line_kernel.h), as long as this one lives; nullptr: it is none such.
  virtual const LineKernel* lines() const { return nullptr; }
};

// What a kernel is bound to (KernelState::Bind).
struct BoundTensor {
  Dtype dtype = Dtype::kInvalid;
  Shape shape;
  const Tensor* constant = nullptr;  // the value, where every run has the same
};
struct BindContext {
  const Node& node;
  std::span<const BoundTensor> inputs, outputs;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_BOUND_KERNEL_H_
