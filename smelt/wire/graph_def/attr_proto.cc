#include "smelt/wire/graph_def/attr_proto.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/framework.pb.h"
#include "smelt/wire/proto/proto_internal.h"

namespace smelt {
namespace {

using tensorflow::AttrValue;

tensorflow::DataType ToDataType(Dtype t) { return static_cast<tensorflow::DataType>(t); }

// The entries sorted by name: an AttrMap appends in constant time but inserts in linear time.
std::vector<AttrProtoMap::value_type*> SortedEntries(AttrProtoMap* proto) {
  std::vector<AttrProtoMap::value_type*> entries;
  entries.reserve(proto->size());
  for (auto& entry : *proto) entries.push_back(&entry);
  std::ranges::sort(entries, {}, [](const auto* e) { return absl::string_view(e->first); });
  return entries;
}

FuncAttr TakeFunc(tensorflow::NameAttrList* proto) {
  FuncAttr func{std::move(*proto->mutable_name()), nullptr};
  if (!proto->attr().empty()) {
    auto attrs = std::make_shared<AttrMap>();
    for (auto* e : SortedEntries(proto->mutable_attr())) {
      attrs->Set(e->first, TakeAttr(&e->second));
    }
    func.attrs = std::move(attrs);
  }
  return func;
}

void FuncToProto(const FuncAttr& func, tensorflow::NameAttrList* proto) {
  proto->set_name(func.name);
  if (func.attrs) AttrsToProto(*func.attrs, proto->mutable_attr());
}

bool HoldsFunc(const tensorflow::NameAttrList& proto) {
  return !HasUnknownFields(proto) &&
         std::ranges::all_of(proto.attr(), [](const auto& e) { return HoldsAttr(e.second); });
}

bool HoldsType(int type) { return type == 0 || IsKnownDtype(type); }

// How many of the message's eight lists have elements. An Attr holds only one.
int ListKinds(const AttrValue::ListValue& l) {
  return !l.s().empty() + !l.i().empty() + !l.f().empty() + !l.b().empty() + !l.type().empty() +
         !l.shape().empty() + !l.tensor().empty() + !l.func().empty();
}

Attr TakeList(AttrValue::ListValue* l) {
  if (!l->s().empty()) {
    return std::vector<std::string>(std::move_iterator(l->mutable_s()->begin()),
                                    std::move_iterator(l->mutable_s()->end()));
  }
  if (!l->i().empty()) return std::vector<int64_t>(l->i().begin(), l->i().end());
  if (!l->f().empty()) return std::vector<float>(l->f().begin(), l->f().end());
  if (!l->b().empty()) return std::vector<bool>(l->b().begin(), l->b().end());
  if (!l->type().empty()) {
    std::vector<Dtype> types;
    types.reserve(static_cast<size_t>(l->type_size()));
    for (int t : l->type()) types.push_back(DtypeFromProto(t));
    return types;
  }
  if (!l->shape().empty()) {
    std::vector<PartialShape> shapes;
    for (const auto& s : l->shape()) shapes.push_back(ShapeFromProto(s));
    return shapes;
  }
  if (!l->tensor().empty()) {
    std::vector<std::shared_ptr<const TensorValue>> tensors;
    for (auto& t : *l->mutable_tensor()) tensors.push_back(TakeTensorValue(&t));
    return tensors;
  }
  if (!l->func().empty()) {
    std::vector<FuncAttr> funcs;
    for (auto& f : *l->mutable_func()) funcs.push_back(TakeFunc(&f));
    return funcs;
  }
  return EmptyList{};
}

bool HoldsList(const AttrValue::ListValue& l) {
  return !HasUnknownFields(l) && ListKinds(l) <= 1 && std::ranges::all_of(l.type(), HoldsType) &&
         std::ranges::all_of(l.shape(), HoldsShape) && std::ranges::all_of(l.func(), HoldsFunc);
}

// One overload for each type that an Attr may hold.
struct AttrWriter {
  AttrValue* proto;

