// Clusters: each body becomes what TensorFlow's bridge compiles. Every node carries the cluster's
// name, arguments enter through TPUReplicatedInput and results leave through TPUReplicatedOutput.
// Resource arguments (captured variables) go straight to the ops that read them: the runtime makes
// the core's copy of a variable from exactly that.
//
// Casts at the border run on the side that makes the crossing smaller: before it when they narrow
// an argument, after it when they widen a result.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/convert/stages.h"

namespace smelt {
namespace {

bool CrossesByReplica(Dtype t) { return t != Dtype::kResource && t != Dtype::kVariant; }

bool Narrows(const Node& cast) {
  return Tensor::ElementSize(cast.Type("DstT")) < Tensor::ElementSize(cast.Type("SrcT"));
}

class ClusterMaker {
 public:
  ClusterMaker(Function& body, bool move_casts, bool soft_placement)
      : body_(body), move_casts_(move_casts), soft_placement_(soft_placement) {
    cluster_ = "cluster_" + body.name();
  }

  Status Run() {
    Graph& g = *body_.body;
    args_.insert(body_.args.begin(), body_.args.end());
    for (Node* n : g.Nodes()) {
      if (args_.contains(n)) continue;
      n->AttrsToChange().Set(kClusterAttr, cluster_);
      n->device.clear();
      members_.push_back(n);
    }
    AttrMap attrs;
    attrs.Set("num_replicas", 1);
    if (soft_placement_) attrs.Set("allow_soft_placement", true);
    attrs.Set(kClusterAttr, cluster_);
    ASSIGN_OR_RETURN(Node * metadata,
                     g.Add("TPUReplicateMetadata", "TPUReplicateMetadata", {}, std::move(attrs)));
    AttrMap result_attrs;
    result_attrs.Set("_tpu_compilation_status", cluster_);
    ASSIGN_OR_RETURN(Node * compiled, g.Add("TPUCompilationResult", "TPUCompilationResult", {},
                                            std::move(result_attrs)));
    g.SetControlInputs(compiled, {metadata});
    RETURN_IF_ERROR(Outputs());
    RETURN_IF_ERROR(Inputs());
    // What nothing in the cluster feeds would otherwise not be tied to it.
    absl::flat_hash_set<const Node*> inside(members_.begin(), members_.end());
    for (const Node* n : on_host_) inside.erase(n);
    for (Node* n : members_) {
      if (!inside.contains(n)) continue;
      const bool fed =
          std::ranges::any_of(n->inputs(), [&](Endpoint e) { return inside.contains(e.node); }) ||
          std::ranges::any_of(n->control_inputs(), [&](Node* m) { return inside.contains(m); });
      if (!fed) g.AddControlInput(n, metadata);
    }
    return OkStatus();
  }

 private:
  // When all that read the argument are the same narrowing cast, makes them one on the host's side.
  // Returns the endpoint that crosses.
  Endpoint NarrowBefore(Endpoint arg) {
    if (!move_casts_) return arg;
    std::vector<Node*> casts;
    for (const Use& use : arg.node->OrderedUses()) {
      if (use.is_control()) return arg;
      if (use.port() != arg.port) continue;
      if (!use.node->Is("Cast") || !Narrows(*use.node)) return arg;
      if (!casts.empty() && use.node->Type("DstT") != casts[0]->Type("DstT")) return arg;
      casts.push_back(use.node);
    }
    if (casts.empty()) return arg;
    Node* first = casts[0];
    for (size_t i = 1; i < casts.size(); ++i) {
      body_.body->ReplaceAllUses({casts[i], 0}, {first, 0});
    }
    first->EraseAttr(kClusterAttr);
    body_.body->SetControlInputs(first, {});
    on_host_.insert(first);
    return {first, 0};
  }

  Status Inputs() {
    Graph& g = *body_.body;
    const std::vector<Endpoint> args = body_.FlatArguments();
    for (size_t i = 0; i < args.size(); ++i) {
      const auto [arg, port] = args[i];
      if (!CrossesByReplica(arg->output_types[port])) continue;
      if (arg->NumUses(port) == 0) continue;  // nobody on the accelerator wants it
      const Endpoint crossing = NarrowBefore(args[i]);
      AttrMap attrs;
      attrs.Set("N", 1);
      attrs.Set("T", crossing.node->output_types[crossing.port]);
      ASSIGN_OR_RETURN(Node * in, g.Add(absl::StrCat("input", i), "TPUReplicatedInput", {crossing},
                                        std::move(attrs)));
      g.ReplaceOtherUses(crossing, {in, 0});
    }
    return OkStatus();
  }

