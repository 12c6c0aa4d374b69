// What of a TF2 model's objects serves, and what only training uses.
//
// Training's are optimizers with their slots, metrics, what Keras writes to make its layers anew
// (keras_api, losses, the calls of inner layers), traces with training=True, and variables that no
// function that stays captures. Signatures stay whatever they do.
#ifndef SMELT_WIRE_SAVED_MODEL_SERVING_OBJECTS_H_
#define SMELT_WIRE_SAVED_MODEL_SERVING_OBJECTS_H_

#include <functional>
#include <set>
#include <string>

#include "smelt/base/status.h"

namespace smelt {

struct ServingObjects {
  std::string object_graph;         // SavedObjectGraph without training's objects
  std::string checkpoint_graph;     // TrackableObjectGraph of the same objects; empty without one
  std::set<std::string> functions;  // concrete functions that stay
  std::set<std::string> entries;    // checkpoint keys of the objects that stay
  std::set<std::string> constants;  // nodes of the main graph that hold the objects' constants
  int removed = 0;                  // objects of the SavedObjectGraph
};

// `trains`: does the function of the library train, by what it computes? `checkpoint_graph` may be
// empty. Objects are numbered anew, and the elements of lists that lose variables. DATA_LOSS for
// bytes that do not parse or name objects that there are not.
StatusOr<ServingObjects> KeepServingObjects(
    const std::string& object_graph, const std::string& checkpoint_graph,
    const std::function<bool(const std::string& function)>& trains);

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_SERVING_OBJECTS_H_
