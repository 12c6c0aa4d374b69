#include "smelt/stablehlo/lower/builder.h"

#include <algorithm>

#include "smelt/graph/infer_attrs.h"

namespace smelt::stablehlo {
namespace {

constexpr int kMaxInlineDepth = 64;

template <typename T>
double FirstAs(const Tensor& t) {
  return static_cast<double>(*t.data<T>());
}

}  // namespace

const Module& Builder::module() const { return owner_.module(); }

StatusOr<Node*> Builder::AddNode(absl::string_view op, std::vector<Endpoint> inputs,
                                 AttrMap attrs) {
  ASSIGN_OR_RETURN(Node * n, graph_.AddNode(graph_.FreeName(op), op));
  graph_.SetInputs(n, std::move(inputs));
  n->AttrsToChange() = std::move(attrs);
  RETURN_IF_ERROR(InferAttrs(n, owner_.library().get()));
  RETURN_IF_ERROR(graph_.ResolveTypes(n));
  if (n->inputs().size() != n->input_types.size()) {
    return InvalidArgument(op, " wants ", n->input_types.size(), " inputs, is given ",
                           n->inputs().size());
  }
  for (size_t i = 0; i < n->inputs().size(); ++i) {
    if (n->input_types[i] != TypeOf(n->inputs()[i])) {
      return Unimplemented("TensorFlow's ", op, " of ", DtypeName(TypeOf(n->inputs()[i])));
    }
  }
  return n;
}

StatusOr<Endpoint> Builder::Add(absl::string_view op, std::vector<Endpoint> inputs, AttrMap attrs) {
  ASSIGN_OR_RETURN(Node * n, AddNode(op, std::move(inputs), std::move(attrs)));
  return Endpoint{n, 0};
}

Endpoint Builder::Const(const Tensor& t) { return {graph_.AddConst("const", t), 0}; }
Endpoint Builder::Ints(std::span<const int64_t> values) {
  return Const(Tensor::Vector<int64_t>(values));
}
Endpoint Builder::Int(int64_t value) { return Const(Tensor::Scalar<int64_t>(value)); }
Endpoint Builder::Int32(int32_t value) { return Const(Tensor::Scalar<int32_t>(value)); }

Endpoint Builder::Number(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::kFloat:
      return Const(Tensor::Scalar(static_cast<float>(value)));
    case Dtype::kDouble:
      return Const(Tensor::Scalar(value));
    case Dtype::kHalf:
      return Const(Tensor::Scalar(Half(static_cast<float>(value))));
    case Dtype::kBfloat16:
      return Const(Tensor::Scalar(Bfloat16(static_cast<float>(value))));
    case Dtype::kComplex64:
      return Const(Tensor::Scalar(std::complex<float>(static_cast<float>(value))));
    case Dtype::kComplex128:
      return Const(Tensor::Scalar(std::complex<double>(value)));
    case Dtype::kBool:
      return Const(Tensor::Scalar(value != 0));
    case Dtype::kInt8:
      return Const(Tensor::Scalar(static_cast<int8_t>(value)));
    case Dtype::kInt16:
      return Const(Tensor::Scalar(static_cast<int16_t>(value)));
    case Dtype::kInt32:
      return Const(Tensor::Scalar(static_cast<int32_t>(value)));
    case Dtype::kUint8:
      return Const(Tensor::Scalar(static_cast<uint8_t>(value)));
    case Dtype::kUint16:
      return Const(Tensor::Scalar(static_cast<uint16_t>(value)));
    case Dtype::kUint32:
      return Const(Tensor::Scalar(static_cast<uint32_t>(value)));
    case Dtype::kUint64:
      return Const(Tensor::Scalar(static_cast<uint64_t>(value)));
    default:
      return Const(Tensor::Scalar(static_cast<int64_t>(value)));
  }
}

StatusOr<Endpoint> Builder::Cast(Endpoint e, Dtype to) {
  if (TypeOf(e) == to) return e;
  AttrMap attrs;
  attrs.Set("DstT", to);
  return Add("Cast", {e}, std::move(attrs));
}

StatusOr<const Value*> Builder::Find(ValueId v) const {
  auto it = values_.find(v);
  if (it == values_.end()) {
    return Unimplemented("a region reads a value of type ", type(v).ToString(), " from around it");
  }
  return &it->second;
}

