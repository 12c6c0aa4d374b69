#include "smelt/graph/op_def.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"

namespace smelt {
namespace {

// The most tensors in one argument. Bounds the memory that a number attribute of a file can ask
// for.
constexpr int64_t kMaxArity = 1 << 20;

// Splits at `separator` outside of quotes and brackets.
std::vector<absl::string_view> SplitOutside(absl::string_view text, char separator) {
  std::vector<absl::string_view> out;
  int depth = 0;
  char quote = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '{' || c == '(') {
      ++depth;
    } else if (c == ']' || c == '}' || c == ')') {
      --depth;
    } else if (c == separator && depth == 0) {
      out.push_back(absl::StripAsciiWhitespace(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  absl::string_view last = absl::StripAsciiWhitespace(text.substr(start));
  if (!last.empty() || !out.empty()) out.push_back(last);
  return out;
}

StatusOr<ArgDef> ParseArg(absl::string_view text) {
  const size_t colon = text.find(": ");
  if (colon == absl::string_view::npos) return InvalidArgument("argument '", text, "' has no type");
  ArgDef arg;
  arg.name = std::string(text.substr(0, colon));
  absl::string_view type = text.substr(colon + 2);
  if (absl::ConsumePrefix(&type, "Ref(") && absl::ConsumeSuffix(&type, ")")) arg.is_ref = true;
  if (const size_t star = type.find('*'); star != absl::string_view::npos) {
    arg.number_attr = std::string(type.substr(0, star));
    type = type.substr(star + 1);
  }
  if (absl::ConsumePrefix(&type, "list(") && absl::ConsumeSuffix(&type, ")")) {
    arg.type_list_attr = std::string(type);
    return arg;
  }
  arg.type = ParseDtype(type);
  // ParseDtype ignores case, and types are in lower case: a capital letter begins an attribute's
  // name.
  if (arg.type == Dtype::kInvalid || absl::ascii_isupper(type[0])) {
    arg.type = Dtype::kInvalid;
    arg.type_attr = std::string(type);
  }
  return arg;
}

StatusOr<PartialShape> ParseShapeDefault(absl::string_view text) {
  if (text == "?") return PartialShape::Unknown();
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
    return InvalidArgument("shape '", text, "'");
  }
  Dims dims;
  for (absl::string_view d : SplitOutside(text, ',')) {
    int64_t v = 0;
    if (!absl::SimpleAtoi(d, &v)) return InvalidArgument("shape dimension '", d, "'");
    dims.push_back(v);
  }
  return PartialShape::Of(dims);
}

StatusOr<std::string> Unquote(absl::string_view text) {
  if (text.size() < 2 || text.front() != text.back()) return InvalidArgument("string ", text);
  std::string out;
  if (!absl::CUnescape(text.substr(1, text.size() - 2), &out)) {
    return InvalidArgument("string ", text);
  }
  return out;
}

StatusOr<Attr> ParseDefault(absl::string_view type, absl::string_view text) {
  if (absl::StartsWith(type, "list(")) {
    const absl::string_view element = type.substr(5, type.size() - 6);
    if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
      return InvalidArgument("list '", text, "'");
    }
    const auto items = SplitOutside(text, ',');
    if (items.empty()) return Attr(EmptyList{});
    if (element == "string") {
      return Attr(std::vector<std::string>(items.begin(), items.end()));
    }
    std::vector<int64_t> ints;
    std::vector<float> floats;
    std::vector<bool> bools;
    std::vector<Dtype> types;
    for (absl::string_view item : items) {
      ASSIGN_OR_RETURN(Attr a, ParseDefault(element, item));
      if (auto* i = a.get<int64_t>()) ints.push_back(*i);
      if (auto* f = a.get<float>()) floats.push_back(*f);
      if (auto* b = a.get<bool>()) bools.push_back(*b);
      if (auto* t = a.get<Dtype>()) types.push_back(*t);
    }
    if (element == "int") return Attr(std::move(ints));
    if (element == "float") return Attr(std::move(floats));
    if (element == "bool") return Attr(std::move(bools));
    if (element == "type") return Attr(std::move(types));
    return InvalidArgument("default of a ", type);
  }
  if (type == "string") {
    ASSIGN_OR_RETURN(std::string s, Unquote(text));
    return Attr(std::move(s));
  }
  if (type == "int") {
    int64_t v = 0;
    if (!absl::SimpleAtoi(text, &v)) return InvalidArgument("int '", text, "'");
    return Attr(v);
  }
  if (type == "float") {
    float v = 0;
    if (!absl::SimpleAtof(text, &v)) return InvalidArgument("float '", text, "'");
    return Attr(v);
  }
  if (type == "bool") return Attr(text == "true");
  if (type == "type") {
    const Dtype t = ParseDtype(text);
    if (t == Dtype::kInvalid) return InvalidArgument("type '", text, "'");
    return Attr(t);
  }
  if (type == "shape") {
    ASSIGN_OR_RETURN(PartialShape s, ParseShapeDefault(text));
    return Attr(std::move(s));
  }
  // The table does not spell out defaults of tensors and functions: such an attribute has none
  // here.
  return Attr();
}

StatusOr<AttrDef> ParseAttr(absl::string_view text) {
  const size_t colon = text.find(": ");
  if (colon == absl::string_view::npos)
    return InvalidArgument("attribute '", text, "' has no type");
  AttrDef attr;
  attr.name = std::string(text.substr(0, colon));
  absl::string_view rest = text.substr(colon + 2);
  const size_t end = rest.find(' ');
  attr.type = std::string(rest.substr(0, end));
  rest = end == absl::string_view::npos ? "" : rest.substr(end + 1);
  if (absl::ConsumePrefix(&rest, ">= ")) {
    const size_t stop = std::min(rest.find(' '), rest.size());
    attr.has_minimum = true;
    if (!absl::SimpleAtoi(rest.substr(0, stop), &attr.minimum)) {
      return InvalidArgument("minimum of '", text, "'");
    }
    rest = absl::StripLeadingAsciiWhitespace(rest.substr(stop));
  }
  if (absl::ConsumePrefix(&rest, "in {")) {
    const size_t stop = rest.find('}');
    if (stop == absl::string_view::npos) return InvalidArgument("allowed values of '", text, "'");
    for (absl::string_view v : SplitOutside(rest.substr(0, stop), ',')) {
      if (absl::EndsWith(attr.type, "string)") || attr.type == "string") {
        attr.allowed_strings.emplace_back(v);
      } else {
        attr.allowed_types.push_back(ParseDtype(v));
      }
    }
    rest = absl::StripLeadingAsciiWhitespace(rest.substr(stop + 1));
  }
  if (absl::ConsumePrefix(&rest, "= ")) {
    ASSIGN_OR_RETURN(Attr value, ParseDefault(attr.type, rest));
    if (value.get<std::monostate>() == nullptr) attr.default_value = std::move(value);
  }
  return attr;
}

}  // namespace

const AttrDef* OpDef::FindAttr(absl::string_view attr_name) const {
  for (const AttrDef& a : attrs) {
    if (a.name == attr_name) return &a;
  }
  return nullptr;
}

StatusOr<OpDef> ParseOpDef(absl::string_view text) {
  OpDef def;
  bool first = true;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (first) {
      first = false;
      const size_t paren = line.find(" (");
      def.name = std::string(line.substr(0, paren));
      if (paren != absl::string_view::npos) {
        const absl::string_view flags = line.substr(paren);
        def.stateful = absl::StrContains(flags, "stateful");
        def.commutative = absl::StrContains(flags, "commutative");
        def.aggregate = absl::StrContains(flags, "aggregate");
        def.allows_uninitialized_input = absl::StrContains(flags, "allows_uninitialized_input");
        def.distributed_communication = absl::StrContains(flags, "distributed_communication");
      }
      continue;
    }
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "in:")) {
      for (absl::string_view a : SplitOutside(absl::StripAsciiWhitespace(line), ';')) {
        ASSIGN_OR_RETURN(ArgDef arg, ParseArg(a));
        def.inputs.push_back(std::move(arg));
      }
    } else if (absl::ConsumePrefix(&line, "out:")) {
      for (absl::string_view a : SplitOutside(absl::StripAsciiWhitespace(line), ';')) {
        ASSIGN_OR_RETURN(ArgDef arg, ParseArg(a));
        def.outputs.push_back(std::move(arg));
      }
    } else if (absl::ConsumePrefix(&line, "attr:")) {
      for (absl::string_view a : SplitOutside(absl::StripAsciiWhitespace(line), ';')) {
        ASSIGN_OR_RETURN(AttrDef attr, ParseAttr(a));
        def.attrs.push_back(std::move(attr));
      }
    } else if (absl::ConsumePrefix(&line, "cpu:")) {
      def.cpu_types = std::string(absl::StripAsciiWhitespace(line));
    } else if (!line.empty()) {
      return InvalidArgument("op ", def.name, ": line '", line, "'");
    }
  }
  return def;
}

