#include "smelt/optimize/functions/specialize.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_replace.h"
#include "smelt/graph/text.h"
#include "smelt/optimize/functions/common.h"
#include "smelt/optimize/inline_policy.h"
#include "smelt/optimize/instantiate.h"

namespace smelt {
namespace {

constexpr char kSpecialized[] = "_GrapplerSpecializedFunc";

// What is known of a call: calls that agree share a function.
struct Known {
  std::string function;
  bool asked_for = false;                // requests may ask for any of its results
  std::set<int> read;                    // results that somebody reads
  std::string attrs;                     // that fill placeholders, as text
  std::map<int, std::string> constants;  // by argument: the node that gives it

  auto Key() const { return std::tie(function, asked_for, read, attrs, constants); }
  bool operator<(const Known& other) const { return Key() < other.Key(); }
};

bool IsList(const ArgDef& arg) { return !arg.number_attr.empty() || !arg.type_list_attr.empty(); }

class Specializer {
 public:
  Specializer(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  Status Run() {
    for (Node* n : ReadyOrder(graph_)) RETURN_IF_ERROR(Visit(n));
    return OkStatus();
  }

 private:
  Status Visit(Node* node) {
    const bool indirect = IsPartitionedCall(*node);
    const FuncAttr* named = indirect ? node->Func("f") : nullptr;
    if (indirect && named == nullptr) return OkStatus();
    const Function* f = graph_.library()->Find(indirect ? named->name : node->op());
    if (f == nullptr || f->body == nullptr) return OkStatus();
    static const AttrMap& none = *new AttrMap();
    const AttrMap* attrs = indirect ? named->attrs.get() : &node->attrs();
    if (attrs == nullptr) attrs = &none;
    const auto [hole, first] = holes_.try_emplace(f, false);
    if (first) {
      hole->second = HasTypeAttr(f->signature) || HasPlaceholders(*f->body);
    }
    const bool holes = hole->second;
    const Known known = WhatIsKnown(*node, *f, holes ? attrs : nullptr);
    const bool all_read = known.read.size() == f->signature.outputs.size();
    if (!holes && known.constants.empty() && all_read) return OkStatus();
    std::string why = WhyNot(*node, *f, known);
    if (why.empty()) why = std::string(instantiable_.Check(*f, attrs).message());
    if (!why.empty()) {
      context_.Declined("Specialize", *node, why);
      return OkStatus();
    }
    const auto made = made_.find(known);
    std::string name = made == made_.end() ? "" : made->second;
    if (name.empty()) {
      name = graph_.library()->FreeName(
          absl::StrCat(f->name(), "_specialized_for_",
                       absl::StrReplaceAll(node->name(), {{"/", "_"}}), "_at_", context_.item_id));
      RETURN_IF_ERROR(Make(*node, *f, *attrs, holes, known, name));
      made_[known] = name;
    }
    context_.Fired("Specialize", *node, name);
    return Call(node, name, known);
  }

  static Known WhatIsKnown(const Node& node, const Function& f, const AttrMap* attrs) {
    Known known;
    known.function = f.name();
    known.asked_for = IsRoot(node);
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (known.asked_for || node.NumUses(i) > 0) known.read.insert(i);
    }
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Node* from = node.input(i).node;
      if (from->Is("Const") && !IsFed(*from)) known.constants[i] = from->name();
    }
    if (attrs != nullptr) {
      // Those that the signature names are what placeholders stand for.
      for (const AttrDef& def : f.signature.attrs) {
        if (const Attr* a = attrs->Find(def.name)) {
          absl::StrAppend(&known.attrs, def.name, "=", PrintAttr(*a), ";");
        }
      }
    }
    return known;
  }

  std::string WhyNot(const Node& node, const Function& f, const Known& known) const {
    if (f.body.get() == &graph_) return "it is the function's own body";
    if (IsFed(node)) return "requests feed it";
    if (IsForXla(node.attrs()) || IsForXla(f.attrs)) return "XLA compiles it";
    if (BoolAttr(f.attrs, "_nospecialize")) return "the function says _nospecialize";
    if (context_.keep_call && context_.keep_call(f)) return "others call the function as well";
    if (graph_.library()->gradients.contains(f.name())) return "the function has a gradient";
    if (std::ranges::any_of(f.signature.inputs, IsList) ||
        std::ranges::any_of(f.signature.outputs, IsList)) {
      return "the function takes or gives lists";
    }
    if (f.args.size() != node.inputs().size() ||
        f.results.size() != static_cast<size_t>(node.num_outputs())) {
      return "the call does not fit the function";
    }
    // Each of a graph's turns would make a copy of the same.
    if (BoolAttr(f.attrs, kSpecialized) && known.constants.empty() &&
        known.read.size() == f.results.size()) {
      return "its function was made for it";
    }
    for (const auto& [i, from] : known.constants) {
      if (TypeOf(node.input(i)) != node.input_types[static_cast<size_t>(i)]) {
        return absl::StrCat("constant '", from, "' is of another type than the argument");
      }
    }
    return "";
  }

