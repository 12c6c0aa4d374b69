#include "smelt/wire/saved_model/serving_objects.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/saved_model.pb.h"

namespace smelt {
namespace {

using tensorflow::SavedObject;
using tensorflow::SavedObjectGraph;
using tensorflow::TrackableObjectGraph;
using Reference = TrackableObjectGraph::TrackableObject::ObjectReference;

constexpr char kGenericObject[] = "_generic_user_object";

bool IsKeras(const SavedObject& o) {
  return absl::StartsWith(o.user_object().identifier(), "_tf_keras_");
}
bool IsSignatures(const SavedObject& o) { return o.user_object().identifier() == "signature_map"; }
// Its children are named by their positions.
bool IsList(const SavedObject& o) {
  const std::string& id = o.user_object().identifier();
  return id == "trackable_list_wrapper" || id == "trackable_tuple_wrapper";
}

// Optimizers and metrics. Keras 3 does not say what its optimizers are: they are known by what
// every one of them holds.
bool OnlyTrains(const SavedObject& o) {
  const std::string& id = o.user_object().identifier();
  if (id == "optimizer" || id == "experimentalOptimizer" || id == "_tf_keras_metric") return true;
  if (o.slot_variables_size() > 0) return true;
  int found = 0;
  for (const Reference& child : o.children()) {
    const std::string& name = child.local_name();
    found += name == "_iterations" || name == "_variables" || name == "_trainable_variables";
  }
  return found == 3;
}

// The truth of the argument `training` in a trace's (positional arguments, keyword arguments).
bool TracedForTraining(const tensorflow::StructuredValue& signature,
                       const tensorflow::FunctionSpec& spec) {
  const auto named = [](const std::string& name) {
    return name == "training" || name == "is_training";
  };
  const auto& both = signature.tuple_value().values();
  if (both.size() != 2) return false;
  for (const auto& [name, value] : both[1].dict_value().fields()) {
    if (named(name) && value.bool_value()) return true;
  }
  for (const auto& field : spec.fullargspec().named_tuple_value().values()) {
    if (field.key() != "args") continue;
    int position = 0;
    for (const auto& name : field.value().list_value().values()) {
      if (position == 0 && spec.is_method() && name.string_value() == "self") continue;
      if (position >= both[0].tuple_value().values_size()) return false;
      const auto& value = both[0].tuple_value().values(position++);
      if (named(name.string_value()) && value.bool_value()) return true;
    }
  }
  return false;
}

class ServingObjectKeeper {
 public:
  ServingObjectKeeper(SavedObjectGraph& saved, TrackableObjectGraph& checkpoint,
                      const std::function<bool(const std::string&)>& graph_trains)
      : saved_(saved), checkpoint_(checkpoint), graph_trains_(graph_trains) {}

  StatusOr<ServingObjects> Run() {
    RETURN_IF_ERROR(CheckNumbers());
    const size_t n = static_cast<size_t>(saved_.nodes_size());
    only_trains_.resize(n), outermost_.resize(n), reached_.resize(n), kept_.resize(n);
    for (int i = 0; i < saved_.nodes_size(); ++i) only_trains_[i] = i > 0 && OnlyTrains(Object(i));
    FindOutermostKeras();
    FindTrainingFunctions();
    Reach();
    KeepUseful();
    KeepNeededElsewhere();
    FindTwins();
    return Write();
  }

 private:
  const SavedObject& Object(int i) const { return saved_.nodes(i); }

  Status CheckNumbers() const {
    const auto is_node = [](const auto& graph, int i) { return i >= 0 && i < graph.nodes_size(); };
    const auto check = [&](const auto& graph) {
      for (const auto& node : graph.nodes()) {
        for (const Reference& c : node.children()) {
          if (!is_node(graph, c.node_id())) return false;
        }
        for (const auto& s : node.slot_variables()) {
          if (!is_node(graph, s.slot_variable_node_id()) ||
              !is_node(graph, s.original_variable_node_id())) {
            return false;
          }
        }
      }
      return true;
    };
    bool ok = check(saved_) && check(checkpoint_);
    for (const SavedObject& o : saved_.nodes()) {
      for (const Reference& d : o.dependencies()) ok = ok && is_node(saved_, d.node_id());
      for (const auto& [name, saveable] : o.saveable_objects()) {
        ok = ok && is_node(saved_, saveable.save_function());
        ok = ok && is_node(saved_, saveable.restore_function());
      }
    }
    for (const auto& [name, f] : saved_.concrete_functions()) {
      for (const int id : f.bound_inputs()) ok = ok && is_node(saved_, id);
    }
    return ok ? OkStatus() : DataLoss("the object graph names objects that it does not have");
  }

