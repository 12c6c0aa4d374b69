#include "smelt/cli/run_inputs.h"

#include <filesystem>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "smelt/cli/numpy/text.h"
#include "smelt/io/fs.h"
#include "smelt/wire/example/example_writer.h"
#include "smelt/wire/numpy/npy.h"

namespace smelt {
namespace {

struct InputFile {
  std::string key, path, variable;
};

// KEY=PATH or KEY=PATH[VARIABLE].
StatusOr<InputFile> ParseInputFile(absl::string_view text) {
  const auto bad = [text] {
    return InvalidArgument("--inputs \"", text,
                           "\" format is incorrect. Please follow \"<input_key>=<filename>\", or "
                           "\"<input_key>=<filename>[<variable_name>]\"");
  };
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || equals == 0) return bad();
  InputFile f;
  f.key = std::string(absl::StripAsciiWhitespace(text.substr(0, equals)));
  absl::string_view rest = text.substr(equals + 1);
  const size_t open = rest.find('[');
  if (open != absl::string_view::npos) {
    if (rest.back() != ']') return bad();
    f.variable = std::string(rest.substr(open + 1, rest.size() - open - 2));
    rest = rest.substr(0, open);
    if (f.variable.empty()) return bad();
  }
  f.path = std::string(rest);
  if (f.path.empty() || f.path.find(']') != std::string::npos ||
      f.variable.find_first_of("[]") != std::string::npos) {
    return bad();
  }
  return f;
}

StatusOr<Tensor> LoadNpz(const InputFile& f, absl::string_view bytes) {
  std::string name = f.variable;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NpzNames(bytes));
  if (name.empty()) {
    if (names.size() != 1) {
      return InvalidArgument("Input file ", f.path,
                             " contains more than one ndarrays. Please specify the name of ndarray "
                             "to use. It has: ",
                             absl::StrJoin(names, ", "));
    }
    name = names[0];
  }
  auto t = ParseNpzArray(bytes, name);
  if (t.status().code() == absl::StatusCode::kNotFound) {
    return NotFound("Input file ", f.path, " does not contain variable with name \"", name,
                    "\". It has: ", absl::StrJoin(names, ", "));
  }
  if (!t.ok()) return Prefix(t.status(), absl::StrCat(f.path, ": "));
  return t;
}

StatusOr<Tensor> LoadInputFile(const InputFile& f, std::vector<std::string>* warnings) {
  // Mapped where it can be: of an archive only the array that is asked for is read.
  std::shared_ptr<const MappedFile> mapped;
  std::string read;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(f.path, ignored)) {
    ASSIGN_OR_RETURN(mapped, MapFile(f.path));
  } else {
    ASSIGN_OR_RETURN(read, ReadInput(f.path));
  }
  const absl::string_view bytes = mapped != nullptr ? mapped->bytes() : read;
  switch (NumpyFileKindOf(bytes)) {
    case NumpyFileKind::kNpy:
      if (!f.variable.empty()) {
        warnings->push_back(absl::StrCat("Input file ", f.path,
                                         " contains a single ndarray. Name key \"", f.variable,
                                         "\" ignored."));
      }
      return ParseNpy(bytes);
    case NumpyFileKind::kNpz:
      return LoadNpz(f, bytes);
    case NumpyFileKind::kPickle:
      return Unimplemented("Input file ", f.path,
                           " is a pickle, which is not read; save arrays with numpy.save or "
                           "numpy.savez");
    case NumpyFileKind::kUnknown:
      break;
  }
  return InvalidArgument("Input file ", f.path, " is neither an .npy nor an .npz file");
}

// KEY=LITERAL.
struct InputExpression {
  std::string key;
  Literal value;
};

StatusOr<InputExpression> ParseInputExpression(absl::string_view flag, absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return InvalidArgument(flag, " \"", text,
                           "\" format is incorrect. Please follow "
                           "\"<input_key>=<python expression>\"");
  }
  InputExpression e;
  e.key = std::string(absl::StripAsciiWhitespace(text.substr(0, equals)));
  const absl::string_view expression = text.substr(equals + 1);
  auto value = ParseLiteral(expression);
  if (!value.ok()) {
    return Prefix(value.status(),
                  absl::StrCat(flag, ": expression \"", expression, "\" of input '", e.key, "': "));
  }
  e.value = *std::move(value);
  return e;
}

// The type of a feature is that of its first value.
StatusOr<Tensor> FeatureTensor(const Literal& list) {
  if (list.items.empty()) return Tensor();
  switch (list.items[0].kind) {
    case Literal::Kind::kFloat:
      return LiteralToTensor(list, Dtype::kFloat);
    case Literal::Kind::kString:
    case Literal::Kind::kBytes:
      return LiteralToTensor(list, Dtype::kString);
    case Literal::Kind::kBool:
    case Literal::Kind::kInt:
      for (const Literal& item : list.items) {
        if (item.kind == Literal::Kind::kFloat) {
          return InvalidArgument("a float stands in a list that begins with an int");
        }
      }
      return LiteralToTensor(list, Dtype::kInt64);
    default:
      break;
  }
  return InvalidArgument("Type ", LiteralTypeName(list.items[0].kind),
                         " is not supported for tf.train.Feature.");
}

