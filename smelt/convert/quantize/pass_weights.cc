// Weights that functions get as arguments, passed as int8: constants and variables that were read
// go through identities, calls, branches and loops to the functions whose layers read them.
#include <algorithm>

#include "smelt/analysis/captured.h"
#include "smelt/convert/quantize/quantize.h"
#include "smelt/graph/op_facts.h"
#include "smelt/wire/saved_model/object_graph.h"

namespace smelt::quantize {
namespace {

constexpr int kTheValue = 0;

// The attribute that lists the types of the call's arguments (or results), and what of it stands
// for input (or output) 0; nullptr: the function's signature alone says them.
struct TypeList {
  const char* attr = nullptr;
  int first = 0;
};

std::optional<TypeList> ArgumentTypes(const Graph& g, const Node& n) {
  if (IsPartitionedCall(n)) return TypeList{"Tin", 0};
  if (IsLoop(n)) return TypeList{"T", 0};
  if (IsBranch(n)) return TypeList{"Tin", 1};
  if (g.library()->Find(n.op()) != nullptr) return TypeList{};
  return std::nullopt;
}

std::optional<TypeList> ResultTypes(const Graph& g, const Node& n) {
  std::optional<TypeList> list = ArgumentTypes(g, n);
  if (list && list->attr != nullptr) list = TypeList{IsLoop(n) ? "T" : "Tout", 0};
  return list;
}

void SetListed(Node& n, const char* attr, int i) {
  auto types = n.Get<std::vector<Dtype>>(attr, {});
  if (i >= 0 && i < std::ssize(types)) types[i] = Dtype::kInt8;
  n.AttrsToChange().Set(attr, std::move(types));
}

}  // namespace

// Where the weights' value goes.
class WeightFlow {
 public:
  WeightFlow(Conversion& c, const std::vector<Scope>& scopes, const Weights& w)
      : c_(c), scopes_(scopes), w_(w), flow_(*c.meta->graph) {}

  // False when some place may hold something else, too, or is not the converter's to retype.
  StatusOr<bool> Follow() {
    if (w_.constant != nullptr) {
      flow_.Hold(kTheValue, w_.scope->function, {w_.constant, 0});
    } else {
      for (const HandleUse& read : w_.variable->reads) {
        flow_.Hold(kTheValue, read.function, {read.node, 0});
      }
    }
    RETURN_IF_ERROR(HoldBound());
    flow_.Follow([](int, const HandleUse&) {});
    if (!Sound(nullptr, *c_.meta->graph)) return false;
    for (Function* f : c_.library().Functions()) {
      if (f->body != nullptr && !Sound(f, *f->body)) return false;
    }
    for (const Endpoint& e : scopes_[0].results) {
      if (Holds(e) && !IsRoot(e)) return false;
    }
    return true;
  }

  bool Holds(Endpoint e) const { return e.port >= 0 && !flow_.Of(e).empty(); }

  // Gives every place on the way the type int8.
  Status Retype() {
    for (Function* f : c_.library().Functions()) {
      if (f->body == nullptr) continue;
      for (size_t i = 0; i < f->args.size(); ++i) {
        if (Holds({f->args[i], 0})) f->signature.inputs[i].type = Dtype::kInt8;
      }
      for (size_t i = 0; i < f->results.size(); ++i) {
        if (Holds(f->results[i][0])) f->signature.outputs[i].type = Dtype::kInt8;
      }
    }
    RETURN_IF_ERROR(RetypeNodes(*c_.meta->graph));
    for (Function* f : c_.library().Functions()) {
      if (f->body != nullptr) RETURN_IF_ERROR(RetypeNodes(*f->body));
    }
    return OkStatus();
  }

  // Calls `visit(function, graph, e)` for each place but the roots.
  template <typename F>
  Status ForEachPlace(F visit) {
    const auto in = [&](Function* f, Graph& g) -> Status {
      for (Node* n : g.Nodes()) {
        for (int o = 0; o < n->num_outputs(); ++o) {
          if (Holds({n, o}) && !IsRoot({n, o})) RETURN_IF_ERROR(visit(f, g, Endpoint{n, o}));
        }
      }
      return OkStatus();
    };
    RETURN_IF_ERROR(in(nullptr, *c_.meta->graph));
    for (Function* f : c_.library().Functions()) {
      if (f->body != nullptr) RETURN_IF_ERROR(in(f, *f->body));
    }
    return OkStatus();
  }

 private:
  bool IsRoot(Endpoint e) const { return e.node->Is("Const") || e.node->Is("ReadVariableOp"); }

  // What the object graph's functions captured.
  Status HoldBound() {
    if (c_.meta->object_graph.empty()) return OkStatus();
    ASSIGN_OR_RETURN(objects_, ParseObjectGraph(c_.meta->object_graph));
    for (const auto& [name, concrete] : objects_.concrete_functions) {
      Function* f = c_.library().Find(name);
      if (f == nullptr || f->body == nullptr) continue;
      const std::vector<Endpoint> args = f->FlatArguments();
      const size_t bound = std::min(args.size(), concrete.bound_inputs.size());
      for (size_t i = 0; i < bound; ++i) {
        const ObjectNode& object = objects_.nodes[concrete.bound_inputs[i]];
        const Endpoint arg = args[args.size() - bound + i];
        const bool ours = object.kind == ObjectNode::Kind::kConstant && w_.constant != nullptr &&
                          w_.scope->function == nullptr && object.operation == w_.constant->name();
        if (ours) {
          flow_.Hold(kTheValue, f, arg);
          bound_.insert({arg.node, arg.port});
        }
      }
      public_.insert(f);
    }
    return OkStatus();
  }

