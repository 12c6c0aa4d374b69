// Which ops are layers, and why others are not.
#include <re2/re2.h>

#include <set>

#include "smelt/analysis/cost.h"
#include "smelt/base/suggest.h"
#include "smelt/convert/quantize/quantize.h"
#include "smelt/graph/op_facts.h"

namespace smelt::quantize {
namespace {

std::optional<LayerKind> KindOf(const Node& n) {
  struct Row {
    OpName op;
    LayerKind kind;
  };
  static constexpr Row kRows[] = {
      {"Conv2D", LayerKind::kConv},
      {"Conv3D", LayerKind::kConv3d},
      {"DepthwiseConv2dNative", LayerKind::kDepthwise},
      {"MatMul", LayerKind::kMatMul},
      {"BatchMatMul", LayerKind::kBatchMatMul},
      {"BatchMatMulV2", LayerKind::kBatchMatMul},
      {"BatchMatMulV3", LayerKind::kBatchMatMul},
      {"Einsum", LayerKind::kEinsum},
      {"XlaDot", LayerKind::kEinsum},
      {"XlaDotV2", LayerKind::kEinsum},
      {"GatherV2", LayerKind::kGather},
      {"ResourceGather", LayerKind::kGather},
  };
  for (const auto& [op, kind] : kRows) {
    if (!n.Is(op)) continue;
    return kind;
  }
  return std::nullopt;
}

constexpr char kStrip[] = " --strip_training takes out what only training uses.";

absl::string_view MethodName(QuantizationPreset preset) {
  switch (preset) {
    case QuantizationPreset::kDynamicRange:
      return "dynamic_range";
    case QuantizationPreset::kWeightOnly:
      return "weight_only";
    default:
      return "static_range";
  }
}

// The units that the options name, most of them to stay float.
class Units {
 public:
  explicit Units(const QuantizationOption& q) {
    for (const UnitWiseQuantizationOption& spec : q.unit_wise) {
      // Any other method is that of the whole model (quantize/options.cc checks it).
      const bool stay_float = spec.method.preset == QuantizationPreset::kNoQuantize;
      for (const QuantizationUnitOption& u : spec.units) {
        units_.push_back({u, u.node_name.empty() ? nullptr : Regex(u.node_name),
                          u.func_name.empty() ? nullptr : Regex(u.func_name), stay_float});
      }
    }
  }
  bool Exclude(const Scope& scope, const Node& n) {
    bool exclude = false;
    for (Unit& u : units_) {
      const bool op = u.option.op_type.empty() || u.option.op_type == n.op();
      const bool name = !u.node || RE2::FullMatch(n.name(), *u.node);
      const bool function = !u.function || RE2::FullMatch(scope.name(), *u.function);
      u.op_found |= op;
      u.name_found |= name;
      u.function_found |= function;
      if (!op || !name || !function) continue;
      u.found = true;
      exclude |= u.stay_float;
    }
    return exclude;
  }
  // Says which units name nothing. `layers` are all candidates.
  void Report(ConversionRecords& records) const {
    for (const Unit& u : units_) {
      if (u.found) continue;
      std::set<std::string> ops, names, functions;
      for (const QuantizedLayer& l : records.layers) {
        ops.insert(l.op);
        names.insert(l.node);
        functions.insert(l.function);
      }
      std::string why = "no layer is all that it names";
      if (!u.op_found) {
        why = NoSuch("op type", u.option.op_type, ops);
      } else if (!u.name_found) {
        why = NoSuch("name", u.option.node_name, names);
      } else if (!u.function_found) {
        why = NoSuch("function", u.option.func_name, functions);
      }
      records.AddNote("quantize", absl::StrCat("unit_wise_quantization_specs (--exclude) has a "
                                               "unit without layers: ",
                                               why));
    }
  }

