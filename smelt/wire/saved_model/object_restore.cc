#include "smelt/wire/saved_model/object_restore.h"

#include <memory>
#include <vector>

#include "google/protobuf/arena.h"
#include "smelt/base/parallel.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/saved_model.pb.h"

namespace smelt {
namespace {

constexpr absl::string_view kVariableValue = "VARIABLE_VALUE";

template <typename ObjectGraphProto>
bool IsNode(const ObjectGraphProto& graph, int id) {
  return id >= 0 && id < graph.nodes_size();
}

// Checkpoint key of each saved object that is a variable, found by walking both graphs together.
std::map<int, std::string> KeysByObject(const tensorflow::SavedObjectGraph& saved,
                                        const tensorflow::TrackableObjectGraph& checkpoint) {
  std::map<int, std::string> keys;
  if (saved.nodes_size() == 0 || checkpoint.nodes_size() == 0) return keys;
  std::vector<int> twin(static_cast<size_t>(saved.nodes_size()), -1);
  const auto take = [&](int id, int other) {
    twin[id] = other;
    for (const auto& attribute : checkpoint.nodes(other).attributes()) {
      if (attribute.name() == kVariableValue) keys[id] = attribute.checkpoint_key();
    }
  };
  std::vector<int> stack = {0};
  take(0, 0);
  while (!stack.empty()) {
    const int id = stack.back();
    stack.pop_back();
    const auto& other = checkpoint.nodes(twin[id]);
    for (const auto& child : saved.nodes(id).children()) {
      if (child.node_id() < 0 || child.node_id() >= saved.nodes_size() ||
          twin[child.node_id()] >= 0) {
        continue;
      }
      for (const auto& candidate : other.children()) {
        if (candidate.local_name() != child.local_name() || candidate.node_id() < 0 ||
            candidate.node_id() >= checkpoint.nodes_size()) {
          continue;
        }
        take(child.node_id(), candidate.node_id());
        stack.push_back(child.node_id());
        break;
      }
    }
  }
  // Slots of optimizers are no children: they are found by variable and slot name.
  for (int id = 0; id < saved.nodes_size(); ++id) {
    if (twin[id] < 0) continue;
    for (const auto& slot : saved.nodes(id).slot_variables()) {
      const int node = slot.slot_variable_node_id();
      if (!IsNode(saved, node) || !IsNode(saved, slot.original_variable_node_id())) continue;
      for (const auto& candidate : checkpoint.nodes(twin[id]).slot_variables()) {
        if (candidate.slot_name() == slot.slot_name() && twin[node] < 0 &&
            IsNode(checkpoint, candidate.slot_variable_node_id()) &&
            candidate.original_variable_node_id() == twin[slot.original_variable_node_id()]) {
          take(node, candidate.slot_variable_node_id());
        }
      }
    }
  }
  return keys;
}

// A model's object graph and that of its checkpoint, which go together.
struct BothGraphs {
  std::unique_ptr<google::protobuf::Arena> arena = std::make_unique<google::protobuf::Arena>();
  tensorflow::SavedObjectGraph& saved =
      *google::protobuf::Arena::CreateMessage<tensorflow::SavedObjectGraph>(arena.get());
  tensorflow::TrackableObjectGraph& checkpoint =
      *google::protobuf::Arena::CreateMessage<tensorflow::TrackableObjectGraph>(arena.get());
};

StatusOr<BothGraphs> ParseBoth(const std::string& object_graph,
                               const std::string& checkpoint_graph) {
  BothGraphs both;
  bool saved = false, checkpoint = false;
  ParallelFor(2, 1, [&](int64_t begin, int64_t end) {
    if (begin == 0) saved = both.saved.ParseFromString(object_graph);
    if (end == 2) checkpoint = both.checkpoint.ParseFromString(checkpoint_graph);
  });
  if (!saved) return DataLoss("the model's object graph does not parse");
  if (!checkpoint) return DataLoss("the checkpoint's object graph does not parse");
  return both;
}

}  // namespace

StatusOr<std::map<int, std::string>> VariableObjectKeys(const std::string& object_graph,
                                                        const std::string& checkpoint_graph) {
  if (object_graph.empty() || checkpoint_graph.empty()) return std::map<int, std::string>();
  ASSIGN_OR_RETURN(const BothGraphs both, ParseBoth(object_graph, checkpoint_graph));
  auto& saved = both.saved;
  auto& checkpoint = both.checkpoint;
  std::map<int, std::string> keys = KeysByObject(saved, checkpoint);
  std::erase_if(keys, [&](const auto& k) { return !saved.nodes(k.first).has_variable(); });
  return keys;
}

StatusOr<std::map<std::string, std::set<std::string>>> VariableSlots(
    const std::string& object_graph, const std::string& checkpoint_graph) {
  std::map<std::string, std::set<std::string>> out;
  if (object_graph.empty() || checkpoint_graph.empty()) return out;
  ASSIGN_OR_RETURN(const BothGraphs both, ParseBoth(object_graph, checkpoint_graph));
  auto& saved = both.saved;
  auto& checkpoint = both.checkpoint;
  const std::map<int, std::string> keys = KeysByObject(saved, checkpoint);
  for (const auto& node : saved.nodes()) {
    for (const auto& slot : node.slot_variables()) {
      auto variable = keys.find(slot.original_variable_node_id());
      auto entry = keys.find(slot.slot_variable_node_id());
      if (variable != keys.end() && entry != keys.end()) {
        out[variable->second].insert(entry->second);
      }
    }
  }
  return out;
}

StatusOr<std::string> RetypeVariableObjects(const std::string& object_graph,
                                            const std::string& checkpoint_graph,
                                            const std::map<std::string, Dtype>& types) {
  if (checkpoint_graph.empty()) return object_graph;
  ASSIGN_OR_RETURN(const BothGraphs both, ParseBoth(object_graph, checkpoint_graph));
  auto& saved = both.saved;
  auto& checkpoint = both.checkpoint;
  for (const auto& [id, key] : KeysByObject(saved, checkpoint)) {
    auto it = types.find(key);
    if (it == types.end() || !saved.nodes(id).has_variable()) continue;
    saved.mutable_nodes(id)->mutable_variable()->set_dtype(
        static_cast<tensorflow::DataType>(it->second));
  }
  return SerializeProto(saved);
}

StatusOr<std::map<std::string, std::string>> VariableKeys(const MetaGraph& meta, const Graph& graph,
                                                          const std::string& checkpoint_graph) {
  std::map<std::string, std::string> out;
  if (meta.object_graph.empty() || checkpoint_graph.empty()) return out;
  ASSIGN_OR_RETURN(const BothGraphs both, ParseBoth(meta.object_graph, checkpoint_graph));
  auto& saved = both.saved;
  auto& checkpoint = both.checkpoint;
  const std::map<int, std::string> keys = KeysByObject(saved, checkpoint);
  std::map<std::string, int> named;  // object by variable name; -1: several
  for (int i = 0; i < saved.nodes_size(); ++i) {
    if (!saved.nodes(i).has_variable()) continue;
    auto [it, added] = named.try_emplace(saved.nodes(i).variable().name(), i);
    if (!added) it->second = -1;
  }
  for (const Node* n : graph.Nodes()) {
    const FuncAttr* f = n->Func("f");
    if (f != nullptr) {
      auto it = saved.concrete_functions().find(f->name);
      if (it == saved.concrete_functions().end()) continue;
      const auto& bound = it->second.bound_inputs();
      const int first = n->num_inputs() - bound.size();
      for (int i = 0; i < bound.size() && first >= 0; ++i) {
        const Node* handle = n->inputs()[first + i].node;
        auto key = keys.find(bound[i]);
        if (handle->Is("VarHandleOp") && key != keys.end()) out[handle->name()] = key->second;
      }
    } else if (n->Is("VarHandleOp") && !out.contains(n->name())) {
      auto it = named.find(n->String("shared_name"));
      auto key = it == named.end() ? keys.end() : keys.find(it->second);
      if (key != keys.end()) out[n->name()] = key->second;
    }
  }
  return out;
}

}  // namespace smelt
