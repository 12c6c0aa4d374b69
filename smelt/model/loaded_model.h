// A SavedModel made ready to answer: read, restored, initialized.
//
// Follows TensorFlow's C++ loader: the MetaGraph whose tag set equals the one asked for; its
// saver's restore op run on DIR/variables/variables; assets fed as DIR/assets/FILE; then the init
// op of whichever generation (__saved_model_init_op, saved_model_main_op, legacy_init_op). Methods
// other than Load are thread safe.
#ifndef SMELT_MODEL_LOADED_MODEL_H_
#define SMELT_MODEL_LOADED_MODEL_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "smelt/runtime/session.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

using NamedTensors = std::map<std::string, Tensor>;

class LoadedModel {
 public:
  // `dir` is the folder of the SavedModel (see ModelFolder), `tags` the whole tag set, in any
  // order. The model's own folders are added to options.files. Errors of ReadSavedModel and
  // FindMetaGraph; those of the restore and of the init op say so; INVALID_ARGUMENT for an asset
  // whose name leads out of the folder.
  static StatusOr<std::unique_ptr<LoadedModel>> Load(const std::string& dir,
                                                     const std::vector<std::string>& tags,
                                                     const SessionOptions& options = {});
  // From a model in memory; `dir` holds its variables and assets.
  static StatusOr<std::unique_ptr<LoadedModel>> Load(MetaGraph meta, const std::string& dir,
                                                     const SessionOptions& options = {});

  // For a process that is about to end: the memory of a model that holds but variables and tables
  // is for the system to take back; any other model ends here, as its resources and people's own
  // ops may do something then.
  static void LeaveToSystem(std::unique_ptr<LoadedModel> model);

  // The MetaGraph; its `graph` is nullptr, the session owns it.
  const MetaGraph& meta() const { return meta_; }
  Session& session() { return *session_; }

  // Runs a signature. Inputs by key; a sparse one as KEY/indices, KEY/values and KEY/dense_shape, a
  // composite one by component as KEY/0, KEY/1, ... Outputs the same way. Inputs with a default
  // value may be left out. Keys that name one tensor must be given one value. INVALID_ARGUMENT
  // names inputs that are missing, unknown, of the wrong type or at odds with each other, with what
  // the signature wants; errors of FindSignature and Session::RunCallable.
  StatusOr<NamedTensors> RunSignature(const std::string& signature, const NamedTensors& inputs,
                                      const RunOptions& options = {});

  // One tensor of a signature, by its key in RunSignature.
  struct Slot {
    std::string tensor;  // "node:port"
    Dtype dtype;
    PartialShape shape;
  };
  static std::map<std::string, Slot> Slots(const std::map<std::string, TensorInfo>& infos);
  // NOT_FOUND lists the signatures that there are.
  StatusOr<const Signature*> FindSignature(const std::string& name) const;

 private:
  struct Prepared;
  StatusOr<std::shared_ptr<const Prepared>> Prepare(const std::string& signature,
                                                    const NamedTensors& inputs);
  Status Restore(const std::string& dir);
  Status RestoreByObjects(const std::string& prefix);
  Status Initialize(const std::string& dir);

  MetaGraph meta_;
  std::unique_ptr<Session> session_;
  std::vector<std::pair<std::string, Tensor>> asset_feeds_;
  absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Prepared>> prepared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_MODEL_LOADED_MODEL_H_
