// Runs graphs and functions node by node, in order: for op tests and the op fuzzer.
#ifndef SMELT_TESTS_GRAPH_RUNNER_H_
#define SMELT_TESTS_GRAPH_RUNNER_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// Kernels keep their state for the runner's life. One thread at a time. Knows no frames and dead
// tensors: graphs with loops of version 1 run in smelt_case_tests sessions alone.
class GraphRunner final : public FunctionRunner {
 public:
  // REQUIRES: the library outlives the runner.
  explicit GraphRunner(const FunctionLibrary& library) : library_(library) {}
  ~GraphRunner() override {
    for (const auto& stop : at_end_) stop();
  }

  using Values = absl::flat_hash_map<std::pair<const Node*, int>, Tensor>;

  // Runs the nodes that `wanted` and `also` need, `also` for its effects, and appends the values of
  // `wanted` to *results. `values` holds the endpoints that are fed.
  Status Run(const Graph& graph, Values values, const std::vector<Endpoint>& wanted,
             const std::vector<Node*>& also, std::vector<Tensor>* results, Step& step);

  Status Call(const Callee& f, std::vector<Tensor> args, std::vector<Tensor>* results,
              Step& step) override;
  Status CallOnTpu(const Callee& f, int64_t, std::vector<Tensor> args, std::vector<Tensor>* results,
                   Step& step) override {
    return Call(f, std::move(args), results, step);
  }
  const Function* FindBody(absl::string_view name) const override { return library_.Find(name); }
  void AtEnd(std::function<void()> stop) override { at_end_.push_back(std::move(stop)); }

 private:
  struct Prepared {
    const Kernel* kernel = nullptr;
    std::unique_ptr<KernelState> state;
  };

  Status RunNode(const Node& node, std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                 Step& step);

  const FunctionLibrary& library_;
  // A std::map, as entries must stay in place: a kernel that calls a function adds entries while it
  // runs.
  std::map<const Node*, Prepared> prepared_;
  std::vector<std::function<void()>> at_end_;
};

}  // namespace smelt

#endif  // SMELT_TESTS_GRAPH_RUNNER_H_
