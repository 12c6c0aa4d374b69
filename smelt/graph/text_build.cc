// Makes graphs of the statements of a text: ops and functions are announced first, then nodes are
// made, linked and, inputs before readers, resolved.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "smelt/graph/infer_attrs.h"
#include "smelt/graph/text_syntax.h"

namespace smelt::text {
namespace {

// All nodes of one text may have this many outputs, plus one for each of its bytes. A limit is
// needed because an attribute such as num_split asks for many outputs in few bytes.
constexpr int64_t kFreeOutputs = int64_t{1} << 20;
// The longest list argument of a function whose types are not stated.
constexpr int64_t kMaxPlainListArg = 256;

class GraphBuilder {
 public:
  explicit GraphBuilder(Reader* reader)
      : reader_(reader), outputs_left_(kFreeOutputs + static_cast<int64_t>(reader->size())) {}

  StatusOr<std::unique_ptr<Graph>> Build(GraphText* text);

 private:
  Status AddOps(std::vector<std::pair<size_t, OpDef>>* ops);
  Status DeclareFunctions(const std::vector<FunctionText>& functions);
  // `f`: the function whose body it is, nullptr for the main graph.
  Status BuildNodes(Graph* graph, std::vector<NodeText>* texts, const FunctionText* f);
  Status BuildFunction(FunctionText* text);
  Status AddArgs(FunctionText* text);
  Status AddResults(FunctionText* text);
  Status Link(Graph* graph, const NodeText& text);
  StatusOr<Endpoint> Find(const Graph& graph, const NamedEndpoint& e);
  Status Resolve(Graph* graph, Node* node, size_t function_offset);
  Status CheckPort(const NamedEndpoint& e, const Node& from);
  Status CheckPorts(const Graph& graph, const Node& node);

