#include "smelt/wire/proto/proto_codec.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/match.h"
#include "smelt/base/little_endian.h"
#include "smelt/io/fs.h"
#include "smelt/wire/example/example_reader.h"
#include "smelt/wire/proto/example.pb.h"
#include "smelt/wire/proto/proto_internal.h"

namespace smelt {
namespace {

using google::protobuf::FieldDescriptor;

// The wire types of protobuf.
enum class WireForm : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kFixed32 = 5 };

WireForm FormOf(FieldDescriptor::Type type) {
  switch (type) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return WireForm::kFixed64;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return WireForm::kFixed32;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE:
      return WireForm::kBytes;
    case FieldDescriptor::TYPE_GROUP:
      return WireForm::kGroup;
    default:
      return WireForm::kVarint;
  }
}

// Types of tensors that hold a field's values.
DtypeSet TypesOf(FieldDescriptor::Type type) {
  switch (type) {
    case FieldDescriptor::TYPE_DOUBLE:
      return Types(Dtype::kDouble);
    case FieldDescriptor::TYPE_FLOAT:
      return Types(Dtype::kFloat, Dtype::kDouble);
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_SFIXED64:
    case FieldDescriptor::TYPE_SINT64:
      return Types(Dtype::kInt64);
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_FIXED64:
      return Types(Dtype::kUint64);
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_SINT32:
      return Types(Dtype::kInt32, Dtype::kInt64);
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
      return Types(Dtype::kUint32, Dtype::kUint64);
    case FieldDescriptor::TYPE_BOOL:
      return Types(Dtype::kBool);
    case FieldDescriptor::TYPE_ENUM:
      return Types(Dtype::kInt32);
    default:
      return Types(Dtype::kString);
  }
}

// Numbers are held as 64 bits: integers sign extended, floating ones as a double's.
uint64_t BitsOfDouble(double v) {
  uint64_t bits;
  std::memcpy(&bits, &v, sizeof(bits));
  return bits;
}
double DoubleOfBits(uint64_t bits) {
  double v;
  std::memcpy(&v, &bits, sizeof(v));
  return v;
}

// The number that a word on the wire stands for.
uint64_t FromWire(FieldDescriptor::Type type, uint64_t word) {
  const auto low = static_cast<uint32_t>(word);
  switch (type) {
    case FieldDescriptor::TYPE_FLOAT: {
      float f;
      std::memcpy(&f, &low, sizeof(f));
      return BitsOfDouble(f);
    }
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_ENUM:
      return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(low)));
    case FieldDescriptor::TYPE_UINT32:
      return low;
    case FieldDescriptor::TYPE_SINT32:
      return static_cast<uint64_t>(
          static_cast<int64_t>(static_cast<int32_t>((low >> 1) ^ (~(low & 1) + 1))));
    case FieldDescriptor::TYPE_SINT64:
      return (word >> 1) ^ (~(word & 1) + 1);
    case FieldDescriptor::TYPE_BOOL:
      return word != 0;
    default:
      return word;
  }
}

uint64_t ToWire(FieldDescriptor::Type type, uint64_t number) {
  switch (type) {
    case FieldDescriptor::TYPE_FLOAT: {
      const auto f = static_cast<float>(DoubleOfBits(number));
      uint32_t low;
      std::memcpy(&low, &f, sizeof(low));
      return low;
    }
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_ENUM:
      return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(number)));
    case FieldDescriptor::TYPE_UINT32:
      return static_cast<uint32_t>(number);
    case FieldDescriptor::TYPE_SINT32: {
      const auto v = static_cast<int32_t>(number);
      return static_cast<uint32_t>((static_cast<uint32_t>(v) << 1) ^
                                   static_cast<uint32_t>(v >> 31));
    }
    case FieldDescriptor::TYPE_SINT64:
      return (number << 1) ^ static_cast<uint64_t>(static_cast<int64_t>(number) >> 63);
    default:
      return number;
  }
}

