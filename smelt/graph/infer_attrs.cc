#include "smelt/graph/infer_attrs.h"

namespace smelt {
namespace {

// Calls with more results must state their types, so that a short call cannot ask for much memory.
constexpr int64_t kMaxInferredResults = 1 << 16;

// Ops whose result types are those of a function, and the attribute that names it.
struct CallRow {
  absl::string_view op;
  absl::string_view function;
};
constexpr CallRow kCallTable[] = {
    {"PartitionedCall", "f"},      {"StatefulPartitionedCall", "f"}, {"RemoteCall", "f"},
    {"TPUPartitionedCall", "f"},   {"BatchFunction", "f"},           {"MapDefun", "f"},
    {"If", "then_branch"},         {"StatelessIf", "then_branch"},   {"Case", "branches"},
    {"StatelessCase", "branches"},
};

// The base type of what input i reads; kInvalid when it is not known.
Dtype InferInputType(const Node& node, size_t i) {
  const Endpoint e = node.inputs()[i];
  if (e.node == nullptr || e.port < 0 || e.port >= e.node->num_outputs()) return Dtype::kInvalid;
  const Dtype t = e.node->output_types[e.port];
  return IsKnownDtype(static_cast<int>(t)) ? BaseType(t) : Dtype::kInvalid;
}

// Sets an attribute that is missing, unless its default says the same.
void SetMissing(Node* node, absl::string_view name, Attr value) {
  if (node->attrs().Find(name) != nullptr) return;
  const Attr* otherwise = node->Find(name);
  if (otherwise == nullptr || !(*otherwise == value))
    node->AttrsToChange().Set(name, std::move(value));
}

// How many inputs each argument takes; empty when the number of inputs does not decide it.
// `trust_defaults`: an absent number or list attribute has its default, otherwise it is solved for.
std::vector<int64_t> SolveArities(const Node& node, bool trust_defaults) {
  const OpDef& def = *node.def();
  std::vector<int64_t> arities;
  absl::string_view unknown;
  int64_t stated = 0, unknown_args = 0;
  for (const ArgDef& arg : def.inputs) {
    const absl::string_view attr =
        arg.type_list_attr.empty() ? arg.number_attr : arg.type_list_attr;
    if (attr.empty() || node.attrs().Find(attr) != nullptr ||
        (trust_defaults && node.Find(attr) != nullptr)) {
      auto n = ArgArity(arg, def, node.attrs());
      if (!n.ok()) return {};
      stated += *n;
      arities.push_back(*n);
    } else {
      if (unknown_args++ > 0 && attr != unknown) return {};
      unknown = attr;
      arities.push_back(-1);
    }
  }
  const int64_t rest = static_cast<int64_t>(node.inputs().size()) - stated;
  if (unknown_args == 0 ? rest != 0 : rest < 0 || rest % unknown_args != 0) return {};
  for (int64_t& n : arities) {
    if (n < 0) n = rest / unknown_args;
  }
  return arities;
}

void InferFromArg(Node* node, const ArgDef& arg, size_t first, int64_t count) {
  if (!arg.type_list_attr.empty()) {
    std::vector<Dtype> types;
    for (int64_t i = 0; i < count; ++i) {
      types.push_back(InferInputType(*node, first + static_cast<size_t>(i)));
      if (types.back() == Dtype::kInvalid) return;
    }
    SetMissing(node, arg.type_list_attr, types.empty() ? Attr(EmptyList{}) : Attr(types));
    return;
  }
  if (!arg.number_attr.empty()) SetMissing(node, arg.number_attr, Attr(count));
  if (arg.type != Dtype::kInvalid || arg.type_attr.empty()) return;
  for (int64_t i = 0; i < count; ++i) {
    const Dtype t = InferInputType(*node, first + static_cast<size_t>(i));
    if (t != Dtype::kInvalid) return SetMissing(node, arg.type_attr, Attr(t));
  }
}

void InferFromValue(Node* node) {
  const Attr* value = node->attrs().Find("value");
  const auto* tensor = value ? value->get<std::shared_ptr<const TensorValue>>() : nullptr;
  const AttrDef* dtype = node->def()->FindAttr("dtype");
  if (tensor != nullptr && *tensor != nullptr && dtype != nullptr && dtype->type == "type") {
    SetMissing(node, "dtype", Attr((*tensor)->dtype));
  }
}

void InferFromCallee(Node* node, const FunctionLibrary& library) {
  const OpDef& def = *node->def();
  if (def.outputs.size() != 1 || def.outputs[0].type_list_attr.empty()) return;
  const std::string& results = def.outputs[0].type_list_attr;
  if (node->attrs().Find(results) != nullptr) return;
  for (const CallRow& row : kCallTable) {
    if (row.op != node->op()) continue;
    const FuncAttr* f = node->Func(row.function);
    const Attr* list = node->Find(row.function);
    if (const auto* l = list ? list->get<std::vector<FuncAttr>>() : nullptr; l && !l->empty()) {
      f = &l->front();
    }
    const OpDef* callee = f ? library.FindOp(f->name) : nullptr;
    if (callee == nullptr) return;
    const AttrMap attrs = f->attrs ? *f->attrs : AttrMap();
    int64_t total = 0;
    for (const ArgDef& arg : callee->outputs) {
      auto n = ArgArity(arg, *callee, attrs);
      if (!n.ok() || (total += *n) > kMaxInferredResults) return;
    }
    auto types = ArgTypes(callee->outputs, *callee, attrs);
    if (types.ok()) {
      SetMissing(node, results, types->empty() ? Attr(EmptyList{}) : Attr(*types));
    }
  }
}

}  // namespace

Status InferAttrs(Node* node, const FunctionLibrary* library) {
  if (node->def() == nullptr) return OkStatus();
  InferFromValue(node);
  std::vector<int64_t> arities = SolveArities(*node, /*trust_defaults=*/true);
  if (arities.empty()) arities = SolveArities(*node, /*trust_defaults=*/false);
  size_t first = 0;
  for (size_t i = 0; i < arities.size(); ++i) {
    InferFromArg(node, node->def()->inputs[i], first, arities[i]);
    first += static_cast<size_t>(arities[i]);
  }
  if (library != nullptr) InferFromCallee(node, *library);
  return OkStatus();
}

}  // namespace smelt