 private:
  static std::shared_ptr<RE2> Regex(const std::string& text) {
    return std::make_shared<RE2>(text, RE2::Quiet);
  }
  static std::string NoSuch(absl::string_view what, absl::string_view wanted,
                            const std::set<std::string>& there) {
    // Of a regular expression the words say what was meant.
    std::string words(wanted);
    RE2::GlobalReplace(&words, R"(\\[QE]|\\|[.][*+?]|[()^$])", "");
    return absl::StrCat("no layer has the ", what, " \"", wanted, "\"",
                        Suggest(words, std::vector<std::string>(there.begin(), there.end())));
  }
  struct Unit {
    QuantizationUnitOption option;
    std::shared_ptr<RE2> node, function;
    bool stay_float = false;
    bool op_found = false, name_found = false, function_found = false, found = false;
  };
  std::vector<Unit> units_;
};

class LayerFinder {
 public:
  LayerFinder(Conversion& c, std::vector<Scope>& scopes, const KnownValues& known)
      : c_(c),
        q_(*c.options.quantization_options),
        known_(known),
        scopes_(scopes),
        units_(q_),
        costs_(*c.meta->graph) {}

  Status Run() {
    ASSIGN_OR_RETURN(captured_, CapturedConstants(*c_.meta));
    for (Scope& scope : scopes_) {
      for (Node* n : scope.graph->Nodes()) {
        if (!scope.nodes.contains(n)) continue;
        const auto kind = KindOf(*n);
        if (!kind) continue;
        auto layer = std::make_unique<Layer>();
        layer->scope = &scope;
        layer->node = n;
        layer->kind = *kind;
        layer->output = layer->linear = layer->written = {n, 0};
        Add(std::move(layer));
      }
    }
    units_.Report(c_.records);
    return OkStatus();
  }

  LayerSet set;

 private:
  void Add(std::unique_ptr<Layer> layer) {
    const Dtype type =
        layer->node->output_types.empty() ? Dtype::kInvalid : layer->node->output_types[0];
    // What is not float32 is no candidate: it gets no record.
    if (type != Dtype::kFloat) return;
    QuantizedLayer record;
    record.function = layer->scope->name();
    record.node = layer->node->name();
    record.op = std::string(layer->node->op());
    record.cost = CostModel::OfNodeAlone(*layer->node, layer->scope->function != nullptr
                                                           ? costs_.ShapesOf(record.function)
                                                           : costs_.shapes().graph);
    std::string alone;
    record.reason = WhyNot(*layer, &alone);
    record.quantized = record.reason.empty();
    record.method = std::string(
        MethodName(layer->weight_only ? QuantizationPreset::kWeightOnly : q_.method.preset));
    if (record.quantized && q_.method.preset != QuantizationPreset::kWeightOnly) {
      record.reason = std::move(alone);
    }
    // A gather from what is no weight is indexing, not a layer.
    if (!record.quantized && layer->kind == LayerKind::kGather) return;
    if (layer->weights != nullptr) {
      record.bytes_before = static_cast<int64_t>(layer->weights->value.bytes());
      record.bytes = record.quantized ? layer->weights->value.num_elements() : record.bytes_before;
    }
    layer->record = c_.records.layers.size();
    c_.records.layers.push_back(std::move(record));
    if (c_.records.layers.back().quantized) set.layers.push_back(std::move(layer));
  }

  // `alone` gets why the layer itself must stay a float op, where its weights may be quantized.
  std::string WhyNot(Layer& layer, std::string* alone) {
    const Node& n = *layer.node;
    if (n.attrs().Find(kClusterAttr)) return "It is on the accelerator already.";
    if (units_.Exclude(*layer.scope, n)) return "Excluded by unit_wise_quantization_specs.";
    if (layer.kind == LayerKind::kGather) {
      layer.input = 1;
      layer.weights_input = 0;
    } else {
      layer.input = 0;
      layer.weights_input = 1;
    }
    std::string why = FindWeights(layer);
    if (!why.empty() && layer.kind == LayerKind::kEinsum && n.num_inputs() == 2) {
      // The weights of an Einsum may stand on either side.
      std::swap(layer.input, layer.weights_input);
      if (FindWeights(layer).empty()) why.clear();
    }
    if (!why.empty()) return why;
    if (layer.kind == LayerKind::kEinsum && n.input_types[layer.input] != Dtype::kFloat) {
      return "Its input is not float32.";
    }
    const int64_t elements = layer.weights->value.num_elements();
    if (elements == 0) return "Its weights are empty.";
    if (layer.kind == LayerKind::kGather) {
      why = CheckGather(layer);
      if (!why.empty()) return why;
    }
    why = PassWeights(layer);
    if (!why.empty()) return why;
    *alone = WhyAlone(layer);
    layer.weight_only = q_.method.preset == QuantizationPreset::kWeightOnly || !alone->empty();
    if ((layer.weight_only || q_.method.preset != QuantizationPreset::kStaticRange) &&
        elements < q_.min_num_elements_for_weights) {
      return !alone->empty() && q_.method.preset == QuantizationPreset::kStaticRange
                 ? *alone
                 : absl::StrCat("Its weights have ", elements,
                                " elements, less than min_num_elements_for_weights.");
    }
    return "";
  }

