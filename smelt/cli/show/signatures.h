// The part of `smelt show` that reads as TensorFlow's saved_model_cli prints it, byte for byte but
// for the order within sets, which Python leaves to chance: here they are sorted. Thread safe.
#ifndef SMELT_CLI_SHOW_SIGNATURES_H_
#define SMELT_CLI_SHOW_SIGNATURES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// MetaGraphs in the order in which they are listed: by tags.
std::vector<const MetaGraph*> ListedMetaGraphs(const SavedModel& model);

std::string TagSetsText(const SavedModel& model);
std::string SignatureKeysText(const MetaGraph& meta);
// `indent`: in steps of two spaces.
std::string SignatureText(const Signature& signature, int indent);
// Ops of the graph and of the functions that it calls by PartitionedCall, functions left out.
std::vector<std::string> UsedOps(const Graph& graph);
std::string UsedOpsText(const MetaGraph& meta);
// Tag set, all signatures, used ops.
std::string MetaGraphText(const MetaGraph& meta);

}  // namespace smelt

#endif  // SMELT_CLI_SHOW_SIGNATURES_H_
