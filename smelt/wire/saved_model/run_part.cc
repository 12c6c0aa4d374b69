#include "smelt/wire/saved_model/run_part.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "smelt/base/team.h"
#include "smelt/wire/example/example_reader.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/saved_model.pb.h"

namespace smelt {
namespace {

// A message may be nested so deep, as in protobuf's own readers.
constexpr int kDeepestCallee = 100;

// Calls visit(number, value) for each field whose value is a length and as many bytes, and adds the
// bytes of all fields that it did not take (returned false for) to *rest, unless that is nullptr.
// False where the bytes do not parse, or have groups.
template <typename Visit>
bool ForEachField(absl::string_view message, std::string* rest, Visit visit) {
  WireCursor in(message);
  while (!in.done()) {
    const char* const begin = in.p;
    uint64_t tag = 0;
    absl::string_view value;
    if (!in.Varint(&tag) || tag >> 32 != 0) return false;
    const bool has_bytes = (tag & 7) == 2;
    if (has_bytes ? !in.Bytes(&value) : !in.SkipField(tag)) return false;
    const bool taken = has_bytes && visit(static_cast<uint32_t>(tag >> 3), value);
    if (!taken && rest != nullptr) rest->append(begin, static_cast<size_t>(in.p - begin));
  }
  return true;
}

template <typename Message>
bool ParseField(absl::string_view bytes, Message* to) {
  return bytes.size() <= INT_MAX &&
         to->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// The key and the value of a map's entry.
bool ReadEntry(absl::string_view entry, absl::string_view* key, absl::string_view* value) {
  return ForEachField(entry, nullptr, [&](uint32_t number, absl::string_view bytes) {
    if (number == 1) *key = bytes;
    if (number == 2) *value = bytes;
    return true;
  });
}

using Names = std::vector<absl::string_view>;

bool NamesInValue(absl::string_view value, int depth, Names* out);

// NameAttrList {name = 1; map<string, AttrValue> attr = 2}
bool NamesInFunc(absl::string_view func, int depth, Names* out) {
  bool ok = depth < kDeepestCallee;
  ok = ok && ForEachField(func, nullptr, [&](uint32_t number, absl::string_view bytes) {
         absl::string_view key, value;
         if (number == 1) out->push_back(bytes);
         if (number == 2)
           ok &= ReadEntry(bytes, &key, &value) && NamesInValue(value, depth + 1, out);
         return true;
       });
  return ok;
}

// AttrValue {list = 1 {repeated NameAttrList func = 9}; NameAttrList func = 10}
bool NamesInValue(absl::string_view value, int depth, Names* out) {
  bool ok = true;
  ok &= ForEachField(value, nullptr, [&](uint32_t number, absl::string_view bytes) {
    if (number == 10) ok &= NamesInFunc(bytes, depth, out);
    if (number == 1) {
      ok &= ForEachField(bytes, nullptr, [&](uint32_t in_list, absl::string_view func) {
        if (in_list == 9) ok &= NamesInFunc(func, depth, out);
        return true;
      });
    }
    return true;
  });
  return ok;
}

// NodeDef {name = 1; op = 2; repeated string input = 3; map<string, AttrValue> attr = 5}
struct NodeFields {
  absl::string_view name, op;
  Names inputs;
  Names callees;  // in attributes; they may be no functions
};
bool ReadNode(absl::string_view node, NodeFields* out) {
  bool ok = true;
  ok &= ForEachField(node, nullptr, [&](uint32_t number, absl::string_view bytes) {
    absl::string_view key, value;
    if (number == 1) out->name = bytes;
    if (number == 2) out->op = bytes;
    if (number == 3) out->inputs.push_back(bytes);
    if (number == 5) {
      ok &= ReadEntry(bytes, &key, &value) && NamesInValue(value, 0, &out->callees);
    }
    return true;
  });
  return ok;
}

// FunctionDef {signature = 1 {name = 1}; repeated NodeDef node_def = 3; map<..> attr = 5}
struct FunctionFields {
  absl::string_view bytes, name, interface;
  Names nodes;
  bool needed = false;
};
bool ReadFunction(absl::string_view function, FunctionFields* out) {
  out->bytes = function;
  bool ok = true;
  int signatures = 0;
  ok &= ForEachField(function, nullptr, [&](uint32_t number, absl::string_view bytes) {
    if (number == 3) out->nodes.push_back(bytes);
    if (number == 1) {
      ++signatures;
      ok &= ForEachField(bytes, nullptr, [&](uint32_t in_signature, absl::string_view name) {
        if (in_signature == 1) out->name = name;
        return true;
      });
    }
    if (number == 5) {
      absl::string_view key, value;
      ok &= ReadEntry(bytes, &key, &value);
      if (key != "api_implements") return true;
      ok &= ForEachField(value, nullptr, [&](uint32_t kind, absl::string_view text) {
        if (kind == 2) out->interface = text;
        return true;
      });
    }
    return true;
  });
  return ok && signatures == 1;
}

// The node that "node", "node:1" or "^node" names.
absl::string_view NodeOfTensor(absl::string_view tensor) {
  absl::ConsumePrefix(&tensor, "^");
  return tensor.substr(0, tensor.find(':'));
}

void AddTensors(const tensorflow::TensorInfo& info, std::vector<std::string>* out) {
  out->push_back(info.name());
  out->push_back(info.coo_sparse().values_tensor_name());
  out->push_back(info.coo_sparse().indices_tensor_name());
  out->push_back(info.coo_sparse().dense_shape_tensor_name());
  for (const auto& part : info.composite_tensor().components()) AddTensors(part, out);
}

// The tensors and nodes of the graph that something beside the graph names, and that a run needs.
std::vector<std::string> NamedBy(const tensorflow::MetaGraphDef& meta) {
  std::vector<std::string> out;
  for (const auto& [key, signature] : meta.signature_def()) {
    for (const auto& [name, info] : signature.inputs()) AddTensors(info, &out);
    for (const auto& [name, info] : signature.outputs()) AddTensors(info, &out);
  }
  out.push_back(meta.saver_def().filename_tensor_name());
  out.push_back(meta.saver_def().restore_op_name());
  for (const auto& asset : meta.asset_file_def()) AddTensors(asset.tensor_info(), &out);
  for (const auto& [key, collection] : meta.collection_def()) {
    if (key == "saved_model_main_op" || key == "legacy_init_op") {
      for (const std::string& name : collection.node_list().value()) out.push_back(name);
    } else if (key == "saved_model_assets") {
      tensorflow::AssetFileDef asset;
      for (const auto& any : collection.any_list().value()) {
        if (any.UnpackTo(&asset)) AddTensors(asset.tensor_info(), &out);
      }
    }
  }
  return out;
}

// GraphDef {repeated NodeDef node = 1; FunctionDefLibrary library = 2}
// FunctionDefLibrary {repeated FunctionDef function = 1; repeated GradientDef gradient = 2}
class RunPart {
 public:
  // `object_graph` is to parse, too.
  bool Read(absl::string_view graph, absl::string_view object_graph,
            const tensorflow::MetaGraphDef& meta, tensorflow::GraphDef* out) {
    std::string rest, library_rest;
    bool ok = true;
    int libraries = 0;
    ok &= ForEachField(graph, &rest, [&](uint32_t number, absl::string_view bytes) {
      if (number == 1) nodes_.push_back(bytes);
      if (number == 2) {
        ++libraries;
        ok &= ForEachField(bytes, &library_rest, [&](uint32_t in_library, absl::string_view f) {
          if (in_library == 1) ok &= ReadFunction(f, &functions_.emplace_back());
          return in_library == 1;
        });
      }
      return number == 1 || number == 2;
    });
    ok = ok && libraries <= 1 && ParseField(rest, out);
    if (libraries == 1) ok = ok && ParseField(library_rest, out->mutable_library());
    if (!ok) return false;
    for (size_t i = 0; i < functions_.size(); ++i) {
      // A second one of the name is an error that the reader of the whole has words for.
      if (!by_name_.try_emplace(functions_[i].name, i).second) return false;
      if (const auto interface = functions_[i].interface; !interface.empty()) {
        by_interface_[interface].push_back(i);
      }
    }
    for (const auto& g : out->library().gradient()) {
      gradients_[g.function_name()] = g.gradient_func();
    }
    if (!FindNodes(meta) || !FindFunctions()) return false;
    return Parse(object_graph, out);
  }

 private:
  // What is needed, which is most of the message: functions and runs of nodes by all threads.
  bool Parse(absl::string_view object_graph, tensorflow::GraphDef* out) const {
    struct Piece {
      absl::string_view bytes;
      google::protobuf::MessageLite* to;
    };
    google::protobuf::Arena arena;
    std::vector<Piece> pieces = {
        {object_graph,
         google::protobuf::Arena::CreateMessage<tensorflow::SavedObjectGraph>(&arena)}};
    for (const FunctionFields& f : functions_) {
      if (f.needed) pieces.push_back({f.bytes, out->mutable_library()->add_function()});
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (needed_[i]) pieces.push_back({nodes_[i], out->add_node()});
    }
    std::ranges::stable_sort(pieces, std::greater(), [](const Piece& p) { return p.bytes.size(); });
    std::atomic<size_t> next = 0;
    std::atomic<bool> ok = true;
    RunTeam(Threads(), [&] {
      for (size_t i; ok && (i = next++) < pieces.size();) {
        if (!ParseField(pieces[i].bytes, pieces[i].to)) ok = false;
      }
    });
    return ok;
  }

  // Sets needed_, and wants what the nodes call.
  bool FindNodes(const tensorflow::MetaGraphDef& meta) {
    std::vector<NodeFields> fields(nodes_.size());
    absl::flat_hash_map<absl::string_view, size_t> places;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!ReadNode(nodes_[i], &fields[i]) || !places.try_emplace(fields[i].name, i).second) {
        return false;
      }
    }
    needed_.assign(nodes_.size(), false);
    std::vector<size_t> stack;
    const auto need = [&](size_t node) {
      if (!needed_[node]) stack.push_back(node);
      needed_[node] = true;
    };
    const auto need_named = [&](absl::string_view tensor) {
      if (auto it = places.find(NodeOfTensor(tensor)); it != places.end()) need(it->second);
    };
    const absl::string_view save = NodeOfTensor(meta.saver_def().save_tensor_name());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      // Calls say which objects their arguments are.
      if (fields[i].name != save && !fields[i].callees.empty()) need(i);
    }
    for (const std::string& tensor : NamedBy(meta)) need_named(tensor);
    while (!stack.empty()) {
      const size_t node = stack.back();
      stack.pop_back();
      for (const absl::string_view input : fields[node].inputs) need_named(input);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!needed_[i]) continue;
      WantFunction(fields[i].op);
      for (const absl::string_view name : fields[i].callees) WantFunction(name);
    }
    return true;
  }

  void WantFunction(absl::string_view name) {
    auto it = by_name_.find(name);
    if (it == by_name_.end() || functions_[it->second].needed) return;
    functions_[it->second].needed = true;
    wanted_.push_back(it->second);
  }

  bool FindFunctions() {
    while (!wanted_.empty()) {
      const FunctionFields& f = functions_[wanted_.back()];
      wanted_.pop_back();
      for (const absl::string_view node : f.nodes) {
        NodeFields fields;
        if (!ReadNode(node, &fields)) return false;
        WantFunction(fields.op);
        for (const absl::string_view name : fields.callees) WantFunction(name);
      }
      if (auto it = gradients_.find(f.name); it != gradients_.end()) WantFunction(it->second);
      if (f.interface.empty()) continue;
      for (const size_t other : by_interface_[f.interface]) WantFunction(functions_[other].name);
    }
    return true;
  }

  Names nodes_;
  std::vector<bool> needed_;  // by node
  std::vector<FunctionFields> functions_;
  absl::flat_hash_map<absl::string_view, size_t> by_name_;
  absl::flat_hash_map<absl::string_view, std::vector<size_t>> by_interface_;
  absl::flat_hash_map<absl::string_view, absl::string_view> gradients_;
  std::vector<size_t> wanted_;
};

}  // namespace

