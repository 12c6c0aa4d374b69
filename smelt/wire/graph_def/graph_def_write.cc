// The writing half of graph_def.h.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/wire/graph_def/attr_proto.h"
#include "smelt/wire/graph_def/graph_def.h"
#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/framework.pb.h"
#include "smelt/wire/proto/proto_internal.h"

namespace smelt {
namespace {

Status ParseCarried(const std::string& extra, absl::string_view what,
                    google::protobuf::Message* proto) {
  if (extra.empty()) return OkStatus();
  if (!ParseBinaryProto(extra, "", proto).ok()) {
    return Internal("Carried fields of '", what, "' do not parse");
  }
  return OkStatus();
}

// Names of edges inside a function body.
class EdgeNames {
 public:
  explicit EdgeNames(const Function& function) {
    for (size_t i = 0; i < function.args.size(); ++i) args_[function.args[i]] = i;
    signature_ = &function.signature;
  }

  bool IsArg(const Node* node) const { return args_.contains(node); }

  std::string NodeName(const Node* node) const {
    const auto it = args_.find(node);
    return it == args_.end() ? node->name() : signature_->inputs[it->second].name;
  }

  StatusOr<std::string> Name(Endpoint e) const {
    if (IsArg(e.node)) {
      const std::string name = NodeName(e.node);
      if (e.node->Find("Tlist") == nullptr) return name;
      return absl::StrCat(name, ":", e.port);
    }
    if (!e.node->opaque_outputs.empty()) {
      if (e.port < static_cast<int>(e.node->opaque_outputs.size())) {
        return absl::StrCat(e.node->name(), ":", e.node->opaque_outputs[e.port]);
      }
    } else if (const Output* output = OutputOf(e)) {
      return absl::StrCat(e.node->name(), ":", output->name, ":", e.port - output->base);
    }
    return InvalidArgument("Output ", e.port, " of node '", e.node->name(), "' (", e.node->op(),
                           ") has no name");
  }

  // What an output argument returns: one tensor, or all tensors of one output or argument.
  StatusOr<std::string> ResultName(const std::vector<Endpoint>& result) const {
    if (result.size() == 1) return Name(result[0]);
    const Node* node = result[0].node;
    int64_t base = 0, count = 0;
    std::string name;
    if (IsArg(node)) {
      count = node->num_outputs();
      name = NodeName(node);
    } else if (const Output* output = OutputOf(result[0])) {
      base = output->base;
      count = output->count;
      name = absl::StrCat(node->name(), ":", output->name);
    }
    bool whole = static_cast<int64_t>(result.size()) == count;
    for (size_t i = 0; whole && i < result.size(); ++i) {
      whole = result[i].node == node && result[i].port == base + static_cast<int64_t>(i);
    }
    if (!whole) {
      return InvalidArgument(
          "A list that a function returns must be the whole of one node's list; "
          "the one beginning at '",
          node->name(), "' is not");
    }
    return name;
  }

 private:
  // An output argument and the ports it stands for.
  struct Output {
    absl::string_view name;
    int64_t base;
    int64_t count;
  };

  const Output* OutputOf(Endpoint e) const {
    const OpDef* def = e.node->def();
    if (def == nullptr) return nullptr;
    auto [it, added] = outputs_.try_emplace(e.node);
    if (added) {
      int64_t base = 0;
      for (const ArgDef& arg : def->outputs) {
        const auto n = ArgArity(arg, *def, e.node->attrs());
        if (!n.ok()) break;
        it->second.push_back({arg.name, base, *n});
        base += *n;
      }
    }
    // The last one that begins at or before the port: an empty one begins where the next does.
    const auto& outputs = it->second;
    auto after = std::upper_bound(outputs.begin(), outputs.end(), e.port,
                                  [](int64_t port, const Output& o) { return port < o.base; });
    if (after == outputs.begin()) return nullptr;
    const Output& output = *(after - 1);
    return e.port < output.base + output.count ? &output : nullptr;
  }