  // A copy of the function, of which all is said that is known.
  Status Make(const Node& node, const Function& f, const AttrMap& attrs, bool holes,
              const Known& known, const std::string& name) {
    ASSIGN_OR_RETURN(std::unique_ptr<Function> copy, f.Clone(name));
    Graph& body = *copy->body;
    if (holes) {
      RETURN_IF_ERROR(FillBody(body, attrs, f.name()));
      SetTypes(copy->signature.inputs, node.input_types);
      SetTypes(copy->signature.outputs, node.output_types);
      copy->signature.attrs.clear();
    }
    for (const auto& [i, from] : known.constants) {
      RETURN_IF_ERROR(PushConstant(*copy, i, *node.input(i).node));
    }
    DropArguments(*copy, known);
    DropResults(*copy, known);
    copy->attrs.Set(kSpecialized, true);
    return graph_.library()->Add(std::move(copy));
  }

  static void SetTypes(std::vector<ArgDef>& args, const DtypeVector& types) {
    for (size_t i = 0; i < args.size(); ++i) {
      args[i].type = BaseType(types[i]);
      args[i].type_attr.clear();
    }
  }

  // The argument becomes a constant of its name.
  static Status PushConstant(Function& f, int i, const Node& from) {
    Graph& body = *f.body;
    Node* arg = f.args[static_cast<size_t>(i)];
    const std::string name = arg->name();
    RETURN_IF_ERROR(body.Rename(arg, body.FreeName(name + "/argument")));
    AttrMap attrs = from.attrs();
    // Of no meaning here: they are about nodes and requests of the caller.
    for (const absl::string_view gone : {"_root", "_class"}) attrs.Erase(gone);
    ASSIGN_OR_RETURN(Node * constant, body.Add(name, "Const", {}, std::move(attrs)));
    body.ReplaceAllUses({arg, 0}, {constant, 0});
    body.ReplaceControlUses(arg, constant);
    for (auto& result : f.results) {
      for (Endpoint& e : result) {
        if (e.node == arg) e = {constant, 0};
      }
    }
    for (auto& [control, waited] : f.control_results) {
      if (waited == arg) waited = constant;
    }
    body.Remove(arg);
    return OkStatus();
  }

  // Those that became constants.
  static void DropArguments(Function& f, const Known& known) {
    if (known.constants.empty()) return;
    std::vector<ArgDef> inputs;
    std::vector<Node*> args;
    std::map<int, AttrMap> arg_attrs;
    for (size_t i = 0; i < f.args.size(); ++i) {
      const int old = static_cast<int>(i);
      if (known.constants.contains(old)) continue;
      const int index = static_cast<int>(args.size());
      if (const auto it = f.arg_attrs.find(old); it != f.arg_attrs.end()) {
        arg_attrs[index] = it->second;
      }
      f.args[i]->AttrsToChange().Set("index", index);
      args.push_back(f.args[i]);
      inputs.push_back(f.signature.inputs[i]);
    }
    f.args = std::move(args);
    f.signature.inputs = std::move(inputs);
    f.arg_attrs = std::move(arg_attrs);
  }

  static void DropResults(Function& f, const Known& known) {
    std::vector<ArgDef> outputs;
    std::vector<std::vector<Endpoint>> results;
    for (const int i : known.read) {
      outputs.push_back(f.signature.outputs[static_cast<size_t>(i)]);
      results.push_back(f.results[static_cast<size_t>(i)]);
    }
    f.signature.outputs = std::move(outputs);
    f.results = std::move(results);
  }

  // Makes the node a call of function `name`.
  Status Call(Node* node, const std::string& name, const Known& known) {
    std::vector<Endpoint> inputs;
    std::vector<Node*> controls = node->control_inputs();
    std::vector<Dtype> input_types, output_types;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint e = node->input(i);
      if (known.constants.contains(i)) {
        // What the constant waited for, the call waits for.
        controls.insert(controls.end(), e.node->control_inputs().begin(),
                        e.node->control_inputs().end());
        continue;
      }
      inputs.push_back(e);
      input_types.push_back(node->input_types[static_cast<size_t>(i)]);
    }
    std::map<int, int> port_of;
    for (const int i : known.read) {
      port_of[i] = static_cast<int>(output_types.size());
      output_types.push_back(node->output_types[static_cast<size_t>(i)]);
    }
    if (const FuncAttr* named = IsPartitionedCall(*node) ? node->Func("f") : nullptr) {
      FuncAttr callee = *named;
      callee.name = name;
      node->AttrsToChange().Set("f", std::move(callee));
      node->AttrsToChange().Set("Tin", std::move(input_types));
      node->AttrsToChange().Set("Tout", std::move(output_types));
    } else {
      graph_.SetOp(node, name);
    }
    node->EraseAttr("_gradient_op_type");
    graph_.SetInputs(node, inputs);
    graph_.SetControlInputs(node, std::move(controls));
    for (const Use& use : node->OrderedUses()) {
      if (!use.is_control()) graph_.SetInput(use.node, use.input, {node, port_of.at(use.port())});
    }
    return graph_.ResolveTypes(node);
  }

  Graph& graph_;
  const PassContext& context_;
  std::map<Known, std::string> made_;  // function that was made for calls of which this is known
  absl::flat_hash_map<const Function*, bool> holes_;  // does it take attributes from its caller?
  Instantiable instantiable_;
};

}  // namespace

Status SpecializeFunctions(Graph& graph, const PassContext& context) {
  return Specializer(graph, context).Run();
}

}  // namespace smelt
