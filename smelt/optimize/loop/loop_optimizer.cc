#include "smelt/optimize/loop/parts.h"

namespace smelt {

Status OptimizeLoops(Graph& graph, const PassContext& context) {
  RETURN_IF_ERROR(RemoveStackPushes(graph, context));
  return RemoveDeadBranches(graph, context);
}

}  // namespace smelt
