// Attribute and tensor values of the text form: reading. Printing them is in text_print_values.cc.
#include <algorithm>
#include <bit>
#include <charconv>
#include <complex>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "smelt/base/stack.h"
#include "smelt/graph/text.h"
#include "smelt/graph/text_lexer.h"

namespace smelt::text {
namespace {

// Functions within attributes of functions, which are read by recursion: models go to two.
constexpr int kMaxNesting = 64;
// The largest tensor that a literal on its own may stand for.
constexpr int64_t kMaxLiteralBytes = int64_t{1} << 31;

template <typename T>
bool ReadNumber(absl::string_view word, T* out) {
  const auto r = std::from_chars(word.data(), word.data() + word.size(), *out);
  return r.ec == std::errc() && r.ptr == word.data() + word.size();
}

template <typename T>
bool ReadIntInto(absl::string_view word, char* out, T min = std::numeric_limits<T>::min(),
                 T max = std::numeric_limits<T>::max()) {
  T v = 0;
  if (!ReadNumber(word, &v) || v < min || v > max) return false;
  std::memcpy(out, &v, sizeof(v));
  return true;
}

template <typename T>
bool ReadFloatInto(absl::string_view word, char* out) {
  T v = 0;
  if (absl::StrContains(word, "nan")) {
    if (word != "nan" && word != "-nan") return false;
    v = static_cast<T>(std::bit_cast<float>(kQuietNan | (word[0] == '-' ? 0x80000000u : 0)));
  } else if (!ReadNumber(word, &v)) {
    return false;
  }
  std::memcpy(out, &v, sizeof(v));
  return true;
}

template <typename T>
bool ReadSmallFloatInto(absl::string_view word, char* out) {
  float f = 0;
  if (!ReadFloatInto<float>(word, reinterpret_cast<char*>(&f))) return false;
  const T v(f);
  const auto back = static_cast<float>(v);
  // A finite number that rounds to infinity is out of range, as it is for float.
  if (back - back != 0 && f - f == 0) return false;
  std::memcpy(out, &v, sizeof(v));
  return true;
}

bool ReadWordElement(Dtype dtype, absl::string_view word, char* out) {
  switch (dtype) {
    case Dtype::kFloat:
      return ReadFloatInto<float>(word, out);
    case Dtype::kDouble:
      return ReadFloatInto<double>(word, out);
    case Dtype::kHalf:
      return ReadSmallFloatInto<Half>(word, out);
    case Dtype::kBfloat16:
      return ReadSmallFloatInto<Bfloat16>(word, out);
    case Dtype::kInt8:
    case Dtype::kQint8:
      return ReadIntInto<int8_t>(word, out);
    case Dtype::kUint8:
    case Dtype::kQuint8:
      return ReadIntInto<uint8_t>(word, out);
    case Dtype::kInt16:
    case Dtype::kQint16:
      return ReadIntInto<int16_t>(word, out);
    case Dtype::kUint16:
    case Dtype::kQuint16:
      return ReadIntInto<uint16_t>(word, out);
    case Dtype::kInt32:
    case Dtype::kQint32:
      return ReadIntInto<int32_t>(word, out);
    case Dtype::kUint32:
      return ReadIntInto<uint32_t>(word, out);
    case Dtype::kInt64:
      return ReadIntInto<int64_t>(word, out);
    case Dtype::kUint64:
      return ReadIntInto<uint64_t>(word, out);
    case Dtype::kInt4:
      return ReadIntInto<int8_t>(word, out, -8, 7);
    case Dtype::kUint4:
      return ReadIntInto<uint8_t>(word, out, 0, 15);
    case Dtype::kInt2:
      return ReadIntInto<int8_t>(word, out, -2, 1);
    case Dtype::kUint2:
      return ReadIntInto<uint8_t>(word, out, 0, 3);
    case Dtype::kBool:
      *out = word == "true" ? 1 : 0;
      return word == "true" || word == "false";
    default:
      return false;
  }
}

template <typename T>
bool AppendElement(Attr::Value* list, Attr::Value* element) {
  T* e = std::get_if<T>(element);
  if (e == nullptr) return false;
  if (std::holds_alternative<EmptyList>(*list)) *list = std::vector<T>();
  auto* l = std::get_if<std::vector<T>>(list);
  if (l != nullptr) l->push_back(std::move(*e));
  return l != nullptr;
}

bool AppendAnyElement(Attr::Value* list, Attr::Value* e) {
  return AppendElement<std::string>(list, e) || AppendElement<int64_t>(list, e) ||
         AppendElement<float>(list, e) || AppendElement<bool>(list, e) ||
         AppendElement<Dtype>(list, e) || AppendElement<PartialShape>(list, e) ||
         AppendElement<std::shared_ptr<const TensorValue>>(list, e) ||
         AppendElement<FuncAttr>(list, e);
}

}  // namespace

StatusOr<Dtype> Reader::ReadDtype() {
  if (tok_.kind != Token::kWord) return Expected("a type");
  if (tok_.text == "dtype" && Peek().Is('(')) {
    Advance();
    Advance();
    ASSIGN_OR_RETURN(const int64_t n, ReadInt("the number of a type"));
    if (n < 0 || n > 255) return Error("the number of a type is between 0 and 255");
    RETURN_IF_ERROR(Expect(')'));
    return static_cast<Dtype>(n);
  }
  const Dtype t = ParseDtype(tok_.text);
  if (t == Dtype::kInvalid && tok_.text != "invalid") return Expected("a type");
  Advance();
  return t;
}

StatusOr<Attr> Reader::ReadAttr(int depth) {
  if (tok_.kind == Token::kString) {
    ASSIGN_OR_RETURN(std::string s, ReadString("a string"));
    return Attr(std::move(s));
  }
  if (tok_.Is('[')) {
    ASSIGN_OR_RETURN(PartialShape s, ReadDims());
    return Attr(std::move(s));
  }
  if (tok_.Is('@')) {
    ASSIGN_OR_RETURN(FuncAttr f, ReadFunc(depth));
    return Attr(std::move(f));
  }
  if (Accept('$')) {
    ASSIGN_OR_RETURN(std::string name, ReadName("the name of a placeholder"));
    return Attr(PlaceholderAttr{std::move(name)});
  }
  if (tok_.kind == Token::kWord) return ReadWordAttr(depth);
  return Expected("the value of an attribute");
}

StatusOr<Attr> Reader::ReadWordAttr(int depth) {
  const absl::string_view word = tok_.text;
  const Token next = Peek();
  if (word == "list" && next.Is('(')) return ReadList(depth);
  if (word == "list" && next.Is(':')) return ReadEmptyList();
  if (word == "shape" && next.Is('(')) {
    Advance();
    Advance();
    RETURN_IF_ERROR(Expect('?'));
    RETURN_IF_ERROR(Expect(')'));
    return Attr(PartialShape::Unknown());
  }
  if (word == "nanf" && next.Is('(')) {
    ASSIGN_OR_RETURN(const float f, ReadNanBits());
    return Attr(f);
  }
  if (word == "true" || word == "false" || word == "none") {
    Advance();
    return word == "none" ? Attr() : Attr(word == "true");
  }
  int64_t i = 0;
  float f = 0;
  absl::string_view number = word;
  if (ReadNumber(word, &i)) {
    Advance();
    return Attr(i);
  }
  if (absl::ConsumeSuffix(&number, "f") &&
      ReadFloatInto<float>(number, reinterpret_cast<char*>(&f))) {
    Advance();
    return Attr(f);
  }
  if (!absl::ascii_isalpha(static_cast<unsigned char>(word[0]))) {
    return Expected("a number (a float ends in f)");
  }
  ASSIGN_OR_RETURN(const Dtype dtype, ReadDtype());
  if (!tok_.Is('[') && !tok_.Is('(')) return Attr(dtype);
  ASSIGN_OR_RETURN(auto tensor, ReadTensor(dtype));
  return Attr(std::move(tensor));
}

StatusOr<float> Reader::ReadNanBits() {
  Advance();
  Advance();
  uint32_t bits = 0;
  absl::string_view w = tok_.text;
  const char* end = w.data() + w.size();
  if (tok_.kind != Token::kWord || !absl::ConsumePrefix(&w, "0x")) return Expected("bits in hex");
  const auto r = std::from_chars(w.data(), end, bits, 16);
  if (r.ec != std::errc() || r.ptr != end || (bits & 0x7fffffffu) <= 0x7f800000u) {
    return Expected("the 32 bits of a NaN");
  }
  Advance();
  RETURN_IF_ERROR(Expect(')'));
  return std::bit_cast<float>(bits);
}

StatusOr<Attr> Reader::ReadEmptyList() {
  Advance();
  Advance();
  const absl::string_view kind = tok_.text;
  Attr list;
  if (tok_.IsWord("string")) {
    list = std::vector<std::string>();
  } else if (tok_.IsWord("int")) {
    list = std::vector<int64_t>();
  } else if (tok_.IsWord("float")) {
    list = std::vector<float>();
  } else if (tok_.IsWord("bool")) {
    list = std::vector<bool>();
  } else if (tok_.IsWord("type")) {
    list = std::vector<Dtype>();
  } else if (tok_.IsWord("shape")) {
    list = std::vector<PartialShape>();
  } else if (tok_.IsWord("tensor")) {
    list = std::vector<std::shared_ptr<const TensorValue>>();
  } else if (tok_.IsWord("func")) {
    list = std::vector<FuncAttr>();
  } else {
    return Expected("string, int, float, bool, type, shape, tensor or func");
  }
  Advance();
  RETURN_IF_ERROR(Expect('('));
  if (!tok_.Is(')')) return Error(absl::StrCat("list:", kind, "() is for empty lists only"));
  Advance();
  return list;
}

StatusOr<Attr> Reader::ReadList(int depth) {
  Advance();
  RETURN_IF_ERROR(Expect('('));
  Attr list(EmptyList{});
  if (Accept(')')) return list;
  do {
    if (tok_.IsWord("list")) return Error("lists do not hold lists");
    const size_t place = tok_.offset;
    ASSIGN_OR_RETURN(Attr e, ReadAttr(depth));
    if (!AppendAnyElement(&list.value(), &e.value())) {
      return ErrorAt(place, "the elements of a list are of one kind");
    }
  } while (Accept(','));
  RETURN_IF_ERROR(Expect(')'));
  return list;
}

StatusOr<FuncAttr> Reader::ReadFunc(int depth) {
  if (depth >= kMaxNesting || StackIsShort()) return Error("functions are nested too deeply");
  Advance();
  FuncAttr f;
  ASSIGN_OR_RETURN(f.name, ReadName("the name of a function"));
  if (tok_.Is('{')) {
    ASSIGN_OR_RETURN(AttrMap attrs, ReadAttrs(depth + 1));
    f.attrs = std::make_shared<const AttrMap>(std::move(attrs));
  }
  return f;
}

StatusOr<AttrMap> Reader::ReadAttrs(int depth) {
  RETURN_IF_ERROR(Expect('{'));
  std::vector<AttrMap::Entry> entries;
  size_t last = tok_.offset;
  while (!tok_.Is('}')) {
    ASSIGN_OR_RETURN(std::string name, ReadName("the name of an attribute"));
    RETURN_IF_ERROR(Expect('='));
    ASSIGN_OR_RETURN(Attr value, ReadAttr(depth));
    entries.emplace_back(std::move(name), std::move(value));
    last = tok_.offset;
    if (!Accept(',')) break;
  }
  RETURN_IF_ERROR(Expect('}'));
  // Sorted first, so that each Set appends to the map: many attributes take no quadratic time.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  AttrMap attrs;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && entries[i].first == entries[i - 1].first) {
      return ErrorAt(last, absl::StrCat("attribute '", entries[i].first, "' is given twice"));
    }
    attrs.Set(entries[i].first, std::move(entries[i].second));
  }
  return attrs;
}

