// What an executable runs in the place of a kernel: nodes that stand for graphs.
#ifndef SMELT_RUNTIME_COMPILED_ITEM_H_
#define SMELT_RUNTIME_COMPILED_ITEM_H_

#include <memory>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "smelt/compile/parts.h"
#include "smelt/graph/graph.h"
#include "smelt/kernels/step.h"
#include "smelt/kernels/step_stats.h"

namespace smelt {

// What a body was compiled to for one list of shapes; valid during a visit. Actions of the programs
// are what StepStats::Event::what points to.
struct VisitedProgram {
  const std::string& function;  // "": a session's own graph
  const Node& node;             // that stands for the body
  const Graph& body;
  int threads;
  const PartedProgram& program;
};
using ProgramVisitor = absl::FunctionRef<void(const VisitedProgram&)>;

// Thread safe.
class CompiledItem {
 public:
  virtual ~CompiledItem() = default;
  // Inputs and outputs are the node's. Errors of kernels name the node in the body.
  virtual Status Run(std::span<Tensor* const> inputs, std::span<Tensor> outputs, Step& step) = 0;
  // What it was compiled to so far, for people; `reasons`: and why to no more, which compiles it
  // once more.
  virtual std::string Text(bool reasons) = 0;
  virtual void Visit(ProgramVisitor visit) = 0;
};

// Of a _Program node (compile/regions.h): the arguments are the inputs. `function` is named in
// errors.
std::unique_ptr<CompiledItem> MakeCompiledRegion(const Node& node, std::unique_ptr<Graph> body,
                                                 std::string function);
// Of a _Scan node (graph/ops/own_ops.txt).
std::unique_ptr<CompiledItem> MakeCompiledScan(const Node& node, std::unique_ptr<Graph> body,
                                               std::string function);

}  // namespace smelt

#endif  // SMELT_RUNTIME_COMPILED_ITEM_H_