// The default of a field without one is zero, empty or the first enumerator.
uint64_t DefaultNumber(const FieldDescriptor& f) {
  switch (f.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return BitsOfDouble(f.default_value_double());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return BitsOfDouble(f.default_value_float());
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<uint64_t>(f.default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT64:
      return f.default_value_uint64();
    case FieldDescriptor::CPPTYPE_INT32:
      return static_cast<uint64_t>(int64_t{f.default_value_int32()});
    case FieldDescriptor::CPPTYPE_UINT32:
      return f.default_value_uint32();
    case FieldDescriptor::CPPTYPE_BOOL:
      return f.default_value_bool();
    case FieldDescriptor::CPPTYPE_ENUM:
      return static_cast<uint64_t>(int64_t{f.default_value_enum()->number()});
    default:
      return 0;
  }
}

void SetNumber(Tensor& t, int64_t i, uint64_t number) {
  switch (t.dtype()) {
    case Dtype::kDouble:
      t.data<double>()[i] = DoubleOfBits(number);
      return;
    case Dtype::kFloat:
      t.data<float>()[i] = static_cast<float>(DoubleOfBits(number));
      return;
    case Dtype::kInt64:
      t.data<int64_t>()[i] = static_cast<int64_t>(number);
      return;
    case Dtype::kUint64:
      t.data<uint64_t>()[i] = number;
      return;
    case Dtype::kInt32:
      t.data<int32_t>()[i] = static_cast<int32_t>(number);
      return;
    case Dtype::kUint32:
      t.data<uint32_t>()[i] = static_cast<uint32_t>(number);
      return;
    default:
      t.data<bool>()[i] = number != 0;
  }
}

uint64_t NumberAt(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case Dtype::kDouble:
      return BitsOfDouble(t.data<double>()[i]);
    case Dtype::kFloat:
      return BitsOfDouble(t.data<float>()[i]);
    case Dtype::kInt64:
      return static_cast<uint64_t>(t.data<int64_t>()[i]);
    case Dtype::kUint64:
      return t.data<uint64_t>()[i];
    case Dtype::kInt32:
      return static_cast<uint64_t>(int64_t{t.data<int32_t>()[i]});
    case Dtype::kUint32:
      return t.data<uint32_t>()[i];
    default:
      return t.data<bool>()[i];
  }
}

// One word of that wire type; false when the bytes end.
bool ReadWord(WireCursor& in, WireForm form, uint64_t* word) {
  if (form == WireForm::kVarint) return in.Varint(word);
  const size_t n = form == WireForm::kFixed64 ? 8 : 4;
  const char* at = in.p;
  if (!in.Skip(n)) return false;
  *word = LoadLittleBytes(at, n);
  return true;
}

void WriteVarint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

void WriteWord(WireForm form, uint64_t word, std::string* out) {
  if (form == WireForm::kVarint) return WriteVarint(word, out);
  AppendLittleBytes(word, form == WireForm::kFixed64 ? 8 : 4, out);
}

// Skips a field, groups with what is in them. Depth is bounded as protobuf's is.
bool SkipAny(WireCursor& in, uint64_t tag, int depth = 0) {
  if ((tag & 7) != 3) return in.SkipField(tag);
  if (depth > 100) return false;
  for (uint64_t inner = 0; in.Varint(&inner);) {
    if ((inner & 7) == 4) return inner >> 3 == tag >> 3;
    if (!SkipAny(in, inner, depth + 1)) return false;
  }
  return false;
}

// The values of one field in all messages.
struct FieldColumn {
  std::vector<uint64_t> numbers;
  std::vector<absl::string_view> texts;
  std::vector<size_t> ends;  // by message
  bool text = false;
  size_t size() const { return text ? texts.size() : numbers.size(); }
};

class DescribedCodec final : public ProtoCodec {
 public:
  Status Init(absl::string_view source, absl::string_view message_type,
              std::span<const std::string> names, std::span<const Dtype> types, Use use) {
    RETURN_IF_ERROR(FindPool(source));
    message_ = pool_->FindMessageTypeByName(std::string(message_type));
    if (message_ == nullptr) {
      return InvalidArgument("No descriptor found for message type ", message_type);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const FieldDescriptor* f = message_->FindFieldByName(names[i]);
      if (f == nullptr) f = pool_->FindExtensionByName(names[i]);
      if (f == nullptr || f->containing_type() != message_) {
        return InvalidArgument("Unknown field: ", names[i], " in message type ", message_type);
      }
      if (types.empty()) continue;
      if (use == Use::kDecode && !Has(TypesOf(f->type()), types[i])) {
        return InvalidArgument("Unexpected output type for ", f->full_name(), ": ",
                               f->cpp_type_name(), " to ", EnumName(types[i]));
      }
      if (use == Use::kEncode && !Has(TypesOf(f->type()), types[i])) {
        return InvalidArgument("Incompatible type for field ", names[i],
                               ".  Saw dtype: ", DtypeName(types[i]),
                               " but field type is: ", f->type_name());
      }
      fields_.push_back(f);
      types_.push_back(types[i]);
    }
    by_number_.resize(fields_.size());
    std::iota(by_number_.begin(), by_number_.end(), 0);
    std::stable_sort(by_number_.begin(), by_number_.end(), [this](size_t a, size_t b) {
      return fields_[a]->number() < fields_[b]->number();
    });
    return OkStatus();
  }

