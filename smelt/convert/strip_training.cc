#include "smelt/convert/strip_training.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/base/out_of_memory.h"
#include "smelt/base/thread.h"
#include "smelt/convert/stages.h"
#include "smelt/convert/strip_saver.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/verify.h"
#include "smelt/io/fs.h"
#include "smelt/wire/saved_model/object_graph.h"
#include "smelt/wire/saved_model/object_restore.h"
#include "smelt/wire/saved_model/serving_objects.h"
#include "smelt/wire/saved_model/signature_keys.h"
#include "smelt/wire/saved_model/variable_defs.h"

namespace smelt {
namespace {

// What TensorFlow runs after restoring.
constexpr const char* kInitCollections[] = {"saved_model_main_op", "legacy_init_op"};
// From these TensorFlow 1 continues control flow, which only gradients do.
constexpr const char* kGradientCollections[] = {"cond_context", "while_context"};

bool IsVariable(const Node& n) {
  return n.Is("VarHandleOp") || n.Is("VariableV2") || n.Is("Variable");
}

// The updates of optimizers: ApplyAdam, ResourceSparseApplyFtrl, ...
bool UpdatesByGradient(const Node& n) {
  for (const char* prefix : {"Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"}) {
    if (absl::StartsWith(n.op(), prefix)) return true;
  }
  return false;
}
bool Assigns(const Node& n) { return absl::StartsWith(n.op(), "Assign"); }
// tf.GradientTape gives what it adds a scope of this name.
bool IsGradient(const Node& n) { return absl::StrContains(n.name(), "gradient_tape/"); }

bool IsTrainingGraph(const MetaGraph& meta) {
  return std::ranges::any_of(meta.tags,
                             [](const std::string& t) { return t == "train" || t == "eval"; });
}

// Functions that `start` and the graph's nodes reach.
std::set<std::string> ReachedFunctions(const FunctionLibrary& library,
                                       std::vector<std::string> start) {
  std::set<std::string> reached;
  while (!start.empty()) {
    const Function* f = library.Find(start.back());
    start.pop_back();
    if (f == nullptr || !reached.insert(f->name()).second || f->body == nullptr) continue;
    for (const std::string& callee : CalledFunctions(*f->body)) start.push_back(callee);
  }
  return reached;
}

// A function, with all that it calls, that computes gradients and applies them.
bool Trains(const FunctionLibrary& library, const std::string& name) {
  bool gradients = false, assigns = false;
  for (const std::string& f : ReachedFunctions(library, {name})) {
    const Function* function = library.Find(f);
    if (function->body == nullptr) continue;
    for (const Node* n : function->body->Nodes()) {
      if (UpdatesByGradient(*n)) return true;
      gradients = gradients || IsGradient(*n);
      assigns = assigns || Assigns(*n);
    }
  }
  return gradients && assigns;
}

class TrainingStripper {
 public:
  TrainingStripper(SavedModel& model, MetaGraph** meta, const FileSystem& files,
                   StrippedCheckpoint* out)
      : model_(model), meta_(meta), files_(files), out_(*out) {}

  StatusOr<TrainingParts> Run() {
    ASSIGN_OR_RETURN(const int64_t bytes_before, BytesBefore());
    RETURN_IF_ERROR(OpenCheckpoint());
    RemoveTrainingGraphs();
    MetaGraph& meta = **meta_;
    const auto functions_before = meta.graph->library()->Functions().size();
    const int nodes_before = meta.graph->num_nodes();
    std::map<std::string, std::string> keys;
    if (bundle_ != nullptr) {
      ASSIGN_OR_RETURN(keys, VariableKeys(meta, *meta.graph, checkpoint_graph_));
    }
    RETURN_IF_ERROR(StripObjects());
    RETURN_IF_ERROR(StripGraph(keys));
    StripFunctions();
    ReplaceObjectGraphConstants();
    RETURN_IF_ERROR(FindDropped());
    parts_.functions =
        static_cast<int64_t>(functions_before) - std::ssize(meta.graph->library()->Functions());
    parts_.nodes = nodes_before - meta.graph->num_nodes();
    if (parts_.functions == 0 && parts_.nodes == 0 && parts_.objects == 0 &&
        parts_.meta_graphs == 0 && parts_.variables == 0) {
      return parts_;
    }
    ASSIGN_OR_RETURN(const std::string after, SerializeSavedModel(model_));
    parts_.model_bytes = std::max<int64_t>(0, bytes_before - std::ssize(after));
    return parts_;
  }

 private:
  // The size of the file that was read, as the user sees it.
  StatusOr<int64_t> BytesBefore() const {
    const std::string file = model_.dir + "/saved_model.pb";
    if (Exists(file)) return FileSize(file);
    ASSIGN_OR_RETURN(const std::string bytes, SerializeSavedModel(model_));
    return std::ssize(bytes);
  }

  Status OpenCheckpoint() {
    const std::string prefix = model_.dir + "/variables/variables";
    if (!Exists(prefix + ".index")) return OkStatus();
    ASSIGN_OR_RETURN(bundle_, BundleReader::Open(prefix, files_));
    ASSIGN_OR_RETURN(checkpoint_graph_, CheckpointGraph(*bundle_));
    return OkStatus();
  }

