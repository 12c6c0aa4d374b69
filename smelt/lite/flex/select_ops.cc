#include "smelt/lite/flex/select_ops.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/wire/graph_def/lone_node.h"
#include "smelt/wire/tflite/flex.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {
namespace {

// Measured, op by op, with TensorFlow's converter.
constexpr OpSet kSelectOps = {
#include "smelt/lite/flex/select_ops.inc"
};

bool IsHandle(Dtype type) { return type == Dtype::kResource || type == Dtype::kVariant; }

// What no operator of either kind can hold; empty: all is well.
std::string WhyNeither(const Node& n) {
  if (n.attrs().may_have_functions()) {
    for (const auto& [name, value] : n.attrs()) {
      if (value.get<FuncAttr>() != nullptr || value.get<std::vector<FuncAttr>>() != nullptr) {
        return absl::StrCat("its attribute '", name,
                            "' is a function, which files have only for "
                            "branches and loops");
      }
    }
  }
  for (const Dtype type : n.output_types) {
    if (type == Dtype::kResource) return "what it holds once the model is loaded would be lost";
  }
  for (const auto* types : {&n.input_types, &n.output_types}) {
    for (const Dtype type : *types) {
      if (IsRef(type)) return "it works on a variable of version 1";
      if (!LiteTypeOf(type)) return absl::StrCat("a .tflite file has no type ", DtypeName(type));
    }
  }
  return "";
}

std::string WhyNotSelect(const Node& n, const OperatorSets& sets) {
  if (n.def() == nullptr && !sets.user_select.contains(n.op())) return "nobody defines the op";
  const bool listed =
      IsSelectOp(n.op_name()) || sets.any_select || sets.user_select.contains(n.op());
  return listed ? "" : "TensorFlow's list of select ops lacks it";
}

// The attributes, as TensorFlow's converter writes them for kernels that parse them: types by their
// numbers in a .tflite file, lists of numbers and texts; shapes, other lists and empty ones are
// left out.
StatusOr<std::string> CustomOptions(const Node& n) {
  AttrMap all;
  if (n.def() != nullptr) {
    for (const AttrDef& attr : n.def()->attrs) {
      if (attr.default_value) all.Set(attr.name, *attr.default_value);
    }
  }
  for (const auto& [name, value] : n.attrs()) {
    if (!name.empty() && name[0] != '_') all.Set(name, value);
  }
  std::vector<FlexEntry> entries;
  for (const auto& [name, value] : all) {
    if (const auto* type = value.get<Dtype>()) {
      const auto number = LiteTypeOf(*type);
      if (!number) {
        return Unimplemented("its attribute '", name, "' is the type ", DtypeName(*type),
                             ", which a .tflite file has no number for");
      }
      entries.emplace_back(name, Attr(int64_t{*number}));
      continue;
    }
    const auto* ints = value.get<std::vector<int64_t>>();
    const auto* floats = value.get<std::vector<float>>();
    const auto* texts = value.get<std::vector<std::string>>();
    const bool list = (ints != nullptr && !ints->empty()) ||
                      (floats != nullptr && !floats->empty()) ||
                      (texts != nullptr && !texts->empty());
    const bool scalar = value.get<std::string>() != nullptr || value.get<int64_t>() != nullptr ||
                        value.get<float>() != nullptr || value.get<bool>() != nullptr;
    if (list || scalar) entries.emplace_back(name, value);
  }
  return FlexMap(entries);
}

// How a refused node is written; one that stays refused is in neither map's values.
struct Form {
  bool select = false, custom = false;
  bool any() const { return select || custom; }
};

class Replacement {
 public:
  Replacement(Graph& graph, const OperatorSets& sets) : graph_(graph), sets_(sets) {}

  Status Run(std::vector<Refusal>& refusals) {
    if (sets_.select || sets_.custom) AddPairs(refusals);
    for (Refusal& r : refusals) {
      Node* n = graph_.Find(r.node);
      refused_[n] = &r;
      const std::string neither = WhyNeither(*n);
      const std::string no_select = neither.empty() ? WhyNotSelect(*n, sets_) : neither;
      r.could_be_select = no_select.empty();
      r.could_be_custom = neither.empty();
      forms_[n] = {sets_.select && r.could_be_select,
                   sets_.custom && r.could_be_custom && !(sets_.select && r.could_be_select)};
      if (sets_.select && !no_select.empty()) {
        r.why = absl::StrCat(r.why, "; it is no select op: ", no_select);
      } else if (sets_.custom && !neither.empty()) {
        r.why = absl::StrCat(r.why, "; it is no custom op: ", neither);
      }
    }
    SeparateHandles(refusals);
    for (const Refusal& r : refusals) {
      Node* n = graph_.Find(r.node);
      if (forms_[n].any()) RETURN_IF_ERROR(Replace(n, forms_[n].select));
    }
    std::erase_if(refusals, [&](const Refusal& r) { return replaced_.contains(r.node); });
    return OkStatus();
  }

 private:
  // What such operators read is one complex number, not two parts.
  void AddPairs(std::vector<Refusal>& refusals) {
    std::set<const Node*> known;
    for (const Refusal& r : refusals) known.insert(graph_.Find(r.node));
    for (size_t i = 0, count = refusals.size(); i < count; ++i) {
      for (const Endpoint& e : graph_.Find(refusals[i].node)->inputs()) {
        if (!e.node->Is("Complex") || !known.insert(e.node).second) continue;
        refusals.push_back({e.node->name(), std::string(e.node->op()),
                            "no operator makes complex numbers", false, false});
      }
    }
  }

