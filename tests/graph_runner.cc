#include "tests/graph_runner.h"

#include <set>

#include "absl/container/inlined_vector.h"
#include "smelt/base/denormals.h"
#include "smelt/kernels/resource_types.h"

namespace smelt {

Status GraphRunner::Run(const Graph& graph, Values values, const std::vector<Endpoint>& wanted,
                        const std::vector<Node*>& also, std::vector<Tensor>* results, Step& step) {
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  std::set<const Node*> needed;
  for (Endpoint e : wanted) {
    if (!values.contains({e.node, e.port})) needed.insert(e.node);
  }
  needed.insert(also.begin(), also.end());
  // How often each value is still to be read: its last reader may change it.
  absl::flat_hash_map<std::pair<const Node*, int>, int> readers;
  for (Endpoint e : wanted) ++readers[{e.node, e.port}];
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (!needed.contains(*it)) continue;
    for (Endpoint e : (*it)->inputs()) {
      ++readers[{e.node, e.port}];
      if (!values.contains({e.node, e.port})) needed.insert(e.node);
    }
    needed.insert((*it)->control_inputs().begin(), (*it)->control_inputs().end());
  }
  auto take = [&](Endpoint e) -> StatusOr<Tensor> {
    auto it = values.find({e.node, e.port});
    if (it == values.end()) return Internal("no value of ", EndpointName(e));
    if (--readers[{e.node, e.port}] == 0) return std::move(it->second);
    return it->second;
  };
  for (Node* node : order) {
    if (!needed.contains(node)) continue;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Endpoint e = node->inputs()[i];
      ASSIGN_OR_RETURN(Tensor t, take(e));
      // A reference that is not wanted as one is read.
      if (IsRef(e.node->output_types[e.port]) && !IsRef(node->input_types[i])) {
        ASSIGN_OR_RETURN(const auto variable, FindResource<Variable>(t));
        t = variable->Read();
        if (!t.valid()) {
          return FailedPrecondition("Attempting to use uninitialized value ", e.node->name());
        }
      }
      inputs.push_back(std::move(t));
    }
    std::vector<Tensor> outputs(node->output_types.size());
    RETURN_IF_ERROR(RunNode(*node, inputs, outputs, step));
    for (size_t i = 0; i < outputs.size(); ++i) {
      values.try_emplace({node, static_cast<int>(i)}, std::move(outputs[i]));
    }
  }
  for (Endpoint e : wanted) {
    ASSIGN_OR_RETURN(Tensor t, take(e));
    results->push_back(std::move(t));
  }
  return OkStatus();
}

Status GraphRunner::Call(const Callee& f, std::vector<Tensor> args, std::vector<Tensor>* results,
                         Step& step) {
  const Function* function = library_.Find(f.name());
  if (function == nullptr) return NotFound("Function ", f.name(), " is not defined.");
  if (step.call_depth > 50) return ResourceExhausted("calls nest too deep");
  Values values;
  size_t next = 0;
  for (const Node* arg : function->args) {
    for (int port = 0; port < arg->num_outputs(); ++port, ++next) {
      if (next >= args.size()) return InvalidArgument(f.name(), " is given too few arguments");
      values[{arg, port}] = std::move(args[next]);
    }
  }
  if (next != args.size()) return InvalidArgument(f.name(), " is given too many arguments");
  std::vector<Node*> also;
  for (Node* node : function->body->Nodes()) {
    if (node->def() != nullptr && node->def()->stateful) also.push_back(node);
  }
  for (const auto& [name, node] : function->control_results) also.push_back(node);
  std::erase_if(also, [](const Node* n) { return n->Is("_Arg"); });
  results->clear();
  ++step.call_depth;
  const Status status =
      Run(*function->body, std::move(values), function->FlatResults(), also, results, step);
  --step.call_depth;
  return status;
}

Status GraphRunner::RunNode(const Node& node, std::vector<Tensor>& inputs,
                            std::vector<Tensor>& outputs, Step& step) {
  // A node whose op is a function calls it.
  if (library_.Find(node.op()) != nullptr) {
    return Call(Callee(std::string(node.op())), std::move(inputs), &outputs, step);
  }
  Prepared& p = prepared_[&node];
  if (p.kernel == nullptr) {
    ASSIGN_OR_RETURN(const Kernel* kernel, FindKernel(node));
    if (kernel->prepare != nullptr) {
      ASSIGN_OR_RETURN(p.state, kernel->prepare(node));
    }
    p.kernel = kernel;  // set last, so that a later step prepares again and fails again
  }
  absl::InlinedVector<Tensor*, 8> pointers;
  // May be true for all: readers that are still to run hold the buffer too, so it is not Writable.
  absl::InlinedVector<bool, 8> last_use(inputs.size(), true);
  for (Tensor& t : inputs) pointers.push_back(&t);
  OpContext ctx(
      node, p.state.get(), step, std::span<Tensor* const>(pointers.data(), pointers.size()),
      std::span<const bool>(last_use.data(), last_use.size()), std::span<Tensor>(outputs));
  const FlushDenormals flush;
  return p.kernel->run(ctx);
}

}  // namespace smelt
