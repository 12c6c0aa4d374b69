// Static range: int8 activations at scales that calibration or training found, products in int32.
#include <algorithm>
#include <cmath>

#include "smelt/analysis/xla_shapes.h"
#include "smelt/convert/quantize/int8_flow.h"
#include "smelt/convert/quantize/node_maker.h"

namespace smelt::quantize {

namespace {

constexpr int kMaxPassed = 64;  // ops in a row that int8 passes through

// A sum of two tensors, neither of them constant.
bool IsSum(const Node& n) {
  return (n.Is("AddV2") || n.Is("Add")) && !n.inputs()[0].node->Is("Const") &&
         !n.inputs()[1].node->Is("Const");
}

// The sum itself, or the activation that alone reads it.
Endpoint Activated(const Node& sum) {
  const Node* last = &sum;
  if (sum.uses().size() == 1 && !sum.uses()[0].is_control() &&
      (sum.uses()[0].node->Is("Relu") || sum.uses()[0].node->Is("Relu6"))) {
    last = sum.uses()[0].node;
  }
  return {const_cast<Node*>(last), 0};
}

// The sum that alone reads the layer's result; nullptr: there is none.
const Node* SumBehind(const Layer& l) {
  const Node& n = *l.output.node;
  if (n.uses().size() != 1 || n.uses()[0].is_control() || n.uses()[0].port() != l.output.port) {
    return nullptr;
  }
  const Node* sum = n.uses()[0].node;
  return IsSum(*sum) ? sum : nullptr;
}

// The sum of this layer's result and another's, which nothing else reads; nullptr: there is none,
// or the layer gives its second operand. One of two layers does the sum behind its products, and
// the other's result need not be floats where the sum becomes int8.
const Node* SumOfLayers(const Int8Flow& flow, const Layer& l) {
  const Node* sum = SumBehind(l);
  if (sum == nullptr || sum->inputs()[0].node != l.output.node) return nullptr;
  const Layer* other = flow.Producer(sum->inputs()[1]);
  return other != nullptr && other != &l && SumBehind(*other) == sum ? sum : nullptr;
}

}  // namespace

bool PassesInt8(const Node& n) {
  if (n.Is("MaxPool")) return n.String("data_format", "NHWC") == "NHWC";
  return n.Is("Identity") || n.Is("Reshape") || n.Is("Squeeze") || n.Is("ExpandDims") ||
         n.Is("Transpose") || n.Is("Pad");
}

Layer* Int8Flow::Behind(Endpoint e) const {
  for (int depth = 0; depth < kMaxPassed; ++depth) {
    if (Layer* layer = Producer(e)) return layer;
    if (e.port != 0 || !(PassesInt8(*e.node) || IsFakeQuant(*e.node))) return nullptr;
    e = e.node->inputs()[0];
  }
  return nullptr;
}

std::vector<std::pair<Scope*, Endpoint>> TensorsToCalibrate(const LayerSet& set) {
  const Int8Flow flow(set);
  std::vector<std::pair<Scope*, Endpoint>> out;
  absl::flat_hash_set<std::pair<const Node*, int>> seen;
  for (const auto& layer : set.layers) {
    if (layer->weight_only) continue;
    const Endpoint in = Int8Flow::Unfaked(layer->node->inputs()[layer->input]);
    const Layer* before = flow.Behind(in);
    const Endpoint e = before ? before->output : in;
    if (seen.insert({e.node, e.port}).second) out.emplace_back(layer->scope, e);
  }
  for (const auto& layer : set.layers) {
    const Node* sum = layer->weight_only ? nullptr : SumOfLayers(flow, *layer);
    if (sum == nullptr || !seen.contains({Activated(*sum).node, 0})) continue;
    if (seen.insert({layer->output.node, layer->output.port}).second) {
      out.emplace_back(layer->scope, layer->output);
    }
  }
  return out;
}

namespace {

// The largest product of an activation, less its zero point, and a weight; the limit of their sums.
constexpr double kLargestProduct = 255.0 * 127.0;
constexpr double kInt32Limit = 2147483647.0;

struct Int8Value {
  Endpoint e;
  ActivationScale scale;
};

class StaticRangeWriter {
 public:
  StaticRangeWriter(Conversion& c, LayerSet& set, Ranges ranges)
      : c_(c), set_(set), flow_(set), ranges_(std::move(ranges)) {}

