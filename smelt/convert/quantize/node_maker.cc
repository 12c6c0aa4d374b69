// The integer products, and the graph around them.
#include "smelt/convert/quantize/node_maker.h"

#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt::quantize {
namespace {

constexpr char kChannelUnknown[] =
    "The channel dimension of Conv2D|Conv3D is required to be static.";

Tensor Int32s(const std::vector<int32_t>& values, const Shape& shape) {
  return Tensor::Vector(std::span<const int32_t>(values)).WithShape(shape);
}

std::string ConvNumbers() {
  ConvDimensions d;
  d.input_batch = d.output_batch = 0;
  d.input_feature = d.output_feature = 3;
  d.input_spatial = d.output_spatial = {1, 2};
  d.kernel_spatial = {0, 1};
  d.kernel_input = 2;
  d.kernel_output = 3;
  return SerializeConvDimensions(d);
}

}  // namespace

StatusOr<ConvGeometry> GeometryOf(const Layer& layer, const PartialShape& input) {
  const Node& n = *layer.node;
  const Shape& w = layer.weight_value.shape();
  const std::vector<int64_t> strides = n.Ints("strides");
  std::vector<int64_t> dilations = n.Ints("dilations");
  if (dilations.empty()) dilations = {1, 1, 1, 1};
  if (strides.size() != 4 || dilations.size() != 4) return InvalidArgument("Its strides are odd.");
  if (input.known_rank() && input.rank() != 4) return InvalidArgument("Its input has no rank 4.");
  ConvGeometry g;
  const int64_t features = input.known_rank() ? input[3] : -1;
  if (features < 0) return InvalidArgument(kChannelUnknown);
  if (layer.kind == LayerKind::kDepthwise) {
    g.groups = static_cast<int32_t>(features);
    if (features != w[2]) return InvalidArgument("Its filter does not fit its input.");
  } else {
    if (w[2] <= 0 || features % w[2] != 0) {
      return InvalidArgument("Its filter does not fit its input.");
    }
    g.groups = static_cast<int32_t>(features / w[2]);
  }
  const std::string padding = n.String("padding");
  const std::vector<int64_t> explicit_paddings = n.Ints("explicit_paddings");
  for (int i = 0; i < 2; ++i) {
    const int64_t stride = strides[i + 1], dilation = dilations[i + 1];
    if (stride < 1 || dilation < 1) return InvalidArgument("Its strides are odd.");
    g.strides.push_back(static_cast<int32_t>(stride));
    g.dilations.push_back(static_cast<int32_t>(dilation));
    int64_t low = 0, high = 0;
    if (padding == "EXPLICIT" && explicit_paddings.size() == 8) {
      low = explicit_paddings[2 * i + 2];
      high = explicit_paddings[2 * i + 3];
    } else if (padding == "SAME") {
      const int64_t window = (w[i] - 1) * dilation + 1;
      const int64_t size = input[i + 1];
      int64_t total = window - 1;
      if (size >= 0) {
        total = std::max<int64_t>(((size + stride - 1) / stride - 1) * stride + window - size, 0);
      } else if (stride != 1) {
        return InvalidArgument("Its padding depends on a size that is not known.");
      }
      low = total / 2;
      high = total - low;
    }
    if (low < 0 || high < 0 || low > 1 << 20 || high > 1 << 20) {
      return InvalidArgument("Its padding is odd.");
    }
    g.padding.push_back(static_cast<int32_t>(low));
    g.padding.push_back(static_cast<int32_t>(high));
  }
  return g;
}

std::string WhyNoProduct(const Layer& layer, const PartialShape& input) {
  if (layer.node->Bool("adj_x")) return "Its input is transposed.";
  const Shape& w = layer.weight_value.shape();
  if (!input.known_rank() || input.rank() < 2) return "The rank of its input is not known.";
  if (w.rank() == 2) return "";
  constexpr char kRepeated[] = "Its weights are repeated over the batch.";
  if (input.rank() != w.rank()) return kRepeated;
  for (int i = 0; i + 2 < w.rank(); ++i) {
    if (input[i] != w[i]) return kRepeated;
  }
  return "";
}

