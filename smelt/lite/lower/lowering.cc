#include "smelt/lite/lower/lowering.h"

#include <array>

#include "absl/strings/match.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/infer_attrs.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/kernel.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt {
namespace {

const LowerRow* FindRow(OpName op) {
  static const auto* rows = [] {
    auto* by_op = new std::array<const LowerRow*, kNumOps>();
    for (const auto family : AllLowerRows()) {
      for (const LowerRow& row : family) (*by_op)[static_cast<size_t>(row.op.number())] = &row;
    }
    return by_op;
  }();
  return op.unknown() ? nullptr : (*rows)[static_cast<size_t>(op.number())];
}

}  // namespace

std::span<const std::span<const LowerRow>> AllLowerRows() {
  static const std::array families = {ControlLowering(), ElementwiseLowering(), MovementLowering(),
                                      NnLowering()};
  return families;
}

const PartialShape& Lowering::shape(Endpoint e) const {
  static const auto* unknown = new PartialShape();
  const auto it = shapes_.find({e.node, e.port});
  return it == shapes_.end() ? *unknown : it->second;
}

std::optional<Tensor> Lowering::Constant(Endpoint e) const { return ConstantTensor(*e.node); }

std::optional<std::vector<int64_t>> Lowering::Integers(Endpoint e) const {
  const std::optional<Tensor> value = Constant(e);
  if (!value || (value->dtype() != Dtype::kInt32 && value->dtype() != Dtype::kInt64)) {
    return std::nullopt;
  }
  std::vector<int64_t> out;
  for (int64_t i = 0; i < value->num_elements(); ++i) out.push_back(IndexAt(*value, i));
  return out;
}

StatusOr<Node*> Lowering::AddNode(OpName op, std::span<const Endpoint> inputs, AttrMap attrs) {
  ASSIGN_OR_RETURN(Node * n, graph_.AddNode(graph_.FreeName(node_->name()), op.text()));
  graph_.SetInputs(n, inputs);
  n->AttrsToChange() = std::move(attrs);
  RETURN_IF_ERROR(InferAttrs(n, graph_.library().get()));
  RETURN_IF_ERROR(graph_.ResolveTypes(n));
  made_.push_back(n);
  return n;
}

Endpoint Lowering::Const(const Tensor& value) {
  return {graph_.AddConst(absl::StrCat(node_->name(), "/const"), value), 0};
}

Endpoint Lowering::Ints(std::span<const int64_t> values) {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return Const(Tensor::Vector(std::span<const int32_t>(narrow)));
}

Endpoint Lowering::Int(int64_t value) { return Const(Tensor::Scalar(static_cast<int32_t>(value))); }

StatusOr<Endpoint> Lowering::Number(double value, Dtype type) {
  ASSIGN_OR_RETURN(const Attr stated, UniformTensor(type, Shape(), value));
  ASSIGN_OR_RETURN(const Tensor tensor,
                   (*stated.get<std::shared_ptr<const TensorValue>>())->Materialize());
  return Const(tensor);
}

Status Lowering::Assign(Endpoint state, Endpoint value) {
  AttrMap attrs;
  attrs.Set("dtype", type(value));
  return AddNode("AssignVariableOp", std::array{state.node->input(0), value}, std::move(attrs))
      .status();
}

StatusOr<Endpoint> Lowering::Activated(Endpoint e, const Node& n) {
  const std::string activation = n.String("fused_activation_function", "NONE");
  if (activation == "NONE") return e;
  if (activation == "RELU") return Add("Relu", {e});
  if (activation == "TANH") return Add("Tanh", {e});
  if (activation == "RELU6" && type(e) == Dtype::kFloat) return Add("Relu6", {e});
  if (activation == "RELU6" || activation == "RELU_N1_TO_1") {
    ASSIGN_OR_RETURN(const Endpoint low, Number(activation == "RELU6" ? 0 : -1, type(e)));
    ASSIGN_OR_RETURN(const Endpoint high, Number(activation == "RELU6" ? 6 : 1, type(e)));
    ASSIGN_OR_RETURN(const Endpoint above, Add("Maximum", {e, low}));
    return Add("Minimum", {above, high});
  }
  return Unimplemented("its activation is ", activation);
}

LoweredEndpoints SameOp(Node& n, Lowering& l) {
  AttrMap attrs;
  for (const AttrNames& a : l.row().attrs) {
    const Attr* value = a.lite.empty() ? nullptr : n.Find(a.lite);
    if (value != nullptr) attrs.Set(a.tensorflow, *value);
  }
  ASSIGN_OR_RETURN(Node * made, l.AddNode(l.row().tensorflow, InputsOf(n), std::move(attrs)));
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back({made, i});
  if (out.size() != 1) return out;
  return OneOf(l.Activated(out[0], n));
}

namespace {

// The operator's place among those with an effect.
void KeepOrder(Node* n, std::span<Node* const> made, Graph& graph) {
  Node* last = nullptr;
  for (Node* m : made) {
    if (m->def() == nullptr || !m->def()->stateful) continue;
    for (Node* before : n->control_inputs()) graph.AddControlInput(m, before);
    last = m;
  }
  if (last == nullptr) {
    // Who waits for it waits for what it waited for.
    for (const Use& use : std::vector<Use>(n->uses().begin(), n->uses().end())) {
      if (!use.is_control()) continue;
      for (Node* before : n->control_inputs()) graph.AddControlInput(use.node, before);
    }
  }
  graph.ReplaceControlUses(n, last);
}

}  // namespace

Status Lower(Graph& graph, absl::string_view function, LiteResources& resources) {
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  Lowering l(graph, function, resources);
  std::string missing;
  for (Node* n : order) {
    for (int i = 0; i < n->num_outputs(); ++i) l.SetShape({n, i}, StatedShape({n, i}));
    if (!absl::StartsWith(n->op(), "tfl.") || n->Is("tfl.no_value")) continue;
    const LowerRow* row = FindRow(n->op_name());
    if (row == nullptr) {
      // One with a kernel stays.
      const auto kernel = FindKernel(*n);
      if (!kernel.ok()) absl::StrAppend(&missing, "  ", n->op(), " '", n->name(), "'\n");
      continue;
    }
    l.Begin(*n, *row);
    const LoweredEndpoints by = row->lower(*n, l);
    if (!by.ok()) {
      return Prefix(by.status(), absl::StrCat("operator '", n->name(), "' (", n->op(), "): "));
    }
    for (int i = 0; i < n->num_outputs(); ++i) {
      const Endpoint to = (*by)[static_cast<size_t>(i)];
      l.SetShape(to, l.shape({n, i}));
      graph.ReplaceAllUses({n, i}, to);
    }
    KeepOrder(n, l.made(), graph);
    graph.Remove(n);
  }
  if (missing.empty()) return OkStatus();
  return Unimplemented("these operators are not known here:\n", missing);
}

}  // namespace smelt