  Reader* reader_;
  int64_t outputs_left_;
  std::shared_ptr<FunctionLibrary> library_ = std::make_shared<FunctionLibrary>();
  // Of the graph being built, by node id: its text (none for arguments without a statement), how
  // many ports its readers ask for, and whether its types are resolved.
  std::vector<const NodeText*> texts_;
  std::vector<int> ports_read_;
  std::vector<bool> resolved_;
};

StatusOr<std::unique_ptr<Graph>> GraphBuilder::Build(GraphText* text) {
  RETURN_IF_ERROR(AddOps(&text->ops));
  RETURN_IF_ERROR(DeclareFunctions(text->functions));
  auto graph = std::make_unique<Graph>(library_);
  RETURN_IF_ERROR(BuildNodes(graph.get(), &text->nodes, nullptr));
  for (FunctionText& f : text->functions) {
    RETURN_IF_ERROR(BuildFunction(&f));
    RETURN_IF_ERROR(library_->Add(std::move(f.function)));
  }
  library_->gradients = std::move(text->gradients);
  library_->registered_gradients = std::move(text->registered_gradients);
  return graph;
}

Status GraphBuilder::AddOps(std::vector<std::pair<size_t, OpDef>>* ops) {
  for (auto& [offset, def] : *ops) {
    if (FindOpDef(def.name) != nullptr) {
      return reader_->ErrorAt(offset, absl::StrCat("op '", def.name, "' is one of TensorFlow's"));
    }
    if (library_->own_ops().contains(def.name)) {
      return reader_->ErrorAt(offset, absl::StrCat("op '", def.name, "' is defined twice"));
    }
    library_->AddOp(std::move(def));
  }
  return OkStatus();
}

Status GraphBuilder::DeclareFunctions(const std::vector<FunctionText>& functions) {
  absl::flat_hash_set<absl::string_view> names;
  for (const FunctionText& f : functions) {
    const std::string& name = f.function->name();
    if (!names.insert(name).second || FindOpDef(name) != nullptr) {
      return reader_->ErrorAt(f.offset, absl::StrCat("the name of function '", name, "' is taken"));
    }
    library_->Declare(f.function->signature);
  }
  return OkStatus();
}

Status GraphBuilder::BuildNodes(Graph* graph, std::vector<NodeText>* texts, const FunctionText* f) {
  const std::string outer = reader_->context();
  texts_.assign(static_cast<size_t>(graph->max_id()), nullptr);
  for (NodeText& text : *texts) {
    auto node = graph->AddNode(text.name, text.op);
    if (!node.ok()) return reader_->ErrorAt(text.offset, node.status().message());
    texts_.push_back(&text);
    (*node)->AttrsToChange() = std::move(text.attrs);
    (*node)->device = std::move(text.device);
    (*node)->extra = std::move(text.extra);
    (*node)->opaque_outputs = std::move(text.opaque_outputs);
  }
  ports_read_.assign(static_cast<size_t>(graph->max_id()), 0);
  resolved_.assign(static_cast<size_t>(graph->max_id()), false);
  for (const NodeText& text : *texts) {
    reader_->set_context(absl::StrCat(outer, "node '", text.name, "': "));
    RETURN_IF_ERROR(Link(graph, text));
  }
  reader_->set_context(outer);
  if (f != nullptr) {
    for (const ResultText& r : f->results) {
      for (const NamedEndpoint& e : r.values) RETURN_IF_ERROR(Find(*graph, e).status());
    }
  }
  // A cycle is for the verifier to report; types then come in the order of the text.
  auto order = graph->TopologicalOrder();
  for (Node* node : order.ok() ? *order : graph->Nodes()) {
    reader_->set_context(absl::StrCat(outer, "node '", node->name(), "': "));
    RETURN_IF_ERROR(CheckPorts(*graph, *node));
    RETURN_IF_ERROR(Resolve(graph, node, f ? f->offset : 0));
    resolved_[static_cast<size_t>(node->id())] = true;
  }
  // A second time for inputs from nodes that were not resolved yet: the back edges of loops.
  for (const Node* node : graph->Nodes()) {
    reader_->set_context(absl::StrCat(outer, "node '", node->name(), "': "));
    RETURN_IF_ERROR(CheckPorts(*graph, *node));
  }
  reader_->set_context(outer);
  return OkStatus();
}

StatusOr<Endpoint> GraphBuilder::Find(const Graph& graph, const NamedEndpoint& e) {
  Node* node = graph.Find(e.node);
  if (node == nullptr) {
    return reader_->ErrorAt(e.offset, absl::StrCat("there is no node '", e.node, "'"));
  }
  int& ports = ports_read_[static_cast<size_t>(node->id())];
  ports = std::max(ports, e.port + 1);
  return Endpoint{node, e.port};
}

Status GraphBuilder::Link(Graph* graph, const NodeText& text) {
  Node* node = graph->Find(text.name);
  int& ports = ports_read_[static_cast<size_t>(node->id())];
  ports = std::max(ports, text.outputs);
  absl::flat_hash_set<const Node*> waited;
  for (const NamedEndpoint& input : text.inputs) {
    ASSIGN_OR_RETURN(const Endpoint e, Find(*graph, input));
    if (e.port >= 0) {
      if (!node->control_inputs().empty()) {
        return reader_->ErrorAt(input.offset, "control inputs stand after the others");
      }
      graph->AddInput(node, e);
    } else if (waited.insert(e.node).second) {
      graph->AddControlInput(node, e.node);
    }
  }
  return OkStatus();
}

bool HasPlaceholder(const Node& node) {
  return std::any_of(node.attrs().begin(), node.attrs().end(), [](const AttrMap::Entry& e) {
    return e.second.get<PlaceholderAttr>() != nullptr;
  });
}

// How many tensors the arguments stand for at this node; -1 when attributes do not decide it.
int64_t CountTensors(const std::vector<ArgDef>& args, const Node& node) {
  int64_t total = 0;
  for (const ArgDef& arg : args) {
    auto n = ArgArity(arg, *node.def(), node.attrs());
    if (!n.ok()) return -1;
    total += *n;
  }
  return total;
}

Status GraphBuilder::Resolve(Graph* graph, Node* node, size_t function_offset) {
  const NodeText* text = texts_[static_cast<size_t>(node->id())];
  const size_t offset = text ? text->offset : function_offset;
  const auto ports = static_cast<size_t>(ports_read_[static_cast<size_t>(node->id())]);
  const auto spend = [&](int64_t outputs) {
    outputs_left_ -= outputs;
    return outputs_left_ >= 0 ? OkStatus()
                              : reader_->ErrorAt(offset, "the text asks for too many outputs");
  };
  RETURN_IF_ERROR(InferAttrs(node, library_.get()));
  bool unknown = node->def() == nullptr || (node->Is("_Arg") && HasPlaceholder(*node));
  if (!unknown) {
    // Counted before types are listed: an attribute can ask for any number of them.
    const int64_t wanted = CountTensors(node->def()->inputs, *node);
    const int64_t made = CountTensors(node->def()->outputs, *node);
    if (wanted >= 0 && wanted != node->num_inputs()) {
      return reader_->ErrorAt(offset, absl::StrCat(node->op(), " is given ", node->num_inputs(),
                                                   " inputs, wants ", wanted));
    }
    RETURN_IF_ERROR(spend(std::max<int64_t>(made, 0)));
    // Where an attribute is a placeholder, whoever calls the function decides the types.
    const bool deferred = HasPlaceholder(*node);
    unknown = deferred && (wanted < 0 || made < 0);
    if (!unknown) {
      const Status s = graph->ResolveTypes(node);
      if (!s.ok() && !deferred) {
        const std::string prefix = absl::StrCat("Node '", node->name(), "': ");
        return reader_->ErrorAt(offset, absl::StripPrefix(s.message(), prefix));
      }
      unknown = !s.ok();
    }
  }
  if (!unknown) return OkStatus();
  // An argument that is no list is one tensor, even while its type is a placeholder.
  const size_t least = node->Is("_Arg") && node->attrs().Find("T") != nullptr ? 1 : 0;
  const size_t outputs = std::max({ports, node->opaque_outputs.size(), least});
  RETURN_IF_ERROR(spend(static_cast<int64_t>(outputs)));
  node->SetInputTypes(DtypeVector(node->inputs().size(), Dtype::kInvalid));
  node->SetOutputTypes(DtypeVector(outputs, Dtype::kInvalid));
  return OkStatus();
}

Status GraphBuilder::CheckPort(const NamedEndpoint& e, const Node& from) {
  if (e.port < from.num_outputs()) return OkStatus();
  return reader_->ErrorAt(e.offset, absl::StrCat("node '", from.name(), "' (", from.op(), ") has ",
                                                 from.num_outputs(), " outputs, none is ", e.port));
}

// Inputs that come from nodes not resolved yet are left for later.
Status GraphBuilder::CheckPorts(const Graph& graph, const Node& node) {
  const NodeText* text = texts_[static_cast<size_t>(node.id())];
  if (text == nullptr) return OkStatus();
  for (const NamedEndpoint& e : text->inputs) {
    const Node* from = graph.Find(e.node);
    if (resolved_[static_cast<size_t>(from->id())]) RETURN_IF_ERROR(CheckPort(e, *from));
  }
  return OkStatus();
}

Status GraphBuilder::BuildFunction(FunctionText* text) {
  Function& f = *text->function;
  reader_->set_context(absl::StrCat("function '", f.name(), "': "));
  f.body = std::make_unique<Graph>(library_);
  RETURN_IF_ERROR(AddArgs(text));
  RETURN_IF_ERROR(BuildNodes(f.body.get(), &text->nodes, text));
  for (Node* n : f.body->Nodes()) {
    if (!n->Is("_Arg")) continue;
    const int64_t index = n->Int("index", -1);
    const bool fits = index >= 0 && index < static_cast<int64_t>(f.args.size());
    Node** slot = fits ? &f.args[static_cast<size_t>(index)] : nullptr;
    if (slot == nullptr || *slot != nullptr) {
      return reader_->ErrorAt(text->offset, absl::StrCat("node '", n->name(), "' has index ", index,
                                                         ", which is no argument left to it"));
    }
    *slot = n;
  }
  return AddResults(text);
}

Status GraphBuilder::AddArgs(FunctionText* text) {
  Function& f = *text->function;
  absl::flat_hash_set<int64_t> stated;
  for (const NodeText& n : text->nodes) {
    const Attr* index = n.op == "_Arg" ? n.attrs.Find("index") : nullptr;
    if (index != nullptr && index->get<int64_t>()) stated.insert(*index->get<int64_t>());
  }
  f.args.resize(f.signature.inputs.size());
  for (size_t i = 0; i < f.args.size(); ++i) {
    if (stated.contains(static_cast<int64_t>(i))) continue;
    auto node = f.body->AddNode(f.signature.inputs[i].name, "_Arg");
    if (!node.ok()) return reader_->ErrorAt(text->offset, node.status().message());
    (*node)->AttrsToChange() = ArgNodeAttrs(f, static_cast<int>(i));
  }
  return OkStatus();
}

Status GraphBuilder::AddResults(FunctionText* text) {
  Function& f = *text->function;
  const auto& outputs = f.signature.outputs;
  absl::flat_hash_map<absl::string_view, size_t> by_name;
  for (size_t i = 0; i < outputs.size(); ++i) by_name.try_emplace(outputs[i].name, i);
  f.results.resize(outputs.size());
  std::vector<bool> given(outputs.size(), false);
  for (const ResultText& r : text->results) {
    const auto it = by_name.find(r.name);
    if (it == by_name.end() || given[it->second]) {
      return reader_->ErrorAt(r.offset, absl::StrCat("'", r.name, "' is no result left to return"));
    }
    const ArgDef& arg = outputs[it->second];
    if (arg.number_attr.empty() && arg.type_list_attr.empty() && r.values.size() != 1) {
      return reader_->ErrorAt(r.offset, absl::StrCat("result '", r.name, "' is one tensor"));
    }
    given[it->second] = true;
    for (const NamedEndpoint& e : r.values) {
      ASSIGN_OR_RETURN(const Endpoint from, Find(*f.body, e));
      RETURN_IF_ERROR(CheckPort(e, *from.node));
      f.results[it->second].push_back(from);
    }
  }
  if (const auto it = std::find(given.begin(), given.end(), false); it != given.end()) {
    const auto& arg = outputs[static_cast<size_t>(it - given.begin())];
    return reader_->ErrorAt(text->offset, absl::StrCat("result '", arg.name, "' is not returned"));
  }
  for (const auto& [name, e] : text->control_results) {
    ASSIGN_OR_RETURN(const Endpoint from, Find(*f.body, e));
    f.control_results.emplace_back(name, from.node);
  }
  return OkStatus();
}

}  // namespace

AttrMap ArgNodeAttrs(const Function& function, int index) {
  const OpDef& signature = function.signature;
  const ArgDef& arg = signature.inputs[static_cast<size_t>(index)];
  const bool list = !arg.type_list_attr.empty() || !arg.number_attr.empty();
  AttrMap attrs;
  attrs.Set("index", index);
  auto count = ArgArity(arg, signature, function.attrs);
  if (count.ok() && *count <= kMaxPlainListArg) {
    auto types = ArgTypes({&arg, 1}, signature, function.attrs);
    if (types.ok()) {
      attrs.Set(list ? "Tlist" : "T", list ? Attr(*types) : Attr(types->front()));
      return attrs;
    }
  }
  attrs.Set(list ? "Tlist" : "T",
            PlaceholderAttr{list ? arg.type_list_attr + arg.number_attr : arg.type_attr});
  return attrs;
}

StatusOr<std::unique_ptr<Graph>> BuildGraph(GraphText text, Reader* reader) {
  return GraphBuilder(reader).Build(&text);
}

}  // namespace smelt::text