StatusOr<PartialShape> Reader::ReadDims() {
  RETURN_IF_ERROR(Expect('['));
  Dims dims;
  while (!tok_.Is(']')) {
    if (Accept('?')) {
      dims.push_back(-1);
    } else {
      ASSIGN_OR_RETURN(const int64_t d, ReadInt("the size of a dimension"));
      if (d < 0) return Error("an unknown dimension is written ?");
      dims.push_back(d);
    }
    if (!Accept(',')) break;
  }
  RETURN_IF_ERROR(Expect(']'));
  return PartialShape::Of(dims);
}

StatusOr<std::shared_ptr<const TensorValue>> Reader::ReadTensor(Dtype dtype) {
  const size_t place = tok_.offset;
  auto t = std::make_shared<TensorValue>();
  t->dtype = dtype;
  if (Accept('(')) {
    RETURN_IF_ERROR(Expect('?'));
    RETURN_IF_ERROR(Expect(')'));
  } else {
    ASSIGN_OR_RETURN(t->shape, ReadDims());
  }
  if (tok_.Is('{')) {
    ASSIGN_OR_RETURN(t->values, ReadValues(dtype));
  } else if (tok_.IsWord("hex") && Peek().Is(':')) {
    ASSIGN_OR_RETURN(t->values, ReadHex(dtype));
  }
  if (tok_.IsWord("problem") && Peek().Is('=')) {
    Advance();
    Advance();
    ASSIGN_OR_RETURN(t->problem, ReadString("a problem"));
  }
  if (tok_.IsWord("wire") && Peek().Is(':')) {
    Advance();
    Advance();
    ASSIGN_OR_RETURN(t->wire, ReadString("serialized bytes"));
  }
  const int64_t n = t->num_elements();
  if (n >= 0 && t->problem.empty() && t->values.valid() && t->values.num_elements() > n) {
    return ErrorAt(place, absl::StrCat("a tensor of shape ", t->shape.ToString(), " is given ",
                                       t->values.num_elements(), " values"));
  }
  return std::shared_ptr<const TensorValue>(std::move(t));
}

