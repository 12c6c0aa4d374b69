#include "smelt/kernels/run_op.h"

#include "smelt/base/denormals.h"
#include "smelt/base/out_of_memory.h"

namespace smelt {

StatusOr<std::vector<Tensor>> RunOp(const Node& node, std::vector<Tensor> inputs, Step& step) {
  ASSIGN_OR_RETURN(const Kernel* kernel, FindKernel(node));
  if (inputs.size() != node.input_types.size()) {
    return InvalidArgument("node '", node.name(), "' (", node.op(), ") takes ",
                           node.input_types.size(), " inputs, is given ", inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != BaseType(node.input_types[i]) && !IsRef(node.input_types[i])) {
      return InvalidArgument("cannot compute ", node.op(), " as input #", i,
                             "(zero-based) was expected to be a ", DtypeName(node.input_types[i]),
                             " tensor but is a ", DtypeName(inputs[i].dtype()), " tensor");
    }
  }
  std::unique_ptr<KernelState> state;
  if (kernel->prepare != nullptr) {
    ASSIGN_OR_RETURN(state, kernel->prepare(node));
  }
  std::vector<Tensor> outputs(node.output_types.size());
  absl::InlinedVector<Tensor*, 8> pointers;
  absl::InlinedVector<bool, 8> last_use(inputs.size(), true);
  for (Tensor& t : inputs) pointers.push_back(&t);
  OpContext ctx(node, state.get(), step, std::span<Tensor* const>(pointers.data(), pointers.size()),
                std::span<const bool>(last_use.data(), last_use.size()),
                std::span<Tensor>(outputs));
  const FlushDenormals flush;
  RETURN_IF_ERROR(OrOutOfMemory([&] { return kernel->run(ctx); }));
  return outputs;
}

}  // namespace smelt
