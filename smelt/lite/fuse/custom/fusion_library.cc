#include "smelt/lite/fuse/custom/fusion_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/operand_counts.h"
#include "smelt/lite/fuse/custom/smelt_fusion.h"
#include "smelt/wire/tflite/flex.h"

struct smelt_fusion_registry {
  std::vector<smelt::FunctionFusion> fusions;
  std::string library;
  smelt::Status status;
};

struct smelt_fusion_call {
  smelt::Node& root;
  smelt::Fuser& fuser;
  smelt::Status status;               // of the last function that failed
  std::vector<int> known;             // operators that the library was shown
  std::deque<smelt::Tensor> tensors;  // whose bytes and sizes it was shown
  std::deque<std::vector<int64_t>> sizes;
  bool replaced = false, declined = false;
};

namespace smelt {
namespace {

using Call = smelt_fusion_call;

int32_t Wrong(Call* c, Status status) {
  c->status = std::move(status);
  return SMELT_FUSION_WRONG;
}

// nullptr: the library was never shown such an operator. It sees the root and what is before it
// alone, so that nothing which it makes can depend on itself.
Node* NodeAt(Call* c, int32_t op) {
  if (c->replaced || std::ranges::find(c->known, op) == c->known.end()) {
    Wrong(c, InvalidArgument("there is no operator ", op, c->replaced ? " any more" : ""));
    return nullptr;
  }
  return c->fuser.graph().NodeOf(op);
}

std::optional<Endpoint> EndpointAt(Call* c, smelt_fusion_value v) {
  Node* n = NodeAt(c, v.op);
  if (n == nullptr) return std::nullopt;
  if (v.port >= 0 && v.port < n->num_outputs()) return Endpoint{n, v.port};
  Wrong(c, InvalidArgument("'", n->name(), "' has no output ", v.port));
  return std::nullopt;
}

// ---- what the library sees

const char* HostOp(Call* c, int32_t op) {
  const Node* n = NodeAt(c, op);
  if (n == nullptr) return nullptr;
  // Kept as the bytes of a scalar, as long as the call.
  std::string name = n->Is("tfl.custom")                 ? n->String("custom_code")
                     : n->Is("Const")                    ? "CONST"
                     : n->Is("_Arg")                     ? "ARGUMENT"
                     : absl::StartsWith(n->op(), "tfl.") ? absl::AsciiStrToUpper(n->op().substr(4))
                                                         : std::string(n->op());
  return c->tensors.emplace_back(Tensor::Scalar(std::move(name))).data<std::string>()->c_str();
}
int32_t HostIsCustom(Call* c, int32_t op) {
  const Node* n = NodeAt(c, op);
  return n != nullptr && n->Is("tfl.custom") ? 1 : 0;
}
const char* HostLabel(Call* c, int32_t op) {
  const Node* n = NodeAt(c, op);
  return n == nullptr ? nullptr : n->name().c_str();
}
int32_t HostNumInputs(Call* c, int32_t op) {
  const Node* n = NodeAt(c, op);
  return n == nullptr ? -1 : n->num_inputs();
}
int32_t HostNumOutputs(Call* c, int32_t op) {
  const Node* n = NodeAt(c, op);
  return n == nullptr ? -1 : n->num_outputs();
}

int32_t HostInput(Call* c, int32_t op, int32_t i, smelt_fusion_value* value) {
  const Node* n = NodeAt(c, op);
  if (n == nullptr) return SMELT_FUSION_WRONG;
  if (i < 0 || i >= n->num_inputs()) {
    return Wrong(c, InvalidArgument("'", n->name(), "' has no input ", i));
  }
  const Endpoint e = n->input(i);
  if (e.node->Is("tfl.no_value")) {
    *value = {-1, 0};
    return SMELT_FUSION_OK;
  }
  c->known.push_back(e.node->id());
  *value = {e.node->id(), e.port};
  return SMELT_FUSION_OK;
}

int32_t HostTensor(Call* c, smelt_fusion_value value, smelt_fusion_tensor* tensor) {
  const auto e = EndpointAt(c, value);
  if (!e) return SMELT_FUSION_WRONG;
  *tensor = {};
  tensor->dtype = static_cast<int32_t>(BaseType(Fuser::type(*e)));
  const PartialShape shape = Fuser::shape(*e);
  tensor->rank = shape.known_rank() ? shape.rank() : -1;
  std::vector<int64_t>& dims = c->sizes.emplace_back();
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(std::max<int64_t>(shape[i], -1));
  tensor->dims = dims.data();
  if (const auto constant = Fuser::Constant(*e)) {
    const Tensor& kept = c->tensors.emplace_back(*constant);
    tensor->num_elements = kept.num_elements();
    // Not NULL even where there is no element.
    static const char nothing = 0;
    if (IsPod(kept.dtype())) tensor->data = kept.num_elements() == 0 ? &nothing : kept.raw();
  }
  return SMELT_FUSION_OK;
}

int32_t HostNumReaders(Call* c, smelt_fusion_value value) {
  const auto e = EndpointAt(c, value);
  return e ? e->node->NumUses(e->port) : -1;
}

template <typename T>
int32_t AttrOf(Call* c, int32_t op, const char* name, const T** value) {
  const Node* n = NodeAt(c, op);
  if (n == nullptr) return SMELT_FUSION_WRONG;
  const Attr* a = name == nullptr || n->Is("tfl.custom") ? nullptr : n->Find(name);
  if (a == nullptr) return SMELT_FUSION_NONE;
  *value = a->get<T>();
  if (*value != nullptr) return SMELT_FUSION_OK;
  return Wrong(c, InvalidArgument("option ", name, " of '", n->name(), "' is of another type"));
}

int32_t HostAttrInt(Call* c, int32_t op, const char* name, int64_t* value) {
  const int64_t* v = nullptr;
  const int32_t code = AttrOf(c, op, name, &v);
  if (code == SMELT_FUSION_OK) *value = *v;
  return code;
}
int32_t HostAttrFloat(Call* c, int32_t op, const char* name, float* value) {
  const float* v = nullptr;
  const int32_t code = AttrOf(c, op, name, &v);
  if (code == SMELT_FUSION_OK) *value = *v;
  return code;
}
int32_t HostAttrBool(Call* c, int32_t op, const char* name, int32_t* value) {
  const bool* v = nullptr;
  const int32_t code = AttrOf(c, op, name, &v);
  if (code == SMELT_FUSION_OK) *value = *v ? 1 : 0;
  return code;
}
int32_t HostAttrString(Call* c, int32_t op, const char* name, const char** data, size_t* size) {
  const std::string* v = nullptr;
  const int32_t code = AttrOf(c, op, name, &v);
  if (code != SMELT_FUSION_OK) return code;
  *data = v->c_str();
  *size = v->size();
  return code;
}
int32_t HostCustomOptions(Call* c, int32_t op, const void** data, size_t* size) {
  const Node* n = NodeAt(c, op);
  if (n == nullptr) return SMELT_FUSION_WRONG;
  const Attr* a = n->Is("tfl.custom") ? n->Find("custom_options") : nullptr;
  const auto* bytes = a == nullptr ? nullptr : a->get<std::string>();
  if (bytes == nullptr) return SMELT_FUSION_NONE;
  *data = bytes->data();
  *size = bytes->size();
  return SMELT_FUSION_OK;
}

// ---- what it makes

StatusOr<Attr> AttrOfLibrary(const smelt_fusion_attribute& a) {
  if (a.name == nullptr) return InvalidArgument("an attribute has no name");
  switch (a.kind) {
    case SMELT_FUSION_INT:
      return Attr(a.i);
    case SMELT_FUSION_FLOAT:
      return Attr(a.f);
    case SMELT_FUSION_BOOL:
      return Attr(a.i != 0);
    case SMELT_FUSION_STRING:
      if (a.s != nullptr) return Attr(std::string(a.s));
      break;
    case SMELT_FUSION_INTS:
      if (a.num_ints == 0) return Attr(std::vector<int64_t>());
      if (a.ints != nullptr) return Attr(std::vector<int64_t>(a.ints, a.ints + a.num_ints));
      break;
    default:
      return InvalidArgument("attribute ", a.name, " is of the unknown kind ", a.kind);
  }
  return InvalidArgument("attribute ", a.name, " has no value");
}

Status CheckAttribute(OpName op, absl::string_view name, const Attr& value) {
  const AttrDef* def = DefinitionOf(op)->FindAttr(name);
  if (def == nullptr || name == "Tin" || name == "Tout") {
    return InvalidArgument(op.text(), " has no option ", name);
  }
  const auto* s = value.get<std::string>();
  const bool fits = (def->type == "int" && value.get<int64_t>() != nullptr) ||
                    (def->type == "float" && value.get<float>() != nullptr) ||
                    (def->type == "bool" && value.get<bool>() != nullptr) ||
                    (def->type == "list(int)" && value.get<std::vector<int64_t>>() != nullptr) ||
                    (def->type == "string" && s != nullptr);
  if (!fits) return InvalidArgument("option ", name, " of ", op.text(), " is of type ", def->type);
  const auto& allowed = def->allowed_strings;
  if (s == nullptr || allowed.empty() || std::ranges::find(allowed, *s) != allowed.end()) {
    return OkStatus();
  }
  return InvalidArgument("option ", name, " of ", op.text(), " is '", *s, "', which it cannot be");
}

StatusOr<AttrMap> OptionsOf(const smelt_fusion_replacement& by, OpName op) {
  AttrMap out;
  std::vector<FlexEntry> entries;
  if (by.num_attributes > 0 && by.attributes == nullptr) {
    return InvalidArgument("the attributes are not given");
  }
  for (size_t i = 0; i < by.num_attributes; ++i) {
    ASSIGN_OR_RETURN(Attr value, AttrOfLibrary(by.attributes[i]));
    const std::string name = by.attributes[i].name;
    if (by.custom != 0) {
      entries.emplace_back(name, std::move(value));
      continue;
    }
    RETURN_IF_ERROR(CheckAttribute(op, name, value));
    out.Set(name, std::move(value));
  }
  if (by.custom == 0) return out;
  out.Set("custom_code", std::string(by.op));
  if (by.custom_options != nullptr) {
    if (!entries.empty()) return InvalidArgument("it has attributes beside its custom options");
    out.Set("custom_options",
            std::string(static_cast<const char*>(by.custom_options), by.custom_options_size));
    return out;
  }
  if (entries.empty()) return out;
  std::ranges::sort(entries, {}, &FlexEntry::first);
  ASSIGN_OR_RETURN(std::string map, FlexMap(entries));
  out.Set("custom_options", std::move(map));
  return out;
}

StatusOr<Endpoint> ConstantOf(const smelt_fusion_tensor& t, Call* c) {
  const auto type = static_cast<Dtype>(t.dtype);
  if (!IsPod(type) || DtypeSize(type) == 0) {
    return InvalidArgument("a constant is of type ", t.dtype, ", which none can have");
  }
  if (t.rank < 0 || (t.rank > 0 && t.dims == nullptr)) {
    return InvalidArgument("a constant has no shape");
  }
  const auto shape = Shape::Make(std::span<const int64_t>(t.dims, static_cast<size_t>(t.rank)));
  if (!shape.ok()) return Prefix(shape.status(), "a constant: ");
  ASSIGN_OR_RETURN(Tensor value, Tensor::Make(type, *shape));
  if (value.bytes() > 0) {
    if (t.data == nullptr) return InvalidArgument("a constant has no elements");
    std::memcpy(value.raw(), t.data, value.bytes());
  }
  return c->fuser.Const(value, c->root);
}

StatusOr<OpName> OperatorOf(const smelt_fusion_replacement& by) {
  if (by.op == nullptr || *by.op == 0) return InvalidArgument("the new operator has no name");
  if (by.custom != 0) return OpName("tfl.custom");
  const OpName op = OpName::Of(absl::StrCat("tfl.", absl::AsciiStrToLower(by.op)));
  constexpr OpSet kNeverMade = {"tfl.no_value", "tfl.variable", "tfl.custom"};
  if (op.unknown() || kNeverMade.Contains(op)) {
    return InvalidArgument("there is no operator ", by.op);
  }
  for (const AttrDef& a : DefinitionOf(op)->attrs) {
    if (absl::StrContains(a.type, "func")) {
      return InvalidArgument("no fusion can make ", by.op, ", which calls functions");
    }
  }
  return op;
}

// Who beside the operators reads one of them; empty: nobody.
StatusOr<std::string> OthersThatRead(const smelt_fusion_replacement& by, Call* c) {
  if (by.num_taken > 0 && by.taken == nullptr) return InvalidArgument("what it takes is not given");
  std::vector<const Node*> all = {&c->root};
  for (size_t i = 0; i < by.num_taken; ++i) {
    const Node* n = NodeAt(c, by.taken[i]);
    if (n == nullptr) return c->status;
    all.push_back(n);
  }
  for (const Node* n : all) {
    if (n == &c->root) continue;
    for (const Use& use : n->OrderedUses()) {
      if (std::ranges::find(all, use.node) == all.end()) {
        return absl::StrCat("'", use.node->name(), "' reads '", n->name(), "'");
      }
    }
  }
  return std::string();
}

// Replaces the root; false: others read what goes.
StatusOr<bool> Replaced(const smelt_fusion_replacement& by, Call* c) {
  ASSIGN_OR_RETURN(const OpName op, OperatorOf(by));
  if (by.num_inputs > 0 && by.inputs == nullptr) return InvalidArgument("it has no inputs given");
  const OperandCounts* counts = FindOperandCounts(op);
  if (counts == nullptr) return InvalidArgument("no file has an operator ", by.op);
  const int results = c->root.num_outputs();
  if (by.num_inputs > 4096 || !counts->inputs.Has(static_cast<int>(by.num_inputs))) {
    return InvalidArgument(by.op, " cannot have ", by.num_inputs, " inputs");
  }
  if (!counts->outputs.Has(results)) {
    return InvalidArgument(by.op, " has ", counts->outputs.ToString(), " results, and '",
                           c->root.name(), "' has ", results);
  }
  ASSIGN_OR_RETURN(AttrMap options, OptionsOf(by, op));
  ASSIGN_OR_RETURN(const std::string others, OthersThatRead(by, c));
  if (!others.empty()) {
    c->declined = true;
    return c->fuser.Declined(c->root, others);
  }
  std::vector<Endpoint> inputs;
  DtypeVector in;
  for (size_t i = 0; i < by.num_inputs; ++i) {
    const smelt_fusion_operand& operand = by.inputs[i];
    if (operand.constant != nullptr) {
      ASSIGN_OR_RETURN(inputs.emplace_back(), ConstantOf(*operand.constant, c));
    } else if (operand.value.op < 0) {
      ASSIGN_OR_RETURN(Node * none, c->fuser.graph().Add(c->root.name(), "tfl.no_value", {}));
      inputs.push_back({none, 0});
    } else {
      const auto e = EndpointAt(c, operand.value);
      if (!e) return c->status;
      if (e->node == &c->root) return InvalidArgument("it would read what it replaces");
      inputs.push_back(*e);
    }
    in.push_back(Fuser::type(inputs.back()));
  }
  std::vector<PartialShape> shapes;
  for (int i = 0; i < results; ++i) shapes.push_back(Fuser::shape({&c->root, i}));
  options.Set("Tin", in);
  options.Set("Tout", DtypeVector(c->root.output_types));
  options.Set(kOutputShapes, shapes);
  ASSIGN_OR_RETURN(Node * made,
                   c->fuser.graph().Add(c->root.name(), op.text(), inputs, std::move(options)));
  for (int i = 1; i < results; ++i) c->fuser.graph().ReplaceAllUses({&c->root, i}, {made, i});
  c->fuser.Replace(&c->root, {made, 0});
  return true;
}

int32_t HostReplace(Call* c, const smelt_fusion_replacement* by) {
  Status wrong;
  if (by == nullptr || by->struct_size < sizeof(smelt_fusion_replacement)) {
    wrong = InvalidArgument("struct_size of the replacement is not one that is known");
  } else if (c->replaced) {
    wrong = InvalidArgument("it replaces a second time");
  }
  if (!wrong.ok()) {
    Wrong(c, std::move(wrong));
    return SMELT_FUSION_FAILED;
  }
  const auto did = Replaced(*by, c);
  if (!did.ok()) {
    Wrong(c, did.status());
    return SMELT_FUSION_FAILED;
  }
  c->replaced = *did;
  if (*did) return SMELT_FUSION_YES;
  return SMELT_FUSION_NO;
}

int32_t HostDecline(Call* c, const char* why) {
  if (c->replaced) return SMELT_FUSION_NO;
  c->fuser.Declined(c->root, why == nullptr ? "it does not say why" : why);
  c->declined = true;
  return SMELT_FUSION_NO;
}
int32_t HostFail(Call* c, const char* message) {
  Wrong(c, FailedPrecondition(message == nullptr ? "it does not say why" : message));
  return SMELT_FUSION_FAILED;
}
int32_t HostFailed(Call* c) {
  if (c->status.ok()) Wrong(c, FailedPrecondition("it failed, and no function of the host did"));
  return SMELT_FUSION_FAILED;
}

int32_t HostAddFusion(smelt_fusion_registry* registry, const smelt_fusion* fusion);

constexpr smelt_fusion_host kHost = {SMELT_FUSION_ABI_VERSION,
                                     HostAddFusion,
                                     HostOp,
                                     HostIsCustom,
                                     HostLabel,
                                     HostNumInputs,
                                     HostNumOutputs,
                                     HostInput,
                                     HostTensor,
                                     HostNumReaders,
                                     HostAttrInt,
                                     HostAttrFloat,
                                     HostAttrBool,
                                     HostAttrString,
                                     HostCustomOptions,
                                     HostReplace,
                                     HostDecline,
                                     HostFail,
                                     HostFailed};

StatusOr<bool> RunFusion(int32_t (*fuse)(const smelt_fusion_host*, smelt_fusion_call*, int32_t),
                         const std::string& where, Node& n, Fuser& f) {
  const std::string name = n.name();
  Call call{n, f, OkStatus(), {n.id()}, {}, {}};
  const int32_t answer = fuse(&kHost, &call, n.id());
  const std::string prefix = absl::StrCat(where, " at '", name, "': ");
  if (answer == SMELT_FUSION_YES || answer == SMELT_FUSION_NO) {
    if (call.replaced == (answer == SMELT_FUSION_YES)) return call.replaced;
    return FailedPrecondition(prefix, "it answers ", answer, ", and has ",
                              call.replaced ? "" : "not ", "replaced the operator");
  }
  if (!call.status.ok()) return Prefix(call.status, prefix);
  return FailedPrecondition(prefix, "it answers ", answer, " without a reason");
}

Status AddFusionOf(smelt_fusion_registry* registry, const smelt_fusion* fusion) {
  if (fusion == nullptr || fusion->struct_size < sizeof(smelt_fusion)) {
    return InvalidArgument("struct_size of a fusion is not one that is known");
  }
  const bool whole = fusion->name != nullptr && *fusion->name != 0 && fusion->what != nullptr &&
                     fusion->ops != nullptr && fusion->fuse != nullptr;
  if (!whole)
    return InvalidArgument("a fusion lacks its name, what it does, operators or function");
  FunctionFusion out;
  out.name = fusion->name;
  out.what = fusion->what;
  for (const absl::string_view name : absl::StrSplit(fusion->ops, ' ', absl::SkipEmpty())) {
    const OpName op = OpName::Of(absl::StrCat("tfl.", absl::AsciiStrToLower(name)));
    if (op.unknown()) {
      return InvalidArgument("fusion ", out.name, ": there is no operator ", name);
    }
    out.ops.Add(op);
  }
  const std::string where = absl::StrCat("fusion ", out.name, " of ", registry->library);
  out.apply = [fuse = fusion->fuse, where](Node& n, Fuser& f) {
    return RunFusion(fuse, where, n, f);
  };
  registry->fusions.push_back(std::move(out));
  return OkStatus();
}

int32_t HostAddFusion(smelt_fusion_registry* registry, const smelt_fusion* fusion) {
  Status added = AddFusionOf(registry, fusion);
  const bool ok = added.ok();
  if (registry->status.ok()) registry->status = std::move(added);
  if (ok) return SMELT_FUSION_OK;
  return SMELT_FUSION_FAILED;
}

}  // namespace

StatusOr<std::vector<FunctionFusion>> LoadFusionLibrary(const std::string& path) {
  // A name without a slash would be looked for in the system's folders.
  const std::string file = absl::StrContains(path, '/') ? path : absl::StrCat("./", path);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotFound("cannot load fusion library: ", dlerror());
  void* symbol = dlsym(library, "smelt_register_fusions");
  if (symbol == nullptr) {
    return InvalidArgument("fusion library ", path, " exports no smelt_register_fusions");
  }
  int32_t (*register_fusions)(const smelt_fusion_host*, smelt_fusion_registry*) = nullptr;
  std::memcpy(&register_fusions, &symbol, sizeof(symbol));
  smelt_fusion_registry registry;
  registry.library = path;
  const int32_t code = register_fusions(&kHost, &registry);
  const std::string where = absl::StrCat("fusion library ", path, ": ");
  if (!registry.status.ok()) return Prefix(registry.status, where);
  if (code != SMELT_FUSION_OK) {
    return FailedPrecondition(where, "smelt_register_fusions answered ", code,
                              ", as for a version of the interface other than ",
                              SMELT_FUSION_ABI_VERSION);
  }
  return std::move(registry.fusions);
}

}  // namespace smelt