  void RemoveTrainingGraphs() {
    const std::vector<std::string> tags = (*meta_)->tags;
    const MetaGraph* served = *meta_;
    std::erase_if(model_.meta_graphs, [&](const MetaGraph& m) {
      const bool gone = &m != served && IsTrainingGraph(m);
      parts_.meta_graphs += gone;
      return gone;
    });
    for (MetaGraph& m : model_.meta_graphs) {
      if (m.tags == tags) *meta_ = &m;
    }
  }

  Status StripObjects() {
    MetaGraph& meta = **meta_;
    if (meta.object_graph.empty()) return OkStatus();
    const FunctionLibrary& library = *meta.graph->library();
    ASSIGN_OR_RETURN(objects_,
                     KeepServingObjects(meta.object_graph, checkpoint_graph_,
                                        [&](const std::string& f) { return Trains(library, f); }));
    parts_.objects = objects_.removed;
    meta.object_graph = objects_.object_graph;
    if (objects_.checkpoint_graph != checkpoint_graph_) {
      out_.object_graph = objects_.checkpoint_graph;
    }
    return OkStatus();
  }

  // Nodes that must stay whatever the saver needs.
  std::vector<Node*> ServingRoots() const {
    const MetaGraph& meta = **meta_;
    std::vector<Node*> roots;
    const auto add = [&](const std::string& tensor) {
      if (Node* n = meta.graph->Find(NodeOfTensor(tensor)); n != nullptr) roots.push_back(n);
    };
    for (const auto& [key, signature] : meta.signatures) {
      for (const auto* infos : {&signature.inputs, &signature.outputs}) {
        for (const auto& [name, info] : *infos) {
          for (const std::string& tensor : TensorNames(info)) add(tensor);
        }
      }
    }
    for (const char* name : kInitCollections) {
      const auto it = meta.collections.find(name);
      if (it == meta.collections.end()) continue;
      for (const std::string& node : it->second.values) add(node);
    }
    for (const AssetFile& asset : AssetsOf(meta)) add(asset.tensor_name);
    for (const std::string& node : objects_.constants) add(node);
    return roots;
  }

  static absl::flat_hash_set<const Node*> Ancestors(const std::vector<Node*>& roots) {
    absl::flat_hash_set<const Node*> seen;
    std::vector<const Node*> stack(roots.begin(), roots.end());
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      if (!seen.insert(n).second) continue;
      for (const Endpoint& e : n->inputs()) stack.push_back(e.node);
      for (const Node* c : n->control_inputs()) stack.push_back(c);
    }
    return seen;
  }

  Status StripGraph(const std::map<std::string, std::string>& keys) {
    MetaGraph& meta = **meta_;
    Graph& graph = *meta.graph;
    std::vector<Node*> roots = ServingRoots();
    // Without a signature nothing says what is served.
    if (roots.empty()) return OkStatus();
    const absl::flat_hash_set<const Node*> served = Ancestors(roots);
    std::vector<Node*> variables;
    absl::flat_hash_set<const Node*> needed;
    std::vector<std::string> called(objects_.functions.begin(), objects_.functions.end());
    for (Node* n : graph.Nodes()) {
      if (served.contains(n)) {
        ForEachCallee(*graph.library(), *n, [&](absl::string_view f) { called.emplace_back(f); });
      }
      if (!IsVariable(*n)) continue;
      variables.push_back(n);
      const auto key = keys.find(n->name());
      const bool object = key != keys.end() && objects_.entries.contains(key->second);
      if (served.contains(n) || object) needed.insert(n);
    }
    const std::set<std::string> serving = ReachedFunctions(*graph.library(), std::move(called));
    RETURN_IF_ERROR(StripSaver(meta, variables, needed, serving, [&](const std::string& key) {
      return objects_.entries.contains(key);
    }));
    for (Node* n : SaverNodes(meta)) roots.push_back(n);
    const absl::flat_hash_set<const Node*> kept = Ancestors(roots);
    const auto stays = [&](const std::string& node) {
      const Node* n = graph.Find(node);
      return n != nullptr && kept.contains(n);
    };
    for (const std::string& node : KeepVariableDefs(meta, stays)) {
      if (Node* n = graph.Find(node); n != nullptr) roots.push_back(n);
    }
    graph.Prune(roots);
    StripCollections();
    return OkStatus();
  }

  void StripCollections() {
    MetaGraph& meta = **meta_;
    for (const char* name : kGradientCollections) meta.collections.erase(name);
    for (auto& [name, collection] : meta.collections) {
      if (collection.kind != Collection::Kind::kNodes) continue;
      std::erase_if(collection.values, [&](const std::string& node) {
        return meta.graph->Find(NodeOfTensor(node)) == nullptr;
      });
    }
    std::erase_if(meta.collections, [](const auto& c) {
      return c.second.kind != Collection::Kind::kOther && c.second.values.empty();
    });
  }

