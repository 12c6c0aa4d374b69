// A model's variables: their handles, what is done with them, and their entries in the checkpoint.
#include "smelt/convert/variables.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/io/fs.h"
#include "smelt/wire/saved_model/object_graph.h"
#include "smelt/wire/saved_model/object_restore.h"

namespace smelt {
namespace {

// Ops that take a handle and work alike whatever type the variable has.
bool IgnoresType(const Node& n) {
  static constexpr OpSet kOps = {"VarIsInitializedOp", "DestroyResourceOp", "VariableShape",
                                 "DisableCopyOnRead"};
  return n.Is(kOps);
}

}  // namespace

class VariableTracer {
 public:
  VariableTracer(ModelVariables& out, const std::string& dir, const FileSystem& files)
      : out_(out), dir_(dir), files_(files) {}

  Status Run() {
    Graph& main = *out_.meta_.graph;
    const std::string prefix = dir_ + "/variables/variables";
    std::map<std::string, std::string> keys;
    if (Exists(prefix + ".index")) {
      ASSIGN_OR_RETURN(out_.bundle_, BundleReader::Open(prefix, files_));
      // Stripped objects have other numbers and places in lists, on both sides.
      out_.checkpoint_graph_ = out_.stripped_.object_graph;
      if (out_.checkpoint_graph_.empty()) {
        ASSIGN_OR_RETURN(out_.checkpoint_graph_, CheckpointGraph(*out_.bundle_));
      }
      ASSIGN_OR_RETURN(keys, VariableKeys(out_.meta_, main, out_.checkpoint_graph_));
    }
    std::map<std::string, ModelVariable*> by_key, by_name;
    for (Node* n : main.Nodes()) {
      if (!n->Is("VarHandleOp")) continue;
      auto key = keys.find(n->name());
      const std::string shared = n->String("shared_name");
      const std::string name = shared.empty() ? n->name() : shared;
      ModelVariable*& slot = key != keys.end() ? by_key[key->second] : by_name[name];
      if (slot == nullptr) {
        slot = out_.variables_.emplace_back(std::make_unique<ModelVariable>()).get();
        slot->name = n->name();
        slot->dtype = n->Type("dtype");
        slot->shape = n->Get<PartialShape>("shape", PartialShape());
        if (key != keys.end()) slot->key = key->second;
        numbers_[slot] = static_cast<int>(out_.of_handle_.size());
        out_.of_handle_.push_back(slot);
      }
      slot->handles.push_back(n);
      Hold(nullptr, {n, 0}, slot);
    }
    RETURN_IF_ERROR(ObjectFunctions(by_key));
    FollowAll();
    KeysByRestore();
    MergeByKey();
    return FindSlots();
  }

  void Copy(const Function& original, Function& copy) {
    const std::vector<Endpoint> from = original.FlatArguments(), to = copy.FlatArguments();
    for (size_t i = 0; i < from.size() && i < to.size(); ++i) {
      const std::set<int> held = out_.flow_.Of(from[i]);
      for (const int handle : held) out_.flow_.Hold(handle, &copy, to[i]);
    }
    FollowAll();
  }

 private:
  // What a concrete function captured, whether or not the graph calls it.
  Status ObjectFunctions(const std::map<std::string, ModelVariable*>& by_key) {
    const MetaGraph& meta = out_.meta_;
    if (meta.object_graph.empty() || out_.bundle_ == nullptr || by_key.empty()) return OkStatus();
    ASSIGN_OR_RETURN(const ObjectGraph objects, ParseObjectGraph(meta.object_graph));
    ASSIGN_OR_RETURN(const auto keys,
                     VariableObjectKeys(meta.object_graph, out_.checkpoint_graph_));
    for (const auto& [name, concrete] : objects.concrete_functions) {
      Function* f = meta.graph->library()->Find(name);
      if (f == nullptr || f->body == nullptr) continue;
      const std::vector<Endpoint> args = f->FlatArguments();
      if (concrete.bound_inputs.size() > args.size()) continue;
      const size_t first = args.size() - concrete.bound_inputs.size();
      for (size_t i = 0; i < concrete.bound_inputs.size(); ++i) {
        auto key = keys.find(concrete.bound_inputs[i]);
        auto v = key == keys.end() ? by_key.end() : by_key.find(key->second);
        if (v != by_key.end()) Hold(f, args[first + i], v->second);
      }
    }
    return OkStatus();
  }

  void Hold(Function* function, Endpoint e, const ModelVariable* v) {
    out_.flow_.Hold(numbers_.at(v), function, e);
  }

  void FollowAll() {
    out_.flow_.Follow([&](int handle, const HandleUse& use) {
      AddUse(use, *out_.of_handle_[static_cast<size_t>(handle)]);
    });
  }

  void AddUse(const HandleUse& use, ModelVariable& v) {
    const Node& n = *use.node;
    if (IgnoresType(n)) return;
    if (n.Is("ReadVariableOp")) {
      std::vector<HandleUse> path;
      const bool saved = OnlySaved(use.function, n, &path);
      (saved ? v.saves : v.reads).push_back(use);
      if (saved) v.save_path.insert(v.save_path.end(), path.begin(), path.end());
    } else if (n.Is("ResourceGather") || n.Is("ResourceGatherNd")) {
      v.lookups.push_back(use);
    } else if (n.Is("AssignVariableOp")) {
      const bool restored = BehindIdentities(n.inputs()[1]).node->Is("RestoreV2");
      (restored ? v.restores : v.initializers).push_back(use);
    } else {
      v.others.push_back(use);
    }
  }

