#include "smelt/optimize/gradients/gradients.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/graph/attr_key.h"
#include "smelt/graph/text.h"
#include "smelt/optimize/gradients/rows.h"

namespace smelt {
namespace {

using gradients::Row;

constexpr int kMostInstances = 1000;

// Writes the function that a row describes, for one node of the op.
class RowWriter {
 public:
  RowWriter(const Row& row, const Node& node) : row_(row), node_(node) {}

  StatusOr<std::string> Write() {
    const OpDef& def = *node_.def();
    ASSIGN_OR_RETURN(const std::string args, Arguments(def));
    ASSIGN_OR_RETURN(const auto results, Results(def));
    std::string body(row_.body);
    if (row_.make != nullptr) {
      ASSIGN_OR_RETURN(body, row_.make(node_));
    }
    ASSIGN_OR_RETURN(body, Filled(absl::StrCat(row_.form->head, body, row_.form->tail)));
    return absl::StrCat("func grad(", args, ") -> (", results.first, ") {\n", body, "\nreturn ",
                        results.second, "\n}\n");
  }

 private:
  // "x: float, dy_0: float, dy_1: float", and what lists stand for.
  StatusOr<std::string> Arguments(const OpDef& def) {
    std::vector<absl::string_view> names = absl::StrSplit(row_.form->args, ' ');
    std::vector<std::string> out;
    size_t next = 0;
    for (const bool of_inputs : {true, false}) {
      const auto& types = of_inputs ? node_.input_types : node_.output_types;
      size_t type = 0;
      for (const ArgDef& arg : of_inputs ? def.inputs : def.outputs) {
        ASSIGN_OR_RETURN(const int64_t count, ArgArity(arg, def, node_.attrs()));
        if (next == names.size()) return Internal("gradient of ", row_.op, ": arguments");
        absl::string_view name = names[next++];
        const bool list = absl::ConsumeSuffix(&name, "*");
        if (!list && count != 1) return Internal("gradient of ", row_.op, ": a list");
        std::vector<std::string> elements;
        for (int64_t i = 0; i < count; ++i) {
          elements.push_back(list ? absl::StrCat(name, "_", i) : std::string(name));
          out.push_back(absl::StrCat(elements.back(), ": ", DtypeName(BaseType(types[type++]))));
        }
        if (list) lists_[absl::StrCat(name, "*")] = absl::StrJoin(elements, ", ");
      }
    }
    if (next != names.size()) return Internal("gradient of ", row_.op, ": arguments");
    return absl::StrJoin(out, ", ");
  }

  // "dx: float" and "dx=dx".
  StatusOr<std::pair<std::string, std::string>> Results(const OpDef& def) {
    std::vector<absl::string_view> names = absl::StrSplit(row_.form->results, ' ');
    if (names.size() != def.inputs.size()) return Internal("gradient of ", row_.op, ": results");
    std::vector<std::string> typed, returned;
    size_t type = 0;
    for (size_t k = 0; k < names.size(); ++k) {
      ASSIGN_OR_RETURN(const int64_t count, ArgArity(def.inputs[k], def, node_.attrs()));
      const bool list = absl::ConsumeSuffix(&names[k], "*");
      for (int64_t i = 0; i < count; ++i) {
        Dtype t = BaseType(node_.input_types[type++]);
        if (t == Dtype::kResource) t = node_.Type("dtype", Dtype::kFloat);
        const std::string result = list ? absl::StrCat(names[k], "_", i) : std::string(names[k]);
        typed.push_back(absl::StrCat(result, ": ", DtypeName(t)));
        returned.push_back(list ? absl::StrCat(result, "=", names[k], ":", i)
                                : absl::StrCat(result, "=", result));
      }
    }
    return std::pair(absl::StrJoin(typed, ", "), absl::StrJoin(returned, " "));
  }