StatusOr<Tensor> Reader::ReadValues(Dtype dtype) {
  if (dtype == Dtype::kString) return ReadStrings();
  const size_t size = IsRef(dtype) ? 0 : DtypeSize(dtype);
  if (size == 0) {
    return Error(absl::StrCat("values of type ", DtypeName(dtype), " have no text form"));
  }
  RETURN_IF_ERROR(Expect('{'));
  std::string bytes;
  char element[16];
  while (!tok_.Is('}')) {
    RETURN_IF_ERROR(ReadElement(dtype, element));
    bytes.append(element, size);
    if (!Accept(',')) break;
  }
  RETURN_IF_ERROR(Expect('}'));
  ASSIGN_OR_RETURN(Tensor t,
                   Tensor::Make(dtype, Shape({static_cast<int64_t>(bytes.size() / size)})));
  if (!bytes.empty()) std::memcpy(t.raw(), bytes.data(), bytes.size());
  return t;
}

Status Reader::ReadElement(Dtype dtype, char* out) {
  const auto bad = [&] { return Expected(absl::StrCat("a value of type ", DtypeName(dtype))); };
  if (!IsComplex(dtype)) {
    if (tok_.kind != Token::kWord || !ReadWordElement(dtype, tok_.text, out)) return bad();
    Advance();
    return OkStatus();
  }
  const Dtype part = dtype == Dtype::kComplex64 ? Dtype::kFloat : Dtype::kDouble;
  RETURN_IF_ERROR(Expect('('));
  if (tok_.kind != Token::kWord || !ReadWordElement(part, tok_.text, out)) return bad();
  Advance();
  RETURN_IF_ERROR(Expect(','));
  out += DtypeSize(part);
  if (tok_.kind != Token::kWord || !ReadWordElement(part, tok_.text, out)) return bad();
  Advance();
  return Expect(')');
}