void Builder::Set(ValueId v, Value value) { values_[v] = std::move(value); }

void Builder::SetFull(ValueId v, Endpoint e) {
  values_[v] = {.narrow = e, .dims = type(v).dims, .full = true};
}

StatusOr<Endpoint> Builder::Full(ValueId v) {
  ASSIGN_OR_RETURN(const Value* found, Find(v));
  if (found->full) return found->narrow;
  Value value = *found;
  ASSIGN_OR_RETURN(const Endpoint shape, ShapeOf(v));
  ASSIGN_OR_RETURN(value.narrow, Add("BroadcastTo", {value.narrow, shape}));
  value.dims = type(v).dims;
  value.full = true;
  values_[v] = value;
  return value.narrow;
}

StatusOr<std::vector<Endpoint>> Builder::FullAll(std::span<const ValueId> values) {
  std::vector<Endpoint> out;
  for (const ValueId v : values) {
    ASSIGN_OR_RETURN(const Endpoint e, Full(v));
    out.push_back(e);
  }
  return out;
}

StatusOr<Endpoint> Builder::DynamicShape(Endpoint e) {
  AttrMap attrs;
  attrs.Set("out_type", Dtype::kInt64);
  return Add("Shape", {e}, std::move(attrs));
}

StatusOr<Endpoint> Builder::ShapeOf(ValueId v) {
  const TypeData& t = type(v);
  if (t.is_static()) return Ints(t.dims);
  ASSIGN_OR_RETURN(const Value* value, Find(v));
  if (value->full) return DynamicShape(value->narrow);
  if (value->shape.node == nullptr) {
    return Internal("a broadcast of no known shape: ", t.ToString());
  }
  return value->shape;
}

const AttributeData* Builder::ConstantOf(ValueId v) const {
  for (const Operation* op = module().definitions[static_cast<size_t>(v)]; op != nullptr;) {
    if (op->name == "constant") {
      const AttributeData* a = op->Find("value");
      return a != nullptr && a->kind == AttributeData::Kind::kTensor ? a : nullptr;
    }
    // A broadcast or reshape of a single number still holds only that number.
    if ((op->name != "broadcast_in_dim" && op->name != "reshape" &&
         op->name != "dynamic_broadcast_in_dim") ||
        op->operands.empty()) {
      return nullptr;
    }
    const Operation* source = module().definitions[static_cast<size_t>(op->operands[0])];
    const AttributeData* a = source && source->name == "constant" ? source->Find("value") : nullptr;
    if (a != nullptr) return a->values.valid() && a->values.num_elements() == 1 ? a : nullptr;
    op = source;
  }
  return nullptr;
}

bool Builder::IsSplat(ValueId v, double number) const {
  const AttributeData* a = ConstantOf(v);
  if (a == nullptr || !a->values.valid() || a->values.num_elements() != 1) return false;
  const Tensor& t = a->values;
  switch (t.dtype()) {
    case Dtype::kFloat:
      return FirstAs<float>(t) == number;
    case Dtype::kDouble:
      return FirstAs<double>(t) == number;
    case Dtype::kHalf:
      return static_cast<float>(*t.data<Half>()) == number;
    case Dtype::kBfloat16:
      return static_cast<float>(*t.data<Bfloat16>()) == number;
    case Dtype::kBool:
      return (*t.data<bool>() ? 1 : 0) == number;
    case Dtype::kInt8:
      return FirstAs<int8_t>(t) == number;
    case Dtype::kInt16:
      return FirstAs<int16_t>(t) == number;
    case Dtype::kInt32:
      return FirstAs<int32_t>(t) == number;
    case Dtype::kInt64:
      return FirstAs<int64_t>(t) == number;
    case Dtype::kUint8:
      return FirstAs<uint8_t>(t) == number;
    case Dtype::kUint16:
      return FirstAs<uint16_t>(t) == number;
    case Dtype::kUint32:
      return FirstAs<uint32_t>(t) == number;
    case Dtype::kUint64:
      return static_cast<double>(FirstAs<uint64_t>(t)) == number;
    default:
      return false;
  }
}

