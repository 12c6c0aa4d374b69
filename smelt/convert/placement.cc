// Placement: a chosen function becomes a stub that calls its old body on the accelerator.
//
// The concrete function keeps its name, arguments and results, so the object graph, the aliases and
// every caller stay valid. The body moves to a new function, in which each node carries the
// cluster's name, arguments enter through TPUReplicatedInput and results leave through
// TPUReplicatedOutput. Resource arguments (captured variables) go straight to the ops that read
// them: the runtime makes the core's copy of a variable from exactly that.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/convert/conversion.h"

namespace smelt {
namespace {

constexpr char kCluster[] = "_tpu_replicate";
constexpr char kMustCompile[] = "_XlaMustCompile";

bool CrossesByReplica(Dtype t) { return t != Dtype::kResource && t != Dtype::kVariant; }

class Placer {
 public:
  explicit Placer(Conversion& c) : c_(c) {
    for (const TpuPlacement& p : c.placements) placed_.insert(p.function);
  }

  Status Run() {
    // Bodies first, while every placed function still has its own.
    for (TpuPlacement& p : c_.placements) {
      Status s = MakeBody(p);
      if (!s.ok()) return Prefix(s, absl::StrCat("In function '", p.function, "': "));
    }
    for (const TpuPlacement& p : c_.placements) {
      Status s = MakeStub(p);
      if (!s.ok()) return Prefix(s, absl::StrCat("In function '", p.function, "': "));
    }
    DropMustCompile(*c_.meta->graph);
    for (Function* f : c_.library().Functions()) {
      if (!bodies_.contains(f->name())) DropMustCompile(*f->body);
    }
    return OkStatus();
  }

 private:
  // Placed functions that the body calls itself: on the accelerator it calls their plain bodies.
  Status CallPlain(Graph& body) {
    std::vector<std::string> calls = CalledFunctions(body);
    for (const std::string& name : calls) {
      if (!placed_.contains(name)) continue;
      ASSIGN_OR_RETURN(const std::string plain, Plain(name));
      for (Node* n : body.Nodes()) {
        if (n->op() == name) body.SetOp(n, plain);
        ForEachFunc(n->attrs(), [&](FuncAttr& f) {
          if (f.name == name) f.name = plain;
        });
      }
    }
    return OkStatus();
  }

  // The body of a placed function as a plain function, made when a placed function calls it.
  StatusOr<std::string> Plain(const std::string& name) {
    auto it = plain_.find(name);
    if (it != plain_.end()) return it->second;
    const std::string copy = c_.library().FreeName(name + "_inlined_on_tpu");
    plain_[name] = copy;  // before the body is walked: it may call itself
    ASSIGN_OR_RETURN(auto f, c_.library().Find(name)->Clone(copy));
    f->attrs.Erase(kMustCompile);
    bodies_.insert(copy);
    Graph& body = *f->body;
    RETURN_IF_ERROR(c_.library().Add(std::move(f)));
    RETURN_IF_ERROR(CallPlain(body));
    return copy;
  }

  Status MakeBody(TpuPlacement& p) {
    Function* f = c_.library().Find(p.function);
    p.body = c_.library().FreeName(p.function + "_on_tpu");
    ASSIGN_OR_RETURN(auto body, f->Clone(p.body));
    body->attrs.Erase(kMustCompile);
    bodies_.insert(p.body);
    Graph& g = *body->body;
    RETURN_IF_ERROR(CallPlain(g));
    const std::string cluster = "cluster_" + p.function;
    absl::flat_hash_set<const Node*> args(body->args.begin(), body->args.end());
    std::vector<Node*> members;
    for (Node* n : g.Nodes()) {
      if (args.contains(n)) continue;
      n->attrs().Set(kCluster, cluster);
      n->attrs().Erase(kMustCompile);
      n->device.clear();
      members.push_back(n);
    }
    AttrMap attrs;
    attrs.Set("num_replicas", 1);
    attrs.Set(kCluster, cluster);
    ASSIGN_OR_RETURN(Node * metadata,
                     g.Add("TPUReplicateMetadata", "TPUReplicateMetadata", {}, std::move(attrs)));
    AttrMap result_attrs;
    result_attrs.Set("_tpu_compilation_status", cluster);
    ASSIGN_OR_RETURN(Node * compiled, g.Add("TPUCompilationResult", "TPUCompilationResult", {},
                                            std::move(result_attrs)));
    compiled->control_inputs = {metadata};
    RETURN_IF_ERROR(Outputs(*body, args, cluster, &members));
    RETURN_IF_ERROR(Inputs(*body));
    // What nothing in the cluster feeds would otherwise not be tied to it.
    absl::flat_hash_set<const Node*> inside(members.begin(), members.end());
    for (Node* n : members) {
      const bool fed =
          std::ranges::any_of(n->inputs, [&](Endpoint e) { return inside.contains(e.node); }) ||
          std::ranges::any_of(n->control_inputs, [&](Node* m) { return inside.contains(m); });
      if (!fed) n->control_inputs.push_back(metadata);
    }
    return c_.library().Add(std::move(body));
  }

