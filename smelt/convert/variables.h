// The variables of a model as a conversion sees them: the handle in the main graph, everywhere that
// the handle goes, and the entry of the checkpoint.
//
// A stage may store a variable as another type (bfloat16, int8): SetStored changes the handles and
// the restore and save ops that touch it, and what the written checkpoint will hold. Readers are
// the stage's to change. Not thread safe.
#ifndef SMELT_CONVERT_VARIABLES_H_
#define SMELT_CONVERT_VARIABLES_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "smelt/analysis/handle_flow.h"
#include "smelt/graph/graph.h"
#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

struct ModelVariable {
  std::string name;              // the handle's node
  std::vector<Node*> handles;    // VarHandleOps of the main graph that mean this variable
  std::string key;               // in the checkpoint, or empty
  std::set<std::string> copies;  // further entries that are restored to it; of the same type
  Dtype dtype = Dtype::kInvalid;
  PartialShape shape;
  std::vector<HandleUse> reads;         // ReadVariableOp
  std::vector<HandleUse> lookups;       // ResourceGather, ResourceGatherNd
  std::vector<HandleUse> restores;      // AssignVariableOp of what RestoreV2 read
  std::vector<HandleUse> saves;         // ReadVariableOp whose value only SaveV2 takes
  std::vector<HandleUse> save_path;     // those SaveV2s and the Identities before them
  std::vector<HandleUse> initializers;  // AssignVariableOp of anything else
  std::vector<HandleUse> others;        // whatever else: updates, unknown ops
  // What the object graph's optimizers keep for it: variables, and entries of the checkpoint that
  // have no handle. TensorFlow loads them with the variable's type.
  std::vector<ModelVariable*> slots;
  std::set<std::string> slot_entries;

  // Why it cannot be stored as another type, or empty.
  std::string WhyFixed() const;
};

// What a written checkpoint lacks of the one that was read.
struct StrippedCheckpoint {
  std::set<std::string> dropped;  // keys
  std::string object_graph;       // the new value of kCheckpointObjectGraph; empty: it stays
  bool empty() const { return dropped.empty() && object_graph.empty(); }
};

class ModelVariables {
 public:
  // Follows every VarHandleOp of the main graph through calls, branches and loops, and into the
  // functions that the object graph alone holds. An argument that gets different variables at
  // different calls may be any of them. `dir` is the SavedModel's folder; without a checkpoint
  // there no variable has a key. Files that `files` does not permit are not read:
  // PERMISSION_DENIED. Where `meta` was stripped, `stripped` says what of. REQUIRES: `meta`
  // outlives this.
  static StatusOr<std::unique_ptr<ModelVariables>> Trace(MetaGraph& meta, const std::string& dir,
                                                         const FileSystem& files,
                                                         StrippedCheckpoint stripped = {});

  // Traces `copy`, a body that no graph calls yet, with the variables that `original` gets.
  void TraceCopy(const Function& original, Function& copy);

  // Nothing will be written: from now on SetStored makes the values constants of the graph, which
  // the restore op assigns, so that the model loads from the checkpoint that was read.
  void KeepInGraph() { in_graph_ = true; }

  const std::vector<std::unique_ptr<ModelVariable>>& all() const { return variables_; }
  // The variables that the resource argument may be; empty for arguments that are no variables.
  std::vector<ModelVariable*> OfArgument(const Function& function, int arg) const;
  // The variables that the endpoint (of the main graph, or of a function's body) may hold.
  std::vector<ModelVariable*> Of(Endpoint handle) const;
  // The variable's value in the checkpoint that was read. Mapped, not copied. NOT_FOUND without a
  // key.
  StatusOr<Tensor> Value(const ModelVariable& v) const;
  // That value's shape; the handle's where the checkpoint has none.
  PartialShape StoredShape(const ModelVariable& v) const;

  using MakeValue = std::function<StatusOr<Tensor>(const Tensor&)>;
  // Stores the variable as `dtype`; `value` makes the value when the checkpoint is written,
  // `slot_value` that of the optimizers' slots. Handles, restores and saves follow, the object
  // graph with UpdateObjectGraph; initializers get a Cast, readers of slots one back. INTERNAL
  // unless v.WhyFixed() is empty.
  Status SetStored(ModelVariable& v, Dtype dtype, MakeValue value, MakeValue slot_value);
  // Makes a reader of a variable that is stored as `dtype` read that type and cast it to the one
  // that it had.
  Status CastBack(const HandleUse& use, Dtype dtype);
  bool changed() const { return !stored_.empty() || !stripped_.empty(); }

  // Brings the types of the object graph's variables up to date.
  Status UpdateObjectGraph();
  // Writes the bundle that was read, with the changed values, to `prefix`, one tensor at a time.
  // FAILED_PRECONDITION when the model has no checkpoint.
  Status WriteBundle(const std::string& prefix) const;

 private:
  explicit ModelVariables(MetaGraph& meta) : meta_(meta), flow_(*meta.graph) {}
  Status RetypeRestore(const HandleUse& use, Dtype dtype);
  Status AssignInRestore(const ModelVariable& v, Dtype dtype, const MakeValue& value);
  Status RetypeSaves(const ModelVariable& v, Dtype dtype);

  MetaGraph& meta_;
  std::shared_ptr<BundleReader> bundle_;
  std::string checkpoint_graph_;  // of the objects in meta_; empty without one
  std::vector<std::unique_ptr<ModelVariable>> variables_;
  HandleFlow flow_;
  std::vector<ModelVariable*> of_handle_;  // by the number that flow_ knows it by
  struct Stored {
    Dtype dtype;
    MakeValue value;
  };
  std::map<std::string, Stored> stored_;  // by key
  StrippedCheckpoint stripped_;
  bool in_graph_ = false;
  friend class VariableTracer;
};

}  // namespace smelt

#endif  // SMELT_CONVERT_VARIABLES_H_
