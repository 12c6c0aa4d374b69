#include "smelt/model/loaded_model.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/base/parallel.h"
#include "smelt/io/fs.h"
#include "smelt/kernels/custom/op_library.h"
#include "smelt/kernels/state/tables.h"
#include "smelt/model/model_folder.h"
#include "smelt/model/variables_ahead.h"
#include "smelt/stablehlo/call_module.h"
#include "smelt/wire/bundle/shared_bundle.h"
#include "smelt/wire/saved_model/object_graph.h"
#include "smelt/wire/saved_model/object_restore.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

void AddSlots(const std::string& key, const TensorInfo& info,
              std::map<std::string, LoadedModel::Slot>* out) {
  switch (info.kind) {
    case TensorInfo::Kind::kNone:
      break;
    case TensorInfo::Kind::kDense:
      (*out)[key] = {info.name, info.dtype, info.shape};
      break;
    case TensorInfo::Kind::kSparse: {
      const int rank = info.shape.rank();
      (*out)[key + "/indices"] = {info.indices_name, Dtype::kInt64,
                                  PartialShape::Of({-1, int64_t{rank}})};
      (*out)[key + "/values"] = {info.values_name, info.dtype, PartialShape::Of({-1})};
      (*out)[key + "/dense_shape"] = {info.dense_shape_name, Dtype::kInt64,
                                      PartialShape::Of({int64_t{rank}})};
      break;
    }
    case TensorInfo::Kind::kComposite:
      for (size_t i = 0; i < info.components.size(); ++i) {
        AddSlots(absl::StrCat(key, "/", i), info.components[i], out);
      }
  }
}

std::string Describe(const std::map<std::string, LoadedModel::Slot>& slots) {
  std::vector<std::string> out;
  for (const auto& [key, slot] : slots) {
    out.push_back(
        absl::StrCat("'", key, "' (", DtypeName(slot.dtype), " ", slot.shape.ToString(), ")"));
  }
  return out.empty() ? "no inputs" : absl::StrJoin(out, ", ");
}

bool SameValue(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == Dtype::kString) {
    return std::equal(a.data<std::string>(), a.data<std::string>() + a.num_elements(),
                      b.data<std::string>());
  }
  return IsPod(a.dtype()) && (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

}  // namespace

struct LoadedModel::Prepared {
  std::vector<std::string> inputs;  // keys in the order of the callable's feeds
  // Keys whose tensors other keys feed: {key, the key in `inputs`}. Both must give one value.
  std::vector<std::pair<std::string, std::string>> shared;
  std::vector<std::string> outputs;  // keys in the order of its fetches
  std::map<std::string, Slot> wanted;
  std::shared_ptr<Callable> callable;
};

std::map<std::string, LoadedModel::Slot> LoadedModel::Slots(
    const std::map<std::string, TensorInfo>& infos) {
  std::map<std::string, Slot> out;
  for (const auto& [key, info] : infos) AddSlots(key, info, &out);
  return out;
}

StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Load(const std::string& dir,
                                                         const std::vector<std::string>& tags,
                                                         const SessionOptions& options) {
  const VariablesAhead ahead(dir, options);
  ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(dir));
  ASSIGN_OR_RETURN(MetaGraph * meta, FindMetaGraph(model, tags));
  return Load(std::move(*meta), dir, options);
}

StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Load(MetaGraph meta, const std::string& dir,
                                                         const SessionOptions& options) {
  auto model = std::make_unique<LoadedModel>();
  model->meta_ = std::move(meta);
  RETURN_IF_ERROR(stablehlo::PrepareCallModules(*model->meta_.graph));
  std::shared_ptr<const Graph> graph = std::move(model->meta_.graph);
  SessionOptions own = options;
  own.files = options.files.With(FoldersOfModel(dir));
  model->session_ = std::make_unique<Session>(std::move(graph), own);
  // A file that was registered twice is listed twice; TensorFlow in Python takes the last.
  std::map<std::string, std::string> paths;
  for (const AssetFile& asset : AssetsOf(model->meta_)) {
    if (asset.filename.empty() || asset.filename[0] == '/' ||
        absl::c_linear_search(absl::StrSplit(asset.filename, '/'), "..")) {
      return InvalidArgument("asset '", asset.filename, "' leads out of the model's folder");
    }
    paths[asset.tensor_name] = absl::StrCat(dir, "/assets/", asset.filename);
  }
  for (auto& [name, path] : paths) {
    model->asset_feeds_.emplace_back(name, Tensor::Scalar<std::string>(std::move(path)));
  }
  RETURN_IF_ERROR(Prefix(model->Restore(dir), "Restoring variables: "));
  RETURN_IF_ERROR(Prefix(model->Initialize(dir), "Running the init op: "));
  return model;
}