namespace {

// Definitions of ops of the tables, by number; nullptr until they are asked for.
std::array<std::atomic<const OpDef*>, kNumOps> parsed_ops;

struct AddedOps {
  absl::Mutex mutex;
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> defs ABSL_GUARDED_BY(mutex);
};

AddedOps& Added() {
  static auto* added = new AddedOps;
  return *added;
}

}  // namespace

const OpDef* DefinitionOf(OpName op) {
  std::atomic<const OpDef*>& slot = parsed_ops[static_cast<size_t>(op.number())];
  const OpDef* known = slot.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto def = ParseOpDef(internal::kOpRows[static_cast<size_t>(op.number())].text);
  // Parsing cannot fail: the table is embedded, and a test parses every row.
  auto fresh =
      std::make_unique<OpDef>(def.ok() ? *std::move(def) : OpDef{.name = std::string(op.text())});
  // Another thread may have been first: then its definition stays.
  if (slot.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
    return fresh.release();
  }
  return known;
}

const OpDef* FindOpDef(absl::string_view name) {
  if (const OpName op = OpName::Of(name); !op.unknown()) return DefinitionOf(op);
  AddedOps& added = Added();
  absl::MutexLock lock(&added.mutex);
  auto it = added.defs.find(name);
  return it == added.defs.end() ? nullptr : it->second.get();
}

