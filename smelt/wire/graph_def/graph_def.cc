#include "smelt/wire/graph_def/graph_def.h"

#include <algorithm>
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "smelt/wire/graph_def/attr_proto.h"
#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/framework.pb.h"
#include "smelt/wire/proto/proto_internal.h"

namespace smelt {
namespace {

// The most outputs of an opaque node, which has as many as the largest port number that is read: a
// bound on what one number of a file can allocate.
constexpr int kMaxOpaqueOutputs = 4096;

// An attribute states how many tensors an argument has ("N", "num_split"), so a short node may
// claim many. All nodes of a model together may claim kFreePorts, and kPortsPerNode more for each.
constexpr int64_t kFreePorts = int64_t{1} << 22;
constexpr int64_t kPortsPerNode = 64;

// Names of edges begin with '^' or have a port after ':', so a node's name must not.
bool ValidNodeName(absl::string_view name) {
  return !name.empty() && name[0] != '^' && !absl::StrContains(name, ':');
}

// "name:3" -> name, 3. Anything else is a name and port 0.
std::pair<absl::string_view, int> SplitPort(absl::string_view input) {
  const size_t colon = input.rfind(':');
  int port = 0;
  if (colon != absl::string_view::npos && colon + 1 < input.size() &&
      absl::ascii_isdigit(input[colon + 1]) && absl::SimpleAtoi(input.substr(colon + 1), &port)) {
    return {input.substr(0, colon), port};
  }
  return {input, 0};
}

bool HasPlaceholder(const AttrMap& attrs) {
  return std::ranges::any_of(
      attrs, [](const auto& e) { return e.second.template get<PlaceholderAttr>() != nullptr; });
}

std::string TypeList(const DtypeVector& types) {
  std::string out;
  for (size_t i = 0; i < types.size() && i < 32; ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ", ", DtypeName(types[i]));
  }
  if (types.size() > 32) absl::StrAppend(&out, ", ... (", types.size(), ")");
  return out;
}

// May a tensor of type `actual` be read as `expected`? Unknown types may.
bool Compatible(Dtype expected, Dtype actual) {
  return expected == actual || expected == Dtype::kInvalid || actual == Dtype::kInvalid ||
         expected == BaseType(actual);
}

void GrowOutputs(Node* node, int port) { node->GrowOutputs(static_cast<size_t>(port) + 1); }

// Reads the nodes of a graph or of a function's body: first all nodes, then their edges, since a
// node may read a later one.
class BodyReader {
 public:
  BodyReader(Graph* graph, bool in_function, int64_t* ports)
      : graph_(graph), in_function_(in_function), ports_(ports) {}

  // The node of argument `index` of `function`, whose signature and attrs are set.
  Status AddArg(Function* function, int index);
  Status AddNode(tensorflow::NodeDef* def);
  // Adds the edges. Reads and empties the messages that AddNode was given, which must still live.
  Status Connect();
  // Appends the endpoints that `input` names; in a function one name may stand for a whole list.
  Status Resolve(absl::string_view input, std::vector<Endpoint>* out);

 private:
  struct OutputRange {
    int base;
    int count;
  };
  struct Pending {
    Node* node;
    tensorflow::NodeDef* def;
  };

  bool Opaque(const Node* node) const {
    return node->def() == nullptr || open_.contains(node) || open_args_.contains(node);
  }
  Status SetTypes(Node* node);
  Status ConnectNode(const Pending& pending);
  Status CheckInputs(const Node* node) const;
  Status ResolveInGraph(absl::string_view input, std::vector<Endpoint>* out);
  Status ResolveInFunction(absl::string_view input, std::vector<Endpoint>* out);
  Status ResolveOpaque(Node* node, absl::string_view output, std::vector<Endpoint>* out);
  // The ports of an output argument by its name; nullptr when the node has none of that name.
  const OutputRange* FindOutput(const Node* node, absl::string_view output);

