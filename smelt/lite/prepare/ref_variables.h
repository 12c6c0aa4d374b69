// Variables of version 1 as those of version 2.
#ifndef SMELT_LITE_PREPARE_REF_VARIABLES_H_
#define SMELT_LITE_PREPARE_REF_VARIABLES_H_

#include "absl/functional/function_ref.h"
#include "smelt/graph/graph.h"

namespace smelt {

// VariableV2 or Variable.
bool IsRefVariable(const Node& n);

// A variable for which `wanted` is true becomes a handle of the same resource, which its readers
// read when they run. Those that something but Assign, AssignAdd and AssignSub writes stay.
Status NameRefVariables(Graph& graph, absl::FunctionRef<bool(const Node&)> wanted);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_REF_VARIABLES_H_