StatusOr<Dims> Builder::IntsOf(const Operation& op, absl::string_view attribute) const {
  const AttributeData* a = op.Find(attribute);
  Dims out;
  if (a != nullptr && a->kind == AttributeData::Kind::kArray) {
    for (const Attribute& item : a->items) out.push_back(item->number);
    return out;
  }
  if (a == nullptr || a->kind != AttributeData::Kind::kTensor ||
      (a->type->dtype != Dtype::kInt64 && a->type->dtype != Dtype::kBool)) {
    return InvalidArgument("attribute ", attribute, " of ", op.full_name, " is no list of numbers");
  }
  int64_t elements = 1;
  for (const int64_t d : a->type->dims) elements *= d;
  if (elements > 4 * kMaxRank) {
    return InvalidArgument("attribute ", attribute, " of ", op.full_name, " has ", elements,
                           " numbers");
  }
  const int64_t stated = a->values.num_elements();
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t at = stated == 1 ? 0 : i;
    out.push_back(a->type->dtype == Dtype::kBool ? a->values.data<bool>()[at]
                                                 : a->values.data<int64_t>()[at]);
  }
  return out;
}

StatusOr<int64_t> Builder::IntOf(const Operation& op, absl::string_view attribute) const {
  const AttributeData* a = op.Find(attribute);
  if (a == nullptr || a->kind != AttributeData::Kind::kNumber) {
    return InvalidArgument("attribute ", attribute, " of ", op.full_name, " is no number");
  }
  return a->number;
}

int64_t Builder::IntOr(const Operation& op, absl::string_view attribute, int64_t otherwise) const {
  auto v = IntOf(op, attribute);
  return v.ok() ? *v : otherwise;
}

Status Builder::Expect(const Operation& op, size_t operands, size_t results) const {
  if (op.operands.size() == operands && op.results.size() == results) return OkStatus();
  return InvalidArgument(op.full_name, " with ", op.operands.size(), " operands and ",
                         op.results.size(), " results");
}

StatusOr<std::vector<ValueId>> Builder::Inline(const Region& region,
                                               std::span<const Value> arguments) {
  if (region.arguments.size() != arguments.size()) {
    return InvalidArgument("a region of ", region.arguments.size(), " arguments is given ",
                           arguments.size());
  }
  if (++depth_ > kMaxInlineDepth) return InvalidArgument("StableHLO regions nest too deeply");
  for (size_t i = 0; i < arguments.size(); ++i) Set(region.arguments[i], arguments[i]);
  for (const Operation& op : region.operations) {
    if (op.name == "return") {
      --depth_;
      return op.operands;
    }
    RETURN_IF_ERROR(Lower(op));
  }
  return InvalidArgument("a StableHLO region without return");
}

Status Builder::Lower(const Operation& op) {
  static const auto* rows = [] {
    auto* all = new absl::flat_hash_map<absl::string_view, const LowerRow*>;
    for (const auto table : AllLowerTables()) {
      for (const LowerRow& row : table) all->emplace(row.name, &row);
    }
    return all;
  }();
  auto it = rows->find(op.name);
  if (it == rows->end()) return Unimplemented("the operation ", op.full_name);
  for (const ValueId v : op.results) {
    const TypeData& t = type(v);
    if (t.kind == TypeData::Kind::kToken) continue;
    if (!t.is_tensor() || t.dtype == Dtype::kInvalid) {
      return Unimplemented("the operation ", op.full_name, " giving ", t.ToString());
    }
  }
  const std::string where = absl::StrCat(" (in ", op.full_name, ")");
  RETURN_IF_ERROR(Suffix(it->second->lower(*this, op), where));
  return Suffix(CheckResults(op), where);
}

// Operations that read the results rely on the types that the module states for them.
Status Builder::CheckResults(const Operation& op) const {
  for (const ValueId v : op.results) {
    const TypeData& t = type(v);
    auto it = values_.find(v);
    if (it == values_.end() || !t.is_tensor()) continue;
    const Dtype made = TypeOf(it->second.narrow);
    if (made != t.dtype || it->second.dims.size() > t.dims.size()) {
      return InvalidArgument("a ", DtypeName(made), " of rank ", it->second.dims.size(),
                             " where the module states ", t.ToString());
    }
  }
  return OkStatus();
}

}  // namespace smelt::stablehlo
