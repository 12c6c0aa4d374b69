// Computes nodes of constants before they run: the one folder of the program, for sessions and for
// the optimizer of models.
#ifndef SMELT_OPTIMIZE_CONSTANT_EVALUATE_H_
#define SMELT_OPTIMIZE_CONSTANT_EVALUATE_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/kernels/run_op.h"

namespace smelt {

// One for each run of a pass; all nodes together have two seconds. Not thread safe.
class Evaluator {
 public:
  Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Does the node compute the same whenever it runs, from its inputs alone?
  static bool MayEvaluate(const Node& node);
  // The node's outputs. An error is to be left to the run, which reports it with its node, or never
  // gets there.
  StatusOr<std::vector<Tensor>> Evaluate(const Node& node, std::vector<Tensor> inputs);

 private:
  Step step_;
  ResourceManager none_, none_of_step_;
  Cancellation limit_;
};

// What constants that take the node's place have to wait for: all that it waited for, and what the
// constants that it read waited for. A branch that is not taken may be all that keeps them from
// having a value. `constant_of` gives the constant that stands for an input.
std::vector<Node*> WaitsOfResult(const Node& node,
                                 absl::FunctionRef<const Node*(Endpoint)> constant_of);

int64_t TotalBytes(const std::vector<Tensor>& tensors);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_CONSTANT_EVALUATE_H_
