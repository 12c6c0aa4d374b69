// Dynamic range: activations get their scale on every call.
#include "smelt/analysis/xla_shapes.h"
#include "smelt/convert/quantize/node_maker.h"

namespace smelt::quantize {
namespace {

constexpr float kTiny = 1e-30f;  // the scale of an input of zeros
constexpr float kLimit = 127;

struct DynamicInput {
  Endpoint int8, scale;
};

class DynamicRangeWriter {
 public:
  DynamicRangeWriter(Conversion& c, LayerSet& set) : c_(c), set_(set) {}

  Status Run(std::vector<Scope>& scopes) {
    const ModelShapes shapes = InferModelShapes(*c_.meta->graph, XlaShapeRules());
    Veto(shapes);
    RETURN_IF_ERROR(StoreWeights(c_, set_));
    DeadNodes dead;
    for (auto& layer : set_.layers) {
      if (layer->weight_only) continue;
      RETURN_IF_ERROR(Write(*layer));
      dead[layer->scope].push_back(layer->node);
    }
    RETURN_IF_ERROR(WriteFloatLayers(c_, set_, &dead));
    RETURN_IF_ERROR(DequantizeReaders(c_, set_));
    for (Scope& scope : scopes) RemoveUnread(c_, scope, dead[&scope]);
    return OkStatus();
  }

 private:
  // Takes out the layers that cannot be written, and keeps what Write needs of the others. Those
  // that cannot be computed in int8 keep int8 weights.
  void Veto(const ModelShapes& shapes) {
    std::erase_if(set_.layers, [&](const std::unique_ptr<Layer>& l) {
      if (l->kind == LayerKind::kMatMul || l->weight_only) return false;
      auto it =
          l->scope->function ? shapes.functions.find(l->scope->name()) : shapes.functions.end();
      const ShapeTable none;
      const ShapeTable& table = !l->scope->function            ? shapes.graph
                                : it == shapes.functions.end() ? none
                                                               : it->second;
      const PartialShape input = table.of(l->node->inputs()[l->input]);
      if (l->kind == LayerKind::kEinsum) {
        auto form = ProductFormOf(*l, input.known_rank() ? input.rank() : -1);
        if (form.ok()) {
          forms_[l.get()] = *std::move(form);
          return false;
        }
        return !WeightsAlone(c_, *l, std::string(form.status().message()));
      }
      if (l->kind == LayerKind::kBatchMatMul) {
        std::string reason = WhyNoProduct(*l, input);
        if (!reason.empty()) return !WeightsAlone(c_, *l, std::move(reason));
        rank_[l.get()] = input.rank();
        return false;
      }
      auto geometry = GeometryOf(*l, input);
      if (geometry.ok()) {
        geometry_[l.get()] = *std::move(geometry);
        return false;
      }
      return !WeightsAlone(c_, *l, std::string(geometry.status().message()));
    });
  }

  // The layer's input as int8 with its scale, computed once for all layers that read the tensor.
  StatusOr<DynamicInput> Input(Layer& l) {
    const Endpoint x = l.node->inputs()[l.input];
    auto it = inputs_.find({x.node, x.port});
    if (it != inputs_.end()) return it->second;
    NodeMaker make(*l.scope->graph, x.node->name() + "/quantize");
    const Endpoint flat = make.Op("flat", "Reshape", {x, make.Ints("flat_shape", {-1})},
                                  {{"T", Dtype::kFloat}, {"Tshape", Dtype::kInt32}});
    const Endpoint size = make.Op("abs", "Abs", {flat}, {{"T", Dtype::kFloat}});
    const Endpoint largest =
        make.Op("largest", "Max", {size, make.Ints("axis", {0})},
                {{"T", Dtype::kFloat}, {"Tidx", Dtype::kInt32}, {"keep_dims", false}});
    const Endpoint positive =
        make.Float("positive", "Maximum", largest, make.Scalar("tiny", kTiny));
    const Endpoint scale =
        make.Float("scale", "Mul", positive, make.Scalar("inverse_limit", 1 / kLimit));
    Endpoint q = make.Float("scaled", "Div", x, scale);
    q = make.Float("above", "Maximum", q, make.Scalar("low", -kLimit));
    q = make.Float("within", "Minimum", q, make.Scalar("high", kLimit));
    q = make.Op("rounded", "Round", {q}, {{"T", Dtype::kFloat}});
    q = make.Cast("int8", q, Dtype::kFloat, Dtype::kInt8);
    RETURN_IF_ERROR(make.status());
    return inputs_[{x.node, x.port}] = DynamicInput{q, scale};
  }

  Status Write(Layer& l) {
    l.read = l.node->inputs()[l.input];
    ASSIGN_OR_RETURN(const DynamicInput in, Input(l));
    NodeMaker make(*l.scope->graph, l.node->name());
    ASSIGN_OR_RETURN(Endpoint sum,
                     Accumulate(make, l, in.int8, geometry_[&l], rank_[&l], forms_[&l]));
    sum = make.Cast("sum_float", sum, Dtype::kInt32, Dtype::kFloat);
    const Endpoint scale = make.Float(
        "scale", "Mul", in.scale,
        make.Const("weight_scale",
                   FloatTensor(l.scales.size() == 1 ? Shape() : Shape(l.channel_dims), l.scales)));
    const Endpoint result = Ordered(make, make.Float("multiplied", "Mul", sum, scale), forms_[&l]);
    RETURN_IF_ERROR(make.status());
    ReplaceEverywhere(c_, *l.scope, {l.node, 0}, result);
    l.written = result;
    return OkStatus();
  }

  Conversion& c_;
  LayerSet& set_;
  absl::flat_hash_map<const Layer*, ConvGeometry> geometry_;
  absl::flat_hash_map<const Layer*, ProductForm> forms_;
  absl::flat_hash_map<const Layer*, int> rank_;
  absl::flat_hash_map<std::pair<const Node*, int>, DynamicInput> inputs_;
};

}  // namespace

Status WriteDynamicRange(Conversion& c, LayerSet& set, std::vector<Scope>& scopes) {
  return DynamicRangeWriter(c, set).Run(scopes);
}

}  // namespace smelt::quantize
