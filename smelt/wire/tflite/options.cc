// Options of builtins by the schema's own reflection: no table of them is spelled out here.
#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/ascii.h"
#include "smelt/wire/tflite/schema.h"
#include "smelt/wire/tflite/tflite.h"
#include "tflite_bfbs_generated.h"

namespace smelt {
namespace {

absl::string_view NameOf(const reflection::Field& field) {
  return {field.name()->c_str(), field.name()->size()};
}

const reflection::Schema& TheSchema() {
  return *reflection::GetSchema(tflite::ModelBinarySchema::data());
}

// Builtins whose table is not named as they are: several share one, or the names differ.
struct SharedOptions {
  tflite::BuiltinOperator op;
  tflite::BuiltinOptions table;
};
constexpr SharedOptions kShared[] = {
    {tflite::BuiltinOperator_AVERAGE_POOL_2D, tflite::BuiltinOptions_Pool2DOptions},
    {tflite::BuiltinOperator_MAX_POOL_2D, tflite::BuiltinOptions_Pool2DOptions},
    {tflite::BuiltinOperator_L2_POOL_2D, tflite::BuiltinOptions_Pool2DOptions},
    {tflite::BuiltinOperator_L2_NORMALIZATION, tflite::BuiltinOptions_L2NormOptions},
    {tflite::BuiltinOperator_UNIDIRECTIONAL_SEQUENCE_RNN,
     tflite::BuiltinOptions_SequenceRNNOptions},
    {tflite::BuiltinOperator_MEAN, tflite::BuiltinOptions_ReducerOptions},
    {tflite::BuiltinOperator_SUM, tflite::BuiltinOptions_ReducerOptions},
    {tflite::BuiltinOperator_REDUCE_PROD, tflite::BuiltinOptions_ReducerOptions},
    {tflite::BuiltinOperator_REDUCE_MAX, tflite::BuiltinOptions_ReducerOptions},
    {tflite::BuiltinOperator_REDUCE_MIN, tflite::BuiltinOptions_ReducerOptions},
    {tflite::BuiltinOperator_REDUCE_ANY, tflite::BuiltinOptions_ReducerOptions},
    {tflite::BuiltinOperator_REDUCE_ALL, tflite::BuiltinOptions_ReducerOptions},
    {tflite::BuiltinOperator_MAXIMUM, tflite::BuiltinOptions_MaximumMinimumOptions},
    {tflite::BuiltinOperator_MINIMUM, tflite::BuiltinOptions_MaximumMinimumOptions},
    {tflite::BuiltinOperator_CONV_3D_TRANSPOSE, tflite::BuiltinOptions_Conv3DOptions},
    {tflite::BuiltinOperator_RANDOM_STANDARD_NORMAL, tflite::BuiltinOptions_RandomOptions},
    {tflite::BuiltinOperator_RANDOM_UNIFORM, tflite::BuiltinOptions_RandomOptions},
    {tflite::BuiltinOperator_MULTINOMIAL, tflite::BuiltinOptions_RandomOptions},
};

// "FULLY_CONNECTED" and "FullyConnectedOptions" have the same letters.
std::string Letters(absl::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_') out.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

struct Tables {
  std::map<int, OptionsTable> of;  // by builtin
  std::map<std::string, int, std::less<>> builtins;
  std::map<std::string, std::vector<LiteOption>, std::less<>> options;
};

const reflection::Object* FindTable(absl::string_view name) {
  return TheSchema().objects()->LookupByKey(absl::StrCat("smelt.tflite.", name).c_str());
}

const reflection::Enum* EnumOf(const reflection::Type& type) {
  return type.index() < 0 || type.base_type() == reflection::Obj ||
                 type.element() == reflection::Obj
             ? nullptr
             : TheSchema().enums()->Get(static_cast<unsigned>(type.index()));
}
bool IsTensorType(const reflection::Enum* e) {
  return e != nullptr && e->name()->string_view() == "smelt.tflite.TensorType";
}

// A number of the field's type, as the attribute that it is.
StatusOr<Attr> AttrOf(int64_t value, const reflection::Field& field) {
  const reflection::Enum* e = EnumOf(*field.type());
  if (IsTensorType(e)) {
    const std::optional<Dtype> type =
        value < 0 || value > 127 ? std::nullopt : DtypeOfLite(static_cast<int8_t>(value));
    if (type) return Attr(*type);
  } else if (e != nullptr) {
    for (const reflection::EnumVal* v : *e->values()) {
      if (v->value() == value) return Attr(v->name()->str());
    }
  } else {
    return field.type()->base_type() == reflection::Bool ? Attr(value != 0) : Attr(value);
  }
  return InvalidArgument("option ", NameOf(field), " is ", value, ", which has no name");
}

std::vector<const reflection::Field*> FieldsInOrder(const reflection::Object& kind) {
  std::vector<const reflection::Field*> fields(kind.fields()->begin(), kind.fields()->end());
  std::erase_if(fields, [](const reflection::Field* f) { return f->deprecated(); });
  std::ranges::sort(fields, {}, [](const reflection::Field* f) { return f->id(); });
  return fields;
}

StatusOr<Attr> DefaultOf(const reflection::Field& field) {
  switch (field.type()->base_type()) {
    case reflection::String:
      return Attr("");
    case reflection::Vector:
      switch (field.type()->element()) {
        case reflection::UByte:
          return Attr("");
        case reflection::Float:
          return Attr(std::vector<float>());
        case reflection::Bool:
          return Attr(std::vector<bool>());
        default:
          return Attr(std::vector<int64_t>());
      }
    case reflection::Float:
      return Attr(static_cast<float>(field.default_real()));
    default:
      return AttrOf(field.default_integer(), field);
  }
}

const Tables& AllTables() {
  static const auto* tables = [] {
    auto* t = new Tables();
    std::map<std::string, std::pair<std::string, int>> by_letters;  // of tables
    const auto add = [&](auto names, bool second) {
      for (int i = 1; names[i] != nullptr; ++i) {
        by_letters.insert({Letters(names[i]), {names[i], second ? -i : i}});
      }
    };
    add(tflite::EnumNamesBuiltinOptions(), false);
    add(tflite::EnumNamesBuiltinOptions2(), true);
    for (int b = tflite::BuiltinOperator_MIN; b <= tflite::BuiltinOperator_MAX; ++b) {
      const auto op = static_cast<tflite::BuiltinOperator>(b);
      if (op == tflite::BuiltinOperator_CUSTOM || op == tflite::BuiltinOperator_DELEGATE ||
          op == tflite::BuiltinOperator_PLACEHOLDER_FOR_GREATER_OP_CODES) {
        continue;
      }
      const std::string name = tflite::EnumNameBuiltinOperator(op);
      t->builtins[name] = b;
      std::string letters = Letters(name) + "options";
      const auto* shared = std::ranges::find(kShared, op, &SharedOptions::op);
      if (shared != std::end(kShared)) {
        letters = Letters(tflite::EnumNameBuiltinOptions(shared->table));
      }
      const auto it = by_letters.find(letters);
      if (it == by_letters.end()) continue;
      OptionsTable& table = t->of[b];
      table.table = FindTable(it->second.first);
      const int number = it->second.second;
      (number < 0 ? table.second : table.first) = static_cast<uint8_t>(std::abs(number));
      for (const reflection::Field* f : FieldsInOrder(*table.table)) {
        // The schema's own defaults have names.
        t->options[name].push_back({f->name()->str(), *DefaultOf(*f)});
      }
    }
    return t;
  }();
  return *tables;
}

StatusOr<Attr> ReadVector(const flatbuffers::VectorOfAny& vector, const reflection::Field& field) {
  const reflection::BaseType element = field.type()->element();
  if (element == reflection::UByte) {
    return Attr(std::string(reinterpret_cast<const char*>(vector.Data()), vector.size()));
  }
  if (element == reflection::Float) {
    std::vector<float> out(vector.size());
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(flatbuffers::GetAnyVectorElemF(&vector, element, i));
    }
    return Attr(std::move(out));
  }
  std::vector<int64_t> out(vector.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = flatbuffers::GetAnyVectorElemI(&vector, element, i);
  }
  if (element == reflection::Bool) return Attr(std::vector<bool>(out.begin(), out.end()));
  return Attr(std::move(out));
}

template <typename To, typename From>
flatbuffers::uoffset_t WriteElements(flatbuffers::FlatBufferBuilder& builder,
                                     const std::vector<From>& from) {
  const std::vector<To> to(from.begin(), from.end());
  return builder.CreateVector(to).o;
}

Status WrongKind(const reflection::Field& field) {
  return InvalidArgument("option ", NameOf(field), " is of another type");
}

// The offset of what does not lie in the table itself.
StatusOr<flatbuffers::uoffset_t> WriteOutside(const Attr& value, const reflection::Field& field,
                                              flatbuffers::FlatBufferBuilder& builder) {
  if (const auto* s = value.get<std::string>()) {
    if (field.type()->base_type() == reflection::String) return builder.CreateString(*s).o;
    if (field.type()->element() != reflection::UByte) return WrongKind(field);
    return builder.CreateVector(reinterpret_cast<const uint8_t*>(s->data()), s->size()).o;
  }
  const auto* ints = value.get<std::vector<int64_t>>();
  const auto* floats = value.get<std::vector<float>>();
  const auto* bools = value.get<std::vector<bool>>();
  switch (field.type()->element()) {
    case reflection::Int:
      if (ints != nullptr) return WriteElements<int32_t>(builder, *ints);
      break;
    case reflection::UInt:
      if (ints != nullptr) return WriteElements<uint32_t>(builder, *ints);
      break;
    case reflection::Long:
      if (ints != nullptr) return WriteElements<int64_t>(builder, *ints);
      break;
    case reflection::Float:
      if (floats != nullptr) return WriteElements<float>(builder, *floats);
      break;
    case reflection::Bool:
      if (bools != nullptr) return WriteElements<uint8_t>(builder, *bools);
      break;
    default:
      break;
  }
  return WrongKind(field);
}

// What a scalar field stores.
StatusOr<int64_t> NumberOf(const Attr& value, const reflection::Field& field) {
  const reflection::Enum* e = EnumOf(*field.type());
  if (IsTensorType(e)) {
    const auto* type = value.get<Dtype>();
    const std::optional<int8_t> number = type == nullptr ? std::nullopt : LiteTypeOf(*type);
    if (!number) return WrongKind(field);
    return *number;
  }
  if (e != nullptr) {
    const auto* name = value.get<std::string>();
    if (name == nullptr) return WrongKind(field);
    for (const reflection::EnumVal* v : *e->values()) {
      if (v->name()->str() == *name) return v->value();
    }
    return InvalidArgument("option ", NameOf(field), " cannot be ", *name);
  }
  if (const auto* b = value.get<bool>(); b && field.type()->base_type() == reflection::Bool) {
    return int64_t{*b};
  }
  if (const auto* i = value.get<int64_t>(); i && field.type()->base_type() != reflection::Bool) {
    return *i;
  }
  return WrongKind(field);
}

Status WriteScalar(const Attr& value, const reflection::Field& field,
                   flatbuffers::FlatBufferBuilder& builder) {
  const flatbuffers::voffset_t at = field.offset();
  if (field.type()->base_type() == reflection::Float) {
    const auto* f = value.get<float>();
    if (f == nullptr) return WrongKind(field);
    builder.AddElement<float>(at, *f, static_cast<float>(field.default_real()));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const int64_t number, NumberOf(value, field));
  const auto add = [&](auto narrow) -> Status {
    narrow = static_cast<decltype(narrow)>(number);
    if (static_cast<int64_t>(narrow) != number) {
      return InvalidArgument("option ", NameOf(field), " cannot be ", number);
    }
    builder.AddElement(at, narrow, static_cast<decltype(narrow)>(field.default_integer()));
    return OkStatus();
  };
  switch (field.type()->base_type()) {
    case reflection::Bool:
    case reflection::UByte:
      return add(uint8_t{});
    case reflection::Byte:
      return add(int8_t{});
    case reflection::Int:
      return add(int32_t{});
    case reflection::UInt:
      return add(uint32_t{});
    case reflection::Long:
      return add(int64_t{});
    default:
      return Internal("the schema has an option of an unknown type: ", NameOf(field));
  }
}

bool LiesOutside(const reflection::Field& field) {
  return field.type()->base_type() == reflection::String ||
         field.type()->base_type() == reflection::Vector;
}

}  // namespace

OptionsTable OptionsOf(int builtin) {
  const auto it = AllTables().of.find(builtin);
  return it == AllTables().of.end() ? OptionsTable{} : it->second;
}

int LiteBuiltin(absl::string_view op) {
  const auto it = AllTables().builtins.find(op);
  return it == AllTables().builtins.end() ? -1 : it->second;
}

const std::vector<LiteOption>& LiteOptions(absl::string_view op) {
  static const auto* none = new std::vector<LiteOption>();
  const auto it = AllTables().options.find(op);
  return it == AllTables().options.end() ? *none : it->second;
}

StatusOr<AttrMap> ReadOptions(const flatbuffers::Table& table, const reflection::Object& kind,
                              CopyBudget& budget) {
  AttrMap out;
  for (const reflection::Field* field : *kind.fields()) {
    if (field->deprecated() || !table.CheckField(field->offset())) continue;
    Attr value;
    switch (field->type()->base_type()) {
      case reflection::String:
        if (!budget.Take(flatbuffers::GetFieldS(table, *field)->size())) return budget.Check();
        value = flatbuffers::GetFieldS(table, *field)->str();
        break;
      case reflection::Vector: {
        const auto* vector = flatbuffers::GetFieldAnyV(table, *field);
        if (!budget.Take(vector->size() * sizeof(int64_t))) return budget.Check();
        ASSIGN_OR_RETURN(value, ReadVector(*vector, *field));
        break;
      }
      case reflection::Float:
        value = static_cast<float>(flatbuffers::GetAnyFieldF(table, *field));
        break;
      default: {
        ASSIGN_OR_RETURN(value, AttrOf(flatbuffers::GetAnyFieldI(table, *field), *field));
      }
    }
    ASSIGN_OR_RETURN(const Attr otherwise, DefaultOf(*field));
    if (!(value == otherwise)) out.Set(NameOf(*field), std::move(value));
  }
  return out;
}

StatusOr<flatbuffers::Offset<void>> WriteOptions(const AttrMap& options,
                                                 const reflection::Object& kind,
                                                 flatbuffers::FlatBufferBuilder& builder) {
  for (const auto& [name, value] : options) {
    const reflection::Field* field = kind.fields()->LookupByKey(name.c_str());
    if (field == nullptr || field->deprecated()) {
      return InvalidArgument(kind.name()->str(), " has no option ", name);
    }
  }
  // What lies outside comes first: a table is written without a break.
  std::map<int, flatbuffers::uoffset_t> outside;
  const std::vector<const reflection::Field*> fields = FieldsInOrder(kind);
  for (const reflection::Field* field : fields) {
    const Attr* value = options.Find(NameOf(*field));
    if (value == nullptr || !LiesOutside(*field)) continue;
    ASSIGN_OR_RETURN(outside[field->id()], WriteOutside(*value, *field, builder));
  }
  // Tables of equal fields that begin alike share a layout.
  builder.Align(sizeof(flatbuffers::uoffset_t));
  const flatbuffers::uoffset_t start = builder.StartTable();
  for (const reflection::Field* field : fields) {
    const Attr* value = options.Find(NameOf(*field));
    if (value == nullptr) continue;
    if (const auto it = outside.find(field->id()); it != outside.end()) {
      builder.AddOffset(field->offset(), flatbuffers::Offset<void>(it->second));
    } else if (const Status written = WriteScalar(*value, *field, builder); !written.ok()) {
      builder.EndTable(start);
      return written;
    }
  }
  return flatbuffers::Offset<void>(builder.EndTable(start));
}

}  // namespace smelt