  Status Run(std::vector<Scope>& scopes) {
    const ModelShapes shapes = InferModelShapes(*c_.meta->graph, XlaShapeRules());
    Veto(shapes);
    for (auto& layer : set_.layers) {
      if (layer->weight_only) continue;
      if (Layer* before = flow_.Behind(Input(*layer))) before->int8_wanted = true;
      const Node* sum = SumOfLayers(flow_, *layer);
      if (sum != nullptr && SumBecomesInt8(*layer->scope, *sum) &&
          ranges_.contains(KeyOf(*layer->scope, layer->output))) {
        layer->int8_wanted = true;
      }
    }
    RETURN_IF_ERROR(StoreWeights(c_, set_));
    for (Scope& scope : scopes) {
      ASSIGN_OR_RETURN(const std::vector<Node*> order, scope.graph->TopologicalOrder());
      absl::flat_hash_map<const Node*, Layer*> layers;
      for (auto& layer : set_.layers) {
        if (layer->scope == &scope && !layer->weight_only) layers[layer->node] = layer.get();
      }
      for (const Node* n : order) {
        if (auto it = layers.find(n); it != layers.end()) RETURN_IF_ERROR(Write(*it->second));
      }
    }
    RETURN_IF_ERROR(WriteFloatLayers(c_, set_, &dead_));
    RETURN_IF_ERROR(DequantizeReaders(c_, set_));
    for (Scope& scope : scopes) {
      const auto removed = RemoveUnread(c_, scope, dead_[&scope]);
      for (auto& layer : set_.layers) {
        // Nobody reads its floats.
        if (layer->scope == &scope && !layer->weight_only &&
            removed.contains(layer->written.node)) {
          layer->written = layer->written_int8;
        }
      }
    }
    return OkStatus();
  }

 private:
  static std::pair<const Node*, int> Key(Endpoint e) { return {e.node, e.port}; }
  static Endpoint Input(const Layer& l) { return Int8Flow::Unfaked(l.node->inputs()[l.input]); }

  // Takes out the layers that cannot be written, until all that are left can.
  void Veto(const ModelShapes& shapes) {
    const ShapeTable none;
    for (size_t i = 0; i < set_.layers.size();) {
      Layer& l = *set_.layers[i];
      if (l.weight_only) {
        ++i;
        continue;
      }
      auto it = l.scope->function ? shapes.functions.find(l.scope->name()) : shapes.functions.end();
      const ShapeTable& table = !l.scope->function             ? shapes.graph
                                : it == shapes.functions.end() ? none
                                                               : it->second;
      std::string alone = WhyAlone(l, table.of(l.node->inputs()[l.input]));
      std::string reason = alone.empty() ? WhyFloat(l) : "";
      if (alone.empty() && reason.empty()) {
        ++i;
        continue;
      }
      flow_.Gives(l.output, nullptr);
      if (!reason.empty()) LeaveFloat(c_, l, std::move(reason));
      if (alone.empty() || !WeightsAlone(c_, l, std::move(alone))) {
        set_.layers.erase(set_.layers.begin() + static_cast<ptrdiff_t>(i));
      }
      i = 0;  // those behind it may have lost their range
    }
  }

