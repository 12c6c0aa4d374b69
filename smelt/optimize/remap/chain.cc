// Sessions: a convolution or product and all that follows it becomes one node, with factors by
// channel folded into its weights.
#include <algorithm>

#include "smelt/kernels/common/via_float.h"
#include "smelt/optimize/remap/contraction.h"
#include "smelt/optimize/remap/fold_weights.h"
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

constexpr Contraction kRoots[] = {
    {"Conv2D", "_FusedConv2D"},
    {"DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative"},
    {"MatMul", "_FusedMatMul"},
};
// Activations are named in fused_ops as their ops are.
constexpr OpSet kChainActivations = {"Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"};
constexpr OpSet kSums = {"Add", "AddV2"};

// The only reader of the node, by output 0; a node of nullptr when there are others or none.
Use OnlyReader(const Node& n) {
  Use only;
  for (const Use& use : n.uses()) {
    if (use.is_control()) continue;
    if (only.node != nullptr || use.port() != 0) return {};
    only = use;
  }
  return only;
}

// Is this x * 1? Activations with a slope are written as x * sigmoid(slope * x).
bool TimesOne(const Use& use, const Rewriter& r) {
  if (!use.node->Is("Mul")) return false;
  const std::optional<Tensor> t = r.Constant(use.node->input(1 - use.input));
  if (!t || t->rank() != 0) return false;
  const auto wide = ToFloat(*t, HeapAllocator());
  return wide.ok() && wide->flat<float>()[0] == 1;
}

// Nothing but the chain needs the node or waits for it. The last may be waited for.
bool MayBeWithin(const Node& n) { return n.control_inputs().empty() && !IsRoot(n); }

class ChainFinder {
 public:
  ChainFinder(Node& root, bool conv, Rewriter& r) : r_(r), conv_(conv) {
    chain_.root = chain_.last = &root;
  }

  Chain Find() {
    while (Extend()) {
    }
    return std::move(chain_);
  }

 private:
  // The nodes of x * sigmoid(x), or x * sigmoid(1 * x), the product last, when nothing else reads
  // the node's output or what lies between.
  std::vector<Node*> FindSilu(const Node& n) const {
    Node *inner = nullptr, *product = nullptr;
    for (const Use& use : n.uses()) {
      if (use.is_control()) continue;
      Node*& slot = use.node->Is("Sigmoid") || TimesOne(use, r_) ? inner : product;
      if (slot != nullptr || use.port() != 0) return {};
      slot = use.node;
    }
    std::vector<Node*> nodes;
    while (inner != nullptr && inner != product && nodes.size() < 2) {
      nodes.push_back(inner);
      if (inner->Is("Sigmoid")) break;
      inner = OnlyReader(*inner).node;
    }
    if (product == nullptr || !product->Is("Mul") || nodes.empty() ||
        !nodes.back()->Is("Sigmoid") || OnlyReader(*nodes.back()).node != product) {
      return {};
    }
    const bool inner_waited =
        std::ranges::any_of(nodes, [](Node* m) { return HasControlUses(*m); });
    nodes.push_back(product);
    const bool within = std::ranges::all_of(nodes, [](Node* m) { return MayBeWithin(*m); });
    return within && !inner_waited ? nodes : std::vector<Node*>();
  }

  void Append(Node* next) {
    if (chain_.last != chain_.root) chain_.between.push_back(chain_.last);
    chain_.last = next;
  }

  // Takes the reader of the chain's end into the chain; false when that cannot be fused.
  bool Extend() {
    // Who waits for the end might be what the next node needs.
    if (chain_.activated || HasControlUses(*chain_.last)) return false;
    if (const std::vector<Node*> silu = FindSilu(*chain_.last); !silu.empty()) {
      chain_.ops.emplace_back("Silu");
      chain_.activated = true;
      for (Node* n : silu) Append(n);
      return true;
    }
    const Use use = OnlyReader(*chain_.last);
    if (use.node == nullptr || !MayBeWithin(*use.node) ||
        use.node->Type("T") != chain_.root->Type("T") || !Take(*use.node, use.input)) {
      return false;
    }
    Append(use.node);
    return true;
  }