  void operator()(std::monostate) {}
  void operator()(const std::string& v) { proto->set_s(v); }
  void operator()(int64_t v) { proto->set_i(v); }
  void operator()(float v) { proto->set_f(v); }
  void operator()(bool v) { proto->set_b(v); }
  void operator()(Dtype v) { proto->set_type(ToDataType(v)); }
  void operator()(const PartialShape& v) { ShapeToProto(v, proto->mutable_shape()); }
  void operator()(const std::shared_ptr<const TensorValue>& v) {
    TensorValueToProto(*v, proto->mutable_tensor());
  }
  void operator()(const FuncAttr& v) { FuncToProto(v, proto->mutable_func()); }
  void operator()(const PlaceholderAttr& v) { proto->set_placeholder(v.name); }
  void operator()(EmptyList) { proto->mutable_list(); }
  void operator()(const std::vector<std::string>& v) {
    auto* list = proto->mutable_list();
    for (const auto& s : v) list->add_s(s);
  }
  void operator()(const std::vector<int64_t>& v) {
    proto->mutable_list()->mutable_i()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<float>& v) {
    proto->mutable_list()->mutable_f()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<bool>& v) {
    proto->mutable_list()->mutable_b()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<Dtype>& v) {
    auto* list = proto->mutable_list();
    for (Dtype t : v) list->add_type(ToDataType(t));
  }
  void operator()(const std::vector<PartialShape>& v) {
    auto* list = proto->mutable_list();
    for (const auto& s : v) ShapeToProto(s, list->add_shape());
  }
  void operator()(const std::vector<std::shared_ptr<const TensorValue>>& v) {
    auto* list = proto->mutable_list();
    for (const auto& t : v) TensorValueToProto(*t, list->add_tensor());
  }
  void operator()(const std::vector<FuncAttr>& v) {
    auto* list = proto->mutable_list();
    for (const auto& f : v) FuncToProto(f, list->add_func());
  }
};

// The kind of a value, as OpDef.attr.type spells it.
struct AttrKind {
  absl::string_view operator()(std::monostate) { return ""; }
  absl::string_view operator()(const std::string&) { return "string"; }
  absl::string_view operator()(int64_t) { return "int"; }
  absl::string_view operator()(float) { return "float"; }
  absl::string_view operator()(bool) { return "bool"; }
  absl::string_view operator()(Dtype) { return "type"; }
  absl::string_view operator()(const PartialShape&) { return "shape"; }
  absl::string_view operator()(const std::shared_ptr<const TensorValue>&) { return "tensor"; }
  absl::string_view operator()(const FuncAttr&) { return "func"; }
  absl::string_view operator()(const PlaceholderAttr&) { return "placeholder"; }
  absl::string_view operator()(EmptyList) { return "list"; }
  absl::string_view operator()(const std::vector<std::string>&) { return "list(string)"; }
  absl::string_view operator()(const std::vector<int64_t>&) { return "list(int)"; }
  absl::string_view operator()(const std::vector<float>&) { return "list(float)"; }
  absl::string_view operator()(const std::vector<bool>&) { return "list(bool)"; }
  absl::string_view operator()(const std::vector<Dtype>&) { return "list(type)"; }
  absl::string_view operator()(const std::vector<PartialShape>&) { return "list(shape)"; }
  absl::string_view operator()(const std::vector<std::shared_ptr<const TensorValue>>&) {
    return "list(tensor)";
  }
  absl::string_view operator()(const std::vector<FuncAttr>&) { return "list(func)"; }
};

ArgDef TakeArg(tensorflow::OpDef::ArgDef* proto) {
  ArgDef arg;
  arg.name = std::move(*proto->mutable_name());
  arg.type_attr = std::move(*proto->mutable_type_attr());
  arg.type_list_attr = std::move(*proto->mutable_type_list_attr());
  arg.number_attr = std::move(*proto->mutable_number_attr());
  arg.is_ref = proto->is_ref();
  proto->clear_name();
  proto->clear_type_attr();
  proto->clear_type_list_attr();
  proto->clear_number_attr();
  proto->clear_is_ref();
  if (HoldsType(proto->type())) {
    arg.type = DtypeFromProto(proto->type());
    proto->clear_type();
  }
  arg.unknown_fields = Remainder(*proto);
  return arg;
}

// The carried bytes came from a message of the same type; anything else is a caller's mistake.
Status MergeCarried(const std::string& bytes, google::protobuf::Message* message) {
  if (bytes.empty()) return OkStatus();
  if (!ParseBinaryProto(bytes, "", message).ok()) {
    return Internal("Carried fields of ", message->GetDescriptor()->full_name(), " do not parse");
  }
  return OkStatus();
}

Status ArgToProto(const ArgDef& arg, tensorflow::OpDef::ArgDef* proto) {
  RETURN_IF_ERROR(MergeCarried(arg.unknown_fields, proto));
  proto->set_name(arg.name);
  proto->set_type_attr(arg.type_attr);
  proto->set_type_list_attr(arg.type_list_attr);
  proto->set_number_attr(arg.number_attr);
  proto->set_is_ref(arg.is_ref);
  if (arg.type != Dtype::kInvalid) proto->set_type(ToDataType(arg.type));
  return OkStatus();
}

// Allowed values are a list of types or of strings; any other form stays where it is.
void TakeAllowed(tensorflow::OpDef::AttrDef* proto, AttrDef* attr) {
  const AttrValue& allowed = proto->allowed_values();
  if (allowed.value_case() != AttrValue::kList || !HoldsAttr(allowed)) return;
  const auto& list = allowed.list();
  if (list.type().empty() && list.s().empty()) return;
  for (int t : list.type()) attr->allowed_types.push_back(DtypeFromProto(t));
  attr->allowed_strings.assign(list.s().begin(), list.s().end());
  proto->clear_allowed_values();
}

AttrDef TakeAttrDef(tensorflow::OpDef::AttrDef* proto) {
  AttrDef attr;
  attr.name = std::move(*proto->mutable_name());
  attr.type = std::move(*proto->mutable_type());
  attr.has_minimum = proto->has_minimum();
  attr.minimum = proto->minimum();
  proto->clear_name();
  proto->clear_type();
  proto->clear_has_minimum();
  proto->clear_minimum();
  TakeAllowed(proto, &attr);
  if (proto->has_default_value()) {
    if (HoldsAttr(proto->default_value())) {
      attr.default_value = TakeAttr(proto->mutable_default_value());
      proto->clear_default_value();
    } else {
      AttrValue copy = proto->default_value();
      attr.default_value = TakeAttr(&copy);
    }
  }
  attr.unknown_fields = Remainder(*proto);
  return attr;
}

Status AttrDefToProto(const AttrDef& attr, tensorflow::OpDef::AttrDef* proto) {
  RETURN_IF_ERROR(MergeCarried(attr.unknown_fields, proto));
  proto->set_name(attr.name);
  proto->set_type(attr.type);
  proto->set_has_minimum(attr.has_minimum);
  proto->set_minimum(attr.minimum);
  for (Dtype t : attr.allowed_types) {
    proto->mutable_allowed_values()->mutable_list()->add_type(ToDataType(t));
  }
  for (const auto& s : attr.allowed_strings) {
    proto->mutable_allowed_values()->mutable_list()->add_s(s);
  }
  // A default that Attr does not hold exactly was carried, and is in `proto` already.
  if (attr.default_value && !proto->has_default_value()) {
    AttrToProto(*attr.default_value, proto->mutable_default_value());
  }
  return OkStatus();
}

// Whether `attr` is what `proto` was read as; see FillAbsentLists for what has no value.
bool Says(const AttrValue& proto, const Attr& attr) {
  if (proto.value_case() == AttrValue::VALUE_NOT_SET && attr.get<EmptyList>()) return true;
  AttrValue copy = proto;
  return TakeAttr(&copy) == attr;
}

}  // namespace

void FillAbsentLists(const OpDef& def, AttrMap* attrs, AttrProtoMap* proto) {
  const auto absent = [](const AttrMap::Entry& e) {
    return e.second.get<std::monostate>() != nullptr;
  };
  if (std::none_of(attrs->begin(), attrs->end(), absent)) return;
  for (auto& [name, attr] : attrs->EntriesToChange()) {
    if (attr.get<std::monostate>() == nullptr) continue;
    const AttrDef* wanted = def.FindAttr(name);
    if (wanted == nullptr || !absl::StartsWith(wanted->type, "list(")) continue;
    attr = EmptyList{};
    (*proto)[name];
  }
}

Attr TakeAttr(AttrValue* proto) {
  switch (proto->value_case()) {
    case AttrValue::kS:
      return std::move(*proto->mutable_s());
    case AttrValue::kI:
      return static_cast<int64_t>(proto->i());
    case AttrValue::kF:
      return proto->f();
    case AttrValue::kB:
      return proto->b();
    case AttrValue::kType:
      return DtypeFromProto(proto->type());
    case AttrValue::kShape:
      return ShapeFromProto(proto->shape());
    case AttrValue::kTensor:
      return TakeTensorValue(proto->mutable_tensor());
    case AttrValue::kList:
      return TakeList(proto->mutable_list());
    case AttrValue::kFunc:
      return TakeFunc(proto->mutable_func());
    case AttrValue::kPlaceholder:
      return PlaceholderAttr{std::move(*proto->mutable_placeholder())};
    case AttrValue::VALUE_NOT_SET:
      break;
  }
  return Attr();
}

void AttrToProto(const Attr& attr, AttrValue* proto) {
  proto->Clear();
  std::visit(AttrWriter{proto}, attr.value());
}

bool HoldsAttr(const AttrValue& proto) {
  if (HasUnknownFields(proto)) return false;
  switch (proto.value_case()) {
    case AttrValue::kType:
      return HoldsType(proto.type());
    case AttrValue::kShape:
      return HoldsShape(proto.shape());
    case AttrValue::kList:
      return HoldsList(proto.list());
    case AttrValue::kFunc:
      return HoldsFunc(proto.func());
    default:
      return true;  // a tensor carries what it does not hold itself
  }
}

AttrMap TakeAttrs(AttrProtoMap* proto) {
  AttrMap attrs;
  attrs.Reserve(static_cast<size_t>(proto->size()));
  AttrProtoMap kept;
  for (auto* e : SortedEntries(proto)) {
    if (!HoldsAttr(e->second)) kept[e->first] = e->second;
    attrs.Set(e->first, TakeAttr(&e->second));
  }
  proto->clear();
  for (auto& [name, value] : kept) (*proto)[name] = value;
  return attrs;
}

void AttrsToProto(const AttrMap& attrs, AttrProtoMap* proto) {
  if (!proto->empty()) {
    std::vector<std::string> stale;
    for (const auto& [name, value] : *proto) {
      const Attr* now = attrs.Find(name);
      if (now == nullptr || !Says(value, *now)) stale.push_back(name);
    }
    for (const auto& name : stale) proto->erase(name);
  }
  for (const auto& [name, attr] : attrs) {
    if (!proto->contains(name)) AttrToProto(attr, &(*proto)[name]);
  }
}

OpDef TakeOpDef(tensorflow::OpDef* proto) {
  OpDef def;
  def.name = std::move(*proto->mutable_name());
  for (auto& a : *proto->mutable_input_arg()) def.inputs.push_back(TakeArg(&a));
  for (auto& a : *proto->mutable_output_arg()) def.outputs.push_back(TakeArg(&a));
  for (auto& a : *proto->mutable_attr()) def.attrs.push_back(TakeAttrDef(&a));
  def.control_outputs.assign(proto->control_output().begin(), proto->control_output().end());
  def.stateful = proto->is_stateful();
  def.commutative = proto->is_commutative();
  def.aggregate = proto->is_aggregate();
  def.allows_uninitialized_input = proto->allows_uninitialized_input();
  def.distributed_communication = proto->is_distributed_communication();
  proto->clear_name();
  proto->clear_input_arg();
  proto->clear_output_arg();
  proto->clear_attr();
  proto->clear_control_output();
  proto->clear_is_stateful();
  proto->clear_is_commutative();
  proto->clear_is_aggregate();
  proto->clear_allows_uninitialized_input();
  proto->clear_is_distributed_communication();
  def.unknown_fields = Remainder(*proto);
  return def;
}

Status OpDefToProto(const OpDef& def, tensorflow::OpDef* proto) {
  proto->Clear();
  RETURN_IF_ERROR(MergeCarried(def.unknown_fields, proto));
  proto->set_name(def.name);
  for (const auto& a : def.inputs) RETURN_IF_ERROR(ArgToProto(a, proto->add_input_arg()));
  for (const auto& a : def.outputs) RETURN_IF_ERROR(ArgToProto(a, proto->add_output_arg()));
  for (const auto& a : def.attrs) RETURN_IF_ERROR(AttrDefToProto(a, proto->add_attr()));
  for (const auto& c : def.control_outputs) proto->add_control_output(c);
  proto->set_is_stateful(def.stateful);
  proto->set_is_commutative(def.commutative);
  proto->set_is_aggregate(def.aggregate);
  proto->set_allows_uninitialized_input(def.allows_uninitialized_input);
  proto->set_is_distributed_communication(def.distributed_communication);
  return OkStatus();
}

Status CheckAttrs(const OpDef& def, const AttrMap& attrs, bool allow_placeholder) {
  for (const AttrDef& wanted : def.attrs) {
    const Attr* attr = attrs.Find(wanted.name);
    if (attr == nullptr) {
      if (wanted.default_value || absl::StrContains(wanted.type, "tensor") ||
          absl::StrContains(wanted.type, "func")) {
        continue;
      }
      return InvalidArgument("NodeDef missing attr '", wanted.name, "' from Op<name=", def.name,
                             ">");
    }
    const absl::string_view kind = std::visit(AttrKind{}, attr->value());
    if (kind == wanted.type || (allow_placeholder && kind == "placeholder")) continue;
    const bool wants_list = absl::StartsWith(wanted.type, "list(");
    if (wants_list && kind == "list") continue;
    if (kind == "placeholder") {
      return InvalidArgument("AttrValue had value with unexpected type 'placeholder' for attr '",
                             wanted.name, "' of Op<name=", def.name, ">");
    }
    if (kind.empty() || kind == "list") {
      return InvalidArgument("AttrValue missing value with expected type '", wanted.type,
                             "' for attr '", wanted.name, "' of Op<name=", def.name, ">");
    }
    return InvalidArgument("AttrValue had value with type '", kind, "' when '", wanted.type,
                           "' expected for attr '", wanted.name, "' of Op<name=", def.name, ">");
  }
  return OkStatus();
}

}  // namespace smelt
