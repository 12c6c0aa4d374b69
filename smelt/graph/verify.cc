#include "smelt/graph/verify.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/graph/text.h"

namespace smelt {
namespace {

bool MayBeInName(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
         c == '/' || c == '\\' || c == '>';
}

bool IsLegalName(absl::string_view name) {
  return !name.empty() && name[0] != '-' && name[0] != '/' && name[0] != '\\' &&
         std::all_of(name.begin(), name.end(), MayBeInName);
}

// An attribute's value as errors show it.
std::string ShowAttr(const Attr& attr) {
  std::string s = PrintAttr(attr);
  if (s.size() > 80) s = absl::StrCat(s.substr(0, 77), "...");
  return s;
}

// Does the value hold what an attribute definition calls `kind`?
bool HoldsKind(const Attr& attr, absl::string_view kind) {
  if (attr.get<PlaceholderAttr>() != nullptr) return true;
  if (kind == "string") return attr.get<std::string>() != nullptr;
  if (kind == "int") return attr.get<int64_t>() != nullptr;
  if (kind == "float") return attr.get<float>() != nullptr;
  if (kind == "bool") return attr.get<bool>() != nullptr;
  if (kind == "type") return attr.get<Dtype>() != nullptr;
  if (kind == "shape") return attr.get<PartialShape>() != nullptr;
  if (kind == "tensor") return attr.get<std::shared_ptr<const TensorValue>>() != nullptr;
  if (kind == "func") return attr.get<FuncAttr>() != nullptr;
  if (!absl::ConsumePrefix(&kind, "list(") || !absl::ConsumeSuffix(&kind, ")")) return true;
  if (attr.get<EmptyList>() != nullptr) return true;
  if (kind == "string") return attr.get<std::vector<std::string>>() != nullptr;
  if (kind == "int") return attr.get<std::vector<int64_t>>() != nullptr;
  if (kind == "float") return attr.get<std::vector<float>>() != nullptr;
  if (kind == "bool") return attr.get<std::vector<bool>>() != nullptr;
  if (kind == "type") return attr.get<std::vector<Dtype>>() != nullptr;
  if (kind == "shape") return attr.get<std::vector<PartialShape>>() != nullptr;
  if (kind == "func") return attr.get<std::vector<FuncAttr>>() != nullptr;
  return kind != "tensor" || attr.get<std::vector<std::shared_ptr<const TensorValue>>>() != nullptr;
}

int64_t ListLength(const Attr& attr) {
  return std::visit(
      [](const auto& v) -> int64_t {
        if constexpr (requires { v.empty(), v.front(); } &&
                      !std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
          return static_cast<int64_t>(v.size());
        }
        return 0;
      },
      attr.value());
}

Status VerifyAllowed(const AttrDef& def, Dtype type) {
  if (def.allowed_types.empty() || std::ranges::count(def.allowed_types, type) > 0) {
    return OkStatus();
  }
  return InvalidArgument("Value for attr '", def.name, "' of ", DtypeName(type),
                         " is not in the list of allowed values: ",
                         absl::StrJoin(def.allowed_types, ", ", [](std::string* out, Dtype t) {
                           absl::StrAppend(out, DtypeName(t));
                         }));
}

Status VerifyAllowed(const AttrDef& def, const std::string& text) {
  if (def.allowed_strings.empty() || std::ranges::count(def.allowed_strings, text) > 0) {
    return OkStatus();
  }
  return InvalidArgument("Value for attr '", def.name, "' of \"", text,
                         "\" is not in the list of allowed values: \"",
                         absl::StrJoin(def.allowed_strings, "\", \""), "\"");
}

Status VerifyAttr(const AttrDef& def, const Attr& attr) {
  const auto bad = [&](const auto&... why) {
    return InvalidArgument("attribute '", def.name, "' is ", ShowAttr(attr), why...);
  };
  if (!HoldsKind(attr, def.type)) return bad(", which is no ", def.type);
  if (attr.get<PlaceholderAttr>() != nullptr) return OkStatus();
  if (def.has_minimum) {
    const int64_t* n = attr.get<int64_t>();
    if (n != nullptr && *n < def.minimum) {
      return InvalidArgument("Value for attr '", def.name, "' of ", *n,
                             " must be at least minimum ", def.minimum);
    }
    if (absl::StartsWith(def.type, "list(") && ListLength(attr) < def.minimum) {
      return InvalidArgument("Length for attr '", def.name, "' of ", ListLength(attr),
                             " must be at least minimum ", def.minimum);
    }
  }
  if (const auto* t = attr.get<Dtype>()) return VerifyAllowed(def, *t);
  if (const auto* s = attr.get<std::string>()) return VerifyAllowed(def, *s);
  if (const auto* types = attr.get<std::vector<Dtype>>()) {
    for (Dtype t : *types) RETURN_IF_ERROR(VerifyAllowed(def, t));
  } else if (const auto* strings = attr.get<std::vector<std::string>>()) {
    for (const std::string& s : *strings) RETURN_IF_ERROR(VerifyAllowed(def, s));
  }
  return OkStatus();
}

// An edge out of `e`: of a node of the graph, or open.
Status VerifyEdge(Endpoint e) {
  if (e.node == nullptr) return InvalidArgument("reads a node that is not in the graph");
  if (e.port < 0 || e.port >= e.node->num_outputs()) {
    return InvalidArgument("reads output ", e.port, " of node '", e.node->name(), "' (",
                           e.node->op(), "), which has ", e.node->num_outputs(), " outputs");
  }
  return OkStatus();
}

// May input `i` be what it reads? REQUIRES: VerifyEdge finds it so.
Status VerifyType(const Node& n, size_t i) {
  const Endpoint e = n.inputs()[i];
  const Dtype made = e.node->output_types[static_cast<size_t>(e.port)], wanted = n.input_types[i];
  if (made == Dtype::kInvalid || wanted == Dtype::kInvalid || made == wanted) return OkStatus();
  if (IsRef(made) && BaseType(made) == wanted) return OkStatus();
  return InvalidArgument("input ", i, " is to be ", DtypeName(wanted), ", node '", e.node->name(),
                         "' gives ", DtypeName(made));
}

// What holds or not by the node, its edges and the types of those that it reads.
class NodeVerifier {
 public:
  explicit NodeVerifier(const FunctionLibrary& library) : library_(library) {}