std::vector<absl::string_view> AllOpNames() {
  std::vector<absl::string_view> names;
  for (int i = 0; i < kNumOps; ++i) {
    if (!internal::kOpRows[static_cast<size_t>(i)].own) names.push_back(OpName::OfNumber(i).text());
  }
  AddedOps& added = Added();
  absl::MutexLock lock(&added.mutex);
  for (const auto& [name, def] : added.defs) names.push_back(name);
  return names;
}

Status AddOpDef(OpDef def) {
  if (FindOpDef(def.name) != nullptr) return AlreadyExists("op '", def.name, "' is known already");
  AddedOps& added = Added();
  absl::MutexLock lock(&added.mutex);
  const std::string name = def.name;
  added.defs.emplace(name, std::make_unique<OpDef>(std::move(def)));
  return OkStatus();
}

const Attr* FindAttrOrDefault(const OpDef* def, const AttrMap& attrs, absl::string_view name) {
  if (const Attr* a = attrs.Find(name)) return a;
  const AttrDef* d = def ? def->FindAttr(name) : nullptr;
  return d && d->default_value ? &*d->default_value : nullptr;
}

namespace {

Status MissingAttr(const OpDef& def, absl::string_view attr, absl::string_view kind) {
  return InvalidArgument("attribute '", attr, "' (", kind, ") of op ", def.name,
                         " is missing or of another kind");
}

}  // namespace

StatusOr<int64_t> ArgArity(const ArgDef& arg, const OpDef& def, const AttrMap& attrs) {
  if (!arg.type_list_attr.empty()) {
    const Attr* a = FindAttrOrDefault(&def, attrs, arg.type_list_attr);
    if (a && a->get<EmptyList>()) return 0;
    const auto* types = a ? a->get<std::vector<Dtype>>() : nullptr;
    if (!types) return MissingAttr(def, arg.type_list_attr, "list(type)");
    return static_cast<int64_t>(types->size());
  }
  if (arg.number_attr.empty()) return 1;
  const Attr* a = FindAttrOrDefault(&def, attrs, arg.number_attr);
  const auto* n = a ? a->get<int64_t>() : nullptr;
  if (!n) return MissingAttr(def, arg.number_attr, "int");
  if (*n < 0 || *n > kMaxArity) {
    return InvalidArgument("attribute '", arg.number_attr, "' of op ", def.name, " is ", *n);
  }
  return *n;
}

StatusOr<DtypeVector> ArgTypes(std::span<const ArgDef> args, const OpDef& def,
                               const AttrMap& attrs) {
  DtypeVector out;
  for (const ArgDef& arg : args) {
    ASSIGN_OR_RETURN(const int64_t n, ArgArity(arg, def, attrs));
    if (!arg.type_list_attr.empty()) {
      const Attr* a = FindAttrOrDefault(&def, attrs, arg.type_list_attr);
      if (const auto* types = a->get<std::vector<Dtype>>()) {
        for (Dtype t : *types) out.push_back(arg.is_ref ? RefType(t) : t);
      }
      continue;
    }
    Dtype type = arg.type;
    if (type == Dtype::kInvalid) {
      const Attr* a = FindAttrOrDefault(&def, attrs, arg.type_attr);
      const auto* t = a ? a->get<Dtype>() : nullptr;
      if (!t) return MissingAttr(def, arg.type_attr, "type");
      type = *t;
    }
    if (!IsKnownDtype(static_cast<int>(type))) {
      return InvalidArgument("op ", def.name, ": argument '", arg.name, "' has unknown type ",
                             static_cast<int>(type));
    }
    out.insert(out.end(), static_cast<size_t>(n), arg.is_ref ? RefType(type) : type);
  }
  return out;
}

}  // namespace smelt
