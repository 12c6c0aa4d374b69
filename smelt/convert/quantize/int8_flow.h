// Where int8 results may go from layer to layer without becoming floats.
#ifndef SMELT_CONVERT_QUANTIZE_INT8_FLOW_H_
#define SMELT_CONVERT_QUANTIZE_INT8_FLOW_H_

#include "smelt/convert/quantize/quantize.h"

namespace smelt::quantize {

class Int8Flow {
 public:
  explicit Int8Flow(const LayerSet& set) {
    for (const auto& layer : set.layers) Gives(layer->output, layer.get());
  }
  // From now on the layer's result is read there, too.
  void Gives(Endpoint e, Layer* layer) { producers_[{e.node, e.port}] = layer; }
  Layer* Producer(Endpoint e) const {
    auto it = producers_.find({e.node, e.port});
    return it == producers_.end() ? nullptr : it->second;
  }
  // The layer whose result this is, changed at most by ops that int8 passes through.
  Layer* Behind(Endpoint e) const;
  // The tensor behind FakeQuant nodes.
  static Endpoint Unfaked(Endpoint e) {
    while (IsFakeQuant(*e.node)) e = e.node->inputs()[0];
    return e;
  }

 private:
  absl::flat_hash_map<std::pair<const Node*, int>, Layer*> producers_;
};

// The op computes the same on int8 at the scale of its input.
bool PassesInt8(const Node& n);

}  // namespace smelt::quantize

#endif  // SMELT_CONVERT_QUANTIZE_INT8_FLOW_H_