void LoadedModel::LeaveToSystem(std::unique_ptr<LoadedModel> model) {
  // What others do at their end, as a writer of summaries that has not written all, is done by who
  // holds them last.
  const bool plain = model->session_->resources().HoldsOnly({Variable::kKind, LookupTable::kKind});
  if (!plain || OpLibraryLoaded()) return;
  static absl::Mutex mutex;
  static auto* const left = new std::vector<std::unique_ptr<LoadedModel>>;
  absl::MutexLock lock(&mutex);
  left->push_back(std::move(model));
}

Status LoadedModel::Restore(const std::string& dir) {
  if (!meta_.saver) return OkStatus();
  const std::string prefix = dir + "/variables/variables";
  if (!Exists(prefix + ".index")) return OkStatus();
  std::vector<std::pair<std::string, Tensor>> feeds = asset_feeds_;
  feeds.emplace_back(meta_.saver->filename_tensor_name, Tensor::Scalar<std::string>(prefix));
  RETURN_IF_ERROR(session_->Run(feeds, {}, {meta_.saver->restore_op_name}).status());
  return RestoreByObjects(prefix);
}

// The restore op does not know every variable of the graph; the others are found in the bundle by
// the keys that the object graph states.
Status LoadedModel::RestoreByObjects(const std::string& prefix) {
  std::vector<const Node*> missing;
  ResourceManager& resources = session_->resources();
  for (const Node* n : session_->graph().Nodes()) {
    if (!n->Is("VarHandleOp")) continue;
    const ResourceName place(*n);
    auto found = resources.Find(place.container, Variable::kKind, place.name);
    if (!found || !std::static_pointer_cast<Variable>(found)->initialized()) missing.push_back(n);
  }
  if (missing.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const auto bundle, OpenSharedBundle(prefix, session_->options().files));
  ASSIGN_OR_RETURN(const std::string objects, CheckpointGraph(*bundle));
  ASSIGN_OR_RETURN(const auto keys, VariableKeys(meta_, session_->graph(), objects));
  std::erase_if(missing, [&](const Node* n) {
    auto key = keys.find(n->name());
    return key == keys.end() || !bundle->Has(key->second);
  });
  // Reading computes a checksum of every byte, which is worth all cores.
  std::vector<StatusOr<Tensor>> values(missing.size());
  const ScopedThreads threads(session_->options().threads);
  ParallelFor(static_cast<int64_t>(missing.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      values[at] = bundle->Read(keys.find(missing[at]->name())->second);
    }
  });
  for (size_t i = 0; i < missing.size(); ++i) {
    const Node* n = missing[i];
    const auto key = keys.find(n->name());
    ASSIGN_OR_RETURN(Tensor value, std::move(values[i]));
    const Dtype dtype = n->Type("dtype");
    if (value.dtype() != dtype) {
      return InvalidArgument("variable '", n->name(), "' is of type ", DtypeName(dtype),
                             ", the checkpoint holds ", DtypeName(value.dtype()), " under ",
                             key->second);
    }
    const ResourceName place(*n);
    ASSIGN_OR_RETURN(
        auto resource, resources.FindOrCreate(place.container, Variable::kKind, place.name, [&] {
          return StatusOr<std::shared_ptr<Resource>>(std::make_shared<Variable>(place.name, dtype));
        }));
    std::static_pointer_cast<Variable>(resource)->Assign(std::move(value));
  }
  return OkStatus();
}

Status LoadedModel::Initialize(const std::string& dir) {
  std::string op;
  if (auto it = meta_.signatures.find(std::string(kInitSignature)); it != meta_.signatures.end()) {
    auto out = it->second.outputs.find(std::string(kInitSignature));
    if (out != it->second.outputs.end()) op = out->second.name;
  }
  for (const char* key : {"saved_model_main_op", "legacy_init_op"}) {
    auto it = meta_.collections.find(key);
    if (!op.empty() || it == meta_.collections.end()) continue;
    if (it->second.kind != Collection::Kind::kNodes || it->second.values.size() != 1) {
      return FailedPrecondition("Expected exactly one main op in collection ", key);
    }
    op = it->second.values[0];
  }
  if (op.empty()) return OkStatus();
  return session_->Run(asset_feeds_, {}, {op}).status();
}