  std::string WhyAlone(Layer& layer) {
    const bool by_channel = q_.per_channel.value_or(true);
    std::string why = CheckShape(layer, layer.weight_value.shape());
    if (layer.channel_dims.empty()) layer.channel_dims = {layer.channels};
    const bool fits = FitChannels(layer, by_channel);
    if (!why.empty()) return why;
    if (!fits) return "Its weights are computed from what is stored, and not by channel.";
    if (layer.chain.entry.node != nullptr &&
        (layer.weights->flow == nullptr || layer.chain.changed_before_entry ||
         !PassesThrough(*layer.weights->flow, layer.chain.entry))) {
      return "Its weights are an argument of the function.";
    }
    return "";
  }

  // Weights are passed to functions as int8 where layers there compute in int8, and where the
  // object graph's functions have them from the constant itself.
  std::string PassWeights(const Layer& layer) {
    Weights& w = *layer.weights;
    const bool captured = w.constant != nullptr && w.scope->function == nullptr &&
                          captured_.contains(w.constant->name());
    const bool enters =
        layer.chain.entry.node != nullptr && q_.method.preset != QuantizationPreset::kWeightOnly;
    if (w.flow != nullptr || !(captured || enters)) return "";
    auto flow = FollowValue(c_, scopes_, w);
    if (!flow.ok()) return std::string(flow.status().message());
    w.flow = *std::move(flow);
    return captured && w.flow == nullptr ? "Its weights are a constant that functions of the "
                                           "object graph take otherwise, too."
                                         : "";
  }

  std::string FindWeights(Layer& layer) {
    const Scope& scope = *layer.scope;
    Endpoint e = layer.node->inputs()[layer.weights_input];
    const void* key = nullptr;
    auto weights = std::make_unique<Weights>();
    if (layer.node->Is("ResourceGather")) {
      weights->variable = known_.ReadOnlyVariable(scope, e);
      if (weights->variable == nullptr) return "It reads a variable that is assigned or not known.";
      layer.chain = {};
      layer.chain.source = e;
      layer.chain.scope = layer.scope;
    } else {
      constexpr char kNotConstant[] = "Non-constant weights are not supported at the moment.";
      auto chain = FollowWeights(scopes_, *layer.scope, e, known_);
      if (!chain) {
        const std::string why = WhyReference(e);
        return why.empty() ? kNotConstant : why;
      }
      layer.chain = *std::move(chain);
      Node* source = layer.chain.source.node;
      if (source->Is("ReadVariableOp")) {
        weights->variable = known_.ReadOnlyVariable(scope, source->inputs()[0]);
        if (weights->variable == nullptr) return kNotConstant;
      } else {
        weights->constant = source;
        weights->scope = layer.chain.scope;
      }
      if (const std::string why = ReadValues(layer, e, *weights); !why.empty()) return why;
    }
    if (weights->variable != nullptr) {
      if (const std::string why = weights->variable->WhyFixed(); !why.empty()) {
        return absl::StrCat("Its variable must stay as it is: ", why, ".",
                            weights->variable->key.empty() ? "" : kStrip);
      }
      key = weights->variable;
      for (const HandleUse& use : weights->variable->lookups) {
        if (!use.node->Is("ResourceGather")) return "ResourceGatherNd reads its weights, too.";
      }
    } else {
      key = weights->constant;
    }
    auto& slot = set.weights[key];
    if (slot == nullptr) {
      if (!weights->value.valid()) {
        auto value = weights->variable ? VariableValue(*weights->variable)
                                       : known_.Of(scope, {weights->constant, 0});
        if (!value) {
          set.weights.erase(key);
          return "Its weights are not in the checkpoint.";
        }
        weights->value = *value;
      }
      if (weights->value.dtype() != Dtype::kFloat) return "Its weights are not float32.";
      if (Status s = ChooseScales(*weights); !s.ok()) {
        set.weights.erase(key);
        return std::string(s.message());
      }
      slot = std::move(weights);
    }
    layer.weights = slot.get();
    if (!layer.weight_value.valid()) layer.weight_value = slot->value;
    return "";
  }

