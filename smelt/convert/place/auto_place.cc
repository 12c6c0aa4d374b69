// --auto_place: finds the part of a function that a TPU can run, so that nobody has to name it.
// Many models take texts in and give texts out, which only the host can hold; what lies between
// may run on a TPU.
//
// A function that a TPU can run whole is placed as it is. Else its calls are inlined and the
// heaviest convex set of nodes that can be compiled becomes a function of its own, which the
// function calls: its name, arguments and results stay, so object graph and signatures do too.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "smelt/analysis/convex.h"
#include "smelt/analysis/cost.h"
#include "smelt/analysis/incompatible.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/convert/place/origin.h"
#include "smelt/convert/place/outline.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/op_facts.h"
#include "smelt/wire/graph_def/debug_info.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

// A set that does not compile when cut out loses the nodes that are to blame, and the search starts
// again. After so many rounds nothing is placed.
constexpr int kMaxCuts = 64;

using AutoNodeSet = absl::flat_hash_set<const Node*>;
// Outputs of arguments.
using UpdatedPorts = absl::flat_hash_set<std::pair<const Node*, int>>;

bool MayCross(Dtype t) {
  switch (BaseType(t)) {
    case Dtype::kString:
    case Dtype::kResource:
    case Dtype::kVariant:
    case Dtype::kComplex128:
    case Dtype::kInvalid:
      return false;
    default:
      return true;
  }
}

bool IsLoopMerge(const Node& n) {
  return n.Is("Merge") && std::ranges::any_of(n.inputs(), [](const Endpoint& e) {
           return e.node->Is("Enter") || e.node->Is("NextIteration");
         });
}

// Nodes inside conditionals and loops of TensorFlow 1, of which no part can become a function.
AutoNodeSet InOldControlFlow(const Graph& graph) {
  AutoNodeSet inside;
  auto order = graph.TopologicalOrder();
  if (!order.ok()) return inside;
  // A conditional ends at its Merge, a loop at its Exits.
  const auto carries = [&](const Node* m) {
    return inside.contains(m) && !m->Is("Exit") && (!m->Is("Merge") || IsLoopMerge(*m));
  };
  for (const Node* n : *order) {
    const bool is_part = n->Is("Switch") || n->Is("Merge") || n->Is("Enter") || n->Is("Exit") ||
                         n->Is("NextIteration") || n->Is("LoopCond");
    if (is_part ||
        std::ranges::any_of(n->inputs(), [&](const Endpoint& e) { return carries(e.node); }) ||
        std::ranges::any_of(n->control_inputs(), carries)) {
      inside.insert(n);
    }
  }
  return inside;
}

// Finds what of one function can be placed, and makes a part of it a function.
class AutoPlacer {
 public:
  AutoPlacer(Conversion& c, Function& f, const std::vector<PartialShape>& arg_shapes,
             const UpdatedPorts& updated, CostModel& costs, AutoPlacement& record)
      : c_(c), f_(f), g_(*f.body), updated_(updated), costs_(costs), record_(record) {
    auto shapes = InferShapes(g_, XlaShapeRules(), arg_shapes);
    if (shapes.ok()) shapes_ = *std::move(shapes);
  }

  // The function to place: the whole one, a part of it, or nothing ("").
  StatusOr<std::string> Run() {
    for (const Node* n : g_.Nodes()) {
      ++record_.nodes;
      record_.cost = AddCost(record_.cost, costs_.OfNode(*n, shapes_));
    }
    MarkBlocked();
    if (CanBeWhole()) {
      record_.whole = true;
      record_.placed_nodes = record_.nodes;
      record_.placed_cost = record_.cost;
      return f_.name();
    }
    RETURN_IF_ERROR(WaitWithoutConstants());
    AutoNodeSet set = FindSet();
    for (const Node* n : set) {
      record_.placed_cost = AddCost(record_.placed_cost, costs_.OfNode(*n, shapes_));
    }
    record_.placed_nodes = static_cast<int>(set.size());
    record_.crossing = Crossing(set);
    NameHostOps(set);
    if (record_.placed_cost <= record_.crossing) return std::string();
    return Outline(set);
  }

