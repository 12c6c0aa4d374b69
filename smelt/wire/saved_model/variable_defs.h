// The collections of TensorFlow 1 that describe variables ("variables", "trainable_variables",
// ...).
#ifndef SMELT_WIRE_SAVED_MODEL_VARIABLE_DEFS_H_
#define SMELT_WIRE_SAVED_MODEL_VARIABLE_DEFS_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// Says of the variables whose nodes are named that they are resources now. Entries that do not
// parse, and those of other variables, stay as they are.
void DescribeAsResources(MetaGraph& meta, const absl::flat_hash_set<std::string>& nodes);

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_VARIABLE_DEFS_H_