  StatusOr<Decoded> Decode(std::span<const std::string> messages, bool text, bool sanitize,
                           Allocator* allocator) const override {
    std::vector<FieldColumn> columns(fields_.size());
    for (size_t f = 0; f < fields_.size(); ++f) columns[f].text = types_[f] == Dtype::kString;
    std::vector<std::string> rewritten(text || sanitize ? messages.size() : 0);
    for (size_t i = 0; i < messages.size(); ++i) {
      absl::string_view bytes = messages[i];
      if (text || sanitize) {
        ASSIGN_OR_RETURN(rewritten[i], Rewrite(messages[i], text));
        bytes = rewritten[i];
      }
      RETURN_IF_ERROR(ReadMessage(bytes, columns));
    }
    const auto n = static_cast<int64_t>(messages.size());
    const auto num_fields = static_cast<int64_t>(fields_.size());
    Decoded out;
    ASSIGN_OR_RETURN(out.sizes, Tensor::Make(Dtype::kInt32, Shape({n, num_fields}), allocator));
    for (int64_t f = 0; f < num_fields; ++f) {
      ASSIGN_OR_RETURN(Tensor values, FinishColumn(columns[f], f, n, &out.sizes, allocator));
      out.values.push_back(std::move(values));
    }
    return out;
  }

  std::string Encode(std::span<const int32_t> sizes, std::span<const Tensor* const> values,
                     std::span<const int64_t> begin) const override {
    std::string out;
    for (size_t f : by_number_) {
      const FieldDescriptor& field = *fields_[f];
      const WireForm form = FormOf(field.type());
      const uint64_t tag = static_cast<uint64_t>(field.number()) << 3;
      std::string packed;
      for (int64_t i = begin[f]; i < begin[f] + sizes[f]; ++i) {
        if (form == WireForm::kBytes || form == WireForm::kGroup) {
          const std::string& s = values[f]->data<std::string>()[i];
          WriteVarint(tag | static_cast<uint64_t>(form), &out);
          if (form == WireForm::kBytes) WriteVarint(s.size(), &out);
          out += s;
          if (form == WireForm::kGroup) WriteVarint(tag | 4, &out);
          continue;
        }
        const uint64_t word = ToWire(field.type(), NumberAt(*values[f], i));
        if (!field.is_packed()) WriteVarint(tag | static_cast<uint64_t>(form), &out);
        WriteWord(form, word, field.is_packed() ? &packed : &out);
      }
      if (field.is_packed() && sizes[f] > 0) {
        WriteVarint(tag | 2, &out);
        WriteVarint(packed.size(), &out);
        out += packed;
      }
    }
    return out;
  }

 private:
  // "DT_INT32"
  static std::string EnumName(Dtype t) {
    std::string name = absl::StrCat("DT_", DtypeName(t));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return name;
  }

  Status FindPool(absl::string_view source) {
    if (source.empty() || source == "local://") {
      pool_ = google::protobuf::DescriptorPool::generated_pool();
      return OkStatus();
    }
    const Status no_set = InvalidArgument(
        "Source does not represent serialized file descriptor set proto. This may be due to a ",
        "missing dependency on the file containing REGISTER_DESCRIPTOR_POOL(\"", source,
        "\", ...);");
    std::string bytes;
    if (absl::StartsWith(source, "bytes://")) {
      bytes = std::string(source.substr(8));
    } else {
      auto read = ReadFile(std::string(source));
      if (!read.ok()) return no_set;
      bytes = *std::move(read);
    }
    google::protobuf::FileDescriptorSet set;
    if (!set.ParseFromString(bytes)) return no_set;
    own_pool_ = std::make_unique<google::protobuf::DescriptorPool>();
    for (const auto& file : set.file()) {
      if (own_pool_->BuildFile(file) == nullptr) {
        return InvalidArgument("Failed to load FileDescriptorProto: ", file.name());
      }
    }
    pool_ = own_pool_.get();
    return OkStatus();
  }

