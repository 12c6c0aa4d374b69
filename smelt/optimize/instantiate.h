// Attribute placeholders of functions ($T) and the values that calls give them.
#ifndef SMELT_OPTIMIZE_INSTANTIATE_H_
#define SMELT_OPTIMIZE_INSTANTIATE_H_

#include <limits>
#include <string>

#include "smelt/graph/graph.h"

namespace smelt {

// Replaces placeholders in `attrs` by their values; placeholders within these are not filled.
// INVALID_ARGUMENT says of which function (`where`) which attribute is not given.
Status FillPlaceholders(AttrMap& attrs, const AttrMap& values, const std::string& where);
// Does a node of the body, or a function that one names, take an attribute from the caller?
bool HasPlaceholders(const Graph& body);
// Has the node, or anything that it reads or waits for, an effect? True as well where more than
// `most` nodes would have to be looked at.
bool OrdersEffect(const Node* n, size_t most = std::numeric_limits<size_t>::max());

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_INSTANTIATE_H_
