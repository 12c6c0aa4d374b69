// Takes variables out of what saves and restores a model.
#ifndef SMELT_CONVERT_STRIP_SAVER_H_
#define SMELT_CONVERT_STRIP_SAVER_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// "node" of "node", "node:1" and "^node": names in signatures, savers and collections, also of
// nodes without outputs.
absl::string_view NodeOfTensor(absl::string_view tensor);

// The nodes of the main graph that the MetaGraph's saver names; empty without one.
std::vector<Node*> SaverNodes(const MetaGraph& meta);

// Takes `variables` (all handles and reference variables of the main graph) that are not `needed`
// out of the saver's RestoreV2 and SaveV2, also those in functions that only the saver calls, whose
// arguments go too. A variable stays in it for which stays(checkpoint key) holds, with which the
// saver does anything else, or without which it would save nothing: SaveV2 takes no empty list.
// Nodes that no saver needs any more stay in the main graph, `kept` functions as they are.
Status StripSaver(MetaGraph& meta, const std::vector<Node*>& variables,
                  const absl::flat_hash_set<const Node*>& needed, const std::set<std::string>& kept,
                  const std::function<bool(const std::string& key)>& stays);

// Adds the checkpoint keys that RestoreV2 nodes of the graph and its functions name. False when one
// takes names that are no constant: then any key may be read.
bool RestoredKeys(const Graph& graph, std::set<std::string>* keys);

}  // namespace smelt

#endif  // SMELT_CONVERT_STRIP_SAVER_H_