  // Does the child belong to what serves? Functions are judged by their traces.
  bool Serves(int parent, const Reference& child) const {
    static const auto* const kKerasOwn =
        new absl::flat_hash_set<std::string>({"keras_api", "call_and_return_conditional_losses",
                                              "call_and_return_all_conditional_losses",
                                              "activity_regularizer_fn", "regularization_losses"});
    const std::string& name = child.local_name();
    if (only_trains_[child.node_id()]) return false;
    if (name == "_default_save_signature") return false;  // signatures call it by themselves
    if (parent == 0 && name == "regularization_losses") return false;
    if (!IsKeras(Object(parent))) return true;
    if (kKerasOwn->contains(name)) return false;
    return outermost_[parent] || !Object(child.node_id()).has_function();
  }

  // Users call a Keras model; the calls of the layers within are for making them anew.
  void FindOutermostKeras() {
    std::vector<bool> seen(kept_.size());
    std::vector<int> stack = {0};
    seen[0] = true;
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      if (IsKeras(Object(i))) {
        outermost_[i] = true;
        continue;
      }
      for (const Reference& c : Object(i).children()) {
        if (seen[c.node_id()] || only_trains_[c.node_id()]) continue;
        seen[c.node_id()] = true;
        stack.push_back(c.node_id());
      }
    }
  }

  // The nodes that `start` reaches through children for which follow(parent, child) holds.
  template <typename Follow>
  std::vector<bool> Closure(std::vector<int> start, const Follow& follow) const {
    std::vector<bool> seen(kept_.size());
    for (const int i : start) seen[i] = true;
    while (!start.empty()) {
      const int i = start.back();
      start.pop_back();
      const auto visit = [&](int child) {
        if (!seen[child]) {
          seen[child] = true;
          start.push_back(child);
        }
      };
      for (const Reference& c : Object(i).children()) {
        if (follow(i, c)) visit(c.node_id());
      }
      for (const auto& [name, saveable] : Object(i).saveable_objects()) {
        visit(saveable.save_function());
        visit(saveable.restore_function());
      }
    }
    return seen;
  }

  void FindTrainingFunctions() {
    const std::vector<bool> served =
        Closure({0}, [&](int parent, const Reference& c) { return Serves(parent, c); });
    std::set<std::string> signatures;
    std::map<std::string, const tensorflow::FunctionSpec*> specs;
    for (const SavedObject& o : saved_.nodes()) {
      if (IsSignatures(o)) {
        for (const Reference& c : o.children()) {
          signatures.insert(Object(c.node_id()).bare_concrete_function().concrete_function_name());
        }
      }
      for (const std::string& f : o.function().concrete_functions()) {
        specs[f] = &o.function().function_spec();
      }
    }
    for (const auto& [name, f] : saved_.concrete_functions()) {
      if (signatures.contains(name)) continue;
      const auto spec = specs.find(name);
      bool trains = graph_trains_(name);
      trains |= spec != specs.end() &&
                TracedForTraining(f.canonicalized_input_signature(), *spec->second);
      // What an optimizer or a metric alone holds.
      for (const int id : f.bound_inputs()) trains |= Object(id).has_variable() && !served[id];
      if (trains) training_functions_.insert(name);
    }
  }

  bool Stays(const std::string& function) const { return !training_functions_.contains(function); }