  // Lets NameHostOps state lines of the user's source. `original` is the function before its calls
  // were inlined.
  void SetSource(const DebugInfo* debug, const Function* original) {
    debug_ = debug;
    original_ = original;
  }

 private:
  void Block(const Node* n, std::string why) { blocked_.try_emplace(n, std::move(why)); }

  void MarkBlocked() {
    for (const Incompatible& i : FindIncompatible(g_, [](const Node*) { return true; })) {
      if (i.kind != Incompatible::Kind::kDynamic) Block(i.at, i.text);
    }
    args_.insert(f_.args.begin(), f_.args.end());
    old_control_flow_ = InOldControlFlow(g_);
    for (const Node* n : g_.Nodes()) {
      const bool reads = n->Is(kReadsVariable);
      for (size_t i = 0; i < n->inputs().size(); ++i) {
        const Node* from = n->inputs()[i].node;
        const Dtype t = BaseType(from->output_types[n->inputs()[i].port]);
        if (t == Dtype::kString && !(from->Is("Const") && n->Is("Assert"))) {
          Block(n, "its input is a string");
        }
        // Resources that are made here (lists of TensorFlow 1) may be changed, those of arguments
        // may not: a TPU works on copies.
        if (t != Dtype::kResource || !args_.contains(from)) continue;
        if (updated_.contains({from, n->inputs()[i].port})) {
          Block(n, "its variable is updated, and a TPU has a copy of its own");
        }
        if (!reads && !CallsFunctions(c_.library(), *n)) Block(n, "it changes a resource");
      }
    }
  }

  bool CanBeWhole() const {
    if (!blocked_.empty()) return false;
    for (const Node* a : f_.args) {
      for (Dtype t : a->output_types) {
        if (!MayCross(t) && BaseType(t) != Dtype::kResource) return false;
      }
    }
    const std::vector<Endpoint> results = f_.FlatResults();
    return !results.empty() && std::ranges::all_of(results, [](const Endpoint& e) {
      return MayCross(e.node->output_types[e.port]);
    });
  }