  // The message parsed and written anew, as bytes.
  StatusOr<std::string> Rewrite(const std::string& message, bool text) const {
    google::protobuf::DynamicMessageFactory factory;
    const std::unique_ptr<google::protobuf::Message> m(factory.GetPrototype(message_)->New());
    if (text && !ParseTextProto(message, "text protobuf", m.get()).ok()) {
      return DataLoss("Unable to parse text protobuf");
    }
    if (!text && !m->ParsePartialFromString(message)) {
      return DataLoss("Unable to parse binary protobuf");
    }
    m->DiscardUnknownFields();
    return m->SerializePartialAsString();
  }

  Status ReadMessage(absl::string_view bytes, std::vector<FieldColumn>& columns) const {
    WireCursor in(bytes);
    while (!in.done()) {
      WireCursor ahead = in;
      uint64_t tag = 0;
      if (!ahead.Varint(&tag) || tag >> 3 == 0 || tag >> 32 != 0 || (tag & 7) == 4) break;
      in = ahead;
      bool wanted = false;
      for (size_t f = 0; f < fields_.size(); ++f) {
        if (static_cast<uint64_t>(fields_[f]->number()) != tag >> 3) continue;
        // A field may be asked for more than once: each time the same bytes are read.
        ahead = in;
        RETURN_IF_ERROR(ReadField(ahead, tag, *fields_[f], columns[f]));
        wanted = true;
      }
      if (wanted) {
        in = ahead;
      } else if (!SkipAny(in, tag)) {
        return DataLoss("Failed skipping unrequested field");
      }
    }
    if (!in.done()) return DataLoss("CountFields: Failed to consume entire buffer");
    for (FieldColumn& c : columns) c.ends.push_back(c.size());
    return OkStatus();
  }

  // Of a field that is not repeated the last value in a message counts.
  static void StartValue(const FieldDescriptor& field, FieldColumn& column) {
    const size_t before = column.ends.empty() ? 0 : column.ends.back();
    if (field.is_repeated() || column.size() == before) return;
    if (column.text) {
      column.texts.pop_back();
    } else {
      column.numbers.pop_back();
    }
  }

  static Status ReadField(WireCursor& in, uint64_t tag, const FieldDescriptor& field,
                          FieldColumn& column) {
    const WireForm want = FormOf(field.type());
    const auto have = static_cast<WireForm>(tag & 7);
    const Status broken = DataLoss("Failed reading field ", field.name());
    absl::string_view bytes;
    uint64_t word = 0;
    if (have == want && want == WireForm::kBytes) {
      if (!in.Bytes(&bytes)) return broken;
      StartValue(field, column);
      column.texts.push_back(bytes);
    } else if (have == want && want == WireForm::kGroup) {
      const char* begin = in.p;
      if (!SkipAny(in, tag)) return broken;
      // The bytes of the group without the tag that ends it.
      std::string end;
      WriteVarint((tag & ~uint64_t{7}) | 4, &end);
      StartValue(field, column);
      column.texts.emplace_back(begin, static_cast<size_t>(in.p - begin) - end.size());
    } else if (have == want) {
      if (!ReadWord(in, want, &word)) return broken;
      StartValue(field, column);
      column.numbers.push_back(FromWire(field.type(), word));
    } else if (have == WireForm::kBytes && want != WireForm::kGroup && field.is_repeated()) {
      if (!in.Bytes(&bytes)) return broken;
      for (WireCursor packed(bytes); !packed.done();) {
        if (!ReadWord(packed, want, &word)) return broken;
        column.numbers.push_back(FromWire(field.type(), word));
      }
    } else if (!SkipAny(in, tag)) {
      return broken;
    } else if (have == WireForm::kBytes && want != WireForm::kBytes && want != WireForm::kGroup) {
      // As in TensorFlow, a packed value of a field that is not repeated counts, with the default.
      StartValue(field, column);
      column.numbers.push_back(DefaultNumber(field));
    }
    return OkStatus();
  }