  void Reach() {
    reached_ = Closure({0}, [&](int parent, const Reference& c) {
      const SavedObject& child = Object(c.node_id());
      if (!Serves(parent, c)) return false;
      return !child.has_bare_concrete_function() ||
             Stays(child.bare_concrete_function().concrete_function_name());
    });
    std::set<std::string> functions;
    for (int i = 0; i < saved_.nodes_size(); ++i) {
      if (!reached_[i]) continue;
      for (const std::string& f : Object(i).function().concrete_functions()) {
        if (Stays(f)) functions.insert(f);
      }
      if (Object(i).has_bare_concrete_function()) {
        functions.insert(Object(i).bare_concrete_function().concrete_function_name());
      }
    }
    // A captured tensor is computed by a function, which is needed with all that it captures.
    std::vector<std::string> stack(functions.begin(), functions.end());
    while (!stack.empty()) {
      const auto f = saved_.concrete_functions().find(stack.back());
      stack.pop_back();
      if (f == saved_.concrete_functions().end()) continue;
      for (const int id : f->second.bound_inputs()) {
        needed_.insert(id);
        if (!Object(id).has_captured_tensor()) continue;
        const std::string& other = Object(id).captured_tensor().concrete_function();
        if (functions.insert(other).second) stack.push_back(other);
      }
    }
    out_.functions = std::move(functions);
  }

  bool UsefulItself(int i) const {
    const SavedObject& o = Object(i);
    if (o.has_function()) {
      return std::ranges::any_of(o.function().concrete_functions(),
                                 [&](const std::string& f) { return Stays(f); });
    }
    return i == 0 || needed_.contains(i) || o.has_bare_concrete_function() || o.has_asset() ||
           o.has_resource() || IsSignatures(o);
  }

  // An object stays for what it holds; a list keeps the objects in it, whose positions users know.
  void KeepUseful() {
    std::vector<std::vector<int>> parents(kept_.size());
    std::vector<int> stack;
    const auto keep = [&](int i) {
      if (kept_[i] || !reached_[i]) return;
      kept_[i] = true;
      stack.push_back(i);
    };
    for (int i = 0; i < saved_.nodes_size(); ++i) {
      if (!reached_[i]) continue;
      for (const Reference& c : Object(i).children()) {
        if (Serves(i, c)) parents[c.node_id()].push_back(i);
      }
      if (UsefulItself(i)) keep(i);
    }
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      for (const int parent : parents[i]) keep(parent);
      for (const auto& [name, saveable] : Object(i).saveable_objects()) {
        keep(saveable.save_function());
        keep(saveable.restore_function());
      }
      for (const Reference& c : Object(i).children()) {
        const bool holds = IsList(Object(i)) && Object(c.node_id()).has_user_object();
        if (Serves(i, c) && (holds || Object(i).has_function())) keep(c.node_id());
      }
    }
  }

  // A function that stays may read what only an optimizer holds: then the way to it stays.
  void KeepNeededElsewhere() {
    std::vector<int> from(kept_.size(), -1), queue = {0};
    for (size_t next = 0; next < queue.size(); ++next) {
      const int i = queue[next];
      const auto visit = [&](int child) {
        if (child == 0 || from[child] >= 0) return;
        from[child] = i;
        queue.push_back(child);
      };
      for (const Reference& c : Object(i).children()) visit(c.node_id());
      for (const auto& s : Object(i).slot_variables()) visit(s.slot_variable_node_id());
    }
    for (int id : needed_) {
      while (!kept_[id]) {
        kept_[id] = true;
        if (from[id] < 0) break;  // a constant: nothing holds it
        forced_.insert({from[id], id});
        id = from[id];
      }
    }
  }

  bool KeepsEdge(int parent, const Reference& c) const {
    return kept_[c.node_id()] && (Serves(parent, c) || forced_.contains({parent, c.node_id()}));
  }
  template <typename Slot>
  bool KeepsSlot(int owner, const Slot& s) const {
    return kept_[owner] && kept_[s.slot_variable_node_id()] && kept_[s.original_variable_node_id()];
  }

