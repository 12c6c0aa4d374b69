// Weights as symmetric int8: scales, values, storage.
#include <algorithm>
#include <cmath>

#include "smelt/convert/quantize/node_maker.h"
#include "smelt/graph/op_facts.h"

namespace smelt::quantize {
namespace {

// Which of the scales an element of the weights has. Both are counted in row-major order.
class ScaleIndex {
 public:
  ScaleIndex(const Shape& weights, const Shape& scale) {
    int64_t inner = 1, stride = 1;
    for (int i = 1; i <= scale.rank(); inner *= weights.back(i), ++i) {
      if (scale.back(i) == 1) continue;
      // Dimensions that follow each other are one.
      if (!parts_.empty() && parts_.back().inner * parts_.back().size == inner) {
        parts_.back().size *= scale.back(i);
      } else {
        parts_.push_back({inner, scale.back(i), stride});
      }
      stride *= scale.back(i);
    }
  }
  int64_t operator()(int64_t element) const {
    int64_t index = 0;
    for (const Part& p : parts_) index += element / p.inner % p.size * p.stride;
    return index;
  }

 private:
  struct Part {
    int64_t inner, size, stride;
  };
  std::vector<Part> parts_;
};

constexpr float kWeightLimit = 127;

int8_t QuantizeOne(float w, float scale) {
  const float q = std::nearbyint(w / scale);
  return static_cast<int8_t>(std::min(kWeightLimit, std::max(-kWeightLimit, q)));
}

}  // namespace

Status ChooseScales(Weights& w) {
  const ScaleIndex index(w.value.shape(), w.scale_shape);
  std::vector<float> largest(w.scale_shape.num_elements(), 0);
  const auto values = w.value.flat<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return InvalidArgument("Its weights hold NaN or infinity.");
    float& m = largest[index(static_cast<int64_t>(i))];
    m = std::max(m, std::abs(values[i]));
  }
  w.scales.clear();
  for (const float m : largest) {
    // All zero, or so small that the scale would vanish: they become zeros.
    const float scale = m / kWeightLimit;
    w.scales.push_back(scale > 0 && std::isnormal(scale) ? scale : 1.0f);
  }
  double squares = 0, wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const float scale = w.scales[index(static_cast<int64_t>(i))];
    const double d = double{values[i]} - double{scale} * QuantizeOne(values[i], scale);
    squares += double{values[i]} * values[i];
    wrong += d * d;
  }
  w.error = squares > 0 ? std::sqrt(wrong / squares) : 0;
  return OkStatus();
}

StatusOr<Tensor> QuantizeWeights(const Tensor& value, const Shape& scale_shape,
                                 const std::vector<float>& scales) {
  if (value.dtype() != Dtype::kFloat) return Internal("weights of ", DtypeName(value.dtype()));
  ASSIGN_OR_RETURN(Tensor q, Tensor::Make(Dtype::kInt8, value.shape()));
  const ScaleIndex index(value.shape(), scale_shape);
  const auto from = value.flat<float>();
  const auto to = q.flat<int8_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = QuantizeOne(from[i], scales[index(static_cast<int64_t>(i))]);
  }
  return q;
}

Tensor FloatTensor(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Vector(std::span<const float>(values)).WithShape(shape);
}