  StatusOr<Tensor> FinishColumn(const FieldColumn& column, int64_t f, int64_t n, Tensor* sizes,
                                Allocator* allocator) const {
    const FieldDescriptor& field = *fields_[static_cast<size_t>(f)];
    const auto num_fields = static_cast<int64_t>(fields_.size());
    size_t longest = 0, begin = 0;
    for (size_t end : column.ends) {
      longest = std::max(longest, end - begin);
      begin = end;
    }
    if (!field.is_repeated()) longest = 1;
    const auto width = static_cast<int64_t>(longest);
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{n, width}));
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(types_[static_cast<size_t>(f)], shape, allocator));
    const bool has_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    begin = 0;
    for (int64_t i = 0; i < n; ++i) {
      const size_t end = column.ends[static_cast<size_t>(i)];
      sizes->data<int32_t>()[i * num_fields + f] = static_cast<int32_t>(end - begin);
      for (int64_t k = 0; k < width; ++k, begin += begin < end) {
        const int64_t at = i * width + k;
        if (column.text) {
          std::string& s = out.data<std::string>()[at];
          if (begin < end) {
            s.assign(column.texts[begin].data(), column.texts[begin].size());
          } else if (has_text) {
            s = field.default_value_string();
          }
        } else {
          SetNumber(out, at, begin < end ? column.numbers[begin] : DefaultNumber(field));
        }
      }
      begin = end;
    }
    return out;
  }

  std::unique_ptr<google::protobuf::DescriptorPool> own_pool_;
  const google::protobuf::DescriptorPool* pool_ = nullptr;
  const google::protobuf::Descriptor* message_ = nullptr;
  std::vector<const FieldDescriptor*> fields_;
  std::vector<Dtype> types_;
  std::vector<size_t> by_number_;
};

// The lists of JSON Examples are not packed.
template <typename L, typename F>
std::string UnpackedList(const L& list, int field, F&& word) {
  std::string values, out;
  for (const auto& v : list.value()) word(v, &values);
  out.push_back(static_cast<char>(field << 3 | 2));
  WriteVarint(values.size(), &out);
  return out + values;
}

std::string UnpackedFeature(const tensorflow::Feature& f) {
  switch (f.kind_case()) {
    case tensorflow::Feature::kInt64List:
      return UnpackedList(f.int64_list(), 3, [](int64_t v, std::string* out) {
        out->push_back(1 << 3);
        WriteVarint(static_cast<uint64_t>(v), out);
      });
    case tensorflow::Feature::kFloatList:
      return UnpackedList(f.float_list(), 2, [](float v, std::string* out) {
        out->push_back(1 << 3 | 5);
        WriteWord(WireForm::kFixed32, ToWire(FieldDescriptor::TYPE_FLOAT, BitsOfDouble(v)), out);
      });
    default:
      return f.SerializeAsString();
  }
}

}  // namespace

StatusOr<std::unique_ptr<ProtoCodec>> ProtoCodec::Make(absl::string_view source,
                                                       absl::string_view message_type,
                                                       std::span<const std::string> field_names,
                                                       std::span<const Dtype> types, Use use) {
  auto codec = std::make_unique<DescribedCodec>();
  RETURN_IF_ERROR(codec->Init(source, message_type, field_names, types, use));
  return codec;
}

StatusOr<std::string> ExampleFromJson(absl::string_view json) {
  tensorflow::Example example;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &example);
  if (!status.ok()) {
    return InvalidArgument("Error while parsing JSON: ",
                           absl::string_view(status.message().data(), status.message().size()));
  }
  if (!example.has_features()) return std::string();
  std::vector<std::string> keys;
  for (const auto& [key, feature] : example.features().feature()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  const auto add = [](char tag, const std::string& bytes, std::string* out) {
    out->push_back(tag);
    WriteVarint(bytes.size(), out);
    *out += bytes;
  };
  std::string features, out;
  for (const std::string& key : keys) {
    std::string entry;
    add(kWireField1, key, &entry);
    add(kWireField2, UnpackedFeature(example.features().feature().at(key)), &entry);
    add(kWireField1, entry, &features);
  }
  add(kWireField1, features, &out);
  return out;
}

}  // namespace smelt