  // The checkpoint's object for each that stays: reached by the same names.
  void FindTwins() {
    twin_.assign(kept_.size(), -1);
    if (checkpoint_.nodes_size() == 0 || saved_.nodes_size() == 0) return;
    twin_[0] = 0;
    std::vector<int> stack = {0};
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      for (const Reference& c : Object(i).children()) {
        if (!KeepsEdge(i, c) || twin_[c.node_id()] >= 0) continue;
        for (const Reference& other : checkpoint_.nodes(twin_[i]).children()) {
          if (other.local_name() != c.local_name()) continue;
          twin_[c.node_id()] = other.node_id();
          stack.push_back(c.node_id());
          break;
        }
      }
    }
    for (int i = 0; i < saved_.nodes_size(); ++i) {
      if (twin_[i] < 0) continue;
      for (const auto& s : Object(i).slot_variables()) {
        if (!KeepsSlot(i, s) || twin_[s.slot_variable_node_id()] >= 0) continue;
        for (const auto& other : checkpoint_.nodes(twin_[i]).slot_variables()) {
          if (other.slot_name() == s.slot_name() &&
              other.original_variable_node_id() == twin_[s.original_variable_node_id()]) {
            twin_[s.slot_variable_node_id()] = other.slot_variable_node_id();
          }
        }
      }
    }
  }

  // The names of the children of a list that loses some.
  std::map<std::string, std::string> NewPositions(int i) const {
    std::map<int, std::string> stay;
    for (const Reference& c : Object(i).children()) {
      int position;
      if (IsList(Object(i)) && KeepsEdge(i, c) && absl::SimpleAtoi(c.local_name(), &position)) {
        stay[position] = c.local_name();
      }
    }
    std::map<std::string, std::string> names;
    int next = 0;
    for (const auto& [position, name] : stay) names[name] = std::to_string(next++);
    return names;
  }

  StatusOr<ServingObjects> Write() {
    std::vector<int> number(kept_.size(), -1);
    int next = 0;
    for (int i = 0; i < saved_.nodes_size(); ++i) {
      if (kept_[i]) number[i] = next++;
    }
    std::vector<bool> checkpoint_kept(static_cast<size_t>(checkpoint_.nodes_size()));
    for (const int twin : twin_) {
      if (twin >= 0) checkpoint_kept[twin] = true;
    }
    std::vector<int> checkpoint_number(checkpoint_kept.size(), -1);
    next = 0;
    for (size_t i = 0; i < checkpoint_kept.size(); ++i) {
      if (checkpoint_kept[i]) checkpoint_number[i] = next++;
    }
    TrackableObjectGraph checkpoint = checkpoint_;
    for (auto& node : *checkpoint.mutable_nodes()) {
      node.clear_children();
      node.clear_slot_variables();
    }
    SavedObjectGraph saved = saved_;
    saved.clear_nodes();
    for (int i = 0; i < saved_.nodes_size(); ++i) {
      if (!kept_[i]) continue;
      const std::map<std::string, std::string> positions = NewPositions(i);
      const auto renamed = [&](const Reference& c) {
        const auto it = positions.find(c.local_name());
        return it == positions.end() ? c.local_name() : it->second;
      };
      SavedObject& o = *saved.add_nodes() = Object(i);
      o.clear_children(), o.clear_dependencies(), o.clear_slot_variables();
      absl::flat_hash_set<std::string> names;
      for (const Reference& c : Object(i).children()) {
        if (!KeepsEdge(i, c)) continue;
        names.insert(c.local_name());
        Reference& to = *o.add_children() = c;
        to.set_node_id(number[c.node_id()]);
        to.set_local_name(renamed(c));
      }
      for (const Reference& d : Object(i).dependencies()) {
        if (!kept_[d.node_id()]) continue;
        Reference& to = *o.add_dependencies() = d;
        to.set_node_id(number[d.node_id()]);
      }
      for (const auto& s : Object(i).slot_variables()) {
        if (!KeepsSlot(i, s)) continue;
        auto& to = *o.add_slot_variables() = s;
        to.set_slot_variable_node_id(number[s.slot_variable_node_id()]);
        to.set_original_variable_node_id(number[s.original_variable_node_id()]);
      }
      WriteKind(number, o);
      if (o.has_constant()) out_.constants.insert(o.constant().operation());
      if (twin_[i] < 0) continue;
      auto& other = *checkpoint.mutable_nodes(twin_[i]);
      for (const Reference& c : checkpoint_.nodes(twin_[i]).children()) {
        if (!names.contains(c.local_name()) || !checkpoint_kept[c.node_id()]) continue;
        Reference& to = *other.add_children() = c;
        to.set_node_id(checkpoint_number[c.node_id()]);
        to.set_local_name(renamed(c));
      }
      for (const auto& s : checkpoint_.nodes(twin_[i]).slot_variables()) {
        if (checkpoint_number[s.slot_variable_node_id()] < 0) continue;
        if (checkpoint_number[s.original_variable_node_id()] < 0) continue;
        auto& to = *other.add_slot_variables() = s;
        to.set_slot_variable_node_id(checkpoint_number[s.slot_variable_node_id()]);
        to.set_original_variable_node_id(checkpoint_number[s.original_variable_node_id()]);
      }
    }
    WriteFunctions(number, saved);
    TrackableObjectGraph kept_checkpoint = checkpoint;
    kept_checkpoint.clear_nodes();
    for (int i = 0; i < checkpoint.nodes_size(); ++i) {
      if (!checkpoint_kept[i]) continue;
      *kept_checkpoint.add_nodes() = checkpoint.nodes(i);
      for (const auto& a : checkpoint.nodes(i).attributes()) {
        out_.entries.insert(a.checkpoint_key());
      }
    }
    out_.removed = saved_.nodes_size() - saved.nodes_size();
    ASSIGN_OR_RETURN(out_.object_graph, SerializeProto(saved));
    if (checkpoint_.nodes_size() > 0) {
      ASSIGN_OR_RETURN(out_.checkpoint_graph, SerializeProto(kept_checkpoint));
    }
    return std::move(out_);
  }

  void WriteKind(const std::vector<int>& number, SavedObject& o) const {
    for (auto& [name, saveable] : *o.mutable_saveable_objects()) {
      saveable.set_save_function(number[saveable.save_function()]);
      saveable.set_restore_function(number[saveable.restore_function()]);
    }
    if (IsKeras(o)) {
      // Without keras_api and its metadata Keras cannot make the layer anew: it is an object whose
      // functions can be called, as those of an exported model are.
      o.mutable_user_object()->clear_metadata();
      o.mutable_user_object()->set_identifier(kGenericObject);
    }
    if (o.has_function()) {
      auto& names = *o.mutable_function()->mutable_concrete_functions();
      names.erase(std::remove_if(names.begin(), names.end(),
                                 [&](const std::string& f) { return !Stays(f); }),
                  names.end());
    }
  }

  void WriteFunctions(const std::vector<int>& number, SavedObjectGraph& saved) const {
    saved.clear_concrete_functions();
    for (const auto& [name, f] : saved_.concrete_functions()) {
      if (!out_.functions.contains(name)) continue;
      auto& to = (*saved.mutable_concrete_functions())[name] = f;
      for (int& id : *to.mutable_bound_inputs()) id = number[id];
    }
  }

  SavedObjectGraph& saved_;
  TrackableObjectGraph& checkpoint_;
  const std::function<bool(const std::string&)>& graph_trains_;
  // By number of an object.
  std::vector<bool> only_trains_, outermost_, reached_, kept_;
  std::vector<int> twin_;  // its number in the checkpoint; -1: it is not there
  std::set<std::string> training_functions_;
  std::set<int> needed_;  // what functions that stay capture
  std::set<std::pair<int, int>> forced_;
  ServingObjects out_;
};

}  // namespace

StatusOr<ServingObjects> KeepServingObjects(
    const std::string& object_graph, const std::string& checkpoint_graph,
    const std::function<bool(const std::string& function)>& trains) {
  SavedObjectGraph saved;
  TrackableObjectGraph checkpoint;
  RETURN_IF_ERROR(ParseBinaryProto(object_graph, "SavedObjectGraph as binary proto", &saved));
  RETURN_IF_ERROR(
      ParseBinaryProto(checkpoint_graph, "TrackableObjectGraph as binary proto", &checkpoint));
  if (saved.nodes_size() == 0) return DataLoss("the object graph has no root");
  return ServingObjectKeeper(saved, checkpoint, trains).Run();
}

}  // namespace smelt