namespace {

// One scale for each place along a dimension only where each channel, of every layer that uses the
// weights, is at one place of it.
Status ChooseChannels(LayerSet& set) {
  std::map<Weights*, std::vector<const Layer*>> users;
  for (const auto& layer : set.layers) users[layer->weights].push_back(layer.get());
  for (auto& [weights, layers] : users) {
    const Shape& stored = weights->value.shape();
    Dims dims(stored.dims().begin(), stored.dims().end());
    for (const Layer* l : layers) {
      for (int d = 0; d < stored.rank(); ++d) {
        if (l->places[d].empty()) dims[d] = 1;
      }
    }
    // Rows that are looked up keep their last dimension alone.
    if (weights->variable && !weights->variable->lookups.empty()) {
      for (int d = 0; d + 1 < stored.rank(); ++d) dims[d] = 1;
    }
    const auto first = std::ranges::find_if(dims, [](int64_t d) { return d != 1; });
    const Shape shape(Dims(first, dims.end()));
    if (shape == weights->scale_shape) continue;
    weights->scale_shape = shape;
    RETURN_IF_ERROR(ChooseScales(*weights));
  }
  return OkStatus();
}

// The scales of the weights as the layer reads them.
void ScaleLayer(Layer& l) {
  const Weights& w = *l.weights;
  const bool by_channel = w.scales.size() > 1 || l.factors.size() > 1;
  l.scales.assign(by_channel ? l.channels : 1, 0);
  for (int64_t c = 0; c < std::ssize(l.scales); ++c) {
    int64_t index = 0, stride = 1;
    for (int i = 1; i <= w.scale_shape.rank(); ++i) {
      const int64_t size = w.scale_shape.back(i);
      if (size > 1) index += l.places[w.value.rank() - i][c] * stride;
      stride *= size;
    }
    l.scales[c] = w.scales[index] * l.factors[l.factors.size() == 1 ? 0 : c];
  }
}

// What an optimizer gathered for a variable means nothing for its quantized values: it starts anew.
StatusOr<Tensor> NewSlot(const Tensor& t) {
  ASSIGN_OR_RETURN(Tensor zeros, Tensor::Make(Dtype::kInt8, t.shape()));
  std::ranges::fill(zeros.flat<int8_t>(), int8_t{0});
  return zeros;
}

Status StoreVariable(Conversion& c, ModelVariables& variables, Weights& w) {
  ModelVariable& v = *w.variable;
  StoredVariable record{v.key, v.dtype, Dtype::kInt8, static_cast<int64_t>(w.value.bytes()),
                        w.value.num_elements()};
  RETURN_IF_ERROR(variables.SetStored(
      v, Dtype::kInt8,
      [shape = w.scale_shape, scales = w.scales](const Tensor& t) -> StatusOr<Tensor> {
        return QuantizeWeights(t, shape, scales);
      },
      NewSlot));
  c.records.variables.push_back(std::move(record));
  for (const auto* uses : {&v.reads, &v.lookups}) {
    for (const HandleUse& use : *uses) {
      Graph& g = use.function ? *use.function->body : *c.meta->graph;
      use.node->AttrsToChange().Set("dtype", Dtype::kInt8);
      RETURN_IF_ERROR(g.ResolveTypes(use.node));
    }
  }
  return OkStatus();
}

}  // namespace

Status StoreWeights(Conversion& c, LayerSet& set) {
  const QuantizationOption& q = *c.options.quantization_options;
  if (q.per_channel.value_or(true)) RETURN_IF_ERROR(ChooseChannels(set));
  ASSIGN_OR_RETURN(ModelVariables * variables, c.Variables());
  absl::flat_hash_set<const Weights*> done;
  for (const auto& layer : set.layers) {
    Weights& w = *layer->weights;
    if (!layer->weight_only) ScaleLayer(*layer);
    c.records.layers[layer->record].weight_error = w.error;
    if (!done.insert(&w).second) continue;
    if (w.variable != nullptr) RETURN_IF_ERROR(StoreVariable(c, *variables, w));
    if (w.flow != nullptr) RETURN_IF_ERROR(PassInt8(w));
  }
  return OkStatus();
}

StatusOr<Endpoint> StoredInt8(const Layer& layer) {
  Weights& w = *layer.weights;
  if (w.variable != nullptr || w.flow != nullptr) return layer.chain.source;
  if (w.quantized == nullptr) {
    ASSIGN_OR_RETURN(const Tensor q, QuantizeWeights(w.value, w.scale_shape, w.scales));
    Graph& g = *w.scope->graph;
    w.quantized = g.AddConst(g.FreeName(w.constant->name() + "/int8"), q);
  }
  return Endpoint{w.quantized, 0};
}

StatusOr<Endpoint> Int8Weights(const Layer& layer) {
  Endpoint e = layer.chain.entry;
  if (e.node == nullptr) {
    ASSIGN_OR_RETURN(e, StoredInt8(layer));
  }
  for (const WeightStep& step : layer.chain.steps) {
    if (step.kind != WeightStep::kMove) continue;
    // Each part of a split weight is read by another layer.
    Node*& copy = layer.weights->moves[{e.node, e.port, step.node}];
    if (copy == nullptr) {
      std::vector<Endpoint> inputs(step.node->inputs().begin(), step.node->inputs().end());
      inputs[step.input] = e;
      AttrMap attrs = step.node->attrs();
      attrs.Set(ResultTypeAttr(step.node->op_name()), Dtype::kInt8);
      attrs.Set(kLayerAttr, step.node->name());
      Graph& g = *layer.scope->graph;
      ASSIGN_OR_RETURN(copy, g.Add(g.FreeName(step.node->name() + "/int8"), step.node->op(),
                                   std::move(inputs), std::move(attrs)));
    }
    e = {copy, step.port};
  }
  return e;
}