  // Readers of a constant that waits for something (an assertion) wait with it. A set has no
  // constants as members (convex.h), which would lose the order: the readers wait themselves.
  Status WaitWithoutConstants() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, g_.TopologicalOrder());
    for (Node* n : order) {
      if (!n->Is("Const") || n->control_inputs().empty() || old_control_flow_.contains(n)) continue;
      for (const Use& use : n->OrderedUses()) {
        std::vector<Node*> waits = use.node->control_inputs();
        waits.insert(waits.end(), n->control_inputs().begin(), n->control_inputs().end());
        g_.SetOrderedControlInputs(use.node, std::move(waits));
      }
      g_.SetControlInputs(n, {});
    }
    return OkStatus();
  }

  AutoNodeSet FindSet() {
    const auto may = [&](const Node* n) {
      return !args_.contains(n) && !blocked_.contains(n) && !old_control_flow_.contains(n);
    };
    const auto weight = [&](const Node* n) { return costs_.OfNode(*n, shapes_); };
    for (int round = 0; round < kMaxCuts; ++round) {
      AutoNodeSet set = HeaviestConvexSet(g_, may, weight);
      if (set.empty() || !CutAway(set)) return set;
    }
    return {};
  }

  // Blocks the members that keep the set from being a function on a TPU; false when there are none.
  bool CutAway(const AutoNodeSet& set) {
    const size_t before = blocked_.size();
    for (const Incompatible& i :
         FindIncompatible(g_, [&](const Node* n) { return n->Is("Const") || set.contains(n); })) {
      if (i.kind != Incompatible::Kind::kDynamic && set.contains(i.at)) Block(i.at, i.text);
    }
    // Lists and handles that are made here cannot cross: who makes or reads one across the border
    // stays outside.
    const auto leaves = [&](const Endpoint& e) {
      return set.contains(e.node) && !MayCross(e.node->output_types[e.port]);
    };
    for (const Node* n : g_.Nodes()) {
      for (const Endpoint& e : n->inputs()) {
        if (!set.contains(n) && leaves(e)) Block(e.node, "its result cannot leave a TPU");
        if (set.contains(n) && !set.contains(e.node) && !e.node->Is("Const") &&
            !MayCross(e.node->output_types[e.port]) && !args_.contains(e.node)) {
          Block(n, "its input cannot cross to a TPU");
        }
      }
    }
    for (const Endpoint& e : f_.FlatResults()) {
      if (leaves(e)) Block(e.node, "its result cannot leave a TPU");
    }
    return blocked_.size() != before;
  }

  // Endpoints that members read from outside, and that others read from members.
  void Transfers(const AutoNodeSet& set, std::vector<Endpoint>* in,
                 std::vector<Endpoint>* out) const {
    absl::flat_hash_set<std::pair<const Node*, int>> seen;
    const auto add = [&](const Endpoint& e, std::vector<Endpoint>* to) {
      if (seen.insert({e.node, e.port}).second) to->push_back(e);
    };
    for (const Node* n : g_.Nodes()) {
      for (const Endpoint& e : n->inputs()) {
        if (set.contains(n) && !set.contains(e.node) && !e.node->Is("Const")) add(e, in);
        if (!set.contains(n) && set.contains(e.node)) add(e, out);
      }
    }
    for (const Endpoint& e : f_.FlatResults()) {
      if (set.contains(e.node)) add(e, out);
    }
  }

  int64_t Crossing(const AutoNodeSet& set) const {
    std::vector<Endpoint> in, out;
    Transfers(set, &in, &out);
    int64_t sum = 0;
    in.insert(in.end(), out.begin(), out.end());
    for (const Endpoint& e : in) {
      if (MayCross(e.node->output_types[e.port])) {
        sum = AddCost(sum, CostElements(shapes_.of(e)));
      }
    }
    return sum;
  }

  void NameHostOps(const AutoNodeSet& set) {
    for (const Node* n : g_.Nodes()) {
      if (set.contains(n) || n->Is("Const")) continue;
      auto it = blocked_.find(n);
      const bool old = old_control_flow_.contains(n);
      if (it == blocked_.end() && !old) continue;
      c_.records.host_ops.push_back(
          {record_.function, n->name(), std::string(n->op()), "",
           it != blocked_.end() ? it->second : "it is part of TensorFlow 1 control flow"});
      if (original_ == nullptr) continue;
      const Origin o = OriginOf(c_.library(), *original_, n->name());
      c_.records.host_ops.back().source = debug_->Line(o.node, o.function);
    }
  }

  StatusOr<std::string> Outline(const AutoNodeSet& set) {
    std::vector<Endpoint> in, out;
    Transfers(set, &in, &out);
    FunctionOutline outline(g_, c_.library().FreeName(f_.name() + "_compatible"));
    for (const Endpoint& e : in) RETURN_IF_ERROR(outline.AddArg(e));
    std::vector<Node*> inside, members, before;
    for (Node* n : g_.Nodes()) {
      const bool member = set.contains(n);
      if (member) members.push_back(n);
      if (member || (n->Is("Const") && FeedsSet(n, set))) inside.push_back(n);
      if (!member) continue;
      for (Node* m : n->control_inputs()) {
        if (!set.contains(m) && !m->Is("Const") && !m->Is("_Arg")) before.push_back(m);
      }
    }
    RETURN_IF_ERROR(outline.Copy(inside));
    for (const Endpoint& e : out) outline.AddResult(e);
    for (const Node* n : members) {
      if (n->def() != nullptr && n->def()->stateful && !n->Is(kReadsVariable)) outline.AddEffect(n);
    }
    ASSIGN_OR_RETURN(Node * call, outline.Call());
    g_.SetOrderedControlInputs(call, std::move(before));
    record_.part = call->Func("f")->name;
    RETURN_IF_ERROR(Redirect(set, members, out, call));
    return record_.part;
  }

  bool FeedsSet(const Node* n, const AutoNodeSet& set) {
    return std::ranges::any_of(
        n->uses(), [&](const Use& use) { return !use.is_control() && set.contains(use.node); });
  }

  // Whoever read a member reads the call; members go.
  Status Redirect(const AutoNodeSet& set, const std::vector<Node*>& members,
                  const std::vector<Endpoint>& out, Node* call) {
    absl::flat_hash_map<std::pair<const Node*, int>, int> port_of;
    for (size_t i = 0; i < out.size(); ++i)
      port_of[{out[i].node, out[i].port}] = static_cast<int>(i);
    const auto redirected = [&](Endpoint e) {
      auto it = port_of.find({e.node, e.port});
      return it == port_of.end() ? e : Endpoint{call, it->second};
    };
    // Constants go with the members that they feed.
    std::vector<Node*> keep;
    for (Node* n : g_.Nodes()) {
      if (!set.contains(n) && !(n->Is("Const") && FeedsSet(n, set))) keep.push_back(n);
    }
    for (Node* n : g_.Nodes()) {
      if (set.contains(n)) continue;
      for (int i = 0; i < n->num_inputs(); ++i) g_.SetInput(n, i, redirected(n->input(i)));
      std::vector<Node*> controls = n->control_inputs();
      for (Node*& m : controls) {
        if (set.contains(m)) m = call;
      }
      g_.SetOrderedControlInputs(n, std::move(controls));
    }
    for (auto& result : f_.results) {
      for (Endpoint& e : result) e = redirected(e);
    }
    // TensorFlow refuses one node under two names.
    for (auto& [name, node] : f_.control_results) {
      if (!set.contains(node)) continue;
      ASSIGN_OR_RETURN(node, g_.Add("done", "NoOp", {}));
      g_.SetControlInputs(node, {call});
      keep.push_back(node);
    }
    g_.Prune(keep);
    return OkStatus();
  }

  Conversion& c_;
  Function& f_;
  Graph& g_;
  const UpdatedPorts& updated_;
  CostModel& costs_;
  AutoPlacement& record_;
  const DebugInfo* debug_ = nullptr;
  const Function* original_ = nullptr;
  ShapeTable shapes_;
  AutoNodeSet args_;
  absl::flat_hash_map<const Node*, std::string> blocked_;
  AutoNodeSet old_control_flow_;  // only placed when the whole function is
};

