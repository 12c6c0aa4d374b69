// What stands behind the opaque types of tf_graph_optimizer.h.
#ifndef SMELT_OPTIMIZE_CUSTOM_PLUGIN_ABI_H_
#define SMELT_OPTIMIZE_CUSTOM_PLUGIN_ABI_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/optimize/custom/tf_graph_optimizer.h"
#include "smelt/optimize/passes.h"

struct TF_Status {
  smelt::Status status;
  std::string message;  // that TF_Message returns
};

struct TF_GrapplerItem {
  const smelt::Graph* graph = nullptr;  // without marks
  absl::flat_hash_set<std::string> fed;
  std::vector<std::string> preserved;  // names of nodes
  std::vector<std::string> fetches;
};

namespace smelt {

void SetTfStatus(TF_Status* to, Status status);
// Replaces what an empty buffer holds by a copy. INVALID_ARGUMENT, as in TensorFlow, for one that
// is not empty.
Status FillTfBuffer(absl::string_view bytes, TF_Buffer* buffer);
inline absl::string_view BytesOf(const TF_Buffer& buffer) {
  return {static_cast<const char*>(buffer.data), buffer.data == nullptr ? 0 : buffer.length};
}

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_CUSTOM_PLUGIN_ABI_H_
