// Grappler over a SavedModel: what its signatures and objects need stays, and TensorFlow loads it.
#ifndef SMELT_MODEL_OPTIMIZE_MODEL_H_
#define SMELT_MODEL_OPTIMIZE_MODEL_H_

#include <string>
#include <vector>

#include "smelt/io/file_system.h"
#include "smelt/optimize/meta_optimizer.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

struct OptimizeModelFlags {
  std::string input, output;  // without an output nothing is written
  bool overwrite = false;
  std::vector<std::string> tags;        // empty: the only MetaGraph, or "serve"
  std::vector<std::string> signatures;  // these alone are kept; empty: all
  std::vector<std::string> keep;        // nodes that stay as well
  FileSystem files = FileSystem::Nothing();
  MetaOptions options;
  // Sees the item before it is optimized, and after. May be empty.
  std::function<void(const GraphItem& item)> look;
};

// What the optimizer may not touch in the MetaGraph's graph, which the item takes: the tensors of
// signatures, the init ops, the saver's, the assets', and nodes that collections name. Functions
// that objects call keep their names.
StatusOr<GraphItem> ItemOf(MetaGraph& meta, const std::vector<std::string>& keep);

// Reads, optimizes and writes; the output appears whole or not at all. Errors of ModelFolder::Open,
// ReadSavedModel, FindMetaGraph, OptimizeItem and StageOutput; NOT_FOUND for a signature.
StatusOr<OptimizationReport> OptimizeSavedModel(const OptimizeModelFlags& flags);

}  // namespace smelt

#endif  // SMELT_MODEL_OPTIMIZE_MODEL_H_
