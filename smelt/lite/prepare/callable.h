// Callable graphs (optimize/passes.h) as functions, and their arguments.
#ifndef SMELT_LITE_PREPARE_CALLABLE_H_
#define SMELT_LITE_PREPARE_CALLABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

struct CallableArgument {
  Dtype type;
  PartialShape shape;
};

// The _Arg nodes by index; nullptr where passes dropped one that nobody read.
std::vector<Node*> ArgumentsOf(const Graph& graph, size_t count);
// The _Retval nodes by index.
std::vector<Node*> ResultsOf(const Graph& graph);
// Adds those that are missing.
Status RestoreArguments(Graph& graph, const std::vector<CallableArgument>& arguments);

// Nodes with an effect are control results, so that Instantiate keeps them.
// REQUIRES: no argument is missing.
StatusOr<std::unique_ptr<Function>> FunctionOf(std::unique_ptr<Graph> graph,
                                               const std::string& name);
// The function's body with all of its arguments. Errors of Instantiate (optimize/passes.h).
StatusOr<std::unique_ptr<Graph>> GraphOf(const Function& f);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_CALLABLE_H_
