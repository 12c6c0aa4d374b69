#include <algorithm>
#include <cmath>
#include <optional>

#include "smelt/graph/constant.h"
#include "smelt/kernels/xla/dimension_numbers.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// A constant of one value per channel, or of one for all, that does not add dimensions to a tensor
// of `rank`, whose last dimensions are the channels.
template <typename T>
std::optional<std::vector<T>> QuantVector(const Node* n, Dtype type, const Dims& channels,
                                          int rank) {
  const std::optional<Tensor> t = ConstantTensor(*n);
  if (!t || t->dtype() != type || t->rank() > rank) return std::nullopt;
  const int64_t count = t->num_elements();
  if (count != 1) {
    const auto dims = t->shape().dims();
    if (dims.size() < channels.size() || count != Shape(channels).num_elements() ||
        !std::ranges::equal(dims.last(channels.size()), channels)) {
      return std::nullopt;
    }
  }
  const auto values = t->flat<T>();
  return std::vector<T>(values.begin(), values.end());
}

// The value of a scalar float constant that is a whole number: a zero point or a limit.
std::optional<int64_t> QuantWhole(const Node* n) {
  const auto v = QuantVector<float>(n, Dtype::kFloat, {}, 0);
  if (!v || (*v)[0] != std::floor((*v)[0]) || std::abs((*v)[0]) > 1e6F) return std::nullopt;
  return static_cast<int64_t>((*v)[0]);
}

std::optional<std::vector<int64_t>> QuantInts(const Node* n, int64_t count) {
  const std::optional<Tensor> t = ConstantTensor(*n);
  if (!t || t->num_elements() != count) return std::nullopt;
  if (t->dtype() != Dtype::kInt32 && t->dtype() != Dtype::kInt64) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(IndexAt(*t, i));
  return out;
}