// The arguments that bring variables which a request may update.
StatusOr<UpdatedPorts> UpdatedArguments(Conversion& c) {
  ASSIGN_OR_RETURN(const auto variables, ModelVariables::Trace(*c.meta, c.model.dir, c.files));
  const std::vector<std::string> functions = ServedFunctions(*c.meta);
  const absl::flat_hash_set<absl::string_view> served(functions.begin(), functions.end());
  const std::vector<Node*> nodes = ServedNodes(*c.meta);
  const absl::flat_hash_set<const Node*> served_nodes(nodes.begin(), nodes.end());
  // Training and the initialization may update variables too, but not while requests are served.
  const auto in_request = [&](const HandleUse& use) {
    return use.function != nullptr ? served.contains(use.function->name())
                                   : served_nodes.contains(use.node);
  };
  absl::flat_hash_set<const ModelVariable*> updated;
  for (const auto& v : variables->all()) {
    if (std::ranges::any_of(v->initializers, in_request) ||
        std::ranges::any_of(v->others, in_request)) {
      updated.insert(v.get());
    }
  }
  UpdatedPorts args;
  for (const Function* f : c.library().Functions()) {
    for (const Endpoint& e : f->FlatArguments()) {
      for (const ModelVariable* v : variables->Of(e)) {
        if (updated.contains(v)) args.insert({e.node, e.port});
      }
    }
  }
  return args;
}

// The functions to look at: those that the options name, else each signature's.
Status Candidates(Conversion& c) {
  for (const TpuPlacement& p : c.placements) {
    if (!p.existing) c.records.auto_placements.push_back({p.label, p.function});
  }
  std::erase_if(c.placements, [](const TpuPlacement& p) { return !p.existing; });
  if (!c.records.auto_placements.empty()) return OkStatus();
  std::vector<std::string> names;
  for (const auto& [name, signature] : c.meta->signatures) {
    if (name != kInitSignature && !signature.outputs.empty()) names.push_back(name);
  }
  absl::flat_hash_map<std::string, std::string> taken;
  for (const std::string& name : names) {
    auto function = FunctionBySignature(c, name);
    if (!function.ok()) {
      c.records.AddNote("auto_place", std::string(function.status().message()));
      continue;
    }
    auto [it, added] = taken.try_emplace(*function, name);
    if (!added) continue;  // another signature of the same function
    c.records.auto_placements.push_back({name, *function});
  }
  return OkStatus();
}