  bool Take(const Node& next, int input) {
    const Node& root = *chain_.root;
    const std::string format = conv_ ? root.String("data_format", "NHWC") : "NHWC";
    const bool sum = next.Is(kSums), product = next.Is("Mul");
    if (next.Is("BiasAdd") && input == 0) {
      if (next.String("data_format", "NHWC") != format || !chain_.ops.empty()) return false;
      AddBias(next.input(1));
      return true;
    }
    if (sum && chain_.ops.empty() && format == "NHWC" && IsVector(next.input(1 - input))) {
      // A constant vector along the last dimension is a bias, whichever op adds it.
      AddBias(next.input(1 - input));
      return true;
    }
    if ((sum || product) && format == "NHWC" && MayScale(chain_, r_)) {
      const auto values = ByChannel(next.input(1 - input), root, r_);
      if (!values) return false;
      if (product) {
        ScaleAndShift(chain_, *values, std::vector<float>(values->size()), r_);
        return true;
      }
      StartFolding(chain_, r_);
      for (size_t i = 0; i < values->size(); ++i) chain_.bias[i] += (*values)[i];
      return true;
    }
    if (next.Is(kBatchNorms)) return input == 0 && TakeNormalization(next, format);
    if (!next.Is(kChainActivations)) return false;
    chain_.ops.emplace_back(next.op());
    if (next.Is("LeakyRelu")) chain_.alpha = next.Float("alpha", 0.2F);
    chain_.activated = true;
    return true;
  }

  bool TakeNormalization(const Node& norm, const std::string& format) {
    const Node& root = *chain_.root;
    if (!conv_ || norm.Bool("is_training", true) || norm.String("data_format", "NHWC") != format ||
        std::ranges::find(chain_.ops, "FusedBatchNorm") != chain_.ops.end() ||
        norm.NumUses(0) != NumDataUses(norm)) {
      return false;
    }
    // _FusedDepthwiseConv2dNative takes arguments of one type, so that statistics cannot stay float
    // beside a bfloat16 image: they go into the filter then.
    if (root.Is("DepthwiseConv2dNative") && root.Type("T") != Dtype::kFloat) {
      return FoldBatchNorm(chain_, norm, r_);
    }
    chain_.ops.emplace_back("FusedBatchNorm");
    for (int i = 1; i <= 4; ++i) chain_.args.push_back(norm.input(i));
    chain_.epsilon = norm.Float("epsilon", 1e-4F);
    return true;
  }

  void AddBias(Endpoint bias) {
    chain_.ops.emplace_back("BiasAdd");
    chain_.args.push_back(bias);
  }

  bool IsVector(Endpoint e) const {
    const std::optional<Tensor> t = r_.Constant(e);
    return t && t->rank() == 1 && t->dim(0) == Depth(*chain_.root, r_);
  }

  Rewriter& r_;
  const bool conv_;
  Chain chain_;
};

StatusOr<Rewritten> ContractionChain(Node& node, Rewriter& r) {
  const Dtype t = node.Type("T");
  if (t != Dtype::kFloat && t != Dtype::kBfloat16) return r.No("it is of another type");
  const bool conv = !node.Is("MatMul");
  if (IsRoot(node)) return r.No("it is asked for itself");
  if (conv && !node.Is("Conv2D") && node.String("padding") == "EXPLICIT") {
    return r.No("depthwise convolutions with padding of their own are not fused");
  }
  Chain chain = ChainFinder(node, conv, r).Find();
  if (chain.ops.empty()) return r.No("nothing follows that it can be fused with");
  ASSIGN_OR_RETURN(const Endpoint filter, FoldedFilter(chain, r));
  const auto* row = std::ranges::find(kRoots, node.op_name(), &Contraction::op);
  AttrMap attrs = FusedAttrs(node, *row, chain.ops, chain.args);
  attrs.Set("epsilon", chain.epsilon);
  attrs.Set("leakyrelu_alpha", chain.alpha);
  // What the first of them waited for the one node waits for.
  r.graph().SetControlInputs(chain.last, node.control_inputs());
  r.graph().SetInput(&node, 1, filter);
  RETURN_IF_ERROR(Fuse(*chain.last, node, *row, std::move(attrs), chain.args, r));
  r.graph().Remove(chain.between);
  return r.InPlace();
}

}  // namespace

const Rule kContractionChain = {
    "ContractionChain",
    {"Conv2D", "DepthwiseConv2dNative", "MatMul"},
    ContractionChain,
    "Relu(FusedBatchNorm(BiasAdd(Conv2D | MatMul))) -> _FusedConv2D | _FusedMatMul"};

}  // namespace smelt::remap