  Graph* graph_;
  bool in_function_;
  int64_t* ports_;
  std::vector<Pending> pending_;
  absl::flat_hash_set<const Node*> args_;
  // Nodes and arguments whose types only the caller of the function decides: an attribute of theirs
  // is a placeholder.
  absl::flat_hash_set<const Node*> open_, open_args_;
  absl::flat_hash_map<std::pair<const Node*, std::string>, int> opaque_ports_;
  absl::flat_hash_map<std::pair<const Node*, absl::string_view>, OutputRange> ranges_;
  absl::flat_hash_set<const Node*> ranged_;  // nodes whose outputs are in ranges_
  // By node id, the node that last waited for it: control inputs are taken once.
  std::vector<int> waited_by_;
};

Status BodyReader::AddArg(Function* function, int index) {
  const ArgDef& arg = function->signature.inputs[static_cast<size_t>(index)];
  if (!ValidNodeName(arg.name)) {
    return InvalidArgument("Argument '", arg.name, "': name contains invalid characters");
  }
  auto added = graph_->AddNode(arg.name, "_Arg");
  if (!added.ok()) return InvalidArgument("Argument '", arg.name, "' is not unique");
  Node* node = *added;
  const bool list = !arg.type_list_attr.empty() || !arg.number_attr.empty();
  auto types = ArgTypes({&arg, 1}, function->signature, function->attrs);
  if (types.ok()) {
    node->SetOutputTypes(*types);
    if (list) {
      node->AttrsToChange().Set("Tlist", *types);
    } else {
      node->AttrsToChange().Set("T", types->front());
    }
  } else if (arg.type == Dtype::kInvalid && (list || !arg.type_attr.empty())) {
    const std::string& attr = list ? arg.type_list_attr + arg.number_attr : arg.type_attr;
    node->AttrsToChange().Set(list ? "Tlist" : "T", PlaceholderAttr{attr});
    if (!list) node->SetOutputTypes({Dtype::kInvalid});
    open_args_.insert(node);
  } else {
    return types.status();
  }
  node->AttrsToChange().Set("index", index);
  function->args.push_back(node);
  args_.insert(node);
  return OkStatus();
}

Status BodyReader::AddNode(tensorflow::NodeDef* def) {
  if (!ValidNodeName(def->name())) {
    return InvalidArgument("Node '", def->name(), "': Node name contains invalid characters");
  }
  auto added = graph_->AddNode(def->name(), def->op());
  if (!added.ok()) return InvalidArgument(added.status().message());
  Node* node = *added;
  node->device = std::move(*def->mutable_device());
  node->AttrsToChange() = TakeAttrs(def->mutable_attr());
  pending_.push_back({node, def});
  if (node->def() != nullptr) {
    FillAbsentLists(*node->def(), &node->AttrsToChange(), def->mutable_attr());
    RETURN_IF_ERROR(Suffix(CheckAttrs(*node->def(), node->attrs(), in_function_),
                           absl::StrCat("; NodeDef: {{node ", node->name(), "}}")));
    return SetTypes(node);
  }
  const auto shapes = node->Get<std::vector<PartialShape>>("_output_shapes", {});
  if (!in_function_ && !shapes.empty() && shapes.size() <= kMaxOpaqueOutputs) {
    GrowOutputs(node, static_cast<int>(shapes.size()) - 1);
  }
  return OkStatus();
}

Status BodyReader::SetTypes(Node* node) {
  const bool deferred = in_function_ && HasPlaceholder(node->attrs());
  const OpDef& def = *node->def();
  for (const auto* args : {&def.inputs, &def.outputs}) {
    for (const ArgDef& arg : *args) {
      auto n = ArgArity(arg, def, node->attrs());
      *ports_ -= n.ok() ? std::max<int64_t>(*n, 1) : 1;
    }
  }
  if (*ports_ < 0) {
    return ResourceExhausted("Node '", node->name(), "' (", node->op(),
                             "): the graph claims too many tensors for its number of nodes");
  }
  const Status status = graph_->ResolveTypes(node);
  if (!status.ok() && !deferred) return status;
  if (!status.ok()) open_.insert(node);
  return OkStatus();
}

Status BodyReader::Connect() {
  waited_by_.assign(static_cast<size_t>(graph_->max_id()), -1);
  for (const Pending& p : pending_) RETURN_IF_ERROR(ConnectNode(p));
  return OkStatus();
}

Status BodyReader::ConnectNode(const Pending& pending) {
  Node* node = pending.node;
  std::vector<Endpoint> inputs;
  inputs.reserve(static_cast<size_t>(pending.def->input_size()));
  std::vector<Node*> controls;
  for (const std::string& input : pending.def->input()) {
    if (!input.empty() && input[0] == '^') {
      Node* from = graph_->Find(absl::string_view(input).substr(1));
      if (from == nullptr) {
        return InvalidArgument("Node '", node->name(), "': Unknown input node '", input, "'");
      }
      int& waiter = waited_by_[static_cast<size_t>(from->id())];
      if (waiter != node->id()) controls.push_back(from);
      waiter = node->id();
      continue;
    }
    if (!controls.empty()) {
      return InvalidArgument("Node '", node->name(),
                             "': Control dependencies must come after regular dependencies");
    }
    if (Status status = Resolve(input, &inputs); !status.ok()) {
      return Prefix(status, absl::StrCat("Node '", node->name(), "': "));
    }
  }
  graph_->SetInputs(node, std::move(inputs));
  graph_->SetControlInputs(node, std::move(controls));
  if (Opaque(node)) {
    node->SetInputTypes(DtypeVector(node->inputs().size(), Dtype::kInvalid));
  } else {
    RETURN_IF_ERROR(CheckInputs(node));
  }
  pending.def->clear_name();
  pending.def->clear_op();
  pending.def->clear_input();
  pending.def->clear_device();
  node->extra = Remainder(*pending.def);
  return OkStatus();
}

Status BodyReader::CheckInputs(const Node* node) const {
  if (node->inputs().size() != node->input_types.size()) {
    return InvalidArgument("NodeDef expected inputs '", TypeList(node->input_types),
                           "' do not match ", node->inputs().size(),
                           " inputs specified; Op<name=", node->op(), ">; NodeDef: {{node ",
                           node->name(), "}}");
  }
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    const Endpoint e = node->inputs()[i];
    const Dtype actual = e.node->output_types[static_cast<size_t>(e.port)];
    const Dtype expected = node->input_types[i];
    if (!Compatible(expected, actual)) {
      return InvalidArgument("Input ", i, " of node ", node->name(), " was passed ",
                             DtypeName(actual), " from ", e.node->name(), ":", e.port,
                             " incompatible with expected ", DtypeName(expected), ".");
    }
  }
  return OkStatus();
}

