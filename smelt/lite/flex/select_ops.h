// Ops that have no builtin, as operators that a program beside TensorFlow Lite runs: TensorFlow's
// kernels by way of the Flex delegate ("select ops"), or kernels that the program registers under
// the op's name ("custom ops").
#ifndef SMELT_LITE_FLEX_SELECT_OPS_H_
#define SMELT_LITE_FLEX_SELECT_OPS_H_

#include <set>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/lite/legalizer.h"

namespace smelt {

// What custom codes of operators of the Flex delegate begin with; the op's name is behind it.
inline constexpr absl::string_view kFlexPrefix = "Flex";

// Which operators an export may have.
struct OperatorSets {
  bool builtins = true;  // false: every op becomes a select op
  bool select = false, custom = false;
  // Select ops beside those of TensorFlow's converter: all, or ops that users' programs define.
  bool any_select = false;
  std::set<std::string, std::less<>> user_select;
};

// Does TensorFlow's converter give the op to the Flex delegate?
bool IsSelectOp(OpName op);

// Replaces nodes that were refused: by select ops where `sets` and the node allow, else by custom
// ops. Those that stay refused say why, and what else could be done with them. Errors are those of
// messages that are too large.
Status ReplaceRefused(Graph& graph, const OperatorSets& sets, std::vector<Refusal>& refusals);

}  // namespace smelt

#endif  // SMELT_LITE_FLEX_SELECT_OPS_H_