// SavedModel {repeated MetaGraphDef meta_graphs = 2 {GraphDef graph_def = 2;
//                                                    SavedObjectGraph object_graph_def = 7}}
bool ParseRunPart(absl::string_view bytes, tensorflow::SavedModel* model,
                  std::vector<absl::string_view>* object_graphs) {
  QuietProtobuf();
  Names metas;
  std::string rest;
  const bool parsed = ForEachField(bytes, &rest, [&](uint32_t number, absl::string_view meta) {
    if (number == 2) metas.push_back(meta);
    return number == 2;
  });
  if (!parsed || !ParseField(rest, model)) return false;
  for (const absl::string_view meta : metas) {
    Names graphs, objects;
    rest.clear();
    const bool ok = ForEachField(meta, &rest, [&](uint32_t number, absl::string_view value) {
      if (number == 2) graphs.push_back(value);
      if (number == 7) objects.push_back(value);
      return number == 2 || number == 7;
    });
    tensorflow::MetaGraphDef* to = model->add_meta_graphs();
    // An object graph without bytes is one that is there, which the reader of the whole keeps.
    const bool plain = objects.empty() || (objects.size() == 1 && !objects[0].empty());
    if (!ok || graphs.size() != 1 || !plain || !ParseField(rest, to)) return false;
    object_graphs->push_back(objects.empty() ? absl::string_view() : objects[0]);
    if (!RunPart().Read(graphs[0], object_graphs->back(), *to, to->mutable_graph_def())) {
      return false;
    }
  }
  return true;
}

}  // namespace smelt