Status BodyReader::Resolve(absl::string_view input, std::vector<Endpoint>* out) {
  return in_function_ ? ResolveInFunction(input, out) : ResolveInGraph(input, out);
}

Status BodyReader::ResolveInGraph(absl::string_view input, std::vector<Endpoint>* out) {
  const auto [name, port] = SplitPort(input);
  Node* node = graph_->Find(name);
  if (node == nullptr) return InvalidArgument("Unknown input node '", input, "'");
  if (Opaque(node) && port < kMaxOpaqueOutputs) GrowOutputs(node, port);
  if (port >= node->num_outputs()) {
    return InvalidArgument("Connecting to invalid output ", port, " of source node ", name,
                           " which has ", node->num_outputs(), " outputs.");
  }
  out->push_back({node, port});
  return OkStatus();
}

Status BodyReader::ResolveInFunction(absl::string_view input, std::vector<Endpoint>* out) {
  const size_t colon = input.find(':');
  const absl::string_view name = input.substr(0, colon);
  // "output:index", "output", or the index of an argument that is a list.
  absl::string_view rest = colon == absl::string_view::npos ? "" : input.substr(colon + 1);
  const Status missing = InvalidArgument("input ", input, " is not found");
  Node* node = graph_->Find(name);
  if (node == nullptr) return missing;
  int base = 0;
  int count = 0;
  if (args_.contains(node)) {
    if (open_args_.contains(node)) {
      int port = 0;
      if (!rest.empty() && !absl::SimpleAtoi(rest, &port)) return missing;
      if (port < 0 || port >= kMaxOpaqueOutputs) return missing;
      GrowOutputs(node, port);
      out->push_back({node, port});
      return OkStatus();
    }
    count = node->num_outputs();
  } else {
    if (rest.empty()) return missing;
    if (Opaque(node)) return ResolveOpaque(node, rest, out);
    const absl::string_view output = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), output.size() + 1));
    const OutputRange* range = FindOutput(node, output);
    if (range == nullptr) return missing;
    base = range->base;
    count = range->count;
  }
  if (!rest.empty()) {
    int index = 0;
    if (!absl::SimpleAtoi(rest, &index) || index < 0 || index >= count) return missing;
    base += index;
    count = 1;
  }
  for (int i = 0; i < count; ++i) out->push_back({node, base + i});
  return OkStatus();
}