StatusOr<Tensor> Int8Values(const Layer& layer) {
  const Weights& w = *layer.weights;
  ASSIGN_OR_RETURN(Tensor q, QuantizeWeights(w.value, w.scale_shape, w.scales));
  if (!layer.chain.Has(WeightStep::kMove)) return q;
  // The steps' nodes are of floats, which hold these integers exactly.
  ASSIGN_OR_RETURN(Tensor floats, Tensor::Make(Dtype::kFloat, q.shape()));
  std::ranges::copy(q.flat<int8_t>(), floats.flat<float>().begin());
  ASSIGN_OR_RETURN(floats, RunSteps(layer.chain, std::move(floats), {WeightStep::kMove}));
  ASSIGN_OR_RETURN(q, Tensor::Make(Dtype::kInt8, floats.shape()));
  const auto to = q.flat<int8_t>();
  std::ranges::transform(std::as_const(floats).flat<float>(), to.begin(),
                         [](float v) { return static_cast<int8_t>(v); });
  return q;
}

Endpoint Dequantize(NodeMaker& make, Endpoint q, ActivationScale scale) {
  Endpoint f = make.Cast("float", q, Dtype::kInt8, Dtype::kFloat);
  if (scale.zero_point != 0) {
    f = make.Float("centred", "Sub", f,
                   make.Scalar("zero_point", static_cast<float>(scale.zero_point)));
  }
  return make.Float("dequantized", "Mul", f, make.Scalar("scale", scale.scale));
}

Status DequantizeForFloats(Conversion& c, Graph& g, Function* f, Endpoint q, const Weights& w) {
  std::vector<Use> of_float, of_int8;
  for (const Use& use : q.node->OrderedUses()) {
    if (use.port() != q.port) continue;
    (use.node->input_types[use.input] == Dtype::kFloat ? of_float : of_int8).push_back(use);
  }
  Scope scope;
  scope.function = f;
  scope.graph = &g;
  bool result = false;
  if (f != nullptr) {
    if (w.flow == nullptr) {
      for (const Endpoint& e : f->FlatResults()) result |= e == q;
    }
  } else {
    for (const auto& [key, signature] : c.meta->signatures) {
      for (const auto& [name, info] : signature.outputs) {
        for (const std::string& tensor : TensorNames(info)) {
          auto e = g.FindEndpoint(tensor);
          result |= e.ok() && *e == q;
        }
      }
    }
  }
  if (of_float.empty() && !result) return OkStatus();
  NodeMaker make(g, q.node->name());
  const Endpoint x = make.Cast("float", q, Dtype::kInt8, Dtype::kFloat);
  const Endpoint y = make.Float("dequantized", "Mul", x,
                                make.Const("scale", FloatTensor(w.scale_shape, w.scales)));
  RETURN_IF_ERROR(make.status());
  for (const Use& use : of_float) g.SetInput(use.node, use.input, y);
  if (result) {
    ReplaceEverywhere(c, scope, q, y);
    g.SetInput(x.node, 0, q);
    for (const Use& use : of_int8) g.SetInput(use.node, use.input, q);
  }
  return OkStatus();
}

Status DequantizeReaders(Conversion& c, LayerSet& set) {
  absl::flat_hash_set<const Weights*> done;
  for (const auto& layer : set.layers) {
    const Weights& w = *layer->weights;
    if (!done.insert(&w).second) continue;
    if (w.flow != nullptr) {
      RETURN_IF_ERROR(DequantizePlaces(c, w));
      if (w.constant != nullptr) {
        RETURN_IF_ERROR(
            DequantizeForFloats(c, *w.scope->graph, w.scope->function, {w.constant, 0}, w));
      }
    }
    if (w.variable == nullptr) continue;
    for (const auto* uses : {&w.variable->reads, &w.variable->lookups}) {
      for (const HandleUse& use : *uses) {
        Graph& g = use.function ? *use.function->body : *c.meta->graph;
        RETURN_IF_ERROR(DequantizeForFloats(c, g, use.function, {use.node, 0}, w));
      }
    }
  }
  return OkStatus();
}

}  // namespace smelt::quantize