  // Of weights that are still a variable of TensorFlow 1 (MakeResourceVariables): what keeps it so.
  static std::string WhyReference(Endpoint e) {
    while (e.node->Is(kIdentityOps) && e.port < e.node->num_inputs()) {
      e = e.node->inputs()[e.port];
    }
    if (e.port != 0 || !IsRef(e.node->output_types[0])) return "";
    for (const Use& use : e.node->OrderedUses()) {
      if (use.is_control() || !IsRef(use.node->input_types[use.input]) || use.node->Is("Assign")) {
        continue;
      }
      return absl::StrCat("Its variable must stay as it is: changed by '", use.node->name(), "' (",
                          use.node->op(), ").", kStrip);
    }
    return "";
  }

  // What the layer reads at `e`, and of what is stored the values that training saw.
  std::string ReadValues(Layer& layer, Endpoint e, Weights& weights) {
    constexpr char kNoRange[] = "The FakeQuant of its weights has no known range.";
    bool faked = false;
    for (const WeightStep& step : layer.chain.steps) {
      if (step.kind != WeightStep::kSame) break;
      if (!IsFakeQuant(*step.node)) continue;
      auto value = known_.Of(*layer.chain.scope, {step.node, step.port});
      if (!value) return kNoRange;
      weights.value = *value;
    }
    for (const WeightStep& step : layer.chain.steps) faked |= IsFakeQuant(*step.node);
    auto value = known_.Of(*layer.scope, e);
    if (!value) return faked ? kNoRange : "Its weights are not in the checkpoint.";
    if (value->dtype() != Dtype::kFloat) return "Its weights are not float32.";
    layer.weight_value = *std::move(value);
    return "";
  }

  std::optional<Tensor> VariableValue(const ModelVariable& v) {
    auto variables = c_.Variables();
    if (!variables.ok()) return std::nullopt;
    auto t = (*variables)->Value(v);
    return t.ok() ? std::optional<Tensor>(*std::move(t)) : std::nullopt;
  }

  std::string CheckShape(Layer& layer, const Shape& w) {
    const Node& n = *layer.node;
    const int rank = w.rank();
    switch (layer.kind) {
      case LayerKind::kConv:
      case LayerKind::kDepthwise: {
        if (rank != 4) return "Its filter is not of rank 4.";
        const bool depthwise = layer.kind == LayerKind::kDepthwise;
        layer.channels = depthwise ? w[2] * w[3] : w[3];
        layer.terms = w[0] * w[1] * (depthwise ? 1 : w[2]);
        layer.channel_strides = {0, 0, depthwise ? w[3] : 0, 1};
        layer.output_rank = 4;
        if (n.String("data_format", "NHWC") != "NHWC") return "Its data_format is not NHWC.";
        break;
      }
      case LayerKind::kConv3d: {
        if (rank != 5) return "Its filter is not of rank 5.";
        layer.channels = w[4];
        layer.channel_strides = {0, 0, 0, 0, 1};
        return "Conv3D is not computed in int8.";
      }
      case LayerKind::kMatMul: {
        if (rank != 2) return "Its weights are not a matrix.";
        const bool transposed = WeightsTransposed(n);
        layer.channels = transposed ? w[0] : w[1];
        layer.terms = transposed ? w[1] : w[0];
        layer.channel_strides = {transposed, !transposed};
        break;
      }
      case LayerKind::kBatchMatMul: {
        if (rank < 2) return "Its weights are not a matrix.";
        const bool transposed = WeightsTransposed(n);
        layer.channels = transposed ? w.back(2) : w.back(1);
        layer.terms = transposed ? w.back(1) : w.back(2);
        layer.channel_strides.assign(rank, 0);
        layer.channel_strides[transposed ? rank - 2 : rank - 1] = 1;
        break;
      }
      case LayerKind::kEinsum: {
        // Whatever an ellipsis stands for, the channels are the same.
        auto form = ProductFormOf(layer, kMaxRank / 2);
        if (!form.ok()) return std::string(form.status().message());
        layer.channel_dims = form->channels;
        layer.channels = Shape(form->channels).num_elements();
        layer.terms = w.num_elements() / layer.channels;
        layer.output_rank = static_cast<int>(form->channels.size());
        layer.channel_strides = form->channel_strides;
        break;
      }
      case LayerKind::kGather: {
        layer.channels = rank > 1 ? w.back(1) : 1;
        layer.channel_strides.assign(rank, 0);
        if (rank > 1) layer.channel_strides.back() = 1;
        return "Its rows are looked up.";
      }
    }
    return "";
  }