  // Why the layer cannot be computed in int8.
  std::string WhyAlone(Layer& l, const PartialShape& input) {
    if (static_cast<double>(l.terms) * kLargestProduct > kInt32Limit) {
      return absl::StrCat("Its sums of ", l.terms, " products do not fit int32.");
    }
    if (l.kind == LayerKind::kConv || l.kind == LayerKind::kDepthwise) {
      auto geometry = GeometryOf(l, input);
      if (!geometry.ok()) return std::string(geometry.status().message());
      geometry_[&l] = *std::move(geometry);
    }
    if (l.kind == LayerKind::kBatchMatMul) {
      if (std::string why = WhyNoProduct(l, input); !why.empty()) return why;
      rank_[&l] = input.rank();
    }
    if (l.kind == LayerKind::kEinsum) {
      auto form = ProductFormOf(l, input.known_rank() ? input.rank() : -1);
      if (!form.ok()) return std::string(form.status().message());
      forms_[&l] = *std::move(form);
    }
    return "";
  }

  // What is missing for the layer to be quantized.
  std::string WhyFloat(const Layer& l) {
    const Endpoint in = Input(l);
    const Layer* before = flow_.Behind(in);
    if (!HasRange(*l.scope, before ? before->output : in)) {
      return TrainedWithFakeQuant(*c_.meta)
                 ? "No FakeQuant says what values its input has."
                 : "It never ran on the samples, or its input was never finite.";
    }
    return "";
  }

  // Has the tensor a range of its own, or one before it, with ops that PassesInt8 between?
  bool HasRange(const Scope& scope, Endpoint e) const {
    for (int depth = 0; depth < kMaxPassed; ++depth) {
      e = Int8Flow::Unfaked(e);
      if (ranges_.contains(KeyOf(scope, e))) return true;
      if (e.port != 0 || !PassesInt8(*e.node)) return false;
      e = e.node->inputs()[0];
    }
    return false;
  }

  // The scale of the layer's result as int8.
  ActivationScale OutputScale(const Layer& l) const {
    return ScaleOf(ranges_.at(KeyOf(*l.scope, l.output)));
  }

  StatusOr<Int8Value> Int8Of(Scope& scope, Endpoint e) {
    e = Int8Flow::Unfaked(e);
    auto it = int8_.find(Key(e));
    if (it != int8_.end()) return it->second;
    Int8Value value;
    if (flow_.Behind(e) != nullptr || !ranges_.contains(KeyOf(scope, e))) {
      ASSIGN_OR_RETURN(value, PassThrough(scope, e));
    } else {
      ASSIGN_OR_RETURN(value, Quantize(scope, e));
    }
    return int8_[Key(e)] = value;
  }

  StatusOr<Int8Value> PassThrough(Scope& scope, Endpoint e) {
    Node& n = *e.node;
    ASSIGN_OR_RETURN(Int8Value value, Int8Of(scope, n.inputs()[0]));
    std::vector<Endpoint> inputs(n.inputs().begin(), n.inputs().end());
    inputs[0] = value.e;
    NodeMaker make(*scope.graph, n.name());
    AttrMap attrs = n.attrs();
    attrs.Set("T", Dtype::kInt8);
    attrs.Set(kLayerAttr, n.name());
    const bool pad = n.Is("Pad");
    if (pad) {
      inputs.push_back(
          make.Const("zero_point", Tensor::Scalar(static_cast<int8_t>(value.scale.zero_point))));
    }
    ASSIGN_OR_RETURN(Node * copy, scope.graph->Add(n.name() + "/int8", pad ? "PadV2" : n.op(),
                                                   std::move(inputs), std::move(attrs)));
    scope.graph->SetControlInputs(copy, n.control_inputs());
    value.e = {copy, 0};
    return value;
  }

  StatusOr<Int8Value> Quantize(Scope& scope, Endpoint e) {
    const ActivationScale s = ScaleOf(ranges_.at(KeyOf(scope, e)));
    NodeMaker make(*scope.graph, absl::StrCat(e.node->name(), "/quantize"));
    Endpoint q = make.Float("scaled", "Div", e, make.Scalar("scale", s.scale));
    q = Finish(make, q, s.zero_point, -128, 127);
    RETURN_IF_ERROR(make.status());
    RETURN_IF_ERROR(AddAsInt8(make, scope, e, Int8Value{q, s}));
    return Int8Value{q, s};
  }

