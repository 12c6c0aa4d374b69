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

bool IsLegalName(absl::string_view name) {
  const auto inner = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
           c == '/' || c == '\\' || c == '>';
  };
  return !name.empty() && name[0] != '-' && name[0] != '/' && name[0] != '\\' &&
         std::all_of(name.begin(), name.end(), inner);
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

class GraphVerifier {
 public:
  explicit GraphVerifier(const Graph& graph) : graph_(graph), nodes_(graph.Nodes()) {
    live_.insert(nodes_.begin(), nodes_.end());
  }

  Status Verify() const {
    for (const Node* n : nodes_) {
      if (Status s = VerifyNode(*n); !s.ok()) {
        return Prefix(s, absl::StrCat("node '", n->name(), "' (", n->op(), "): "));
      }
    }
    return graph_.TopologicalOrder().status();
  }

  // An edge out of `e`, which may be anything.
  Status VerifyEndpoint(Endpoint e) const {
    if (!live_.contains(e.node)) return InvalidArgument("reads a node that is not in the graph");
    if (e.port < 0 || e.port >= e.node->num_outputs()) {
      return InvalidArgument("reads output ", e.port, " of node '", e.node->name(), "' (",
                             e.node->op(), "), which has ", e.node->num_outputs(), " outputs");
    }
    return OkStatus();
  }

  bool IsLive(const Node* n) const { return live_.contains(n); }

 private:
  Status VerifyNode(const Node& n) const {
    if (!IsLegalName(n.name())) return InvalidArgument("the name is not legal");
    if (n.op().empty()) return InvalidArgument("there is no op");
    for (Endpoint e : n.inputs()) RETURN_IF_ERROR(VerifyEndpoint(e));
    for (const Node* c : n.control_inputs()) {
      if (!IsLive(c)) return InvalidArgument("waits for a node that is not in the graph");
      if (c == &n) return InvalidArgument("waits for itself");
    }
    RETURN_IF_ERROR(VerifyFunctionNames(n));
    if (n.def() == nullptr) return OkStatus();
    RETURN_IF_ERROR(VerifyAttrs(n));
    return VerifyTypes(n);
  }

  Status VerifyFunctionNames(const Node& n) const {
    Status status;
    ForEachFunc(n.attrs(), [&](const FuncAttr& f) {
      if (f.name.empty() || graph_.library()->Find(f.name) != nullptr) return;
      if (FindOpDef(f.name) != nullptr || !status.ok()) return;
      status = NotFound("Failed to find definition for function \"", f.name, "\"");
    });
    return status;
  }

  static Status VerifyAttrs(const Node& n) {
    for (const AttrDef& def : n.def()->attrs) {
      // A list argument of a function carries its types in Tlist instead.
      if (n.Is("_Arg") && def.name == "T" && n.attrs().Find("Tlist") != nullptr) continue;
      const Attr* attr = n.Find(def.name);
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
      if (in != n.input_types || out != n.output_types) {
        return InvalidArgument("its types are not those that its attributes give");
      }
    }
    for (size_t i = 0; i < n.inputs().size(); ++i) {
      const Endpoint e = n.inputs()[i];
      const Dtype made = e.node->output_types[e.port], wanted = n.input_types[i];
      if (made == Dtype::kInvalid || wanted == Dtype::kInvalid || made == wanted) continue;
      if (IsRef(made) && BaseType(made) == wanted) continue;
      return InvalidArgument("input ", i, " is to be ", DtypeName(wanted), ", node '",
                             e.node->name(), "' gives ", DtypeName(made));
    }
    return OkStatus();
  }

  const Graph& graph_;
  std::vector<Node*> nodes_;
  absl::flat_hash_set<const Node*> live_;
};

Status VerifyResults(const Function& f, const GraphVerifier& body) {
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
      RETURN_IF_ERROR(Prefix(body.VerifyEndpoint(e), absl::StrCat("result '", arg.name, "' ")));
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
    if (!body.IsLive(node)) {
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
  const GraphVerifier body(*f.body);
  RETURN_IF_ERROR(body.Verify());
  if (f.args.size() != f.signature.inputs.size()) {
    return InvalidArgument("has ", f.args.size(), " arguments, its signature ",
                           f.signature.inputs.size());
  }
  for (size_t i = 0; i < f.args.size(); ++i) {
    const std::string& name = f.signature.inputs[i].name;
    if (!body.IsLive(f.args[i])) {
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

Status Verify(const Graph& graph) { return GraphVerifier(graph).Verify(); }

Status VerifyFunction(const Function& function) {
  return Prefix(VerifyFunctionParts(function), absl::StrCat("function '", function.name(), "': "));
}

Status VerifyAll(const Graph& graph) {
  RETURN_IF_ERROR(Verify(graph));
  for (const Function* f : graph.library()->Functions()) RETURN_IF_ERROR(VerifyFunction(*f));
  return OkStatus();
}

}  // namespace smelt
