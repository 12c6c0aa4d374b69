// A NodeDef by itself, as bytes: what operators of the Flex delegate hold.
#ifndef SMELT_WIRE_GRAPH_DEF_LONE_NODE_H_
#define SMELT_WIRE_GRAPH_DEF_LONE_NODE_H_

#include <string>

#include "smelt/graph/graph.h"

namespace smelt {

struct LoneNode {
  std::string op;
  AttrMap attrs;
  int num_inputs = 0;
};

// The op, an input without a name for each that the node has, and its attributes, those that have
// their defaults too; not those whose names begin with '_'. INTERNAL when it is too large for a
// message.
StatusOr<std::string> SerializeLoneNode(const Node& node);

// INVALID_ARGUMENT for bytes that are no NodeDef, an op that nobody defines, attributes that are
// missing or of another kind, and control inputs.
StatusOr<LoneNode> ParseLoneNode(absl::string_view bytes);

}  // namespace smelt

#endif  // SMELT_WIRE_GRAPH_DEF_LONE_NODE_H_
