#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "smelt/kernels/nn/via_float.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// Ops whose result in float is at least as good as in bfloat16. What only moves values follows its
// inputs: there is nothing to win by widening it alone.
struct WidenOp {
  absl::string_view op;
  absl::string_view attr = "T";
  bool moves = false;
};
constexpr WidenOp kWidenOps[] = {
    {"Conv2D"},
    {"Conv3D"},
    {"DepthwiseConv2dNative"},
    {"MatMul"},
    {"BatchMatMul"},
    {"BatchMatMulV2"},
    {"Einsum"},
    {"BiasAdd"},
    {"FusedBatchNormV2"},
    {"FusedBatchNormV3"},
    {"Relu"},
    {"Relu6"},
    {"LeakyRelu"},
    {"Elu"},
    {"Selu"},
    {"Softplus"},
    {"Softsign"},
    {"Tanh"},
    {"Sigmoid"},
    {"Erf"},
    {"Erfc"},
    {"Exp"},
    {"Expm1"},
    {"Log"},
    {"Log1p"},
    {"Sqrt"},
    {"Rsqrt"},
    {"Square"},
    {"Reciprocal"},
    {"Neg"},
    {"Abs"},
    {"Pow"},
    {"Add"},
    {"AddV2"},
    {"AddN"},
    {"Sub"},
    {"Mul"},
    {"RealDiv"},
    {"Maximum"},
    {"Minimum"},
    {"SquaredDifference"},
    {"ClipByValue"},
    {"Mean"},
    {"Sum"},
    {"Max"},
    {"Min"},
    {"Prod"},
    {"Softmax"},
    {"LogSoftmax"},
    {"MaxPool"},
    {"MaxPool3D"},
    {"AvgPool"},
    {"AvgPool3D"},
    {"LRN"},
    {"Identity", "T", true},
    {"Reshape", "T", true},
    {"Squeeze", "T", true},
    {"ExpandDims", "T", true},
    {"Transpose", "T", true},
    {"Pad", "T", true},
    {"PadV2", "T", true},
    {"MirrorPad", "T", true},
    {"ConcatV2", "T", true},
    {"Split", "T", true},
    {"SplitV", "T", true},
    {"Slice", "T", true},
    {"StridedSlice", "T", true},
    {"Pack", "T", true},
    {"Unpack", "T", true},
    {"Tile", "T", true},
    {"SelectV2", "T", true},
    {"GatherV2", "Tparams", true},
    {"SpaceToDepth", "T", true},
    {"DepthToSpace", "T", true},
    {"SpaceToBatchND", "T", true},
    {"BatchToSpaceND", "T", true},
};

class Widener {
 public:
  explicit Widener(Graph& graph) : graph_(graph) {}

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* n : order) RETURN_IF_ERROR(Visit(n));
    if (wide_.empty()) return OkStatus();
    for (Node* n : order) {
      if (!wide_.contains(n)) RETURN_IF_ERROR(NarrowInputs(n));
    }
    graph_.Prune(Roots(graph_));
    return OkStatus();
  }

 private:
  using Port = std::pair<const Node*, int>;

  Status Visit(Node* n) {
    const auto* row = std::ranges::find(kWidenOps, absl::string_view(n->op()), &WidenOp::op);
    if (row == std::end(kWidenOps) || n->Type(row->attr) != Dtype::kBfloat16) return OkStatus();
    const bool follows =
        std::ranges::any_of(n->inputs, [&](const Endpoint& e) { return wide_.contains(e.node); });
    if (row->moves && !follows) return OkStatus();
    for (int i = 0; i < n->num_inputs(); ++i) {
      if (n->input_types[i] != Dtype::kBfloat16) continue;
      ASSIGN_OR_RETURN(n->inputs[i], Wide(n->inputs[i]));
    }
    n->attrs().Set(row->attr, Dtype::kFloat);
    RETURN_IF_ERROR(graph_.ResolveTypes(n));
    wide_.insert(n);
    return OkStatus();
  }

  // The value in float.
  StatusOr<Endpoint> Wide(Endpoint e) {
    if (wide_.contains(e.node)) return e;
    auto [it, added] = widened_.try_emplace(Port(e.node, e.port));
    if (!added) return it->second;
    // Through a cast of floats to bfloat16 the floats themselves are seen.
    if (e.node->Is("Cast") && e.node->input_types[0] == Dtype::kFloat) {
      it->second = e.node->inputs[0];
      return it->second;
    }
    if (const Attr* a = e.node->Is("Const") ? e.node->Find("value") : nullptr) {
      const auto* value = a->get<std::shared_ptr<const TensorValue>>();
      if (value != nullptr && *value) {
        ASSIGN_OR_RETURN(const Tensor t, (*value)->Materialize());
        ASSIGN_OR_RETURN(const Tensor wide, nn::ToFloat(t, HeapAllocator()));
        Node* c = graph_.AddConst(e.node->name() + "/float", wide);
        c->control_inputs = e.node->control_inputs;
        it->second = {c, 0};
        return it->second;
      }
    }
    ASSIGN_OR_RETURN(it->second, AddCast(e, Dtype::kBfloat16, Dtype::kFloat, "/float"));
    return it->second;
  }

  StatusOr<Endpoint> AddCast(Endpoint e, Dtype from, Dtype to, absl::string_view suffix) {
    AttrMap attrs;
    attrs.Set("SrcT", from);
    attrs.Set("DstT", to);
    ASSIGN_OR_RETURN(Node * cast,
                     graph_.Add(absl::StrCat(e.node->name(), suffix), "Cast", {e}, attrs));
    return Endpoint{cast, 0};
  }

  // Gives a node that stays in bfloat16 what it reads of those that do not.
  Status NarrowInputs(Node* n) {
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Endpoint e = n->inputs[i];
      if (n->input_types[i] != Dtype::kBfloat16 || !wide_.contains(e.node)) continue;
      if (n->Is("Cast") && n->output_types[0] == Dtype::kFloat) {
        graph_.ReplaceAll({n, 0}, e);
        graph_.ReplaceControl(n, e.node);
        continue;
      }
      auto [it, added] = narrowed_.try_emplace(Port(e.node, e.port));
      if (added) {
        ASSIGN_OR_RETURN(it->second, AddCast(e, Dtype::kFloat, Dtype::kBfloat16, "/bfloat16"));
      }
      n->inputs[i] = it->second;
    }
    return OkStatus();
  }

  Graph& graph_;
  absl::flat_hash_set<const Node*> wide_;  // run in float now
  std::map<Port, Endpoint> widened_, narrowed_;
};

}  // namespace

Status WidenBfloat16(Graph& graph, const PassContext&) { return Widener(graph).Run(); }

}  // namespace smelt