  std::string CheckGather(const Layer& layer) {
    const Node& n = *layer.node;
    if (layer.weight_value.rank() < 1) return "What it reads is a scalar.";
    if (n.Int("batch_dims") != 0) return "It has batch dimensions.";
    if (n.Is("ResourceGather")) return "";
    // Along another axis the channels would move.
    auto axis = known_.Of(*layer.scope, n.inputs()[2]);
    const bool first = axis && axis->num_elements() == 1 && IndexAt(*axis, 0) == 0;
    return first ? "" : "Its axis is not 0.";
  }

  Conversion& c_;
  const QuantizationOption& q_;
  const KnownValues& known_;
  std::vector<Scope>& scopes_;
  Units units_;
  const CostModel costs_;
  absl::flat_hash_set<std::string> captured_;
};

}  // namespace

bool WeightsTransposed(const Node& n) {
  return n.Is("MatMul") ? n.Bool("transpose_b") : n.Bool("adj_y");
}

bool IsFakeQuant(const Node& n) {
  return (n.Is("FakeQuantWithMinMaxArgs") || n.Is("FakeQuantWithMinMaxVars") ||
          n.Is("FakeQuantWithMinMaxVarsPerChannel")) &&
         n.Int("num_bits", 8) == 8;
}

bool WeightsAlone(Conversion& c, Layer& layer, std::string reason) {
  const int64_t elements = layer.weights->value.num_elements();
  if (elements < c.options.quantization_options->min_num_elements_for_weights) {
    LeaveFloat(c, layer, std::move(reason));
    return false;
  }
  layer.weight_only = true;
  // What follows is no longer part of it.
  layer.output = layer.linear = layer.written = {layer.node, 0};
  layer.output_key = KeyOf(*layer.scope, layer.output);
  layer.activation = nullptr;
  layer.relu = layer.relu6 = false;
  layer.multiplier = {1};
  layer.bias.clear();
  QuantizedLayer& record = c.records.layers[layer.record];
  record.method = std::string(MethodName(QuantizationPreset::kWeightOnly));
  record.reason = std::move(reason);
  return true;
}

void LeaveFloat(Conversion& c, Layer& layer, std::string reason) {
  QuantizedLayer& record = c.records.layers[layer.record];
  record.quantized = false;
  record.reason = std::move(reason);
  record.bytes = record.bytes_before;
}

StatusOr<LayerSet> FindLayers(Conversion& c, std::vector<Scope>& scopes, const KnownValues& known) {
  LayerFinder finder(c, scopes, known);
  RETURN_IF_ERROR(finder.Run());
  if (c.options.quantization_options->method.preset == QuantizationPreset::kStaticRange) {
    for (auto& layer : finder.set.layers) {
      if (!layer->weight_only) AbsorbFollowers(*layer, known);
    }
  }
  for (auto& layer : finder.set.layers) {
    layer->output_key = KeyOf(*layer->scope, layer->output);
    layer->written = layer->output;
    layer->relu = layer->activation != nullptr;
    layer->relu6 = layer->relu && layer->activation->Is("Relu6");
  }
  return std::move(finder.set);
}

}  // namespace smelt::quantize