  // Builtins, select ops and custom ops keep variables, tables and lists each in their own way: no
  // handle goes from one kind to another.
  void SeparateHandles(const std::vector<Refusal>& refusals) {
    const auto kind = [&](const Node* n) {
      const auto it = forms_.find(n);
      return it == forms_.end() ? 0 : it->second.select ? 1 : it->second.custom ? 2 : 3;
    };
    for (bool again = true; again;) {
      again = false;
      for (const Refusal& r : refusals) {
        Node* n = graph_.Find(r.node);
        if (!forms_[n].any()) continue;
        const Node* other = nullptr;
        for (int i = 0; i < n->num_inputs() && other == nullptr; ++i) {
          const Endpoint e = n->input(i);
          const bool handle = IsHandle(e.node->output_types[static_cast<size_t>(e.port)]);
          if (handle && kind(e.node) != kind(n)) other = e.node;
        }
        for (const Use& use : n->uses()) {
          if (other != nullptr || use.is_control()) continue;
          const bool handle = IsHandle(n->output_types[static_cast<size_t>(use.port())]);
          if (handle && kind(use.node) != kind(n)) other = use.node;
        }
        if (other == nullptr) continue;
        forms_[n] = {};
        Refusal& refusal = *refused_[n];
        refusal.could_be_select = refusal.could_be_custom = false;
        refusal.why = absl::StrCat(refusal.why, "; it shares a variable, table or list with '",
                                   other->name(), "', which is an operator of another kind");
        again = true;
      }
    }
  }

  Status Replace(Node* n, bool select) {
    AttrMap attrs;
    std::string options;
    if (select) {
      n->EraseAttr(kMostOperators);
      ASSIGN_OR_RETURN(const std::string node, SerializeLoneNode(*n));
      options = WriteFlexPair({std::string(n->op()), node});
    } else {
      auto custom = CustomOptions(*n);
      if (absl::IsUnimplemented(custom.status())) {
        refused_[n]->why = absl::StrCat(refused_[n]->why, "; ", custom.status().message());
        return OkStatus();
      }
      ASSIGN_OR_RETURN(options, custom);
    }
    attrs.Set("custom_code", select ? absl::StrCat(kFlexPrefix, n->op()) : std::string(n->op()));
    attrs.Set("custom_options", options);
    DtypeVector in, out;
    for (const Endpoint& e : n->inputs()) {
      in.push_back(BaseType(e.node->output_types[static_cast<size_t>(e.port)]));
    }
    for (const Dtype type : n->output_types) out.push_back(type);
    attrs.Set("Tin", in);
    attrs.Set("Tout", out);
    if (const Attr* shapes = n->attrs().Find(kOutputShapes)) attrs.Set(kOutputShapes, *shapes);
    const std::string name = n->name();
    const std::vector<Endpoint> inputs(n->inputs().begin(), n->inputs().end());
    ASSIGN_OR_RETURN(Node * made, graph_.Add(name, "tfl.custom", inputs, std::move(attrs)));
    for (Node* before : n->control_inputs()) graph_.AddControlInput(made, before);
    for (int i = 0; i < n->num_outputs(); ++i) graph_.ReplaceAllUses({n, i}, {made, i});
    graph_.ReplaceControlUses(n, made);
    graph_.Remove(n);
    forms_.erase(n);
    replaced_.insert(name);
    return graph_.Rename(made, name);
  }

  Graph& graph_;
  const OperatorSets& sets_;
  absl::flat_hash_map<const Node*, Form> forms_;
  absl::flat_hash_map<const Node*, Refusal*> refused_;
  std::set<std::string, std::less<>> replaced_;
};

}  // namespace

bool IsSelectOp(OpName op) { return kSelectOps.Contains(op); }

void PreferSelectOps(Graph& graph) {
  // As long as what a call of TensorFlow's runtime takes.
  constexpr int64_t kFewOperators = 4;
  const auto plain = [](Dtype type) { return !IsHandle(type); };
  for (Node* n : graph.Nodes()) {
    if (IsSelectOp(n->op_name()) && WhyNeither(*n).empty() &&
        std::ranges::all_of(n->input_types, plain) && std::ranges::all_of(n->output_types, plain)) {
      n->AttrsToChange().Set(kMostOperators, kFewOperators);
    }
  }
}

Status ReplaceRefused(Graph& graph, const OperatorSets& sets, std::vector<Refusal>& refusals) {
  return Replacement(graph, sets).Run(refusals);
}

Status ReplaceUnfit(Graph& graph, const OperatorSets& sets, size_t known,
                    std::vector<Refusal>& refusals) {
  std::vector<Refusal> made;
  std::vector<Refusal> unfit(refusals.begin() + static_cast<std::ptrdiff_t>(known), refusals.end());
  refusals.resize(known);
  for (Refusal& r : unfit) {
    r.could_be_select = true;
    if (!sets.select) {
      refusals.push_back(std::move(r));
      continue;
    }
    Node* node = graph.Find(r.node);
    auto nodes = node == nullptr ? Unimplemented("it is there no longer") : LowerAlone(graph, node);
    if (absl::IsUnimplemented(nodes.status())) {
      r.why = absl::StrCat(r.why, "; it is no select op: ", nodes.status().message());
      r.could_be_select = false;
      refusals.push_back(std::move(r));
      continue;
    }
    RETURN_IF_ERROR(nodes.status());
    for (const Node* n : *nodes) {
      if (!n->Is("Const")) made.push_back({n->name(), std::string(n->op()), r.why, false, false});
    }
  }
  RETURN_IF_ERROR(ReplaceRefused(graph, sets, made));
  refusals.insert(refusals.end(), made.begin(), made.end());
  return OkStatus();
}

}  // namespace smelt