std::string AutoText(const AutoPlacement& a) {
  const double share =
      a.cost == 0 ? 0 : 100.0 * static_cast<double>(a.placed_cost) / static_cast<double>(a.cost);
  std::string text = absl::StrCat(a.label, ": ");
  if (a.whole) {
    absl::StrAppend(&text, "all of function '", a.function, "' goes to the TPU");
  } else if (a.part.empty()) {
    absl::StrAppendFormat(&text,
                          "nothing of function '%s' is worth placing: the largest part that a TPU "
                          "can run costs %d, for %d elements to transfer",
                          a.function, a.placed_cost, a.crossing);
  } else {
    absl::StrAppendFormat(&text, "%d of %d ops of function '%s' go to the TPU, %.2f%% of its cost",
                          a.placed_nodes, a.nodes, a.function, share);
  }
  return text;
}

// INVALID_ARGUMENT says of each candidate why, where none has a part on the TPU: the model would be
// what it was.
Status CheckPlaced(const Conversion& c) {
  std::string why;
  for (const AutoPlacement& a : c.records.auto_placements) {
    if (a.whole || !a.part.empty()) return OkStatus();
    absl::StrAppend(&why, why.empty() ? "" : "; ", AutoText(a));
  }
  for (const Note& note : c.records.notes) {
    if (note.stage != "auto_place" || !c.records.auto_placements.empty()) continue;
    absl::StrAppend(&why, why.empty() ? "" : "; ", note.text);
  }
  return InvalidArgument("--auto_place finds nothing to place on the TPU: ",
                         why.empty() ? "no signature has outputs" : why);
}

}  // namespace

Status AutoPlace(Conversion& c) {
  RETURN_IF_ERROR(Candidates(c));
  ASSIGN_OR_RETURN(const auto updated, UpdatedArguments(c));
  // Shapes of arguments as the model calls them, before anything is cut.
  absl::flat_hash_map<std::string, std::vector<PartialShape>> shapes;
  {
    const CostModel costs(*c.meta->graph);
    for (const AutoPlacement& a : c.records.auto_placements) {
      const ShapeTable& table = costs.ShapesOf(a.function);
      for (const Endpoint& e : c.library().Find(a.function)->FlatArguments()) {
        shapes[a.function].push_back(table.AsArgument(e));
      }
    }
  }
  ASSIGN_OR_RETURN(const DebugInfo debug, DebugInfo::Read(c.model.dir));
  std::map<std::string, std::unique_ptr<Function>> originals;
  // All are inlined before any is cut: where one calls another, it gets a copy of the whole.
  for (const AutoPlacement& a : c.records.auto_placements) {
    if (!debug.empty()) {
      ASSIGN_OR_RETURN(originals[a.function], c.library().Find(a.function)->Clone(a.function));
    }
    RETURN_IF_ERROR(InlineAllCalls(c, *c.library().Find(a.function)));
  }
  CostModel costs(*c.meta->graph);
  for (AutoPlacement& a : c.records.auto_placements) {
    Function& f = *c.library().Find(a.function);
    AutoPlacer placer(c, f, shapes[a.function], updated, costs, a);
    if (!debug.empty()) placer.SetSource(&debug, originals[a.function].get());
    auto placed = placer.Run();
    if (!placed.ok()) {
      return Prefix(placed.status(), absl::StrCat("In function '", a.function, "': "));
    }
    if (!placed->empty()) c.placements.push_back({*placed, a.label, "", {}, false});
    c.records.AddNote("auto_place", absl::StrCat("auto_place: ", AutoText(a)), a.function);
  }
  return CheckPlaced(c);
}

}  // namespace smelt
