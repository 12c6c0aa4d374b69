// Attribute placeholders of functions ($T) and the values that calls give them.
#ifndef SMELT_OPTIMIZE_INSTANTIATE_H_
#define SMELT_OPTIMIZE_INSTANTIATE_H_

#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Replaces placeholders in `attrs` by their values; placeholders within these are not filled.
// INVALID_ARGUMENT says of which function (`where`) which attribute is not given.
Status FillPlaceholders(AttrMap& attrs, const AttrMap& values, const std::string& where);
// The same for all nodes of a body, whose types are known then.
Status FillBody(Graph& body, const AttrMap& values, const std::string& where);
// Is an argument or result of the type that an attribute of the call says?
bool HasTypeAttr(const OpDef& signature);
// Does a node of the body, or a function that one names, take an attribute from the caller?
bool HasPlaceholders(const Graph& body);

// What passes that make copies of bodies ask of each call first. One thread.
class Instantiable {
 public:
  // Whether a call that gives `attrs` (nullptr: none) can have a copy of the body: that of a
  // function that verifies, each placeholder given and of a kind that fits. Else the error that
  // says what is wrong. Errors of functions are found once.
  Status Check(const Function& f, const AttrMap* attrs);

 private:
  struct Known {
    Status valid;
    bool holes = false;
  };
  absl::flat_hash_map<const Function*, Known> known_;
};

// Has the node, or anything that it reads or waits for, an effect? True as well where more than
// `most` nodes would have to be looked at.
bool OrdersEffect(const Node* n, size_t most = std::numeric_limits<size_t>::max());

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_INSTANTIATE_H_