  // Whoever loads the object graph passes what it captured, and takes results of the types that its
  // functions have.
  bool Sound(Function* f, Graph& g) const {
    if (f != nullptr) {
      for (const Endpoint& arg : f->FlatArguments()) {
        if (!Holds(arg)) continue;
        if (arg.node->num_outputs() != 1) return false;
        if (public_.contains(f) && !bound_.contains({arg.node, arg.port})) return false;
      }
      for (const auto& result : f->results) {
        for (const Endpoint& e : result) {
          if (Holds(e) && (result.size() != 1 || public_.contains(f))) return false;
        }
      }
    }
    return std::ranges::all_of(g.Nodes(), [&](Node* n) { return SoundNode(g, *n); });
  }

  // Does the node take and give the value wherever the functions that it calls do?
  bool SoundNode(const Graph& g, Node& n) const {
    for (int i = 0; i < n.num_inputs(); ++i) {
      int position = 0;
      const bool in = Holds(n.inputs()[i]);
      for (const std::string& name : CalleesOfInput(g, n, i, &position)) {
        const Function* callee = g.library()->Find(name);
        if (callee == nullptr || callee->body == nullptr || position < 0) continue;
        const std::vector<Endpoint> args = callee->FlatArguments();
        const bool arg = position < std::ssize(args) && Holds(args[position]);
        if (in != arg || (in && !ArgumentTypes(g, n))) return false;
      }
    }
    for (int o = 0; o < n.num_outputs(); ++o) {
      if (!Holds({&n, o}) || n.Is("_Arg") || n.Is("Identity") || n.Is("IdentityN")) continue;
      if (IsRoot({&n, o})) continue;
      if (!ResultTypes(g, n)) return false;
      bool all = true;
      ForEachCallee(*g.library(), n, [&](absl::string_view name) {
        const Function* callee = g.library()->Find(name);
        const FuncAttr* cond = IsLoop(n) ? n.Func("cond") : nullptr;
        if (callee == nullptr || (cond != nullptr && cond->name == name)) return;
        const std::vector<Endpoint> results = callee->FlatResults();
        all &= o < std::ssize(results) && Holds(results[o]);
      });
      if (!all) return false;
    }
    return true;
  }

  Status RetypeNodes(Graph& g) {
    for (Node* n : g.Nodes()) {
      bool changed = false;
      const bool calls = CallsFunctions(*g.library(), *n);
      for (int i = 0; calls && i < n->num_inputs(); ++i) {
        if (!Holds(n->inputs()[i])) continue;
        changed = true;
        const TypeList list = *ArgumentTypes(g, *n);
        if (list.attr != nullptr) SetListed(*n, list.attr, i - list.first);
      }
      for (int o = 0; o < n->num_outputs(); ++o) {
        if (!Holds({n, o}) || IsRoot({n, o})) continue;
        changed = true;
        if (n->Is("IdentityN")) {
          SetListed(*n, "T", o);
        } else if (calls) {
          const TypeList list = *ResultTypes(g, *n);
          if (list.attr != nullptr) SetListed(*n, list.attr, o);
        } else {
          n->AttrsToChange().Set("T", Dtype::kInt8);
        }
      }
      if (changed) RETURN_IF_ERROR(g.ResolveTypes(n));
    }
    return OkStatus();
  }

  Conversion& c_;
  const std::vector<Scope>& scopes_;
  const Weights& w_;
  HandleFlow flow_;
  ObjectGraph objects_;
  absl::flat_hash_set<const Function*> public_;
  absl::flat_hash_set<std::pair<const Node*, int>> bound_;
};

StatusOr<std::shared_ptr<WeightFlow>> FollowValue(Conversion& c, const std::vector<Scope>& scopes,
                                                  const Weights& w) {
  auto flow = std::make_shared<WeightFlow>(c, scopes, w);
  ASSIGN_OR_RETURN(const bool sound, flow->Follow());
  return sound ? flow : nullptr;
}

bool PassesThrough(const WeightFlow& flow, Endpoint e) { return flow.Holds(e); }

Status PassInt8(Weights& w) {
  if (w.constant != nullptr) {
    ASSIGN_OR_RETURN(const Tensor q, QuantizeWeights(w.value, w.scale_shape, w.scales));
    w.constant->AttrsToChange().Set("dtype", Dtype::kInt8);
    w.constant->AttrsToChange().Set("value", Attr(TensorValue::Of(q)));
    RETURN_IF_ERROR(w.scope->graph->ResolveTypes(w.constant));
  }
  return w.flow->Retype();
}

Status DequantizePlaces(Conversion& c, const Weights& w) {
  return w.flow->ForEachPlace(
      [&](Function* f, Graph& g, Endpoint e) { return DequantizeForFloats(c, g, f, e, w); });
}

}  // namespace smelt::quantize
