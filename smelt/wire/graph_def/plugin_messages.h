// What graph optimizers from shared libraries read and write (optimize/custom/plugin.h), as bytes.
// All functions are thread safe; bytes are untrusted.
#ifndef SMELT_WIRE_GRAPH_DEF_PLUGIN_MESSAGES_H_
#define SMELT_WIRE_GRAPH_DEF_PLUGIN_MESSAGES_H_

#include <map>
#include <memory>
#include <span>
#include <string>

#include "smelt/graph/graph.h"
#include "smelt/wire/graph_def/graph_versions.h"

namespace smelt {

// A GraphDef of the graph, with the signatures and attributes of its functions, without bodies.
StatusOr<std::string> SerializeWithoutBodies(const Graph& graph, const GraphVersions& versions);
// The nodes of such a GraphDef as a graph over `library`; functions and versions that it has are
// left out. INVALID_ARGUMENT when it does not parse, or as TakeGraph.
StatusOr<std::unique_ptr<Graph>> ParseNodes(absl::string_view graph_def,
                                            std::shared_ptr<FunctionLibrary> library);
// By function of the GraphDef its signature, a serialized OpDef. INVALID_ARGUMENT when the bytes do
// not parse.
StatusOr<std::map<std::string, std::string>> SerializedSignatures(absl::string_view graph_def);
StatusOr<std::string> SerializeOpDef(const OpDef& def);
// OpInfo.TensorProperties. `dims` is nullptr where the rank is not known, `value` where the value
// is not; a value that cannot be written is left out.
StatusOr<std::string> SerializeTensorProperties(Dtype dtype, const std::span<const int64_t>* dims,
                                                const Tensor* value);

}  // namespace smelt

#endif  // SMELT_WIRE_GRAPH_DEF_PLUGIN_MESSAGES_H_
