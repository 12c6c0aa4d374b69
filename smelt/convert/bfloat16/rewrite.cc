// Puts a graph's choices into effect: type attributes, constants, and the casts between.
#include <algorithm>
#include <cmath>

#include "smelt/convert/bfloat16/bfloat16.h"
#include "smelt/graph/constant.h"
#include "smelt/kernels/common/via_float.h"

namespace smelt {
namespace {

// In bfloat16. What is finite stays so: masks are the lowest float times 0 where nothing is left
// out.
StatusOr<Tensor> RoundedConstant(const Tensor& from) {
  ASSIGN_OR_RETURN(Tensor to, FromFloat(from, Dtype::kBfloat16, HeapAllocator()));
  constexpr uint16_t kMagnitude = 0x7fff, kInfinity = 0x7f80;
  for (int64_t i = 0; i < from.num_elements(); ++i) {
    uint16_t& bits = to.data<Bfloat16>()[i].bits;
    const bool infinite = (bits & kMagnitude) == kInfinity;
    if (infinite && std::isfinite(from.data<float>()[i])) --bits;
  }
  return to;
}

class PrecisionRewriter {
 public:
  explicit PrecisionRewriter(FloatGraph& g) : g_(g), graph_(*g.graph) {}

  Status Run() {
    Remember();
    for (FloatUnit& u : g_.units) {
      if (u.bf16) RETURN_IF_ERROR(Retype(u));
    }
    if (g_.function != nullptr) RETURN_IF_ERROR(CarriedArguments());
    RETURN_IF_ERROR(Constants());
    for (const FloatEdge& edge : edges_) {
      ASSIGN_OR_RETURN(const Endpoint e, As(edge.reader->input(edge.input), edge.wanted));
      graph_.SetInput(edge.reader, edge.input, e);
    }
    if (g_.function != nullptr) RETURN_IF_ERROR(Results());
    RemoveEmptyCasts();
    return OkStatus();
  }

 private:
  struct FloatEdge {
    Node* reader;
    int input;
    Dtype wanted;
  };

  // Every float32 edge, before any type changes.
  void Remember() {
    for (Node* n : graph_.Nodes()) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        if (n->inputs()[i].node == nullptr || !FloatBefore(n->inputs()[i])) continue;
        if (IsRef(n->inputs()[i].node->output_types[n->inputs()[i].port]) && !g_.WantsBf16(n, i)) {
          continue;  // whoever takes a reference may want it as one
        }
        edges_.push_back({n, i, g_.WantsBf16(n, i) ? Dtype::kBfloat16 : Dtype::kFloat});
      }
    }
  }

  // A read whose variable is stored as bfloat16 has changed already.
  bool FloatBefore(Endpoint e) const { return IsFloat32(e) || g_.stored.contains(e.node); }

  Status Retype(FloatUnit& u) {
    // A lookup's type is the one that its variable is stored as (variables.cc).
    if (u.node->Is("ResourceGather") || u.node->Is("ResourceGatherNd")) return OkStatus();
    if (!u.attr.empty()) u.node->AttrsToChange().Set(u.attr, Dtype::kBfloat16);
    for (const auto& [attr, index] : u.elements) {
      auto types = u.node->Get<std::vector<Dtype>>(attr, {});
      if (index >= static_cast<int>(types.size())) {
        return Internal("node '", u.node->name(), "' has no type ", index, " in ", attr);
      }
      types[index] = Dtype::kBfloat16;
      u.node->AttrsToChange().Set(attr, types);
    }
    return graph_.ResolveTypes(u.node);
  }

  Status CarriedArguments() {
    for (int i : g_.carried_args) {
      Node* arg = g_.function->args[i];
      arg->AttrsToChange().Set("T", Dtype::kBfloat16);
      g_.function->signature.inputs[i].type = Dtype::kBfloat16;
      RETURN_IF_ERROR(graph_.ResolveTypes(arg));
    }
    return OkStatus();
  }

