#include "smelt/optimize/constant/evaluate.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "smelt/graph/op_facts.h"

namespace smelt {
namespace {

// Only kernels that ask whether to end are stopped by it: those whose time is not in proportion to
// their inputs and outputs.
constexpr absl::Duration kMaxFoldingTime = absl::Seconds(2);

}  // namespace

Evaluator::Evaluator() {
  step_.resources = &none_;
  step_.step_resources = &none_of_step_;
  // What takes long is left to the run as well, which has a time limit of its own.
  limit_.SetDeadline(absl::Now() + kMaxFoldingTime);
  step_.cancellation = &limit_;
}

bool Evaluator::MayEvaluate(const Node& n) {
  if (n.def() == nullptr || n.def()->stateful || n.num_outputs() == 0 || n.num_inputs() == 0) {
    return false;
  }
  if (n.Is(kNeverFolded)) return false;
  return std::ranges::all_of(
      n.output_types, [](Dtype t) { return !IsRef(t) && (IsPod(t) || t == Dtype::kString); });
}

StatusOr<std::vector<Tensor>> Evaluator::Evaluate(const Node& node, std::vector<Tensor> inputs) {
  return RunOp(node, std::move(inputs), step_);
}

std::vector<Node*> WaitsOfResult(const Node& node,
                                 absl::FunctionRef<const Node*(Endpoint)> constant_of) {
  std::vector<Node*> waits = node.control_inputs();
  for (const Endpoint& e : node.inputs()) {
    for (Node* c : constant_of(e)->control_inputs()) {
      if (std::ranges::find(waits, c) == waits.end()) waits.push_back(c);
    }
  }
  return waits;
}

int64_t TotalBytes(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<int64_t>(t.bytes());
  return bytes;
}

}  // namespace smelt
