#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/onednn/features.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// Ops of type T whose result in float is at least as good as in bfloat16. SquaredDifference is
// none: it rounds twice, and is not what users of bfloat16 wait for.
constexpr OpSet kWidenOps = {"Conv2D",
                             "Conv3D",
                             "DepthwiseConv2dNative",
                             "MatMul",
                             "BatchMatMul",
                             "BatchMatMulV2",
                             "Einsum",
                             "BiasAdd",
                             "FusedBatchNormV2",
                             "FusedBatchNormV3",
                             "Relu",
                             "Relu6",
                             "LeakyRelu",
                             "Elu",
                             "Selu",
                             "Softplus",
                             "Softsign",
                             "Tanh",
                             "Sigmoid",
                             "Erf",
                             "Erfc",
                             "Exp",
                             "Expm1",
                             "Log",
                             "Log1p",
                             "Sqrt",
                             "Rsqrt",
                             "Square",
                             "Reciprocal",
                             "Neg",
                             "Abs",
                             "Pow",
                             "Add",
                             "AddV2",
                             "AddN",
                             "Sub",
                             "Mul",
                             "RealDiv",
                             "Maximum",
                             "Minimum",
                             "ClipByValue",
                             "Mean",
                             "Sum",
                             "Max",
                             "Min",
                             "Prod",
                             "Softmax",
                             "LogSoftmax",
                             "MaxPool",
                             "MaxPool3D",
                             "AvgPool",
                             "AvgPool3D",
                             "LRN"};

// What only moves values follows its inputs: there is nothing to win by widening it alone.
bool Follows(const Node& n) { return n.Is(kMovesValues) || n.Is("SelectV2"); }

// The attribute that makes the node compute in bfloat16, and may say float as well; empty when the
// node does not, or may not be widened.
absl::string_view WidenAttr(const Node& n) {
  if (!n.Is(kWidenOps) && !Follows(n)) return {};
  const absl::string_view attr = ResultTypeAttr(n.op_name());
  return !attr.empty() && n.Type(attr) == Dtype::kBfloat16 ? attr : absl::string_view();
}

// Products, and what one kernel computes behind them before anything is stored (remap/chain.cc).
constexpr OpSet kWidenProducts = {"Conv2D", "Conv3D",      "DepthwiseConv2dNative",
                                  "MatMul", "BatchMatMul", "BatchMatMulV2",
                                  "Einsum"};
constexpr OpSet kWidenActivations = {"Relu", "Relu6", "LeakyRelu", "Elu", "Sigmoid", "Tanh"};
constexpr OpSet kWidenBehindProducts = {"BiasAdd", "FusedBatchNormV2", "FusedBatchNormV3", "Add",
                                        "AddV2"};