const BodyReader::OutputRange* BodyReader::FindOutput(const Node* node, absl::string_view output) {
  if (ranged_.insert(node).second) {
    int base = 0;
    for (const ArgDef& arg : node->def()->outputs) {
      const auto n = ArgArity(arg, *node->def(), node->attrs());
      if (!n.ok()) break;
      ranges_.try_emplace({node, arg.name}, OutputRange{base, static_cast<int>(*n)});
      base += static_cast<int>(*n);
    }
  }
  const auto it = ranges_.find(std::make_pair(node, output));
  return it == ranges_.end() ? nullptr : &it->second;
}

Status BodyReader::ResolveOpaque(Node* node, absl::string_view output, std::vector<Endpoint>* out) {
  const auto next = static_cast<int>(node->opaque_outputs.size());
  const auto [it, added] = opaque_ports_.try_emplace({node, std::string(output)}, next);
  if (added) {
    node->opaque_outputs.emplace_back(output);
    GrowOutputs(node, next);
  }
  out->push_back({node, it->second});
  return OkStatus();
}

Status TakeResults(BodyReader* reader, tensorflow::FunctionDef* def, Function* f) {
  for (const ArgDef& arg : f->signature.outputs) {
    auto& result = f->results.emplace_back();
    auto types = ArgTypes({&arg, 1}, f->signature, f->attrs);
    const auto it = def->mutable_ret()->find(arg.name);
    if (it == def->mutable_ret()->end()) {
      if (types.ok() && types->empty()) continue;
      return InvalidArgument("Return ", arg.name, " missing.");
    }
    if (Status status = reader->Resolve(it->second, &result); !status.ok()) {
      return Prefix(status, absl::StrCat("Return ", arg.name, ": "));
    }
    def->mutable_ret()->erase(it);
    if (!types.ok()) continue;  // the caller of the function decides them
    if (result.size() != types->size()) {
      return InvalidArgument("Return ", arg.name, " expects '", TypeList(*types), "', is given ",
                             result.size(), " tensors");
    }
    for (size_t i = 0; i < result.size(); ++i) {
      const auto [node, port] = result[i];
      const Dtype actual = node->output_types[static_cast<size_t>(port)];
      if (!Compatible((*types)[i], actual)) {
        return InvalidArgument("Return ", arg.name, " was passed ", DtypeName(actual), " from ",
                               node->name(), ":", port, " incompatible with expected ",
                               DtypeName((*types)[i]), ".");
      }
    }
  }
  return OkStatus();
}

Status TakeControlResults(tensorflow::FunctionDef* def, Function* f) {
  // In the order of the signature, then those that it does not list.
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> seen;
  for (const std::string& name : f->signature.control_outputs) {
    if (def->control_ret().contains(name) && seen.insert(name).second) names.push_back(name);
  }
  const auto listed = static_cast<int64_t>(names.size());
  for (const auto& [name, node] : def->control_ret()) {
    if (!seen.contains(name)) names.push_back(name);
  }
  std::sort(names.begin() + listed, names.end());
  for (const std::string& name : names) {
    const std::string& node_name = def->control_ret().at(name);
    Node* node = f->body->Find(node_name);
    if (node == nullptr) {
      return InvalidArgument("Control return ", name, ": Unknown node '", node_name, "'");
    }
    f->control_results.emplace_back(name, node);
  }
  def->clear_control_ret();
  return OkStatus();
}

void TakeArgAttrs(tensorflow::FunctionDef* def, Function* f) {
  std::vector<uint32_t> taken;
  for (auto& [index, attrs] : *def->mutable_arg_attr()) {
    if (index > INT_MAX) continue;
    f->arg_attrs[static_cast<int>(index)] = TakeAttrs(attrs.mutable_attr());
    if (attrs.ByteSizeLong() == 0) taken.push_back(index);
  }
  for (uint32_t index : taken) def->mutable_arg_attr()->erase(index);
}

Status TakeFunction(tensorflow::FunctionDef* def, Function* f, int64_t* ports) {
  f->attrs = TakeAttrs(def->mutable_attr());
  BodyReader reader(f->body.get(), true, ports);
  for (size_t i = 0; i < f->signature.inputs.size(); ++i) {
    RETURN_IF_ERROR(reader.AddArg(f, static_cast<int>(i)));
  }
  for (auto& node : *def->mutable_node_def()) RETURN_IF_ERROR(reader.AddNode(&node));
  RETURN_IF_ERROR(reader.Connect());
  RETURN_IF_ERROR(TakeResults(&reader, def, f));
  RETURN_IF_ERROR(TakeControlResults(def, f));
  TakeArgAttrs(def, f);
  def->clear_signature();
  def->clear_node_def();
  f->extra = Remainder(*def);
  return OkStatus();
}

