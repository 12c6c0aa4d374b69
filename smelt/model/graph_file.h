// A frozen graph of TF1 (one GraphDef in a file, no variables) as a model with one signature.
#ifndef SMELT_MODEL_GRAPH_FILE_H_
#define SMELT_MODEL_GRAPH_FILE_H_

#include <string>
#include <vector>

#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// Reads a GraphDef, binary or text. Its one signature, "serving_default", takes `feeds` and answers
// `fetches`: tensors "node:port" or "node", keyed as they are written. Without feeds the signature
// takes every Placeholder; without fetches it answers the outputs that no node reads. NOT_FOUND for
// a missing file or tensor; INVALID_ARGUMENT when the bytes are no graph.
StatusOr<MetaGraph> ReadGraphFile(const std::string& path, const std::vector<std::string>& feeds,
                                  const std::vector<std::string>& fetches);

}  // namespace smelt

#endif  // SMELT_MODEL_GRAPH_FILE_H_
