#include "smelt/lite/composites/composite.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/match.h"

namespace smelt {
namespace {

constexpr absl::string_view kImplements = "_implements", kApiImplements = "api_implements";

std::span<const std::span<const Composite>> Tables() {
  // Last comes what takes any name.
  static const std::array tables = {LookupComposites(), LstmComposites(),  ImageComposites(),
                                    TextComposites(),   KerasComposites(), CustomComposites()};
  return tables;
}

LiteEndpoints ConvertCall(Node& n, Legalizer& l) {
  const Function* f = CalledFunction(l.graph(), n);
  const std::optional<Implements> implements = f == nullptr ? std::nullopt : WhatItImplements(*f);
  if (implements && n.Find(kByRule) != nullptr) return OperatorForRules({n, *f, *implements}, l);
  const Composite* row = f == nullptr ? nullptr : FindComposite(*f);
  if (row == nullptr) return Unimplemented("it calls a function that is no composite");
  return row->convert({n, *f, *implements}, l);
}

constexpr ExportRow kCallRows[] = {
    {"PartitionedCall", ConvertCall},
    {"StatefulPartitionedCall", ConvertCall},
};

}  // namespace

std::span<const ExportRow> CompositeExport() { return kCallRows; }

std::span<const Composite> AllComposites() {
  static const auto* all = [] {
    auto* rows = new std::vector<Composite>();
    for (const auto table : Tables()) rows->insert(rows->end(), table.begin(), table.end());
    return rows;
  }();
  return *all;
}

std::optional<Implements> WhatItImplements(const Function& f) {
  if (const Attr* a = f.attrs.Find(kImplements)) {
    if (const auto* s = a->get<std::string>()) return Implements{ImplementsKind::kString, *s};
    if (const auto* func = a->get<FuncAttr>()) {
      return Implements{ImplementsKind::kFunction, func->name, func->attrs.get()};
    }
  }
  if (const Attr* a = f.attrs.Find(kApiImplements)) {
    if (const auto* s = a->get<std::string>()) return Implements{ImplementsKind::kApi, *s};
  }
  return std::nullopt;
}

const Composite* FindComposite(const Function& f) {
  const std::optional<Implements> implements = WhatItImplements(f);
  if (!implements) return nullptr;
  for (const Composite& row : AllComposites()) {
    if (row.kind != implements->kind) continue;
    const bool named =
        row.prefix ? absl::StartsWith(implements->name, row.name) : implements->name == row.name;
    if (!named) continue;
    // A function that says nothing of being an operator may be there for other programs.
    if (row.name.empty()) {
      const Attr* fusable =
          implements->options == nullptr ? nullptr : implements->options->Find("tfl_fusable_op");
      const bool* truth = fusable == nullptr ? nullptr : fusable->get<bool>();
      if (truth == nullptr || !*truth) continue;
    }
    return &row;
  }
  return nullptr;
}

const Function* CalledFunction(const Graph& graph, const Node& n) {
  const FuncAttr* f = IsPartitionedCall(n) ? n.Func("f") : nullptr;
  return graph.library()->Find(f != nullptr ? absl::string_view(f->name) : n.op());
}

namespace {

bool IsForRules(const Implements& implements, const CompositeChoice& choice) {
  return implements.kind != ImplementsKind::kApi && choice.by_rules.contains(implements.name) &&
         !choice.untaken.contains(implements.name);
}

}  // namespace

bool IsKeptComposite(const Function& f, const CompositeNames& declined,
                     const CompositeChoice& choice) {
  if (declined.contains(f.name())) return false;
  const std::optional<Implements> implements = WhatItImplements(f);
  if (implements && IsForRules(*implements, choice)) return true;
  const Composite* row = FindComposite(f);
  return row != nullptr && !choice.off.contains(row->name);
}

std::string WhyNoComposite(const Function& f, const CompositeChoice& choice) {
  const std::optional<Implements> implements = WhatItImplements(f);
  if (!implements || IsForRules(*implements, choice)) return "";
  if (const Composite* row = FindComposite(f)) {
    return choice.off.contains(row->name) ? "--no_fusion leaves it out" : "";
  }
  if (choice.untaken.contains(implements->name)) return "no rule takes it";
  return implements->kind == ImplementsKind::kApi
             ? "there is no operator for it"
             : "there is no operator for it, no rule of --fusions names it, and it has no "
               "'tfl_fusable_op'";
}

StatusOr<bool> ChooseComposites(Graph& graph, const CompositeChoice& choice,
                                CompositeNames& declined, std::vector<FusionNote>* notes) {
  ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph, {}));
  Legalizer l(graph, shapes);
  bool any = false;
  const size_t first_note = notes == nullptr ? 0 : notes->size();
  for (Node* n : graph.Nodes()) {
    const Function* f = CalledFunction(graph, *n);
    const std::optional<Implements> implements = f == nullptr ? std::nullopt : WhatItImplements(*f);
    const bool for_rules = implements && IsForRules(*implements, choice);
    const Composite* row = f == nullptr ? nullptr : FindComposite(*f);
    if (row == nullptr && !for_rules) continue;
    if (declined.contains(f->name()) && !any) continue;
    // What it would become tells whether it can.
    l.Begin(*n, kCallRows[0]);
    const int first_new = graph.max_id();
    const CompositeCall call = {*n, *f, *implements};
    const LiteEndpoints by = for_rules ? OperatorForRules(call, l) : row->convert(call, l);
    std::vector<Node*> made;
    for (int id = first_new; id < graph.max_id(); ++id) made.push_back(graph.NodeOf(id));
    graph.Remove(made);
    if (!by.ok() && !absl::IsUnimplemented(by.status())) {
      return Prefix(by.status(),
                    absl::StrCat("node '", n->name(), "', function '", f->name(), "': "));
    }
    if (for_rules && by.ok()) {
      // The rule says itself that it fired.
      n->AttrsToChange().Set(kByRule, true);
      continue;
    }
    if (notes != nullptr) {
      const std::string name = absl::StrCat("composite ", implements->name);
      FusionNote note = {name, n->name(), std::string(by.status().message()),
                         std::string(by.ok() ? row->differs : "")};
      // Bodies are looked at again when others are known.
      const bool told = std::ranges::any_of(*notes, [&](const FusionNote& other) {
        return other.fusion == note.fusion && other.node == note.node &&
               other.why_not == note.why_not;
      });
      if (!told) notes->push_back(std::move(note));
    }
    if (by.ok()) continue;
    declined.insert(f->name());
    any = true;
  }
  // A function is one or the other wherever it is called.
  for (size_t i = first_note; notes != nullptr && i < notes->size(); ++i) {
    FusionNote& note = (*notes)[i];
    const Function* f = CalledFunction(graph, *graph.Find(note.node));
    if (note.why_not.empty() && declined.contains(f->name())) {
      note.why_not = "another call of its function does not fit";
      note.differs.clear();
    }
  }
  return any;
}

Status CheckCounts(const CompositeCall& call, int inputs, int outputs) {
  if (call.node.num_inputs() == inputs && call.node.num_outputs() == outputs) return OkStatus();
  return Unimplemented("it has ", call.node.num_inputs(), " arguments and ",
                       call.node.num_outputs(), " results in place of ", inputs, " and ", outputs);
}

LiteEndpoints CustomOperator(const CompositeCall& call, absl::string_view name,
                             const std::string& options, Legalizer& l) {
  const Node& n = call.node;
  std::vector<Endpoint> inputs;
  for (const Endpoint& e : n.inputs()) {
    if (l.type(e) != Dtype::kResource) inputs.push_back(e);
  }
  std::vector<LiteOutput> outputs;
  for (int i = 0; i < n.num_outputs(); ++i) outputs.push_back(l.OutputOf(n, i));
  ASSIGN_OR_RETURN(
      Node * op,
      l.AddMany("tfl.custom", inputs,
                Options({{"custom_code", std::string(name)}, {"custom_options", options}}),
                outputs));
  std::vector<Endpoint> by;
  for (int i = 0; i < op->num_outputs(); ++i) by.push_back({op, i});
  return by;
}

}  // namespace smelt