  // "$T" becomes the attribute, "x*" the elements of a list.
  StatusOr<std::string> Filled(absl::string_view text) const {
    const auto in_name = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const bool attribute = text[i] == '$';
      size_t end = i + (attribute ? 1 : 0);
      while (end < text.size() && in_name(text[end])) ++end;
      const absl::string_view word = text.substr(i, end - i);
      if (attribute) {
        const Attr* value = node_.Find(word.substr(1));
        if (value == nullptr) {
          return InvalidArgument("Attr ", word.substr(1), " is not found from ", row_.op);
        }
        out += PrintAttr(*value);
        i = end;
      } else if (!word.empty() && end < text.size() && text[end] == '*') {
        const auto list = lists_.find(absl::StrCat(word, "*"));
        if (list == lists_.end()) return Internal("gradient of ", row_.op, ": ", word);
        out += list->second;
        i = end + 1;
      } else {
        const size_t length = std::max<size_t>(word.size(), 1);
        absl::StrAppend(&out, text.substr(i, length));
        i += length;
      }
    }
    return out;
  }

  const Row& row_;
  const Node& node_;
  std::map<std::string, std::string> lists_;
};

}  // namespace

Gradients::Made Gradients::OfOp(const FuncAttr& f) {
  Made made;
  const Row* row = gradients::FindRow(f.name);
  const OpDef* def = FindOpDef(f.name);
  if (row == nullptr || def == nullptr) {
    made.status = NotFound("No gradient defined for op: ", f.name);
    return made;
  }
  const auto make = [&]() -> Status {
    Graph scratch(std::make_shared<FunctionLibrary>());
    ASSIGN_OR_RETURN(Node * node, scratch.AddNode(f.name, f.name));
    if (f.attrs != nullptr) node->AttrsToChange() = *f.attrs;
    RETURN_IF_ERROR(scratch.ResolveTypes(node));
    RETURN_IF_ERROR(gradients::CheckNumbers(*node));
    ASSIGN_OR_RETURN(const std::string text, RowWriter(*row, *node).Write());
    ASSIGN_OR_RETURN(made.owner, ParseGraph(text));
    made.function = made.owner->library()->Find("grad");
    return OkStatus();
  };
  made.status = make();
  if (!made.status.ok()) {
    made.status = Prefix(made.status, absl::StrCat("Gradient of op '", f.name, "': "));
  }
  return made;
}

Gradients::Made Gradients::Make(const FuncAttr& f) {
  const Function* function = library_.Find(f.name);
  if (function == nullptr) return OfOp(f);
  Made made;
  if (function->body == nullptr) {
    made.status = NotFound("Function ", f.name, " has no body");
  } else if (++instances_[f.name] > kMostInstances) {
    made.status = ResourceExhausted("gradients of more than ", kMostInstances,
                                    " instances of function '", f.name, "'");
  } else if (auto gradient = GradientOfFunction(*function, f.attrs.get()); !gradient.ok()) {
    made.status = gradient.status();
  } else {
    made.of_function = std::move(*gradient);
    made.function = made.of_function.get();
  }
  return made;
}

StatusOr<Gradients::Gradient> Gradients::Of(const FuncAttr& f) {
  if (const auto stated = library_.gradients.find(f.name); stated != library_.gradients.end()) {
    const Function* function = library_.Find(stated->second);
    if (function == nullptr || function->body == nullptr) {
      return NotFound("Function ", stated->second, " is not defined.");
    }
    return Gradient{function, f.attrs.get()};
  }
  // What only marks a node makes no other gradient.
  AttrMap attrs;
  if (f.attrs != nullptr) {
    const OpDef* def = library_.FindOp(f.name);
    for (const auto& [name, value] : *f.attrs) {
      if (def == nullptr || def->FindAttr(name) != nullptr) attrs.Set(name, value);
    }
  }
  ASSIGN_OR_RETURN(const std::string key, CanonicalKey(attrs));
  const auto [it, first] = made_.try_emplace(absl::StrCat(f.name, " ", key));
  if (first) it->second = Make({f.name, std::make_shared<const AttrMap>(std::move(attrs))});
  if (!it->second.status.ok()) return it->second.status;
  return Gradient{it->second.function, f.attrs.get()};
}

}  // namespace smelt
