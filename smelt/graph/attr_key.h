// Attributes as a key: what is made of a function once for each set of them is found again by it.
#ifndef SMELT_GRAPH_ATTR_KEY_H_
#define SMELT_GRAPH_ATTR_KEY_H_

#include <cstddef>
#include <string>

#include "smelt/graph/attr.h"

namespace smelt {

// The longest key. A model can put an attribute twice into another at each of many calls.
inline constexpr size_t kMaxAttrKey = size_t{16} << 20;

// A text (of bytes) that two maps share exactly when they are equal. Every kind of attribute is
// told apart; numbers are their bits, so that -0 is not 0 and a NaN is itself; tensors are type,
// shape and all values that were stated; functions have their attributes within. Empty for an empty
// map. Of use within a process only. Any thread. RESOURCE_EXHAUSTED when it would be longer than
// kMaxAttrKey or functions nest a thousand deep; INVALID_ARGUMENT for tensors of live handles,
// which have no text.
StatusOr<std::string> CanonicalKey(const AttrMap& attrs);

}  // namespace smelt

#endif  // SMELT_GRAPH_ATTR_KEY_H_