// Wraps around, as sums of int32 tensors do.
int32_t WrappingAdd(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

bool IsQuantCast(const Node* n, Dtype from, Dtype to) {
  return n->Is("Cast") && n->Type("SrcT") == from && n->Type("DstT") == to;
}

// Nodes that become one, each the only reader of the one before.
struct QuantChain {
  std::vector<Node*> nodes;
  Node* last() const { return nodes.back(); }
};

// The way from float back to int8: round(clamp(x + zero, low, high)).
struct QuantEnd {
  int64_t zero = 0, low = 0, high = 0;
};

// What is known of a layer before its chain is followed.
struct QuantLayer {
  absl::string_view op;
  Endpoint x, w;
  int64_t depth = 0;
  Dims channels;  // the result's last dimensions, depth in all
  int rank = 0;   // of the result
  bool rank_known = true;
  std::vector<int32_t> bias;     // to begin with, what the padding's value adds
  std::vector<Node*> waits_for;  // control inputs of the padding
  AttrMap attrs;
};

class QuantFuser {
 public:
  explicit QuantFuser(Graph& graph) : graph_(graph) {}

  Status Run() {
    for (int id = 0, end = graph_.max_id(); id < end; ++id) {
      Node* n = graph_.NodeOf(id);
      if (n == nullptr || IsRoot(*n)) continue;
      std::optional<QuantLayer> layer;
      if (n->Is("XlaConvV2")) layer = Conv(*n);
      if (n->Is("XlaDotV2")) layer = Dot(*n);
      if (layer) RETURN_IF_ERROR(FuseLayer(n, *std::move(layer)));
    }
    for (int id = 0, end = graph_.max_id(); id < end; ++id) {
      Node* n = graph_.NodeOf(id);
      if (n == nullptr || IsRoot(*n) || !IsQuantCast(n, Dtype::kInt8, Dtype::kFloat)) continue;
      RETURN_IF_ERROR(FuseDequantize(n));
    }
    for (int id = 0, end = graph_.max_id(); id < end; ++id) {
      Node* n = graph_.NodeOf(id);
      if (n != nullptr && !IsRoot(*n) && n->Is("MaxPool")) PadInPool(n);
    }
    return RunBorders();
  }

  // A pool takes no note of padding of its own; nor do maxima of the least number.
  void PadInPool(Node* pool) {
    Node* pad = pool->inputs()[0].node;
    if (pool->Type("T") != Dtype::kInt8 || pool->String("padding") != "VALID" ||
        pool->String("data_format", "NHWC") != "NHWC" || pad->uses().size() != 1 || IsRoot(*pad) ||
        !pad->control_inputs().empty()) {
      return;
    }
    const auto padding = PaddingBefore(*pad);
    const std::vector<int64_t> window = pool->Ints("ksize");
    if (!padding || padding->second != -128 || window.size() != 4) return;
    const std::vector<int64_t>& p = padding->first;
    // Windows of padding alone are refused.
    for (const size_t i : {0, 1, 2, 3}) {
      if (p[i] >= window[1 + i / 2]) return;
    }
    AttrMap& attrs = pool->AttrsToChange();
    attrs.Set("padding", std::string("EXPLICIT"));
    attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, p[0], p[1], p[2], p[3], 0, 0});
    graph_.SetInput(pool, 0, pad->inputs()[0]);
  }

  // The ways to int8 alone.
  Status RunBorders() {
    for (int id = 0, end = graph_.max_id(); id < end; ++id) {
      Node* n = graph_.NodeOf(id);
      if (n == nullptr || IsRoot(*n) || !n->Is("Div")) continue;
      RETURN_IF_ERROR(FuseQuantize(n));
    }
    graph_.Prune(Roots(graph_));
    return OkStatus();
  }

 private:
  // The only reader of the chain's end, and by which input; nullptr when there are several, or when
  // the reader is a root or waits for other nodes.
  Node* Next(const QuantChain& chain, int* input) const {
    Node* reader = nullptr;
    for (const Use& use : chain.last()->uses()) {
      if (use.is_control()) continue;
      if (reader != nullptr || use.port() != 0) return nullptr;
      reader = use.node;
      *input = use.input;
    }
    if (reader == nullptr || !reader->control_inputs().empty() || IsRoot(*reader)) return nullptr;
    return reader;
  }

  // The next node when it is `op`, and its other operand. Of Sub and Div the chain must be the
  // first operand.
  Node* NextBinary(const QuantChain& chain, OpName op, Endpoint* other) const {
    int input = 0;
    Node* next = Next(chain, &input);
    if (next == nullptr || !next->Is(op) || next->num_inputs() != 2) return nullptr;
    if (input != 0 && (next->Is("Sub") || next->Is("Div"))) return nullptr;
    *other = next->inputs()[1 - input];
    return next;
  }

  // Extends the chain by the way back to int8; empty and unchanged where there is none.
  std::optional<QuantEnd> FollowEnd(QuantChain& chain) const {
    QuantChain c = chain;
    QuantEnd end;
    Endpoint other;
    if (Node* add = NextBinary(c, "AddV2", &other)) {
      const auto zero = QuantWhole(other.node);
      if (!zero) return std::nullopt;
      end.zero = *zero;
      c.nodes.push_back(add);
    }
    Node* max = NextBinary(c, "Maximum", &other);
    const auto low = max ? QuantWhole(other.node) : std::nullopt;
    if (!low) return std::nullopt;
    c.nodes.push_back(max);
    Node* min = NextBinary(c, "Minimum", &other);
    const auto high = min ? QuantWhole(other.node) : std::nullopt;
    if (!high) return std::nullopt;
    c.nodes.push_back(min);
    int input = 0;
    Node* round = Next(c, &input);
    if (round == nullptr || !round->Is("Round")) return std::nullopt;
    c.nodes.push_back(round);
    Node* cast = Next(c, &input);
    if (cast == nullptr || !IsQuantCast(cast, Dtype::kFloat, Dtype::kInt8)) return std::nullopt;
    c.nodes.push_back(cast);
    end.low = *low;
    end.high = *high;
    if (end.low < -128 || end.high > 127 || end.low > end.high) return std::nullopt;
    chain = std::move(c);
    return end;
  }

  static bool Int8Product(const Node& n) {
    return n.input_types[0] == Dtype::kInt8 && n.input_types[1] == Dtype::kInt8 &&
           n.output_types[0] == Dtype::kInt32;
  }

  std::optional<QuantLayer> Conv(const Node& n) const {
    if (!Int8Product(n) || n.Int("batch_group_count", 1) != 1) return std::nullopt;
    const auto numbers = ConvDimensionsOf(n);
    const Dims inner = {1, 2}, first = {0, 1};
    if (!numbers.ok() || numbers->input_batch != 0 || numbers->input_feature != 3 ||
        numbers->kernel_input != 2 || numbers->kernel_output != 3 || numbers->output_batch != 0 ||
        numbers->output_feature != 3 || numbers->input_spatial != inner ||
        numbers->output_spatial != inner || numbers->kernel_spatial != first) {
      return std::nullopt;
    }
    const std::optional<Tensor> w = ConstantTensor(*n.inputs()[1].node);
    const auto strides = QuantInts(n.inputs()[2].node, 2);
    auto padding = QuantInts(n.inputs()[3].node, 4);
    const auto lhs_dilation = QuantInts(n.inputs()[4].node, 2);
    const auto dilations = QuantInts(n.inputs()[5].node, 2);
    const auto groups = QuantInts(n.inputs()[6].node, 1);
    if (!w || w->rank() != 4 || w->num_elements() == 0 || !strides || !padding || !lhs_dilation ||
        !dilations || !groups || *lhs_dilation != std::vector<int64_t>{1, 1} ||
        *std::ranges::min_element(*padding) < 0) {
      return std::nullopt;
    }
    QuantLayer layer;
    layer.op = "_Int8Conv2D";
    layer.x = n.inputs()[0];
    layer.w = n.inputs()[1];
    layer.depth = w->dim(3);
    layer.channels = {layer.depth};
    layer.rank = 4;
    layer.bias.assign(layer.depth, 0);
    const auto pad = PaddingBefore(*layer.x.node);
    if (pad && *std::ranges::max_element(*padding) == 0) {
      padding = pad->first;
      layer.waits_for = layer.x.node->control_inputs();
      layer.x = layer.x.node->inputs()[0];
      layer.attrs.Set("x_zero", static_cast<int64_t>(pad->second));
      // The fused op sums (x - x_zero) * w, where padding adds nothing; the pattern sums x * w,
      // which is more by x_zero times the sum of the channel's weights.
      const int8_t* p = w->data<int8_t>();
      for (int64_t i = 0; i < w->num_elements(); ++i) {
        layer.bias[i % layer.depth] = WrappingAdd(layer.bias[i % layer.depth], pad->second * p[i]);
      }
    }
    layer.attrs.Set("strides", *strides);
    layer.attrs.Set("dilations", *dilations);
    layer.attrs.Set("padding", *padding);
    return layer;
  }

  // A PadV2 of an image's height and width alone: how much before and after each, and the value.
  static std::optional<std::pair<std::vector<int64_t>, int32_t>> PaddingBefore(const Node& n) {
    if (!n.Is("PadV2")) return std::nullopt;
    const auto pads = QuantInts(n.inputs()[1].node, 8);
    const std::optional<Tensor> value = ConstantTensor(*n.inputs()[2].node);
    if (!pads || !value || value->dtype() != Dtype::kInt8 || value->num_elements() != 1) {
      return std::nullopt;
    }
    if (*std::ranges::min_element(*pads) < 0 || (*pads)[0] != 0 || (*pads)[1] != 0 ||
        (*pads)[6] != 0 || (*pads)[7] != 0) {
      return std::nullopt;
    }
    return std::pair(std::vector<int64_t>(pads->begin() + 2, pads->begin() + 6),
                     static_cast<int32_t>(value->flat<int8_t>()[0]));
  }

  std::optional<QuantLayer> Dot(const Node& n) const {
    if (!Int8Product(n)) return std::nullopt;
    const auto numbers = DotDimensionsOf(n);
    const std::optional<Tensor> w = ConstantTensor(*n.inputs()[1].node);
    if (!numbers.ok() || !numbers->lhs_batch.empty() || !numbers->rhs_batch.empty() || !w ||
        w->num_elements() == 0) {
      return std::nullopt;
    }
    // x contracts consecutive dimensions, the weights as many at one of their ends.
    const auto summed = static_cast<int>(numbers->lhs_contracting.size());
    if (summed < 1 || w->rank() <= summed || !Follow(numbers->lhs_contracting) ||
        !Follow(numbers->rhs_contracting) ||
        numbers->rhs_contracting.size() != numbers->lhs_contracting.size() ||
        numbers->lhs_contracting[0] < 1 || numbers->lhs_contracting[0] + w->rank() > kMaxRank) {
      return std::nullopt;
    }
    QuantLayer layer;
    layer.op = "_Int8MatMul";
    layer.x = n.inputs()[0];
    layer.w = n.inputs()[1];
    const int kept = w->rank() - summed;
    const bool transposed = numbers->rhs_contracting[0] == kept;
    if (numbers->rhs_contracting[0] != 0 && !transposed) return std::nullopt;
    const auto dims = w->shape().dims().subspan(transposed ? 0 : summed, kept);
    layer.channels.assign(dims.begin(), dims.end());
    layer.depth = Shape(layer.channels).num_elements();
    layer.rank = static_cast<int>(numbers->lhs_contracting[0]) + kept;
    // _Int8MatMul contracts x's last dimensions, but x's rank is not known here. Nodes that smelt
    // convert marks are so; else a bias of the result's rank must show it (FuseLayer).
    layer.rank_known = n.attrs().Find("_quantized_layer") != nullptr;
    layer.bias.assign(layer.depth, 0);
    layer.attrs.Set("transpose_b", transposed);
    if (summed > 1) layer.attrs.Set("contracted", static_cast<int64_t>(summed));
    return layer;
  }

  // Each is one more than the one before.
  static bool Follow(const Dims& dims) {
    for (size_t i = 1; i < dims.size(); ++i) {
      if (dims[i] != dims[0] + static_cast<int64_t>(i)) return false;
    }
    return true;
  }

  Status FuseLayer(Node* acc, QuantLayer layer) {
    QuantChain chain{{acc}};
    Endpoint other;
    int input = 0;
    for (const bool sub : {true, false}) {
      Node* next = NextBinary(chain, sub ? OpName("Sub") : OpName("AddV2"), &other);
      if (next == nullptr) continue;
      const auto values =
          QuantVector<int32_t>(other.node, Dtype::kInt32, layer.channels, layer.rank);
      if (!values) return OkStatus();
      if (ConstantTensor(*other.node)->rank() == layer.rank) layer.rank_known = true;
      for (int64_t c = 0; c < layer.depth; ++c) {
        const int32_t v = (*values)[values->size() == 1 ? 0 : c];
        layer.bias[c] = WrappingAdd(layer.bias[c], sub ? WrappingAdd(~v, 1) : v);
      }
      chain.nodes.push_back(next);
    }
    Node* cast = Next(chain, &input);
    if (cast == nullptr || !IsQuantCast(cast, Dtype::kInt32, Dtype::kFloat)) return OkStatus();
    if (!layer.rank_known) return OkStatus();
    chain.nodes.push_back(cast);
    std::vector<float> scales = {1.0F};
    std::optional<QuantEnd> end;
    Node* mul = NextBinary(chain, "Mul", &other);
    const auto factors =
        mul ? QuantVector<float>(other.node, Dtype::kFloat, layer.channels, layer.rank)
            : std::nullopt;
    std::vector<Endpoint> addend;
    if (factors) {
      scales = *factors;
      chain.nodes.push_back(mul);
      end = FollowEnd(chain);
      if (!end) addend = FollowFloat(chain, layer.attrs);
    }
    if (end) {
      layer.attrs.Set("zero", end->zero);
      layer.attrs.Set("low", end->low);
      layer.attrs.Set("high", end->high);
    }
    layer.attrs.Set("Tout", end ? Dtype::kInt8 : Dtype::kFloat);
    layer.attrs.Set("scales", std::move(scales));
    layer.attrs.Set("num_addends", static_cast<int64_t>(addend.size()));
    ASSIGN_OR_RETURN(Tensor bias,
                     Tensor::Make(Dtype::kInt32, Shape({layer.depth}), HeapAllocator()));
    std::ranges::copy(layer.bias, bias.data<int32_t>());
    Node* constant = graph_.AddConst(acc->name() + "/int8_bias", bias);
    std::vector<Endpoint> inputs = {layer.x, layer.w, {constant, 0}};
    inputs.insert(inputs.end(), addend.begin(), addend.end());
    for (Node* n : layer.waits_for) graph_.AddControlInput(acc, n);
    return Replace(chain, layer.op, std::move(inputs), std::move(layer.attrs)).status();
  }

  // A float result: takes in a sum with another tensor, and an activation.
  std::vector<Endpoint> FollowFloat(QuantChain& chain, AttrMap& attrs) const {
    std::vector<Endpoint> addend;
    Endpoint other;
    if (Node* add = NextBinary(chain, "AddV2", &other)) {
      // A constant adds by channel, which the fused op's addend does not; nor does x + x read
      // another tensor.
      if (!other.node->Is("Const") && other.node != chain.last()) {
        addend.push_back(other);
        chain.nodes.push_back(add);
      }
    }
    int input = 0;
    Node* act = Next(chain, &input);
    if (act != nullptr && (act->Is("Relu") || act->Is("Relu6"))) {
      attrs.Set("activation", std::string(act->op()));
      chain.nodes.push_back(act);
    }
    return addend;
  }

  Status FuseQuantize(Node* div) {
    if (div->Type("T") != Dtype::kFloat) return OkStatus();
    if (!QuantVector<float>(div->inputs()[1].node, Dtype::kFloat, {}, 0) &&
        div->attrs().Find("_quantized_layer") == nullptr) {
      return OkStatus();
    }
    QuantChain chain{{div}};
    const std::optional<QuantEnd> end = FollowEnd(chain);
    if (!end) return OkStatus();
    AttrMap attrs;
    attrs.Set("zero", end->zero);
    attrs.Set("low", end->low);
    attrs.Set("high", end->high);
    Node* pad = PaddingOf(*div);
    const Endpoint x = (pad != nullptr ? pad : div)->inputs()[0];
    ASSIGN_OR_RETURN(Node * fused,
                     Replace(chain, "_Int8Quantize", {x, div->inputs()[1]}, std::move(attrs)));
    return pad != nullptr ? PadBehind(*pad, *end, fused) : OkStatus();
  }

  // The padding with zeros that only `div` reads, which divides it by a constant: int8 numbers may
  // be padded as well, which a convolution does by itself.
  static Node* PaddingOf(const Node& div) {
    Node* pad = div.inputs()[0].node;
    const auto scale = QuantVector<float>(div.inputs()[1].node, Dtype::kFloat, {}, 0);
    const bool fits = pad->Is("Pad") && !IsRoot(*pad) && pad->uses().size() == 1 &&
                      pad->control_inputs().empty() && scale && (*scale)[0] > 0 &&
                      std::isfinite((*scale)[0]) && ConstantTensor(*pad->inputs()[1].node);
    return fits ? pad : nullptr;
  }

  Status PadBehind(const Node& pad, const QuantEnd& end, Node* quantized) {
    const auto zero = static_cast<int8_t>(std::clamp(end.zero, end.low, end.high));
    Node* value = graph_.AddConst(graph_.FreeName(pad.name() + "/int8_zero"), Tensor::Scalar(zero));
    AttrMap attrs;
    attrs.Set("T", Dtype::kInt8);
    attrs.Set("Tpaddings", pad.Type("Tpaddings", Dtype::kInt32));
    ASSIGN_OR_RETURN(Node * padded,
                     graph_.Add(graph_.FreeName(pad.name() + "/int8"), "PadV2",
                                {{quantized, 0}, pad.inputs()[1], {value, 0}}, std::move(attrs)));
    padded->device = quantized->device;
    graph_.ReplaceAllUses({quantized, 0}, {padded, 0});
    graph_.SetInput(padded, 0, {quantized, 0});
    return OkStatus();
  }

  Status FuseDequantize(Node* cast) {
    QuantChain chain{{cast}};
    Endpoint other;
    AttrMap attrs;
    if (Node* sub = NextBinary(chain, "Sub", &other)) {
      const auto zero = QuantWhole(other.node);
      if (!zero) return OkStatus();
      attrs.Set("zero", *zero);
      chain.nodes.push_back(sub);
    }
    Node* mul = NextBinary(chain, "Mul", &other);
    if (mul == nullptr || !QuantVector<float>(other.node, Dtype::kFloat, {}, 0)) return OkStatus();
    chain.nodes.push_back(mul);
    return Replace(chain, "_Int8Dequantize", {cast->inputs()[0], other}, std::move(attrs)).status();
  }

  StatusOr<Node*> Replace(const QuantChain& chain, absl::string_view op,
                          std::vector<Endpoint> inputs, AttrMap attrs) {
    Node* first = chain.nodes.front();
    ASSIGN_OR_RETURN(Node * fused, graph_.Add(chain.last()->name() + "/int8", op, std::move(inputs),
                                              std::move(attrs)));
    graph_.SetControlInputs(fused, first->control_inputs());
    fused->device = first->device;
    graph_.ReplaceAllUses({chain.last(), 0}, {fused, 0});
    for (Node* n : chain.nodes) graph_.ReplaceControlUses(n, fused);
    graph_.Remove(chain.nodes);
    return fused;
  }

  Graph& graph_;
};

}  // namespace

Status FuseQuantized(Graph& graph, const PassContext&) { return QuantFuser(graph).Run(); }
Status FuseQuantizing(Graph& graph, const PassContext&) { return QuantFuser(graph).RunBorders(); }

}  // namespace smelt