  Status Inputs(Function& body) {
    Graph& g = *body.body;
    int index = 0;
    for (Node* arg : body.args) {
      for (int port = 0; port < arg->num_outputs(); ++port, ++index) {
        const Dtype t = arg->output_types[port];
        if (!CrossesByReplica(t)) continue;
        AttrMap attrs;
        attrs.Set("N", 1);
        attrs.Set("T", t);
        ASSIGN_OR_RETURN(Node * in, g.Add(absl::StrCat("input", index), "TPUReplicatedInput",
                                          {{arg, port}}, std::move(attrs)));
        g.ReplaceAll({arg, port}, {in, 0});
        in->inputs[0] = {arg, port};
      }
    }
    return OkStatus();
  }

  Status Outputs(Function& body, const absl::flat_hash_set<const Node*>& args,
                 const std::string& cluster, std::vector<Node*>* members) {
    Graph& g = *body.body;
    int index = 0;
    for (auto& result : body.results) {
      for (Endpoint& e : result) {
        const Dtype t = e.node->output_types[e.port];
        if (!CrossesByReplica(t)) {
          return InvalidArgument("result ", index, " is a ", DtypeName(t),
                                 ", which cannot leave the TPU");
        }
        Endpoint from = e;
        if (args.contains(e.node)) {
          AttrMap attrs;
          attrs.Set("T", t);
          attrs.Set(kCluster, cluster);
          ASSIGN_OR_RETURN(Node * identity, g.Add(absl::StrCat("passed_on", index), "Identity", {e},
                                                  std::move(attrs)));
          members->push_back(identity);
          from = {identity, 0};
        }
        AttrMap attrs;
        attrs.Set("num_replicas", 1);
        attrs.Set("T", t);
        ASSIGN_OR_RETURN(Node * out, g.Add(absl::StrCat("output", index), "TPUReplicatedOutput",
                                           {from}, std::move(attrs)));
        e = {out, 0};
        ++index;
      }
    }
    return OkStatus();
  }

  Status MakeStub(const TpuPlacement& p) {
    Function* f = c_.library().Find(p.function);
    auto g = std::make_unique<Graph>(c_.meta->graph->library());
    std::vector<Node*> args;
    std::vector<Endpoint> inputs;
    std::vector<Dtype> in_types, out_types;
    for (const Node* a : f->args) {
      ASSIGN_OR_RETURN(Node * arg, g->AddNode(a->name(), a->op()));
      arg->attrs() = a->attrs();
      arg->output_types = a->output_types;
      arg->extra = a->extra;
      args.push_back(arg);
      for (int i = 0; i < arg->num_outputs(); ++i) {
        inputs.push_back({arg, i});
        in_types.push_back(arg->output_types[i]);
      }
    }
    for (const Endpoint& e : f->FlatResults()) {
      out_types.push_back(BaseType(e.node->output_types[e.port]));
    }
    ASSIGN_OR_RETURN(Node * ordinal,
                     g->Add("TPUOrdinalSelector", "TPUOrdinalSelector", {}, AttrMap()));
    inputs.push_back({ordinal, 0});
    AttrMap attrs;
    attrs.Set("Tin", ListOf(in_types));
    attrs.Set("Tout", ListOf(out_types));
    attrs.Set("f", FuncAttr{p.body, nullptr});
    attrs.Set("autotuner_thresh", 0);
    ASSIGN_OR_RETURN(Node * call, g->Add("TPUPartitionedCall", "TPUPartitionedCall",
                                         std::move(inputs), std::move(attrs)));
    std::vector<std::vector<Endpoint>> results;
    int index = 0;
    for (const auto& r : f->results) {
      auto& out = results.emplace_back();
      for (size_t i = 0; i < r.size(); ++i, ++index) {
        AttrMap identity_attrs;
        identity_attrs.Set("T", out_types[index]);
        ASSIGN_OR_RETURN(Node * identity, g->Add("Identity", "Identity", {{call, index}},
                                                 std::move(identity_attrs)));
        out.push_back({identity, 0});
      }
    }
    // Each control output is a node of its own: TensorFlow refuses one node under two names.
    for (auto& [name, node] : f->control_results) {
      ASSIGN_OR_RETURN(node, g->Add("done", "NoOp", {}));
      node->control_inputs = {call};
    }
    f->body = std::move(g);
    f->args = std::move(args);
    f->results = std::move(results);
    f->attrs.Erase(kMustCompile);
    return OkStatus();
  }

  static Attr ListOf(const std::vector<Dtype>& types) {
    return types.empty() ? Attr(EmptyList{}) : Attr(types);
  }

  // A stub runs on the host: whoever calls it must not be told to compile it whole.
  void DropMustCompile(Graph& graph) {
    for (Node* n : graph.Nodes()) {
      bool calls = placed_.contains(n->op());
      ForEachFunc(n->attrs(),
                  [&](const FuncAttr& f) { calls = calls || placed_.contains(f.name); });
      if (calls) n->attrs().Erase(kMustCompile);
    }
  }

  Conversion& c_;
  absl::flat_hash_set<std::string> placed_;
  absl::flat_hash_set<std::string> bodies_;  // functions that run on the accelerator
  absl::flat_hash_map<std::string, std::string> plain_;
};

}  // namespace

Status PlaceOnTpu(Conversion& c) { return Placer(c).Run(); }

}  // namespace smelt
