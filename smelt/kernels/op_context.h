// What a kernel sees of the step that runs it.
#ifndef SMELT_KERNELS_OP_CONTEXT_H_
#define SMELT_KERNELS_OP_CONTEXT_H_

#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include "smelt/graph/graph.h"
#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/step.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// What a kernel keeps per node of an executable (parsed attributes, packed weights, primitives).
class KernelState {
 public:
  virtual ~KernelState() = default;
  // True when a node without inputs gives the same outputs on every run with the same resources:
  // executors may then keep its outputs instead of running it again.
  virtual bool same_for_resources() const { return false; }
  // Called when shapes are known (bound_kernel.h); the bound kernel does not outlive this. nullptr
  // where it has nothing better for these shapes than the row's `run`. Thread safe.
  virtual StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& /*context*/) {
    return nullptr;
  }
};

// Valid during one call of a kernel, in the calling thread.
class OpContext {
 public:
  // `last_use[i]`: nobody reads *inputs[i] after this call. It is false for a pointer that stands
  // in `inputs` twice.
  OpContext(const Node& node, KernelState* state, Step& step, std::span<Tensor* const> inputs,
            std::span<const bool> last_use, std::span<Tensor> outputs)
      : node_(node),
        state_(state),
        step_(step),
        inputs_(inputs),
        last_use_(last_use),
        outputs_(outputs) {}

  const Node& node() const { return node_; }
  Step& step() const { return step_; }
  // The files that the op may use: every kernel that touches the disk asks here.
  FileSystem files() const {
    return (step_.files != nullptr ? *step_.files : FileSystem::Nothing()).For(node_.op());
  }
  // What prepare returned. REQUIRES: the row has a prepare that returns an S.
  template <typename S>
  S& state() const {
    return *static_cast<S*>(state_);
  }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Tensor& input(int i) const { return *inputs_[i]; }
  // The input for keeping or changing: Writable() when nobody else needs its bytes. Call once per
  // input, and do not read input(i) afterwards.
  Tensor TakeInput(int i) { return last_use_[i] ? std::move(*inputs_[i]) : *inputs_[i]; }

  void set_output(int i, Tensor t) { outputs_[i] = std::move(t); }
  Tensor& output(int i) { return outputs_[i]; }
  Dtype output_type(int i) const { return node_.output_types[i]; }

  // A fresh output of the node's type. The pointer is valid until the kernel returns.
  StatusOr<Tensor*> Allocate(int i, const Shape& shape) {
    return AllocateAs(i, node_.output_types[i], shape);
  }
  StatusOr<Tensor*> AllocateAs(int i, Dtype dtype, const Shape& shape) {
    ASSIGN_OR_RETURN(outputs_[i], Tensor::Make(dtype, shape, step_.allocator));
    return &outputs_[i];
  }
  // Output i in the bytes of the first candidate input that nobody else needs and whose type and
  // element count agree; else a fresh one. The output may therefore overlap an input: a kernel must
  // read element j of its inputs before it writes element j.
  StatusOr<Tensor*> Forward(int i, std::initializer_list<int> candidates, const Shape& shape) {
    const Dtype dtype = node_.output_types[i];
    for (int c : candidates) {
      const Tensor& in = *inputs_[c];
      if (last_use_[c] && in.valid() && in.dtype() == dtype && IsPod(dtype) &&
          in.num_elements() == shape.num_elements() && in.Writable()) {
        // The input stays readable: both share the bytes.
        outputs_[i] = in.WithShape(shape);
        return &outputs_[i];
      }
    }
    return Allocate(i, shape);
  }
  // Scratch memory of this call.
  StatusOr<Tensor> Temp(Dtype dtype, const Shape& shape) const {
    return Tensor::Make(dtype, shape, step_.allocator);
  }

 private:
  const Node& node_;
  KernelState* state_;
  Step& step_;
  std::span<Tensor* const> inputs_;
  std::span<const bool> last_use_;
  std::span<Tensor> outputs_;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_OP_CONTEXT_H_