StatusOr<Tensor> Reader::ReadStrings() {
  RETURN_IF_ERROR(Expect('{'));
  std::vector<std::string> values;
  while (!tok_.Is('}')) {
    ASSIGN_OR_RETURN(values.emplace_back(), ReadString("a string"));
    if (!Accept(',')) break;
  }
  RETURN_IF_ERROR(Expect('}'));
  ASSIGN_OR_RETURN(Tensor t,
                   Tensor::Make(Dtype::kString, Shape({static_cast<int64_t>(values.size())})));
  std::move(values.begin(), values.end(), t.data<std::string>());
  return t;
}

StatusOr<Tensor> Reader::ReadHex(Dtype dtype) {
  Advance();
  Advance();
  const size_t size = IsRef(dtype) ? 0 : DtypeSize(dtype);
  if (tok_.kind != Token::kString) return Expected("hex digits in quotes");
  const absl::string_view hex = tok_.text;
  if (size == 0 || hex.size() % (2 * size) != 0) {
    return Error(absl::StrCat(hex.size(), " hex digits are no values of type ", DtypeName(dtype)));
  }
  const auto n = static_cast<int64_t>(hex.size() / (2 * size));
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, Shape({n})));
  auto* out = static_cast<uint8_t*>(t.raw());
  for (size_t i = 0; i < hex.size(); i += 2) {
    const auto r = std::from_chars(hex.data() + i, hex.data() + i + 2, out[i / 2], 16);
    if (r.ec != std::errc() || r.ptr != hex.data() + i + 2) return Error("not a hex digit");
    // A C++ bool of other bytes is undefined behavior.
    if (dtype == Dtype::kBool && out[i / 2] > 1) return Error("a bool is 0 or 1");
  }
  Advance();
  return t;
}

}  // namespace smelt::text

namespace smelt {

StatusOr<Attr> ParseAttrText(absl::string_view text) {
  text::Reader reader(text);
  ASSIGN_OR_RETURN(Attr attr, reader.ReadAttr());
  if (!reader.AtEnd()) return reader.Expected("the end of the value");
  return attr;
}

StatusOr<Tensor> ParseTensorText(absl::string_view text) {
  ASSIGN_OR_RETURN(const Attr attr, ParseAttrText(text));
  const auto* value = attr.get<std::shared_ptr<const TensorValue>>();
  if (value == nullptr) return InvalidArgument("1:1: expected a tensor, as float[2]{1, 2}");
  const TensorValue& v = **value;
  const auto size = static_cast<int64_t>(Tensor::ElementSize(v.dtype));
  if (size > 0 && v.num_elements() > text::kMaxLiteralBytes / size) {
    return InvalidArgument("1:1: a tensor of ", v.num_elements(), " elements of type ",
                           DtypeName(v.dtype), " is too large for a literal");
  }
  return v.Materialize();
}

}  // namespace smelt