  // Does the value go to SaveV2 alone? `path` gets the uses on the way.
  bool OnlySaved(Function* f, const Node& read, std::vector<HandleUse>* path) {
    std::vector<const Node*> stack{&read};
    bool saved = false;
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      for (const Use& use : n->OrderedUses()) {
        if (use.is_control()) continue;
        path->push_back({f, use.node, use.input});
        if (use.node->Is("SaveV2")) {
          saved = true;
        } else if (use.node->Is("Identity")) {
          stack.push_back(use.node);
        } else {
          return false;
        }
      }
    }
    return saved;
  }

  // Without an object graph the restore op itself says which entry a variable comes from; with one,
  // whether it comes from others, too.
  void KeysByRestore() {
    if (out_.bundle_ == nullptr) return;
    for (auto& v : out_.variables_) {
      for (const HandleUse& use : v->restores) {
        const Endpoint from = BehindIdentities(use.node->inputs()[1]);
        const Endpoint names = BehindIdentities(from.node->inputs()[1]);
        const Endpoint slices = BehindIdentities(from.node->inputs()[2]);
        auto key = ElementOf(names, from.port);
        // A slice of a partitioned variable is not an entry of its own.
        if (!key || ElementOf(slices, from.port) != "" || !out_.bundle_->Has(*key)) continue;
        if (v->key.empty()) v->key = *key;
        if (v->key != *key) v->copies.insert(*key);
      }
    }
  }

  static std::vector<const std::string*> KeysOf(const ModelVariable& v) {
    std::vector<const std::string*> keys = {&v.key};
    for (const std::string& key : v.copies) keys.push_back(&key);
    return keys;
  }

  // Keras 3 models restore one entry of the checkpoint to several handles, of which signatures read
  // one. An entry has one type, so all its handles are made one variable.
  void MergeByKey() {
    std::map<std::string, ModelVariable*> by_key;
    std::map<ModelVariable*, ModelVariable*> merged;  // into one that is not merged itself
    const auto join = [&](ModelVariable* from, ModelVariable* into) {
      into->copies.insert(from->key);
      into->copies.insert(from->copies.begin(), from->copies.end());
      into->copies.erase(into->key);
      into->handles.insert(into->handles.end(), from->handles.begin(), from->handles.end());
      for (auto uses : {&ModelVariable::reads, &ModelVariable::lookups, &ModelVariable::restores,
                        &ModelVariable::saves, &ModelVariable::save_path,
                        &ModelVariable::initializers, &ModelVariable::others}) {
        auto& to = into->*uses;
        to.insert(to.end(), (from->*uses).begin(), (from->*uses).end());
      }
      for (auto& [old, now] : merged) {
        if (now == from) now = into;
      }
      merged[from] = into;
    };
    for (auto& v : out_.variables_) {
      if (v->key.empty()) continue;
      std::vector<ModelVariable*> known;
      for (const std::string* key : KeysOf(*v)) {
        const auto it = by_key.find(*key);
        if (it != by_key.end() && std::ranges::find(known, it->second) == known.end()) {
          known.push_back(it->second);
        }
      }
      ModelVariable* first = known.empty() ? v.get() : known[0];
      for (ModelVariable* other : known) {
        if (other != first) join(other, first);
      }
      if (first != v.get()) join(v.get(), first);
      for (const std::string* key : KeysOf(*first)) by_key[*key] = first;
    }
    if (merged.empty()) return;
    for (ModelVariable*& v : out_.of_handle_) {
      if (auto it = merged.find(v); it != merged.end()) v = it->second;
    }
    std::erase_if(out_.variables_, [&](const auto& v) { return merged.contains(v.get()); });
  }

  Status FindSlots() {
    if (out_.bundle_ == nullptr) return OkStatus();
    ASSIGN_OR_RETURN(const auto slots,
                     VariableSlots(out_.meta_.object_graph, out_.checkpoint_graph_));
    if (slots.empty()) return OkStatus();
    std::map<std::string, ModelVariable*> by_key;
    for (auto& v : out_.variables_) {
      for (const std::string* key : KeysOf(*v)) by_key[*key] = v.get();
    }
    for (const auto& [key, entries] : slots) {
      const auto owner = by_key.find(key);
      if (owner == by_key.end() || owner->first.empty()) continue;
      ModelVariable& v = *owner->second;
      for (const std::string& entry : entries) {
        ASSIGN_OR_RETURN(const BundleEntry* stored, out_.bundle_->Find(entry));
        if (stored->dtype != v.dtype) continue;
        const auto slot = by_key.find(entry);
        if (slot == by_key.end()) {
          v.slot_entries.insert(entry);
        } else if (slot->second != &v &&
                   std::ranges::find(v.slots, slot->second) == v.slots.end()) {
          v.slots.push_back(slot->second);
        }
      }
    }
    return OkStatus();
  }

  static std::optional<std::string> ElementOf(Endpoint list, int i) {
    const std::optional<Tensor> tensor = ConstantTensor(*list.node);
    if (!tensor || tensor->dtype() != Dtype::kString || i >= tensor->num_elements()) {
      return std::nullopt;
    }
    return tensor->data<std::string>()[i];
  }

  ModelVariables& out_;
  const std::string dir_;
  const FileSystem files_;
  std::map<const ModelVariable*, int> numbers_;
};

void ModelVariables::TraceCopy(const Function& original, Function& copy) {
  VariableTracer(*this, "", FileSystem::Nothing()).Copy(original, copy);
}

StatusOr<std::unique_ptr<ModelVariables>> ModelVariables::Trace(MetaGraph& meta,
                                                                const std::string& dir,
                                                                const FileSystem& files,
                                                                StrippedCheckpoint stripped) {
  auto out = std::unique_ptr<ModelVariables>(new ModelVariables(meta));
  out->stripped_ = std::move(stripped);
  RETURN_IF_ERROR(VariableTracer(*out, dir, files).Run());
  return out;
}

}  // namespace smelt
