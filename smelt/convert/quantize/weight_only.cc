// Weight only: int8 weights become floats before the float op; rows that are looked up, after it.
#include <algorithm>

#include "smelt/convert/quantize/node_maker.h"

namespace smelt::quantize {
namespace {

// Makes the layer's constant int8, dequantized for all its readers. Once for each constant.
Status DequantizeConstant(Conversion& c, Layer& l) {
  Weights& w = *l.weights;
  if (w.floats_made) return OkStatus();
  w.floats_made = true;
  ASSIGN_OR_RETURN(const Endpoint q, StoredInt8(l));
  NodeMaker make(*w.scope->graph, w.constant->name());
  const Endpoint x = make.Cast("float", q, Dtype::kInt8, Dtype::kFloat);
  const Endpoint y = make.Float("dequantized", "Mul", x,
                                make.Const("scale", FloatTensor(w.scale_shape, w.scales)));
  RETURN_IF_ERROR(make.status());
  ReplaceEverywhere(c, *w.scope, {w.constant, 0}, y);
  return OkStatus();
}

// GatherV2 of a variable that was read, or of a constant: rows are fetched as int8.
Status FetchInt8(Conversion& c, Layer& l) {
  Weights& w = *l.weights;
  Graph& g = *l.scope->graph;
  ASSIGN_OR_RETURN(const Endpoint q, StoredInt8(l));
  g.SetInput(l.node, 0, q);
  l.node->AttrsToChange().Set("Tparams", Dtype::kInt8);
  l.node->AttrsToChange().Set(kLayerAttr, l.node->name());
  RETURN_IF_ERROR(g.ResolveTypes(l.node));
  NodeMaker make(g, l.node->name());
  const Endpoint x = make.Cast("float", {l.node, 0}, Dtype::kInt8, Dtype::kFloat);
  const Endpoint y = make.Float("dequantized", "Mul", x,
                                make.Const("scale", FloatTensor(w.scale_shape, w.scales)));
  RETURN_IF_ERROR(make.status());
  ReplaceEverywhere(c, *l.scope, {l.node, 0}, y);
  g.SetInput(x.node, 0, {l.node, 0});
  l.written = y;
  return OkStatus();
}

// Are rows of the stored int8 values the layer's rows? Scales by row would have to be fetched as
// well: such weights are made floats whole.
bool FetchesStored(const Layer& l) {
  return l.weights->scale_shape.rank() <= 1 && l.chain.entry.node == nullptr &&
         std::ranges::all_of(l.chain.steps,
                             [](const WeightStep& s) { return s.kind == WeightStep::kSame; });
}

}  // namespace

Status WriteFloatLayers(Conversion& c, LayerSet& set, DeadNodes* dead) {
  // Gathers first: they read the int8 constant then, and dequantizing the float one passes them by.
  for (auto& l : set.layers) {
    if (!l->weight_only || l->kind != LayerKind::kGather || l->node->Is("ResourceGather")) continue;
    (*dead)[l->scope].push_back(l->node->inputs()[0].node);
    if (FetchesStored(*l)) RETURN_IF_ERROR(FetchInt8(c, *l));
  }
  for (auto& l : set.layers) {
    Weights& w = *l->weights;
    if (!l->weight_only || w.constant == nullptr || w.flow != nullptr) continue;
    if (l->kind == LayerKind::kGather && FetchesStored(*l)) continue;
    (*dead)[w.scope].push_back(w.constant);
    RETURN_IF_ERROR(DequantizeConstant(c, *l));
  }
  return OkStatus();
}

Status WriteWeightOnly(Conversion& c, LayerSet& set, std::vector<Scope>& scopes) {
  RETURN_IF_ERROR(StoreWeights(c, set));
  DeadNodes dead;
  RETURN_IF_ERROR(WriteFloatLayers(c, set, &dead));
  RETURN_IF_ERROR(DequantizeReaders(c, set));
  for (Scope& scope : scopes) RemoveUnread(c, scope, dead[&scope]);
  return OkStatus();
}

}  // namespace smelt::quantize
