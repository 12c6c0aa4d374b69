// The collections of TensorFlow 1 that describe variables ("variables", "trainable_variables",
// ...).
#ifndef SMELT_WIRE_SAVED_MODEL_VARIABLE_DEFS_H_
#define SMELT_WIRE_SAVED_MODEL_VARIABLE_DEFS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// Marks the variables of these nodes as resource variables (VariableDef.is_resource), for graphs
// whose reference variables were rewritten. Entries that do not parse, and those of other
// variables, stay.
void DescribeAsResources(MetaGraph& meta, const absl::flat_hash_set<std::string>& nodes);

// Keeps the descriptions of the variables for whose node `stays` holds. Returns the nodes that
// those name beside the variable's own: initializer, initial value and snapshot. Entries that do
// not parse stay.
std::vector<std::string> KeepVariableDefs(
    MetaGraph& meta, const std::function<bool(const std::string& node)>& stays);

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_VARIABLE_DEFS_H_
