// Ops that have no builtin, as operators that a program beside TensorFlow Lite runs: TensorFlow's
// kernels by way of the Flex delegate ("select ops"), or kernels that the program registers under
// the op's name ("custom ops").
#ifndef SMELT_LITE_FLEX_SELECT_OPS_H_
#define SMELT_LITE_FLEX_SELECT_OPS_H_

#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/lite/legalizer.h"
#include "smelt/lite/operator_sets.h"

namespace smelt {

// Does TensorFlow's converter give the op to the Flex delegate?
bool IsSelectOp(OpName op);

// Says of each node that may be a select op, and works on plain tensors alone, that it is refused
// where it would be many operators: in a file that has select ops anyway one of these is better.
void PreferSelectOps(Graph& graph);
// Of a node: what would be more operators than these stays.
inline constexpr absl::string_view kMostOperators = "_most_operators";

// Replaces nodes that were refused: by select ops where `sets` and the node allow, else by custom
// ops. Those that stay refused say why, and what else could be done with them. Errors are those of
// messages that are too large.
Status ReplaceRefused(Graph& graph, const OperatorSets& sets, std::vector<Refusal>& refusals);
// The same of operators that are there already, and that kernels do not take (FitOperators): select
// ops that do the same. `refusals` behind the first `known`; the graph does not quantize anything.
Status ReplaceUnfit(Graph& graph, const OperatorSets& sets, size_t known,
                    std::vector<Refusal>& refusals);

}  // namespace smelt

#endif  // SMELT_LITE_FLEX_SELECT_OPS_H_