  // Sums that become int8 themselves take of `e` what `q` holds: one value flows on, of a quarter
  // of the bytes, and it is no further from the float than the sum will be.
  Status AddAsInt8(NodeMaker& make, Scope& scope, Endpoint e, const Int8Value& q) {
    std::vector<std::pair<Node*, int>> sums;
    for (const Use& use : e.node->uses()) {
      if (!use.is_control() && use.port() == e.port && SumBecomesInt8(scope, *use.node)) {
        sums.emplace_back(use.node, use.input);
      }
    }
    if (sums.empty()) return OkStatus();
    const Endpoint back = Dequantize(make, q.e, q.scale);
    RETURN_IF_ERROR(make.status());
    for (const auto& [node, input] : sums) scope.graph->SetInput(node, input, back);
    return OkStatus();
  }

  // Is the node a sum of two tensors which, perhaps behind an activation, a layer reads as int8?
  bool SumBecomesInt8(const Scope& scope, const Node& sum) const {
    return IsSum(sum) && ranges_.contains(KeyOf(scope, Activated(sum)));
  }

  // The way from floats in units of the scale to int8: zero point, limits, rounding.
  static Endpoint Finish(NodeMaker& make, Endpoint x, int zero, float low, float high) {
    if (zero != 0) {
      x = make.Float("shifted", "AddV2", x, make.Scalar("zero_point", static_cast<float>(zero)));
    }
    x = make.Float("above", "Maximum", x, make.Scalar("low", low));
    x = make.Float("within", "Minimum", x, make.Scalar("high", high));
    x = make.Op("rounded", "Round", {x}, {{"T", Dtype::kFloat}});
    return make.Cast("int8", x, Dtype::kFloat, Dtype::kInt8);
  }

  // What is added to the int32 sums: the bias in their scale, less what the input's zero point adds
  // to them. `offset` is not valid when that is 0 everywhere.
  struct Correction {
    Tensor offset;
    bool subtract = false;          // no bias: `offset` is subtracted
    std::vector<float> multiplier;  // of the corrected sum
  };
  StatusOr<Correction> Correct(const Layer& l, const ActivationScale& in) {
    const int64_t channels = l.channels;
    const auto scale_of = [&](int64_t channel) {
      return double{l.scales[l.scales.size() == 1 ? 0 : channel]};
    };
    Correction out;
    std::vector<double> factor(
        std::max({l.multiplier.size(), l.scales.size(), l.bias.empty() ? 1 : l.bias.size()}));
    for (size_t i = 0; i < factor.size(); ++i) {
      factor[i] = double{in.scale} * scale_of(static_cast<int64_t>(i)) *
                  l.multiplier[l.multiplier.size() == 1 ? 0 : i];
    }
    // A channel whose factor is tiny has a bias beyond int32: its factor is made larger, where the
    // sums no longer matter beside the bias.
    const double limit = std::max(
        double{1 << 24}, std::min(double{1 << 30}, kInt32Limit - kLargestProduct * l.terms));
    std::vector<double> bias(l.bias.size());
    for (size_t i = 0; i < bias.size(); ++i) {
      if (std::abs(l.bias[i]) > limit * std::abs(factor[i])) {
        factor[i] = std::copysign(std::abs(l.bias[i]) / limit, factor[i]);
      }
      bias[i] = factor[i] == 0 ? 0 : std::nearbyint(l.bias[i] / factor[i]);
    }
    ASSIGN_OR_RETURN(const std::vector<int64_t> sums, SumsOfWeights(l));
    std::vector<int32_t> offset(sums.size());
    out.subtract = bias.empty();
    for (size_t i = 0; i < sums.size(); ++i) {
      const int64_t zero = in.zero_point * sums[i];
      const int64_t b =
          bias.empty() ? 0 : static_cast<int64_t>(bias[static_cast<int64_t>(i) % channels]);
      offset[i] = static_cast<int32_t>(out.subtract ? zero : b - zero);
    }
    for (const double f : factor) out.multiplier.push_back(static_cast<float>(f));
    if (std::all_of(out.multiplier.begin(), out.multiplier.end(),
                    [&](float f) { return f == out.multiplier[0]; })) {
      out.multiplier.resize(1);
    }
    if (std::all_of(offset.begin(), offset.end(), [](int32_t o) { return o == 0; })) return out;
    out.offset = Tensor::Vector(std::span<const int32_t>(offset)).WithShape(OffsetShape(l));
    return out;
  }