StatusOr<std::string> ExampleOfDict(const Literal& dict) {
  if (dict.kind != Literal::Kind::kDict) {
    return InvalidArgument("tf.Example input must be a list of dictionaries, but an element is ",
                           LiteralTypeName(dict.kind));
  }
  std::vector<FeatureValue> features;
  for (const auto& [key, value] : dict.entries) {
    if (key.kind != Literal::Kind::kString && key.kind != Literal::Kind::kBytes) {
      return InvalidArgument("feature names must be strings, but one is ",
                             LiteralTypeName(key.kind));
    }
    if (value.kind != Literal::Kind::kList) {
      return InvalidArgument("feature value must be a list, but ", key.text, " is ",
                             LiteralTypeName(value.kind));
    }
    auto values = FeatureTensor(value);
    if (!values.ok()) {
      return Prefix(values.status(), absl::StrCat("feature '", key.text, "': "));
    }
    features.push_back({key.text, *std::move(values)});
  }
  return SerializeExample(features);
}

StatusOr<Literal> ExamplesOfList(const Literal& list) {
  if (list.kind != Literal::Kind::kList) {
    return InvalidArgument("tf.Example input must be a list of dictionaries, but it is ",
                           LiteralTypeName(list.kind));
  }
  ASSIGN_OR_RETURN(Tensor t,
                   Tensor::Make(Dtype::kString, Shape({static_cast<int64_t>(list.items.size())})));
  for (size_t i = 0; i < list.items.size(); ++i) {
    ASSIGN_OR_RETURN(t.data<std::string>()[i], ExampleOfDict(list.items[i]));
  }
  Literal v;
  v.kind = Literal::Kind::kArray;
  v.array = std::move(t);
  return v;
}

class InputSet {
 public:
  explicit InputSet(std::vector<std::string>* warnings) : warnings_(warnings) {}

  void Add(const std::string& key, Literal value, absl::string_view flag) {
    auto it = given_.find(key);
    if (it != given_.end() && it->second.flag != flag) {
      warnings_->push_back(absl::StrCat("input_key ", key, " has been specified with both ",
                                        it->second.flag, " and ", flag, " options. Value in ", flag,
                                        " will be used."));
    }
    given_[key] = {std::move(value), flag};
  }
  std::map<std::string, GivenInput> Take() { return std::move(given_); }

 private:
  std::vector<std::string>* warnings_;
  std::map<std::string, GivenInput> given_;
};

}  // namespace

StatusOr<std::map<std::string, GivenInput>> ReadInputs(const InputFlags& flags,
                                                       std::vector<std::string>* warnings) {
  InputSet set(warnings);
  for (absl::string_view text : SplitOutsideQuotes(flags.inputs)) {
    ASSIGN_OR_RETURN(const InputFile f, ParseInputFile(text));
    auto t = LoadInputFile(f, warnings);
    if (!t.ok()) return Prefix(t.status(), absl::StrCat("--inputs, input '", f.key, "': "));
    Literal v;
    v.kind = Literal::Kind::kArray;
    v.array = *std::move(t);
    set.Add(f.key, std::move(v), "--inputs");
  }
  for (absl::string_view text : SplitOutsideQuotes(flags.exprs)) {
    ASSIGN_OR_RETURN(InputExpression e, ParseInputExpression("--input_exprs", text));
    set.Add(e.key, std::move(e.value), "--input_exprs");
  }
  for (absl::string_view text : SplitOutsideQuotes(flags.examples)) {
    ASSIGN_OR_RETURN(const InputExpression e, ParseInputExpression("--input_examples", text));
    auto v = ExamplesOfList(e.value);
    if (!v.ok()) return Prefix(v.status(), absl::StrCat("--input_examples, '", e.key, "': "));
    set.Add(e.key, *std::move(v), "--input_examples");
  }
  return set.Take();
}

StatusOr<NamedTensors> InputTensors(const std::map<std::string, GivenInput>& given,
                                    const Signature& signature) {
  const auto slots = LoadedModel::Slots(signature.inputs);
  NamedTensors out;
  for (const auto& [key, input] : given) {
    const auto slot = slots.find(key);
    if (slot == slots.end()) {
      const std::string keys =
          absl::StrJoin(slots, "\", \"", [](std::string* o, const auto& s) { o->append(s.first); });
      return InvalidArgument("\"", key, "\" is not a valid input key. Please choose from \"", keys,
                             "\", or use show.");
    }
    auto t = LiteralToTensor(input.value, BaseType(slot->second.dtype));
    if (!t.ok()) {
      return Prefix(t.status(), absl::StrCat(input.flag, ", input '", key, "' (",
                                             DtypeName(BaseType(slot->second.dtype)), " ",
                                             slot->second.shape.ToString(), "): "));
    }
    if (!slot->second.shape.Matches(t->shape())) {
      return InvalidArgument("Cannot feed value of shape ", ShapeTuple(t->shape()), " for Tensor ",
                             slot->second.tensor, " (input '", key, "'), which has shape ",
                             ShapeTuple(slot->second.shape));
    }
    out[key] = *std::move(t);
  }
  return out;
}

}  // namespace smelt