  absl::flat_hash_map<const Node*, size_t> args_;
  const OpDef* signature_ = nullptr;
  mutable absl::flat_hash_map<const Node*, std::vector<Output>> outputs_;
};

// `edges` is nullptr in a main graph.
Status NodeToProto(const Node& node, const EdgeNames* edges, tensorflow::NodeDef* def) {
  RETURN_IF_ERROR(ParseCarried(node.extra, node.name(), def));
  def->set_name(node.name());
  def->set_op(std::string(node.op()));
  def->set_device(node.device);
  def->clear_input();
  for (const Endpoint& e : node.inputs()) {
    if (edges == nullptr) {
      def->add_input(EndpointName(e));
    } else {
      ASSIGN_OR_RETURN(*def->add_input(), edges->Name(e));
    }
  }
  for (const Node* c : node.control_inputs()) {
    def->add_input(absl::StrCat("^", edges ? edges->NodeName(c) : c->name()));
  }
  AttrsToProto(node.attrs(), def->mutable_attr());
  return OkStatus();
}

Status ResultsToProto(const Function& f, const EdgeNames& edges, tensorflow::FunctionDef* def) {
  if (f.results.size() != f.signature.outputs.size()) {
    return Internal("Function has ", f.results.size(), " results, its signature ",
                    f.signature.outputs.size());
  }
  for (size_t i = 0; i < f.results.size(); ++i) {
    if (f.results[i].empty()) continue;
    ASSIGN_OR_RETURN((*def->mutable_ret())[f.signature.outputs[i].name],
                     edges.ResultName(f.results[i]));
  }
  absl::flat_hash_set<absl::string_view> listed(f.signature.control_outputs.begin(),
                                                f.signature.control_outputs.end());
  for (const auto& [name, node] : f.control_results) {
    (*def->mutable_control_ret())[name] = edges.NodeName(node);
    if (!listed.contains(name)) {
      def->mutable_signature()->add_control_output(name);
    }
  }
  return OkStatus();
}

void ArgAttrsToProto(const Function& f, tensorflow::FunctionDef* def) {
  std::vector<uint32_t> stale;
  for (const auto& [index, attrs] : def->arg_attr()) {
    if (index <= INT32_MAX && !f.arg_attrs.contains(static_cast<int>(index))) {
      stale.push_back(index);
    }
  }
  for (uint32_t index : stale) def->mutable_arg_attr()->erase(index);
  for (const auto& [index, attrs] : f.arg_attrs) {
    auto& to = (*def->mutable_arg_attr())[static_cast<uint32_t>(index)];
    AttrsToProto(attrs, to.mutable_attr());
  }
}

// All but the nodes and what they return.
Status FunctionHeadToProto(const Function& f, tensorflow::FunctionDef* def) {
  RETURN_IF_ERROR(ParseCarried(f.extra, f.name(), def));
  RETURN_IF_ERROR(OpDefToProto(f.signature, def->mutable_signature()));
  AttrsToProto(f.attrs, def->mutable_attr());
  ArgAttrsToProto(f, def);
  return OkStatus();
}

Status FunctionBodyToProto(const Function& f, tensorflow::FunctionDef* def) {
  RETURN_IF_ERROR(FunctionHeadToProto(f, def));
  const EdgeNames edges(f);
  for (const Node* node : f.body->Nodes()) {
    if (edges.IsArg(node)) continue;
    RETURN_IF_ERROR(NodeToProto(*node, &edges, def->add_node_def()));
  }
  return ResultsToProto(f, edges, def);
}

Status LibraryToProto(const FunctionLibrary& library, FunctionBodies bodies,
                      tensorflow::FunctionDefLibrary* proto) {
  for (const Function* f : library.Functions()) {
    tensorflow::FunctionDef* def = proto->add_function();
    RETURN_IF_ERROR(bodies == FunctionBodies::kWhole ? FunctionToProto(*f, def)
                                                     : FunctionHeadToProto(*f, def));
  }
  absl::flat_hash_set<std::pair<std::string, std::string>> carried;
  for (const auto& g : proto->gradient()) carried.emplace(g.function_name(), g.gradient_func());
  for (const auto& entry : library.gradients) {
    if (carried.contains(entry)) continue;
    auto* g = proto->add_gradient();
    g->set_function_name(entry.first);
    g->set_gradient_func(entry.second);
  }
  for (const auto& [op, function] : library.registered_gradients) {
    auto* g = proto->add_registered_gradients();
    g->set_registered_op_type(op);
    g->set_gradient_func(function);
  }
  return OkStatus();
}

}  // namespace

Status FunctionToProto(const Function& function, tensorflow::FunctionDef* def) {
  if (Status s = FunctionBodyToProto(function, def); !s.ok()) {
    return Prefix(s, absl::StrCat("In function '", function.name(), "': "));
  }
  return OkStatus();
}

Status GraphToProto(const Graph& graph, const GraphVersions& versions, tensorflow::GraphDef* def,
                    FunctionBodies bodies) {
  for (const Node* node : graph.Nodes()) {
    RETURN_IF_ERROR(NodeToProto(*node, nullptr, def->add_node()));
  }
  const FunctionLibrary& library = *graph.library();
  if (!library.Functions().empty() || !library.gradients.empty() ||
      !library.registered_gradients.empty()) {
    RETURN_IF_ERROR(LibraryToProto(library, bodies, def->mutable_library()));
  }
  if (versions.producer != 0 || versions.min_consumer != 0 || !versions.bad_consumers.empty()) {
    auto* v = def->mutable_versions();
    v->set_producer(versions.producer);
    v->set_min_consumer(versions.min_consumer);
    v->mutable_bad_consumers()->Add(versions.bad_consumers.begin(), versions.bad_consumers.end());
  }
  return OkStatus();
}

}  // namespace smelt
