#include <algorithm>

#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// Ops that take neighbours in, and what they become.
struct RemapTarget {
  absl::string_view op;
  absl::string_view fused;
  bool conv;
};
constexpr RemapTarget kRemapTargets[] = {
    {"Conv2D", "_FusedConv2D", true},
    {"DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative", true},
    {"MatMul", "_FusedMatMul", false},
};

// Activations by op and their names in fused_ops.
struct RemapActivation {
  absl::string_view op;
  absl::string_view name;
};
constexpr RemapActivation kRemapActivations[] = {
    {"Relu", "Relu"}, {"Relu6", "Relu6"},     {"Elu", "Elu"},    {"LeakyRelu", "LeakyRelu"},
    {"Tanh", "Tanh"}, {"Sigmoid", "Sigmoid"}, {"_Silu", "Silu"},
};

const Tensor* ConstValue(const Node* n, Tensor* storage) {
  const Attr* a = n->Is("Const") ? n->Find("value") : nullptr;
  const auto* v = a ? a->get<std::shared_ptr<const TensorValue>>() : nullptr;
  if (v == nullptr || !*v) return nullptr;
  auto t = (*v)->Materialize();
  if (!t.ok()) return nullptr;
  *storage = *std::move(t);
  return storage;
}

class Remapper {
 public:
  explicit Remapper(Graph& graph) : graph_(graph), fanout_(graph) {}

  Status Run() {
    for (Node* n : graph_.Nodes()) {
      for (const RemapTarget& target : kRemapTargets) {
        if (n->Is(target.op)) RETURN_IF_ERROR(Fuse(n, target));
      }
    }
    graph_.Prune(Roots(graph_));
    return OkStatus();
  }

 private:
  struct Chain {
    Node* last;
    std::vector<std::string> ops;
    std::vector<Endpoint> args;
    std::vector<Node*> members;
    float epsilon = 0;
    float alpha = 0;
    bool activated = false;
  };

  // The only reader of the node's first output, if that is all that is read of it.
  Node* OnlyReader(const Node* n, int* input) const {
    Node* reader = nullptr;
    for (const Fanout::Edge& e : fanout_.of(n)) {
      if (e.input < 0) continue;
      if (reader != nullptr || e.reader->inputs[e.input].port != 0) return nullptr;
      reader = e.reader;
      *input = e.input;
    }
    return reader;
  }

  // Takes in the reader of the chain's end; false when it does not fit.
  bool Extend(Chain& chain, const Node* root, bool conv) {
    int input = 0;
    Node* next = OnlyReader(chain.last, &input);
    if (next == nullptr || chain.activated || !next->control_inputs.empty()) return false;
    if (next->Type("T") != root->Type("T")) return false;
    const std::string format = conv ? root->String("data_format", "NHWC") : "NHWC";
    if (next->Is("BiasAdd") && input == 0) {
      if (next->String("data_format", "NHWC") != format) return false;
      if (!chain.ops.empty()) return false;
      chain.ops.push_back("BiasAdd");
      chain.args.push_back(next->inputs[1]);
    } else if ((next->Is("Add") || next->Is("AddV2")) && chain.ops.empty() && format == "NHWC") {
      // A constant vector along the last dimension is a bias, whatever it is added by.
      Tensor storage;
      const Tensor* bias = ConstValue(next->inputs[1 - input].node, &storage);
      if (bias == nullptr || bias->rank() != 1 || bias->dim(0) != Depth(root)) return false;
      chain.ops.push_back("BiasAdd");
      chain.args.push_back(next->inputs[1 - input]);
    } else if (conv && input == 0 &&
               absl::string_view(next->op()).substr(0, 14) == "FusedBatchNorm" &&
               !next->Bool("is_training", true) && next->String("data_format", "NHWC") == format &&
               std::ranges::find(chain.ops, "FusedBatchNorm") == chain.ops.end()) {
      chain.ops.push_back("FusedBatchNorm");
      for (int i = 1; i <= 4; ++i) chain.args.push_back(next->inputs[i]);
      chain.epsilon = next->Float("epsilon", 1e-4F);
    } else {
      const auto* act =
          std::ranges::find(kRemapActivations, absl::string_view(next->op()), &RemapActivation::op);
      if (act == std::end(kRemapActivations)) return false;
      chain.ops.emplace_back(act->name);
      if (next->Is("LeakyRelu")) chain.alpha = next->Float("alpha", 0.2F);
      chain.activated = true;
    }
    chain.members.push_back(next);
    chain.last = next;
    return true;
  }

  // Size of the result's last dimension as the constant weights state it; -1 unknown.
  static int64_t Depth(const Node* root) {
    Tensor storage;
    const Tensor* w = ConstValue(root->inputs[1].node, &storage);
    if (w == nullptr) return -1;
    if (root->Is("MatMul")) return w->rank() == 2 ? w->dim(root->Bool("transpose_b") ? 0 : 1) : -1;
    if (w->rank() != 4) return -1;
    return root->Is("DepthwiseConv2dNative") ? w->dim(2) * w->dim(3) : w->dim(3);
  }

  Status Fuse(Node* root, const RemapTarget& target) {
    const Dtype t = root->Type("T");
    if (t != Dtype::kFloat) return OkStatus();
    if (target.conv && root->String("padding") == "EXPLICIT" && !root->Is("Conv2D")) {
      return OkStatus();
    }
    Chain chain{root};
    while (Extend(chain, root, target.conv)) {
    }
    if (chain.ops.empty()) return OkStatus();
    AttrMap attrs;
    for (const auto& [name, value] : root->attrs()) {
      const OpDef* def = FindOpDef(target.fused);
      if (def->FindAttr(name) != nullptr) attrs.Set(name, value);
    }
    attrs.Set("num_args", static_cast<int64_t>(chain.args.size()));
    attrs.Set("fused_ops", chain.ops);
    attrs.Set("epsilon", chain.epsilon);
    attrs.Set("leakyrelu_alpha", chain.alpha);
    if (target.fused == "_FusedConv2D") {
      attrs.Set("TArgs", std::vector<Dtype>(chain.args.size(), t));
    }
    std::vector<Endpoint> inputs = {root->inputs[0], root->inputs[1]};
    inputs.insert(inputs.end(), chain.args.begin(), chain.args.end());
    ASSIGN_OR_RETURN(Node * fused, graph_.Add(chain.last->name() + "/fused", target.fused,
                                              std::move(inputs), std::move(attrs)));
    fused->control_inputs = root->control_inputs;
    fused->device = root->device;
    graph_.ReplaceAll({chain.last, 0}, {fused, 0});
    graph_.ReplaceControl(root, fused);
    for (Node* m : chain.members) graph_.ReplaceControl(m, fused);
    return OkStatus();
  }

  Graph& graph_;
  Fanout fanout_;
};

}  // namespace

Status Remap(Graph& graph, const PassContext&) { return Remapper(graph).Run(); }

}  // namespace smelt