  // A constant whose readers all want bfloat16 changes its type; where only some do, they get a
  // copy.
  Status Constants() {
    absl::flat_hash_map<Node*, std::pair<bool, bool>> wanted;  // float32, bfloat16
    std::vector<Node*> order;
    for (const FloatEdge& edge : edges_) {
      Node* n = edge.reader->input(edge.input).node;
      if (!n->Is("Const")) continue;
      auto [it, added] = wanted.try_emplace(n, false, false);
      if (added) order.push_back(n);
      (edge.wanted == Dtype::kBfloat16 ? it->second.second : it->second.first) = true;
    }
    if (g_.function != nullptr) {
      for (const Endpoint& e : g_.function->FlatResults()) wanted[e.node].first = true;
    }
    for (Node* n : order) {
      if (!wanted[n].second) continue;
      const std::optional<Tensor> tensor = ConstantTensor(*n);
      if (!tensor) continue;  // whoever reads it fails as before, behind a cast
      ASSIGN_OR_RETURN(const Tensor rounded, RoundedConstant(*tensor));
      Node* to = n;
      const bool outside = g_.outside.contains(n);
      if (wanted[n].first || outside) {
        to = graph_.AddConst(n->name() + "/bfloat16", rounded);
        if (const Attr* cluster = n->Find(kClusterAttr))
          to->AttrsToChange().Set(kClusterAttr, *cluster);
        graph_.SetControlInputs(to, n->control_inputs());
        to->device = n->device;
      } else {
        n->AttrsToChange().Set("value", Attr(rounded));
        n->AttrsToChange().Set("dtype", Dtype::kBfloat16);
        RETURN_IF_ERROR(graph_.ResolveTypes(n));
      }
      casts_[{n, 0, Dtype::kBfloat16}] = {to, 0};
    }
    return OkStatus();
  }

  // The cluster in which the node's outputs are. TPUReplicatedInput has no mark of its own: what
  // comes out of it is in the cluster of its readers.
  const Attr* ClusterOf(const Node& n) {
    if (!n.Is("TPUReplicatedInput")) return n.Find(kClusterAttr);
    if (replicated_.empty()) {
      for (const Node* reader : graph_.Nodes()) {
        const Attr* cluster = reader->Find(kClusterAttr);
        if (cluster == nullptr) continue;
        for (const Endpoint& from : reader->inputs()) {
          if (from.node->Is("TPUReplicatedInput")) replicated_.try_emplace(from.node, *cluster);
        }
      }
    }
    auto it = replicated_.find(&n);
    return it == replicated_.end() ? nullptr : &it->second;
  }

  // The tensor as that type: itself, or one cast for all its readers.
  StatusOr<Endpoint> As(Endpoint e, Dtype wanted) {
    const Dtype t = BaseType(e.node->output_types[e.port]);
    if (t == wanted) return e;
    auto [it, added] = casts_.try_emplace({e.node, e.port, wanted});
    if (!added) return it->second;
    AttrMap attrs;
    attrs.Set("SrcT", t);
    attrs.Set("DstT", wanted);
    // In a computation that is on the TPU already the cast runs where its input comes from.
    const Attr* cluster = ClusterOf(*e.node);
    if (cluster != nullptr) attrs.Set(kClusterAttr, *cluster);
    const char* suffix = wanted == Dtype::kBfloat16 ? "/bfloat16" : "/float32";
    auto cast = graph_.Add(e.node->name() + suffix, "Cast", {e}, std::move(attrs));
    if (!cast.ok()) return cast.status();
    casts_[{e.node, e.port, wanted}] = {*cast, 0};
    return Endpoint{*cast, 0};
  }

  Status Results() {
    int index = 0;
    for (size_t r = 0; r < g_.function->results.size(); ++r) {
      for (Endpoint& e : g_.function->results[r]) {
        const bool carried = g_.carried_results.contains(index++);
        const Dtype declared = g_.function->signature.outputs[r].type;
        if (carried) {
          g_.function->signature.outputs[r].type = Dtype::kBfloat16;
          ASSIGN_OR_RETURN(e, As(e, Dtype::kBfloat16));
        } else if (BaseType(e.node->output_types[e.port]) == Dtype::kBfloat16 &&
                   declared != Dtype::kBfloat16) {
          ASSIGN_OR_RETURN(e, As(e, Dtype::kFloat));
        }
      }
    }
    return OkStatus();
  }

  // Casts of the model between float32 and bfloat16 whose other side became bfloat16 too.
  void RemoveEmptyCasts() {
    absl::flat_hash_set<const Node*> kept;
    if (g_.function != nullptr) {
      for (const Endpoint& e : g_.function->FlatResults()) kept.insert(e.node);
      for (const auto& [name, n] : g_.function->control_results) kept.insert(n);
    }
    for (const FloatUnit& u : g_.units) {
      Node* n = u.node;
      if (!u.bf16 || !n->Is("Cast") || kept.contains(n) || n->Type("SrcT") != n->Type("DstT") ||
          !n->control_inputs().empty() ||
          std::ranges::any_of(n->uses(), [](const Use& use) { return use.is_control(); })) {
        continue;
      }
      graph_.ReplaceAllUses({n, 0}, n->input(0));
      graph_.Remove(n);
    }
  }

  FloatGraph& g_;
  Graph& graph_;
  std::vector<FloatEdge> edges_;
  absl::flat_hash_map<const Node*, Attr> replicated_;
  absl::flat_hash_map<std::tuple<const Node*, int, Dtype>, Endpoint> casts_;
};

}  // namespace

Status RewritePrecision(FloatGraph& g) { return PrecisionRewriter(g).Run(); }

}  // namespace smelt