  // When a widening cast gives the result, its input crosses and `cast`, a copy, runs on the host
  // (else nullptr). Returns the endpoint that crosses.
  StatusOr<Endpoint> WidenAfter(Endpoint result, Node** cast) {
    *cast = nullptr;
    Node* n = result.node;
    if (!move_casts_ || !n->Is("Cast") || on_host_.contains(n) ||
        args_.contains(n->inputs()[0].node))
      return result;
    if (Tensor::ElementSize(n->Type("DstT")) <= Tensor::ElementSize(n->Type("SrcT"))) return result;
    // A copy: others on the accelerator may read the wide value too.
    AttrMap attrs = n->attrs();
    attrs.Erase(kClusterAttr);
    ASSIGN_OR_RETURN(
        *cast, body_.body->Add(n->name() + "/host", "Cast", {n->inputs()[0]}, std::move(attrs)));
    on_host_.insert(*cast);
    return n->inputs()[0];
  }

  Status Outputs() {
    Graph& g = *body_.body;
    int index = 0;
    for (auto& result : body_.results) {
      for (Endpoint& e : result) {
        const Dtype t = e.node->output_types[e.port];
        if (!CrossesByReplica(t)) {
          return InvalidArgument("result ", index, " is a ", DtypeName(t),
                                 ", which cannot leave the TPU");
        }
        Node* cast = nullptr;
        ASSIGN_OR_RETURN(Endpoint from, WidenAfter(e, &cast));
        if (args_.contains(e.node)) {
          AttrMap attrs;
          attrs.Set("T", t);
          attrs.Set(kClusterAttr, cluster_);
          ASSIGN_OR_RETURN(Node * identity, g.Add(absl::StrCat("passed_on", index), "Identity", {e},
                                                  std::move(attrs)));
          members_.push_back(identity);
          from = {identity, 0};
        }
        AttrMap attrs;
        attrs.Set("num_replicas", 1);
        attrs.Set("T", from.node->output_types[from.port]);
        ASSIGN_OR_RETURN(Node * out, g.Add(absl::StrCat("output", index), "TPUReplicatedOutput",
                                           {from}, std::move(attrs)));
        if (cast != nullptr) g.SetInput(cast, 0, {out, 0});
        e = cast != nullptr ? Endpoint{cast, 0} : Endpoint{out, 0};
        ++index;
      }
    }
    RemoveUnread();
    return OkStatus();
  }

  // Casts that WidenAfter copied to the host, when nothing on the accelerator reads them.
  void RemoveUnread() {
    Graph& g = *body_.body;
    absl::flat_hash_set<const Node*> kept;
    for (const Endpoint& e : body_.FlatResults()) kept.insert(e.node);
    for (const auto& [name, n] : body_.control_results) kept.insert(n);
    std::vector<Node*> alive;
    for (Node* n : members_) {
      if (n->Is("Cast") && n->uses().empty() && !kept.contains(n) && move_casts_) {
        g.Remove(n);
      } else {
        alive.push_back(n);
      }
    }
    members_ = std::move(alive);
  }

  Function& body_;
  const bool move_casts_;
  const bool soft_placement_;
  std::string cluster_;
  absl::flat_hash_set<const Node*> args_;
  std::vector<Node*> members_;
  absl::flat_hash_set<const Node*> on_host_;  // casts before and after the crossing
};

}  // namespace

Status MakeClusters(Conversion& c) {
  for (const TpuPlacement& p : c.placements) {
    if (p.existing) continue;
    Function* body = c.library().Find(p.body);
    Status s =
        ClusterMaker(*body, c.Bfloat16() || c.IoShapes(), c.settings.allow_soft_placement).Run();
    if (!s.ok()) return Prefix(s, absl::StrCat("In function '", p.function, "': "));
  }
  return OkStatus();
}

}  // namespace smelt