  Status Verify(const Node& n) const {
    if (!IsLegalName(n.name())) return InvalidArgument("the name is not legal");
    if (n.op().empty()) return InvalidArgument("there is no op");
    for (Endpoint e : n.inputs()) RETURN_IF_ERROR(VerifyEdge(e));
    for (const Node* c : n.control_inputs()) {
      if (c == nullptr) return InvalidArgument("waits for a node that is not in the graph");
      if (c == &n) return InvalidArgument("waits for itself");
    }
    RETURN_IF_ERROR(VerifyFunctionNames(n));
    if (n.def() == nullptr) return OkStatus();
    RETURN_IF_ERROR(VerifyAttrs(n));
    return VerifyTypes(n);
  }

 private:
  Status VerifyFunctionNames(const Node& n) const {
    Status status;
    ForEachFunc(n.attrs(), [&](const FuncAttr& f) {
      if (f.name.empty() || library_.Find(f.name) != nullptr) return;
      if (FindOpDef(f.name) != nullptr || !status.ok()) return;
      status = NotFound("Failed to find definition for function \"", f.name, "\"");
    });
    return status;
  }

  static Status VerifyAttrs(const Node& n) {
    for (const AttrDef& def : n.def()->attrs) {
      // A list argument of a function carries its types in Tlist instead.
      if (n.Is("_Arg") && def.name == "T" && n.attrs().Find("Tlist") != nullptr) continue;
      const Attr* attr = n.attrs().Find(def.name);
      if (attr == nullptr && def.default_value) attr = &*def.default_value;
      if (attr == nullptr) return InvalidArgument("attribute '", def.name, "' is missing");
      RETURN_IF_ERROR(VerifyAttr(def, *attr));
    }
    return OkStatus();
  }

  static Status VerifyTypes(const Node& n) {
    if (n.input_types.size() != n.inputs().size()) {
      return InvalidArgument("is given ", n.inputs().size(), " inputs, wants ",
                             n.input_types.size());
    }
    const bool deferred = std::any_of(
        n.attrs().begin(), n.attrs().end(),
        [](const AttrMap::Entry& e) { return e.second.get<PlaceholderAttr>() != nullptr; });
    if (!deferred && !n.Is("_Arg")) {
      ASSIGN_OR_RETURN(const auto in, ArgTypes(n.def()->inputs, *n.def(), n.attrs()));
      ASSIGN_OR_RETURN(const auto out, ArgTypes(n.def()->outputs, *n.def(), n.attrs()));
      if (in.size() != n.inputs().size()) {
        return InvalidArgument("is given ", n.inputs().size(), " inputs, wants ", in.size());
      }
      if (n.input_types != in || n.output_types != out) {
        return InvalidArgument("its types are not those that its attributes give");
      }
    }
    for (size_t i = 0; i < n.inputs().size(); ++i) RETURN_IF_ERROR(VerifyType(n, i));
    return OkStatus();
  }

  const FunctionLibrary& library_;
};

// Could the same node be wrong when functions and ops change?
bool FollowsLibrary(const Node& n) {
  bool follows = n.op_name().unknown() || n.def() != DefinitionOf(n.op_name());
  ForEachFunc(n.attrs(), [&](const FuncAttr&) { follows = true; });
  return follows;
}

// Those nodes that a function points to and that are in its body: any may be gone.
class LiveNodes {
 public:
  explicit LiveNodes(const Function& f) {
    absl::flat_hash_set<const Node*> pointed(f.args.begin(), f.args.end());
    for (const auto& result : f.results) {
      for (const Endpoint& e : result) pointed.insert(e.node);
    }
    for (const auto& [name, node] : f.control_results) pointed.insert(node);
    for (int id = 0; id < f.body->max_id(); ++id) {
      const Node* n = f.body->NodeOf(id);
      if (n != nullptr && pointed.contains(n)) nodes_.insert(n);
    }
  }
  bool Has(const Node* n) const { return nodes_.contains(n); }