  Shape OffsetShape(const Layer& l) {
    Shape shape;
    const Shape& w = l.weight_value.shape();
    if (l.kind == LayerKind::kEinsum) {
      const ProductForm& form = forms_[&l];
      for (int i = 0; i < form.input_rank - form.summed; ++i) shape.Add(1);
      for (const int64_t d : form.channels) shape.Add(d);
      return shape;
    }
    int rank = l.kind == LayerKind::kMatMul ? 2 : 4;
    if (l.kind == LayerKind::kBatchMatMul) rank = rank_[&l];
    for (int i = 0; i + 1 < rank; ++i) {
      const bool batch = l.kind == LayerKind::kBatchMatMul && w.rank() > 2 && i + 2 < rank;
      shape.Add(batch ? w[i] : 1);
    }
    shape.Add(l.channels);
    return shape;
  }

  static std::vector<int64_t> SumsByStride(std::span<const int8_t> values, const Shape& shape,
                                           const ProductForm& form, int64_t channels) {
    std::vector<int64_t> sums(channels, 0), at(shape.rank(), 0);
    int64_t channel = 0;
    for (const int8_t v : values) {
      sums[channel] += v;
      for (int d = shape.rank() - 1; d >= 0; --d) {
        channel += form.channel_strides[d];
        if (++at[d] < shape[d]) break;
        channel -= form.channel_strides[d] * shape[d];
        at[d] = 0;
      }
    }
    return sums;
  }

  // The sums of the int8 weights of each channel; of each batch and channel for BatchMatMul weights
  // of rank above 2.
  StatusOr<std::vector<int64_t>> SumsOfWeights(const Layer& l) {
    ASSIGN_OR_RETURN(const Tensor q, Int8Values(l));
    const auto v = q.flat<int8_t>();
    const Shape& s = q.shape();
    if (l.kind == LayerKind::kEinsum) return SumsByStride(v, s, forms_[&l], l.channels);
    const bool transposed = WeightsTransposed(*l.node);
    const bool batched = l.kind == LayerKind::kBatchMatMul && s.rank() > 2;
    const int64_t matrix = batched ? s.back(1) * s.back(2) : q.num_elements();
    std::vector<int64_t> sums(l.channels * (batched ? q.num_elements() / matrix : 1), 0);
    for (int64_t i = 0; i < q.num_elements(); ++i) {
      const int64_t in_matrix = i % matrix;
      const int64_t channel = transposed ? in_matrix / s.back(1) : in_matrix % l.channels;
      sums[i / matrix * l.channels + channel] += v[i];
    }
    return sums;
  }