  void StripFunctions() {
    MetaGraph& meta = **meta_;
    FunctionLibrary& library = *meta.graph->library();
    std::vector<std::string> roots = CalledFunctions(*meta.graph);
    roots.insert(roots.end(), objects_.functions.begin(), objects_.functions.end());
    std::set<std::string> used = ReachedFunctions(library, roots);
    if (ComputesGradients(used)) {
      // SymbolicGradient asks for the gradient of a function at run time.
      for (const auto& [function, gradient] : library.gradients) roots.push_back(gradient);
      used = ReachedFunctions(library, roots);
    }
    std::erase_if(library.gradients, [&](const auto& g) {
      return !used.contains(g.first) || !used.contains(g.second);
    });
    std::erase_if(library.registered_gradients,
                  [&](const auto& g) { return !used.contains(g.second); });
    for (const Function* f : library.Functions()) {
      if (!used.contains(f->name())) library.Remove(f->name());
    }
    std::erase_if(meta.function_aliases,
                  [&](const auto& alias) { return !used.contains(alias.first); });
  }

  bool ComputesGradients(const std::set<std::string>& functions) const {
    const Graph& graph = *(*meta_)->graph;
    const auto in = [](const Graph& g) {
      return std::ranges::any_of(g.Nodes(),
                                 [](const Node* n) { return n->Is("SymbolicGradient"); });
    };
    return in(graph) || std::ranges::any_of(functions, [&](const std::string& name) {
             const Function* f = graph.library()->Find(name);
             return f->body != nullptr && in(*f->body);
           });
  }

  // The saver writes the object graph, too: the same bytes stand in a constant.
  void ReplaceObjectGraphConstants() {
    if (out_.object_graph.empty()) return;
    const auto replace = [&](Graph& graph) {
      for (Node* n : graph.Nodes()) {
        const std::optional<Tensor> value = ConstantTensor(*n);
        if (!value || value->dtype() != Dtype::kString || value->num_elements() != 1) continue;
        if (value->data<std::string>()[0] != checkpoint_graph_) continue;
        n->AttrsToChange().Set("value", Tensor::Scalar<std::string>(out_.object_graph));
      }
    };
    Graph& graph = *(*meta_)->graph;
    replace(graph);
    for (Function* f : graph.library()->Functions()) {
      if (f->body != nullptr) replace(*f->body);
    }
  }

  Status FindDropped() {
    if (bundle_ == nullptr) return OkStatus();
    std::set<std::string> used = objects_.entries;
    used.insert(kCheckpointObjectGraph);
    for (const MetaGraph& m : model_.meta_graphs) {
      // Where names are computed, any entry may be read.
      if (!RestoredKeys(*m.graph, &used)) return OkStatus();
    }
    for (const std::string& key : bundle_->names()) {
      if (used.contains(key)) continue;
      ASSIGN_OR_RETURN(const BundleEntry* entry, bundle_->Find(key));
      out_.dropped.insert(key);
      ++parts_.variables;
      parts_.variable_bytes +=
          entry->partitioned()
              ? entry->shape.num_elements() * static_cast<int64_t>(DtypeSize(entry->dtype))
              : entry->size;
    }
    return OkStatus();
  }

  SavedModel& model_;
  MetaGraph** meta_;
  const FileSystem& files_;
  StrippedCheckpoint& out_;
  std::shared_ptr<BundleReader> bundle_;  // nullptr: the model has none
  std::string checkpoint_graph_;          // as the bundle has it
  ServingObjects objects_;                // empty without an object graph
  TrainingParts parts_;
};

}  // namespace

StatusOr<TrainingParts> StripTraining(SavedModel& model, MetaGraph** meta, const FileSystem& files,
                                      StrippedCheckpoint* checkpoint) {
  return TrainingStripper(model, meta, files, checkpoint).Run();
}

TrainingMeasurement::TrainingMeasurement(std::string dir, const FileSystem& files)
    : dir_(std::move(dir)), files_(files) {
  auto thread = StartThread([this] { parts_ = OrOutOfMemory([this] { return Measure(); }); });
  if (thread.ok()) thread_ = *std::move(thread);
}

TrainingMeasurement::~TrainingMeasurement() {
  if (thread_.joinable()) thread_.join();
}

StatusOr<TrainingParts> TrainingMeasurement::Get() {
  if (!thread_.joinable()) return Measure();
  thread_.join();
  return std::move(parts_);
}

StatusOr<TrainingParts> TrainingMeasurement::Measure() const {
  ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(dir_));
  ASSIGN_OR_RETURN(MetaGraph * meta, ChosenMetaGraph(model));
  StrippedCheckpoint checkpoint;
  return StripTraining(model, &meta, files_, &checkpoint);
}

Status StripTrainingParts(Conversion& c) {
  ASSIGN_OR_RETURN(c.records.training, StripTraining(c.model, &c.meta, c.files, &c.stripped));
  c.records.training.stripped = true;
  return Prefix(VerifyAll(*c.meta->graph), "the stripped graph does not verify: ");
}

}  // namespace smelt