 private:
  absl::flat_hash_set<const Node*> nodes_;
};

Status VerifyResults(const Function& f, const LiveNodes& body) {
  if (f.results.size() != f.signature.outputs.size()) {
    return InvalidArgument("has ", f.results.size(), " results, its signature ",
                           f.signature.outputs.size());
  }
  for (size_t i = 0; i < f.results.size(); ++i) {
    const ArgDef& arg = f.signature.outputs[i];
    const bool list = !arg.number_attr.empty() || !arg.type_list_attr.empty();
    if (!list && f.results[i].size() != 1) {
      return InvalidArgument("result '", arg.name, "' is ", f.results[i].size(), " tensors");
    }
    for (Endpoint e : f.results[i]) {
      const Status edge = VerifyEdge(body.Has(e.node) ? e : Endpoint());
      RETURN_IF_ERROR(Prefix(edge, absl::StrCat("result '", arg.name, "' ")));
      const Dtype made = e.node->output_types[e.port];
      if (arg.type == Dtype::kInvalid || made == Dtype::kInvalid ||
          BaseType(made) == BaseType(arg.type)) {
        continue;
      }
      return InvalidArgument("result '", arg.name, "' is to be ", DtypeName(arg.type), ", node '",
                             e.node->name(), "' gives ", DtypeName(made));
    }
  }
  for (const auto& [name, node] : f.control_results) {
    if (!body.Has(node)) {
      return InvalidArgument("control result '", name, "' is a node that is not in the body");
    }
  }
  return OkStatus();
}

// What a call passes in and out is what the signature states: a body that asks for more would read
// and write beyond it.
Status VerifyNoOthers(const Function& f) {
  for (const Node* n : f.body->Nodes()) {
    if (n->Is("_Retval") || (n->Is("_Arg") && std::ranges::count(f.args, n) == 0)) {
      return InvalidArgument("node '", n->name(), "' (", n->op(),
                             ") is no argument or result of the signature");
    }
  }
  return OkStatus();
}

Status VerifyFunctionParts(const Function& f) {
  if (f.body == nullptr) return InvalidArgument("has no body");
  RETURN_IF_ERROR(Verify(*f.body));
  const LiveNodes body(f);
  if (f.args.size() != f.signature.inputs.size()) {
    return InvalidArgument("has ", f.args.size(), " arguments, its signature ",
                           f.signature.inputs.size());
  }
  for (size_t i = 0; i < f.args.size(); ++i) {
    const std::string& name = f.signature.inputs[i].name;
    if (!body.Has(f.args[i])) {
      return InvalidArgument("argument '", name, "' is a node that is not in the body");
    }
    if (!f.args[i]->Is("_Arg") || f.args[i]->Int("index", -1) != static_cast<int64_t>(i)) {
      return InvalidArgument("argument '", name, "' is node '", f.args[i]->name(),
                             "', which is not _Arg of index ", i);
    }
  }
  RETURN_IF_ERROR(VerifyNoOthers(f));
  return VerifyResults(f, body);
}

}  // namespace

std::string NodeNameOfFunction(absl::string_view function) {
  std::string name(function.substr(std::min(function.find_first_not_of("_-/\\"), function.size())));
  for (char& c : name) {
    if (!MayBeInName(c)) c = '_';
  }
  return name.empty() ? "call" : name;
}

Status Verify(const Graph& graph) {
  const NodeVerifier verifier(*graph.library());
  for (int id = 0; id < graph.max_id(); ++id) {
    const Node* n = graph.NodeOf(id);
    if (n == nullptr) continue;
    if (Status s = verifier.Verify(*n); !s.ok()) {
      return Prefix(s, absl::StrCat("node '", n->name(), "' (", n->op(), "): "));
    }
  }
  return graph.TopologicalOrder().status();
}

Status VerifyChanges(Graph& graph) {
  const NodeVerifier verifier(*graph.library());
  const bool hold = std::ranges::all_of(graph.touched(), [&](int id) {
    const Node* n = graph.NodeOf(id);
    return n == nullptr || verifier.Verify(*n).ok();
  });
  // The first error in the order of the graph may be another one.
  if (!hold) return Verify(graph);
  RETURN_IF_ERROR(graph.TopologicalOrder().status());
  graph.ForgetTouched(FollowsLibrary);
  return OkStatus();
}

Status VerifyFunction(const Function& function) {
  return Prefix(VerifyFunctionParts(function), absl::StrCat("function '", function.name(), "': "));
}

Status VerifyAll(const Graph& graph) {
  RETURN_IF_ERROR(Verify(graph));
  for (const Function* f : graph.library()->Functions()) RETURN_IF_ERROR(VerifyFunction(*f));
  return OkStatus();
}

}  // namespace smelt