class Widener {
 public:
  // `rounds`: what would be stored as bfloat16 is rounded to it.
  Widener(Graph& graph, bool rounds) : graph_(graph), rounds_(rounds) {}

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* n : order) RETURN_IF_ERROR(Visit(n));
    if (wide_.empty()) return OkStatus();
    for (Node* n : order) {
      if (!wide_.contains(n)) RETURN_IF_ERROR(NarrowInputs(n));
    }
    for (Node* n : order) {
      if (rounds_ && wide_.contains(n)) RETURN_IF_ERROR(Round(n));
    }
    graph_.Prune(Roots(graph_));
    return OkStatus();
  }

 private:
  using Port = std::pair<const Node*, int>;

  Status Visit(Node* n) {
    const absl::string_view attr = WidenAttr(*n);
    if (attr.empty()) return OkStatus();
    const bool follows =
        std::ranges::any_of(n->inputs(), [&](const Endpoint& e) { return wide_.contains(e.node); });
    if (Follows(*n) && !follows) return OkStatus();
    for (int i = 0; i < n->num_inputs(); ++i) {
      if (n->input_types[i] != Dtype::kBfloat16) continue;
      ASSIGN_OR_RETURN(const Endpoint wide, Wide(n->input(i)));
      graph_.SetInput(n, i, wide);
    }
    n->AttrsToChange().Set(attr, Dtype::kFloat);
    RETURN_IF_ERROR(graph_.ResolveTypes(n));
    wide_.insert(n);
    return OkStatus();
  }

  // The value in float: the node itself where it is widened, a float constant, or a cast.
  StatusOr<Endpoint> Wide(Endpoint e) {
    if (wide_.contains(e.node)) return e;
    auto [it, added] = widened_.try_emplace(Port(e.node, e.port));
    if (!added) return it->second;
    // Through a cast of floats to bfloat16 the floats themselves are seen.
    if (!rounds_ && e.node->Is("Cast") && e.node->input_types[0] == Dtype::kFloat) {
      it->second = e.node->inputs()[0];
      return it->second;
    }
    if (const Attr* a = e.node->Is("Const") ? e.node->Find("value") : nullptr) {
      const auto* value = a->get<std::shared_ptr<const TensorValue>>();
      if (value != nullptr && *value) {
        ASSIGN_OR_RETURN(const Tensor t, (*value)->Materialize());
        ASSIGN_OR_RETURN(const Tensor wide, ToFloat(t, HeapAllocator()));
        Node* c = graph_.AddConst(e.node->name() + "/float", wide);
        graph_.SetControlInputs(c, e.node->control_inputs());
        it->second = {c, 0};
        return it->second;
      }
    }
    ASSIGN_OR_RETURN(it->second, AddCast(e, Dtype::kBfloat16, Dtype::kFloat, "/float"));
    return it->second;
  }

  // The one reader computes on in the same kernel, so that the value is not stored.
  bool StaysInKernel(const Node& n) const {
    const bool product = n.Is(kWidenProducts);
    if (!product && !n.Is(kWidenBehindProducts)) return false;
    if (n.uses().size() != 1 || n.uses()[0].is_control()) return false;
    const Node& reader = *n.uses()[0].node;
    if (!wide_.contains(&reader)) return false;
    if (product) return reader.Is(kWidenBehindProducts) || reader.Is(kWidenActivations);
    return reader.Is(kWidenActivations) && n.inputs()[0].node->Is(kWidenProducts) &&
           n.inputs()[0].node->uses().size() == 1;
  }

  // Readers in float get the value as bfloat16 holds it. What only moves values has rounded ones.
  Status Round(Node* n) {
    if (Follows(*n) || StaysInKernel(*n)) return OkStatus();
    // Of several outputs the others are statistics, which are float in either form.
    const auto narrowed = narrowed_.find(Port(n, 0));
    const int narrow_uses = narrowed == narrowed_.end() ? 0 : 1;
    if (n->num_outputs() == 0 || n->NumUses(0) == narrow_uses) return OkStatus();
    auto [it, added] = narrowed_.try_emplace(Port(n, 0));
    if (added) {
      ASSIGN_OR_RETURN(it->second, AddCast({n, 0}, Dtype::kFloat, Dtype::kBfloat16, "/bfloat16"));
    }
    ASSIGN_OR_RETURN(const Endpoint rounded,
                     AddCast(it->second, Dtype::kBfloat16, Dtype::kFloat, "/rounded"));
    graph_.ReplaceOtherUses({n, 0}, rounded);
    graph_.SetInput(it->second.node, 0, {n, 0});
    return OkStatus();
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
      const Endpoint e = n->inputs()[i];
      if (n->input_types[i] != Dtype::kBfloat16 || !wide_.contains(e.node)) continue;
      if (n->Is("Cast") && n->output_types[0] == Dtype::kFloat) {
        graph_.ReplaceAllUses({n, 0}, e);
        graph_.ReplaceControlUses(n, e.node);
        continue;
      }
      auto [it, added] = narrowed_.try_emplace(Port(e.node, e.port));
      if (added) {
        ASSIGN_OR_RETURN(it->second, AddCast(e, Dtype::kFloat, Dtype::kBfloat16, "/bfloat16"));
      }
      graph_.SetInput(n, i, it->second);
    }
    return OkStatus();
  }

  Graph& graph_;
  const bool rounds_;
  absl::flat_hash_set<const Node*> wide_;  // nodes that were made float
  std::map<Port, Endpoint> widened_, narrowed_;
};

}  // namespace

Status WidenBfloat16(Graph& graph, const PassContext& context) {
  return Widener(graph, context.device_type == "TPU").Run();
}

Status WidenWhereSlow(Graph& graph, const PassContext& context) {
  // Asked of the processor last: it may have to be timed.
  const bool any =
      std::ranges::any_of(graph.Nodes(), [](const Node* n) { return !WidenAttr(*n).empty(); });
  return !any || Bfloat16IsNative() ? OkStatus() : WidenBfloat16(graph, context);
}

}  // namespace smelt