namespace {

StatusOr<Endpoint> Convolve(NodeMaker& make, Layer& layer, Endpoint x, const ConvGeometry& g) {
  ASSIGN_OR_RETURN(Endpoint w, Int8Weights(layer));
  if (layer.kind == LayerKind::kDepthwise) {
    const Shape& s = layer.weight_value.shape();
    w = make.Op(
        "filter", "Reshape",
        {w, make.Ints("filter_shape", {static_cast<int32_t>(s[0]), static_cast<int32_t>(s[1]), 1,
                                       static_cast<int32_t>(s[2] * s[3])})},
        {{"T", Dtype::kInt8}, {"Tshape", Dtype::kInt32}});
  }
  static const auto* numbers = new std::string(ConvNumbers());
  return make.Op(
      "sum", "XlaConvV2",
      {x, w, make.Const("strides", Int32s(g.strides, Shape({2}))),
       make.Const("padding", Int32s(g.padding, Shape({2, 2}))), make.Ints("lhs_dilation", {1, 1}),
       make.Const("rhs_dilation", Int32s(g.dilations, Shape({2}))),
       make.Const("groups", Tensor::Scalar(g.groups))},
      {{"LhsT", Dtype::kInt8},
       {"RhsT", Dtype::kInt8},
       {"Tindices", Dtype::kInt32},
       {"preferred_element_type", Dtype::kInt32},
       {"batch_group_count", 1},
       {"dimension_numbers", *numbers},
       {"precision_config", ""}});
}

DotDimensions DotNumbers(const Layer& layer, int rank, const ProductForm& form) {
  const Node& n = *layer.node;
  DotDimensions d;
  if (layer.kind == LayerKind::kEinsum) {
    const int first = form.weights_last ? static_cast<int>(form.channels.size()) : 0;
    for (int i = 0; i < form.summed; ++i) {
      d.lhs_contracting.push_back(form.input_rank - form.summed + i);
      d.rhs_contracting.push_back(first + i);
    }
    return d;
  }
  if (layer.kind == LayerKind::kMatMul) {
    d.lhs_contracting = {n.Bool("transpose_a") ? 0 : 1};
    d.rhs_contracting = {WeightsTransposed(n) ? 1 : 0};
    return d;
  }
  const int w = layer.weight_value.rank();
  d.lhs_contracting = {rank - 1};
  d.rhs_contracting = {WeightsTransposed(n) ? w - 1 : w - 2};
  for (int i = 0; i + 2 < w; ++i) {
    d.lhs_batch.push_back(i);
    d.rhs_batch.push_back(i);
  }
  return d;
}

Endpoint Transposed(NodeMaker& make, absl::string_view suffix, Endpoint x,
                    const std::vector<int32_t>& order, Dtype type) {
  if (order.empty()) return x;
  const Endpoint perm = make.Const(absl::StrCat(suffix, "_order"),
                                   Int32s(order, Shape({static_cast<int64_t>(order.size())})));
  return make.Op(suffix, "Transpose", {x, perm}, {{"T", type}, {"Tperm", Dtype::kInt32}});
}

}  // namespace

Endpoint Ordered(NodeMaker& make, Endpoint x, const ProductForm& form) {
  return Transposed(make, "ordered", x, form.output_order, Dtype::kFloat);
}

StatusOr<Endpoint> Accumulate(NodeMaker& make, Layer& layer, Endpoint x,
                              const ConvGeometry& geometry, int rank, const ProductForm& form) {
  Endpoint sum;
  if (layer.kind == LayerKind::kConv || layer.kind == LayerKind::kDepthwise) {
    ASSIGN_OR_RETURN(sum, Convolve(make, layer, x, geometry));
  } else {
    ASSIGN_OR_RETURN(Endpoint w, Int8Weights(layer));
    x = Transposed(make, "input", x, form.input_order, Dtype::kInt8);
    w = Transposed(make, "weights", w, form.weights_order, Dtype::kInt8);
    sum = make.Op("sum", "XlaDotV2", {x, w},
                  {{"LhsT", Dtype::kInt8},
                   {"RhsT", Dtype::kInt8},
                   {"preferred_element_type", Dtype::kInt32},
                   {"dimension_numbers", SerializeDotDimensions(DotNumbers(layer, rank, form))},
                   {"precision_config", ""}});
  }
  RETURN_IF_ERROR(make.status());
  // The sum waits for what the layer's node waited for; the callers move what waits for the node.
  layer.scope->graph->SetControlInputs(sum.node, layer.node->control_inputs());
  return sum;
}

void ReplaceEverywhere(Conversion& c, Scope& scope, Endpoint from, Endpoint to) {
  scope.graph->ReplaceAllUses(from, to);
  scope.graph->ReplaceControlUses(from.node, to.node);
  for (Endpoint& e : scope.results) {
    if (e == from) e = to;
  }
  if (scope.function != nullptr) {
    for (auto& result : scope.function->results) {
      for (Endpoint& e : result) {
        if (e == from) e = to;
      }
    }
    for (auto& [name, node] : scope.function->control_results) {
      if (node == from.node) node = to.node;
    }
    return;
  }
  std::vector<std::string*> names;
  for (auto& [key, signature] : c.meta->signatures) {
    for (auto& [name, info] : signature.outputs) TensorNames(info, &names);
  }
  for (std::string* name : names) {
    auto e = scope.graph->FindEndpoint(*name);
    if (e.ok() && *e == from) *name = absl::StrCat(to.node->name(), ":", to.port);
  }
}

absl::flat_hash_set<const Node*> RemoveUnread(Conversion& c, Scope& scope,
                                              std::vector<Node*> nodes) {
  Graph& g = *scope.graph;
  absl::flat_hash_set<const Node*> kept;
  for (const Endpoint& e : scope.results) kept.insert(e.node);
  if (scope.function != nullptr) {
    kept.insert(scope.function->args.begin(), scope.function->args.end());
    for (const auto& [name, node] : scope.function->control_results) kept.insert(node);
  }
  absl::flat_hash_set<const Node*> removed;
  while (!nodes.empty()) {
    Node* n = nodes.back();
    nodes.pop_back();
    if (removed.contains(n) || kept.contains(n) || !n->uses().empty() || n->def() == nullptr ||
        (n->def()->stateful && !n->Is("ReadVariableOp")) || n->num_outputs() == 0 ||
        n->attrs().Find("_root")) {
      continue;
    }
    for (const Endpoint& e : n->inputs()) nodes.push_back(e.node);
    nodes.insert(nodes.end(), n->control_inputs().begin(), n->control_inputs().end());
    removed.insert(n);
    scope.nodes.erase(n);
    g.Remove(n);
  }
  if (c.variables == nullptr) return removed;
  for (const auto& v : c.variables->all()) {
    for (auto* uses : {&v->reads, &v->lookups, &v->saves, &v->save_path}) {
      std::erase_if(*uses, [&](const HandleUse& use) { return removed.contains(use.node); });
    }
  }
  return removed;
}

}  // namespace smelt::quantize
