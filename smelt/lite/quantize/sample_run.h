// A graph of operators that is run on samples.
#ifndef SMELT_LITE_QUANTIZE_SAMPLE_RUN_H_
#define SMELT_LITE_QUANTIZE_SAMPLE_RUN_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/runtime/session.h"

namespace smelt {

// A tensor for each argument of a graph, in order.
using LiteSample = std::vector<Tensor>;

// Not thread safe.
class SampleRun {
 public:
  // What operators keep between runs: every run begins as the first, or where the last one ended.
  enum class States : uint8_t { kBeginAnew, kKept };

  // Variables begin with what their handles say (kVariableBegin). `graph` becomes another; `asked`
  // are what runs answer. Errors of lowering, which name the operator.
  static StatusOr<std::unique_ptr<SampleRun>> Make(std::shared_ptr<Graph> graph,
                                                   std::span<const Endpoint> asked,
                                                   States states = States::kBeginAnew);

  // The values of what was asked for. INVALID_ARGUMENT where the sample has another number of
  // tensors than the graph has arguments; errors of running.
  StatusOr<std::vector<Tensor>> Run(const LiteSample& sample);

  // The variable of a VarHandleOp of that shared name and no container, which has no value yet.
  StatusOr<std::shared_ptr<Variable>> AddVariable(const std::string& name, Dtype type);

 private:
  SampleRun() = default;

  std::unique_ptr<Session> session_;
  std::vector<std::string> feeds_, fetches_;
  std::vector<std::string> first_, always_;  // targets of the first run before all, and of each
  bool anew_ = false;                        // the first are those of each
};

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_SAMPLE_RUN_H_