StatusOr<const Signature*> LoadedModel::FindSignature(const std::string& name) const {
  auto it = meta_.signatures.find(name);
  if (it != meta_.signatures.end()) return &it->second;
  std::vector<std::string> names;
  for (const auto& [key, s] : meta_.signatures) names.push_back(key);
  return NotFound("Serving signature key \"", name, "\" not found. The model has: ",
                  names.empty() ? "none (its functions answer to function:ATTRIBUTE#OPTION)"
                                : absl::StrJoin(names, ", "));
}

StatusOr<std::shared_ptr<const LoadedModel::Prepared>> LoadedModel::Prepare(
    const std::string& signature, const NamedTensors& inputs) {
  std::string key = signature;
  for (const auto& [name, t] : inputs) absl::StrAppend(&key, "\n", name);
  absl::MutexLock lock(&mutex_);
  auto& slot = prepared_[key];
  if (slot) return slot;
  auto p = std::make_shared<Prepared>();
  ASSIGN_OR_RETURN(const Signature* sig, FindSignature(signature));
  p->wanted = Slots(sig->inputs);
  for (const auto& [name, t] : inputs) {
    if (!p->wanted.contains(name)) {
      return InvalidArgument("input '", name, "' is not in signature '", signature,
                             "', which takes ", Describe(p->wanted));
    }
  }
  CallableSpec spec;
  std::map<std::string, std::string> keys;  // by tensor
  const auto place_of = [](absl::string_view tensor) {
    return std::string(absl::StripSuffix(tensor, ":0"));
  };
  const auto feed = [&](const std::string& name, absl::string_view tensor) {
    if (const auto [at, added] = keys.emplace(place_of(tensor), name); !added) {
      p->shared.emplace_back(name, at->second);
      return;
    }
    p->inputs.push_back(name);
    spec.feeds.emplace_back(tensor);
  };
  for (const auto& [name, want] : p->wanted) {
    if (!inputs.contains(name)) {
      if (sig->defaults.contains(name)) continue;
      return InvalidArgument("input '", name, "' of signature '", signature,
                             "' is missing; it takes ", Describe(p->wanted));
    }
    feed(name, want.tensor);
  }
  for (const auto& [name, value] : sig->defaults) {
    auto want = p->wanted.find(name);
    if (inputs.contains(name) || want == p->wanted.end()) continue;
    const auto fed = keys.find(place_of(want->second.tensor));
    if (fed != keys.end() && inputs.contains(fed->second)) continue;
    feed(name, want->second.tensor);
  }
  for (const auto& [name, out] : Slots(sig->outputs)) {
    p->outputs.push_back(name);
    spec.fetches.push_back(out.tensor);
  }
  // A signature without outputs answers with nothing.
  if (!spec.fetches.empty()) {
    ASSIGN_OR_RETURN(p->callable, session_->MakeCallable(spec));
  }
  slot = p;
  return slot;
}

StatusOr<NamedTensors> LoadedModel::RunSignature(const std::string& signature,
                                                 const NamedTensors& inputs,
                                                 const RunOptions& options) {
  ASSIGN_OR_RETURN(auto p, Prepare(signature, inputs));
  const auto value_of = [&](const std::string& key) -> StatusOr<Tensor> {
    const Slot& want = p->wanted.at(key);
    const auto it = inputs.find(key);
    Tensor value;
    if (it != inputs.end()) {
      value = it->second;
    } else {
      ASSIGN_OR_RETURN(value, meta_.signatures.at(signature).defaults.at(key)->Materialize());
    }
    if (value.dtype() != BaseType(want.dtype)) {
      return InvalidArgument("input '", key, "' of signature '", signature, "' should be of type ",
                             DtypeName(BaseType(want.dtype)), " but is of type ",
                             DtypeName(value.dtype()));
    }
    return value;
  };
  std::vector<Tensor> args;
  for (const std::string& key : p->inputs) {
    ASSIGN_OR_RETURN(args.emplace_back(), value_of(key));
  }
  for (const auto& [key, first] : p->shared) {
    ASSIGN_OR_RETURN(const Tensor value, value_of(key));
    ASSIGN_OR_RETURN(const Tensor fed, value_of(first));
    if (!SameValue(value, fed)) {
      return InvalidArgument("inputs '", first, "' and '", key, "' of signature '", signature,
                             "' are one tensor, '", p->wanted.at(key).tensor,
                             "', and cannot have different values");
    }
  }
  std::vector<Tensor> results;
  if (p->callable == nullptr) return NamedTensors();
  RETURN_IF_ERROR(session_->RunCallable(*p->callable, std::move(args), &results, options));
  NamedTensors out;
  for (size_t i = 0; i < results.size(); ++i) out[p->outputs[i]] = std::move(results[i]);
  return out;
}

}  // namespace smelt
