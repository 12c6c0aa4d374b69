// Which checkpoint entry holds each variable, found by the object graph.
//
// A saver's restore op assigns the variables that it was given. Keras 3 gives it copies: the
// variables that signatures read have handles of their own, which only the object graph ties to the
// checkpoint (a variable object is reached by the same path of children in the SavedModel's object
// graph and in the checkpoint's). TensorFlow's Python loader restores that way.
#ifndef SMELT_WIRE_SAVED_MODEL_OBJECT_RESTORE_H_
#define SMELT_WIRE_SAVED_MODEL_OBJECT_RESTORE_H_

#include <map>
#include <set>
#include <string>

#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// `checkpoint_graph` is CheckpointGraph's (object_graph.h), or what of it was left; may be empty.

// Checkpoint key by name of the main graph's VarHandleOp node. A handle belongs to the object that
// a call of a concrete function captures in its place, else to the only object of its name. Empty
// without an object graph on either side. DATA_LOSS when one does not parse.
StatusOr<std::map<std::string, std::string>> VariableKeys(const MetaGraph& meta, const Graph& graph,
                                                          const std::string& checkpoint_graph);

// Checkpoint key by number of the object graph's variable objects. Empty without an object graph on
// either side. DATA_LOSS when one does not parse.
StatusOr<std::map<int, std::string>> VariableObjectKeys(const std::string& object_graph,
                                                        const std::string& checkpoint_graph);

// Checkpoint keys of the slots that the object graph's optimizers keep for a variable, by the
// variable's key. Empty without an object graph on either side. DATA_LOSS when one does not parse.
StatusOr<std::map<std::string, std::set<std::string>>> VariableSlots(
    const std::string& object_graph, const std::string& checkpoint_graph);

// The object graph with the types of some variables changed: by checkpoint key. DATA_LOSS when
// either graph does not parse.
StatusOr<std::string> RetypeVariableObjects(const std::string& object_graph,
                                            const std::string& checkpoint_graph,
                                            const std::map<std::string, Dtype>& types);

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_OBJECT_RESTORE_H_
