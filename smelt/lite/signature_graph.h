// A signature of a loaded model as one plain graph: what is exported.
#ifndef SMELT_LITE_SIGNATURE_GRAPH_H_
#define SMELT_LITE_SIGNATURE_GRAPH_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/lite/composite_choice.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/input_shapes.h"
#include "smelt/model/loaded_model.h"

namespace smelt {

struct LiteSlot {
  std::string key;     // as the signature has it
  std::string tensor;  // "serving_default_x:0"
};

// A callable graph (optimize/passes.h): argument i is inputs[i], result i outputs[i]. Calls are
// inlined but for those of composite functions (composites/composite.h), variables that nobody
// writes are constants, and what constants tell is computed. Branches and loops call functions of
// the graph's library that are made the same way (prepare/bodies.h).
struct SignatureGraph {
  std::string key;
  std::vector<LiteSlot> inputs, outputs;  // sorted by key
  std::unique_ptr<Graph> graph;
  std::vector<FusionNote> composites;  // which calls stayed, and why others did not
};

// (container, name) of variables.
using VariableNames = std::set<std::pair<std::string, std::string>>;

// The variables that some of the signatures write. NOT_FOUND for a signature that there is not.
StatusOr<VariableNames> WrittenVariables(LoadedModel& model, const std::vector<std::string>& keys);

struct SignatureOptions {
  CompositeChoice composites;
  bool keep_asserts = false;
};

// `written`: the variables that are not frozen. `pinner` says the shapes of the inputs. NOT_FOUND
// for a signature that there is not; INVALID_ARGUMENT of the pinner; errors of the passes, which
// name the node.
StatusOr<SignatureGraph> GraphOfSignature(LoadedModel& model, const std::string& key,
                                          const VariableNames& written, InputPinner& pinner,
                                          const SignatureOptions& options);

}  // namespace smelt

#endif  // SMELT_LITE_SIGNATURE_GRAPH_H_
