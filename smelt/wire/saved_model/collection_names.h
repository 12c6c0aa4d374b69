// Names of nodes that a MetaGraph's collections mention (TensorFlow 1: variables, queue runners,
// conditions, loops), whose messages smelt only carries.
#ifndef SMELT_WIRE_SAVED_MODEL_COLLECTION_NAMES_H_
#define SMELT_WIRE_SAVED_MODEL_COLLECTION_NAMES_H_

#include <string>
#include <vector>

#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// Every string of the collections that names a node of meta.graph, as node, without repetition:
// "w" for "w:0" and "^w". Strings that happen to be such names are among them. Thread safe.
std::vector<std::string> NodesOfCollections(const MetaGraph& meta);

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_COLLECTION_NAMES_H_
