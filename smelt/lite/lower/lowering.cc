#include "smelt/lite/lower/lowering.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/infer_attrs.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/lower/operands.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt {
namespace {

using RowsByOp = std::array<const LowerRow*, kNumOps>;

const LowerRow* FindRow(OpName op, bool quantized) {
  const auto fill = [](RowsByOp& by_op, std::span<const LowerRow> rows) {
    for (const LowerRow& row : rows) by_op[static_cast<size_t>(row.op.number())] = &row;
  };
  static const auto* plain = [&] {
    auto* by_op = new RowsByOp();
    for (const auto family : AllLowerRows()) fill(*by_op, family);
    return by_op;
  }();
  static const auto* of_quantized = [&] {
    auto* by_op = new RowsByOp();
    fill(*by_op, QuantizedLowering());
    return by_op;
  }();
  if (op.unknown()) return nullptr;
  return (*(quantized ? of_quantized : plain))[static_cast<size_t>(op.number())];
}

// Other kernels would take scales of blocks for those of a dimension.
bool ReadsBlocks(const Node& n, int input) {
  return input == 1 &&
         (n.op_name() == "tfl.fully_connected" || n.op_name() == "tfl.embedding_lookup");
}

// Converters state no shape of weights that they round in the graph, which reads as a scalar's: it
// is that of what was rounded.
void FollowInputShape(Node* n, Lowering& l) {
  if (!n->Is({"tfl.quantize", "tfl.dequantize", "tfl.fake_quant"}) || n->num_inputs() != 1 ||
      n->num_outputs() != 1 || l.shape({n, 0}).rank() > 0) {
    return;
  }
  l.SetShape({n, 0}, PartialShape(l.shape(n->input(0))));
}

// How the outputs are quantized as the node says.
void NoteQuantization(Node* n, Lowering& l) {
  for (int i = 0; i < n->num_outputs(); ++i) {
    Quantization q = QuantizationOf(*n, i);
    if (!q.scales.empty()) l.SetQuantization({n, i}, std::move(q));
  }
}

}  // namespace

std::span<const std::span<const LowerRow>> AllLowerRows() {
  static const std::array families = {CustomLowering(),   ControlLowering(), ElementwiseLowering(),
                                      MovementLowering(), NnLowering(),      RecurrentLowering(),
                                      StablehloLowering()};
  return families;
}

StatusOr<Tensor> LiteResources::State::Begin() const {
  ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(type, shape));
  if (type == Dtype::kInt8) std::ranges::fill(out.flat<int8_t>(), static_cast<int8_t>(zero));
  return out;
}

void NoteInputQuantization(AttrMap& attrs, int i, const Quantization& q) {
  attrs.Set(absl::StrCat("_input_scales_", i), q.scales);
  attrs.Set(absl::StrCat("_input_zero_points_", i), q.zero_points);
  attrs.Set(absl::StrCat("_input_quantized_dim_", i), q.dim);
}

const PartialShape& Lowering::shape(Endpoint e) const {
  static const auto* unknown = new PartialShape();
  const auto it = shapes_.find({e.node, e.port});
  return it == shapes_.end() ? *unknown : it->second;
}

const Quantization* Lowering::quantization(Endpoint e) const {
  const auto it = quantizations_.find({e.node, e.port});
  return it == quantizations_.end() ? nullptr : &it->second;
}

StatusOr<Node*> Lowering::Keep(const Node& n, DtypeVector more) {
  AttrMap attrs = n.attrs();
  std::vector<Endpoint> inputs;
  DtypeVector in, out(n.output_types.begin(), n.output_types.end());
  for (int i = 0; i < n.num_inputs(); ++i) {
    Endpoint e = n.input(i);
    if (IsLeftOut(e)) {
      ASSIGN_OR_RETURN(const Tensor none, Tensor::Zeros(Dtype::kFloat, Shape({0})));
      e = Const(none);
    }
    inputs.push_back(e);
    in.push_back(type(e));
    const Quantization* q = quantization(e);
    if (q == nullptr) continue;
    NoteInputQuantization(attrs, i, *q);
    if (q->block == 0) continue;
    if (!ReadsBlocks(n, i)) {
      return Unimplemented("input ", i, " has scales of blocks, which its kernels do not read");
    }
    attrs.Set(absl::StrCat("_input_block_size_", i), q->block);
  }
  for (const Dtype t : more) out.push_back(t);
  attrs.Set("Tin", in);
  attrs.Set("Tout", out);
  return AddNode(n.op_name(), inputs, std::move(attrs));
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
  const auto wide = [](int64_t v) { return v != static_cast<int32_t>(v); };
  if (std::ranges::any_of(values, wide)) return Const(Tensor::Vector(values));
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return Const(Tensor::Vector(std::span<const int32_t>(narrow)));
}