void TakeGradients(tensorflow::FunctionDefLibrary* proto, FunctionLibrary* library) {
  // Rows with fields that smelt does not know also stay in the message; the writer does not repeat
  // them.
  google::protobuf::RepeatedPtrField<tensorflow::GradientDef> gradients;
  for (auto& g : *proto->mutable_gradient()) {
    library->gradients[g.function_name()] = g.gradient_func();
    if (HasUnknownFields(g)) *gradients.Add() = g;
  }
  *proto->mutable_gradient() = gradients;
  for (const auto& g : proto->registered_gradients()) {
    library->registered_gradients.emplace_back(g.registered_op_type(), g.gradient_func());
  }
  proto->clear_registered_gradients();
}

Status TakeLibrary(tensorflow::FunctionDefLibrary* proto,
                   const std::shared_ptr<FunctionLibrary>& library, int64_t* ports) {
  // All signatures first: a function may call a later one, or itself.
  std::vector<OpDef> signatures;
  absl::flat_hash_set<std::string> names;
  signatures.reserve(static_cast<size_t>(proto->function_size()));
  for (auto& f : *proto->mutable_function()) {
    if (f.signature().attr_size() > static_cast<int>(kMaxAttrDefs)) {
      return InvalidArgument("In function '", f.signature().name(),
                             "': ", f.signature().attr_size(), " attributes are defined");
    }
    OpDef& signature = signatures.emplace_back(TakeOpDef(f.mutable_signature()));
    if (!names.insert(signature.name).second) {
      return InvalidArgument("Cannot add function '", signature.name,
                             "' because a different function with the same name already exists.");
    }
    if (FindOpDef(signature.name) != nullptr) {
      return InvalidArgument("Cannot add function '", signature.name,
                             "' because an op with the same name already exists.");
    }
    library->Declare(signature);
  }
  for (int i = 0; i < proto->function_size(); ++i) {
    auto f = std::make_unique<Function>();
    f->signature = std::move(signatures[static_cast<size_t>(i)]);
    f->body = std::make_unique<Graph>(library);
    if (Status s = TakeFunction(proto->mutable_function(i), f.get(), ports); !s.ok()) {
      return Prefix(s, absl::StrCat("In function '", f->name(), "': "));
    }
    RETURN_IF_ERROR(library->Add(std::move(f)));
  }
  proto->clear_function();
  TakeGradients(proto, library.get());
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Graph>> TakeGraph(tensorflow::GraphDef* def,
                                           std::shared_ptr<FunctionLibrary> library,
                                           GraphVersions* versions) {
  int64_t nodes = def->node_size();
  for (const auto& f : def->library().function()) nodes += f.node_def_size();
  int64_t ports = kFreePorts + kPortsPerNode * nodes;

  if (def->has_versions()) {
    auto* v = def->mutable_versions();
    *versions = {v->producer(), v->min_consumer(),
                 std::vector<int>(v->bad_consumers().begin(), v->bad_consumers().end())};
    v->clear_producer();
    v->clear_min_consumer();
    v->clear_bad_consumers();
    if (v->ByteSizeLong() == 0) def->clear_versions();
  }
  if (def->has_library()) {
    RETURN_IF_ERROR(TakeLibrary(def->mutable_library(), library, &ports));
    if (def->library().ByteSizeLong() == 0) def->clear_library();
  }
  auto graph = std::make_unique<Graph>(std::move(library));
  BodyReader reader(graph.get(), false, &ports);
  for (auto& node : *def->mutable_node()) RETURN_IF_ERROR(reader.AddNode(&node));
  RETURN_IF_ERROR(reader.Connect());
  def->clear_node();
  return graph;
}

void NoteReader(const Graph& graph, absl::string_view name) {
  const auto [node_name, port] = SplitPort(name);
  Node* node = graph.Find(node_name);
  if (node != nullptr && node->def() == nullptr && port < kMaxOpaqueOutputs) {
    GrowOutputs(node, port);
  }
}

}  // namespace smelt