  Status Write(Layer& l) {
    Scope& scope = *l.scope;
    ASSIGN_OR_RETURN(const Int8Value in, Int8Of(scope, l.node->inputs()[l.input]));
    NodeMaker make(*scope.graph, l.node->name());
    Endpoint x = in.e;
    l.read = in.e;
    l.read_scale = in.scale;
    ConvGeometry geometry = geometry_[&l];
    if (geometry.padded()) {
      const auto& p = geometry.padding;
      const Tensor paddings =
          Tensor::Vector<int32_t>({0, 0, p[0], p[1], p[2], p[3], 0, 0}).WithShape(Shape({4, 2}));
      x = make.Op(
          "padded", "PadV2",
          {x, make.Const("paddings", paddings),
           make.Const("pad_value", Tensor::Scalar(static_cast<int8_t>(in.scale.zero_point)))},
          {{"T", Dtype::kInt8}, {"Tpaddings", Dtype::kInt32}});
      RETURN_IF_ERROR(make.status());
      geometry.padding.assign(4, 0);
    }
    ASSIGN_OR_RETURN(x, Accumulate(make, l, x, geometry, rank_[&l], forms_[&l]));
    ASSIGN_OR_RETURN(Correction correction, Correct(l, in.scale));
    if (correction.offset.valid()) {
      x = make.Op("corrected", correction.subtract ? "Sub" : "AddV2",
                  {x, make.Const("offset", correction.offset)}, {{"T", Dtype::kInt32}});
    }
    x = make.Cast("sum_float", x, Dtype::kInt32, Dtype::kFloat);
    ActivationScale out;
    if (l.int8_wanted) {
      out = OutputScale(l);
      for (float& m : correction.multiplier) m /= out.scale;
    }
    const auto count = static_cast<int64_t>(correction.multiplier.size());
    x = make.Float(
        "multiplied", "Mul", x,
        make.Const("multiplier", FloatTensor(count == 1 ? Shape() : Shape(l.channel_dims),
                                             correction.multiplier)));
    x = Ordered(make, x, forms_[&l]);
    RETURN_IF_ERROR(make.status());
    Endpoint result = x;
    if (l.int8_wanted) {
      const auto zero = static_cast<float>(out.zero_point);
      const float low = l.activation ? std::max(-128.0f, zero) : -128.0f;
      float high = 127;
      if (l.activation && l.activation->Is("Relu6")) {
        high = std::min(high, std::round(6 / out.scale) + zero);
      }
      const Int8Value q{Finish(make, x, out.zero_point, low, high), out};
      RETURN_IF_ERROR(make.status());
      int8_[Key(l.output)] = q;
      // For readers of floats; Run removes it where all readers turn out to read int8.
      NodeMaker back(*scope.graph, l.node->name());
      result = Dequantize(back, q.e, out);
      RETURN_IF_ERROR(back.status());
      int8_[Key(result)] = q;
      l.written_int8 = q.e;
      l.written_scale = out;
    } else if (l.activation != nullptr) {
      scope.graph->SetInput(l.activation, 0, x);
      l.activation->AttrsToChange().Set(kLayerAttr, l.node->name());
      l.written = l.output;
      scope.graph->ReplaceControlUses(l.node, x.node);
      dead_[&scope].push_back(l.linear.node);
      return OkStatus();
    }
    flow_.Gives(result, &l);
    ReplaceEverywhere(c_, scope, l.output, result);
    scope.graph->ReplaceControlUses(l.node, result.node);
    l.written = result;
    dead_[&scope].push_back(l.output.node);
    return OkStatus();
  }

  Conversion& c_;
  LayerSet& set_;
  Int8Flow flow_;
  Ranges ranges_;
  absl::flat_hash_map<const Layer*, ConvGeometry> geometry_;
  absl::flat_hash_map<const Layer*, int> rank_;
  absl::flat_hash_map<const Layer*, ProductForm> forms_;
  absl::flat_hash_map<std::pair<const Node*, int>, Int8Value> int8_;
  DeadNodes dead_;
};

}  // namespace

Status WriteStaticRange(Conversion& c, LayerSet& set, std::vector<Scope>& scopes, Ranges ranges) {
  return StaticRangeWriter(c, set, std::move(ranges)).Run(scopes);
}

}  // namespace smelt::quantize