Endpoint Lowering::Int(int64_t value) { return Const(Tensor::Scalar(static_cast<int32_t>(value))); }

StatusOr<Endpoint> Lowering::Number(double value, Dtype type) {
  ASSIGN_OR_RETURN(const Tensor tensor, FilledTensor(type, Shape(), value));
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
  for (int i = 0; i < made->num_outputs(); ++i) out.push_back({made, i});
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

// What a row gave stands for the outputs: as many, of the types that their tensors have.
Status CheckLowered(const Node& n, const std::vector<Endpoint>& by) {
  if (by.size() != static_cast<size_t>(n.num_outputs())) {
    return InvalidArgument("it has ", n.num_outputs(), " outputs, not ", by.size());
  }
  for (size_t i = 0; i < by.size(); ++i) {
    const Endpoint e = by[i];
    if (e.port >= e.node->num_outputs()) {
      return InvalidArgument("its output ", i, " is none of ", e.node->op());
    }
    const Dtype made = e.node->output_types[static_cast<size_t>(e.port)];
    if (made == n.output_types[i]) continue;
    return InvalidArgument("its output ", i, " is ", DtypeName(n.output_types[i]),
                           ", and it makes ", DtypeName(made));
  }
  return OkStatus();
}

LoweredEndpoints LowerOne(Node& n, const LowerRow& row, Lowering& l) {
  RETURN_IF_ERROR(CheckOperands(n));
  l.Begin(n, row);
  ASSIGN_OR_RETURN(std::vector<Endpoint> by, row.lower(n, l));
  RETURN_IF_ERROR(CheckLowered(n, by));
  return by;
}

}  // namespace

Status Lower(Graph& graph, absl::string_view function, LiteResources& resources) {
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  Lowering l(graph, function, resources);
  std::string missing;
  for (Node* n : order) {
    for (int i = 0; i < n->num_outputs(); ++i) l.SetShape({n, i}, StatedShape({n, i}));
    FollowInputShape(n, l);
    NoteQuantization(n, l);
    if (!absl::StartsWith(n->op(), "tfl.") || n->Is("tfl.no_value")) continue;
    const LowerRow* row = FindRow(n->op_name(), IsQuantized(*n, l));
    if (row == nullptr) {
      absl::StrAppend(&missing, "  ", n->op(), " '", n->name(), "'\n");
      continue;
    }
    const LoweredEndpoints by = LowerOne(*n, *row, l);
    if (!by.ok()) {
      return Prefix(by.status(), absl::StrCat("operator '", n->name(), "' (", n->op(), "): "));
    }
    for (int i = 0; i < n->num_outputs(); ++i) {
      const Endpoint to = (*by)[static_cast<size_t>(i)];
      l.SetShape(to, l.shape({n, i}));
      if (const Quantization* q = l.quantization({n, i})) l.SetQuantization(to, Quantization(*q));
      graph.ReplaceAllUses({n, i}, to);
    }
    KeepOrder(n, l.made(), graph);
    graph.Remove(n);
  }
  if (missing.empty()) return OkStatus();
  return Unimplemented("these operators are not known here:\n", missing);
}

StatusOr<std::vector<Node*>> LowerAlone(Graph& graph, Node* n) {
  LiteResources resources;
  Lowering l(graph, "", resources);
  const LowerRow* row = FindRow(n->op_name(), false);
  if (row == nullptr) return Unimplemented("the operator is not known here");
  for (const Endpoint& e : n->inputs()) l.SetShape(e, StatedShape(e));
  for (int i = 0; i < n->num_outputs(); ++i) l.SetShape({n, i}, StatedShape({n, i}));
  ASSIGN_OR_RETURN(const std::vector<Endpoint> by, LowerOne(*n, *row, l));
  for (int i = 0; i < n->num_outputs(); ++i) {
    const Endpoint to = by[static_cast<size_t>(i)];
    l.SetShape(to, l.shape({n, i}));
    graph.ReplaceAllUses({n, i}, to);
  }
  KeepOrder(n, l.made(), graph);
  const std::string name = n->name();
  graph.Remove(n);
  for (Node* made : l.made()) {
    std::vector<PartialShape> shapes;
    for (int i = 0; i < made->num_outputs(); ++i) shapes.push_back(l.shape({made, i}));
    made->AttrsToChange().Set(kOutputShapes, std::move(shapes));
  }
  if (!l.made().empty()) RETURN_IF_ERROR(graph.Rename(l.made().back(), name));
  return l.made();
}

}  // namespace smelt
