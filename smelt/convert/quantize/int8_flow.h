// Where int8 results may go from layer to layer without becoming floats.
#ifndef SMELT_CONVERT_QUANTIZE_INT8_FLOW_H_
#define SMELT_CONVERT_QUANTIZE_INT8_FLOW_H_

#include "smelt/convert/quantize/quantize.h"

namespace smelt::quantize {

class Int8Flow {
 public:
  explicit Int8Flow(const LayerSet& set) {
    for (const auto& layer : set.layers) {
      if (!layer->weight_only) Gives(layer->output, layer.get());
    }
  }
  // The layer's result can be read at `e` too; nullptr: no layer's can any longer.
  void Gives(Endpoint e, Layer* layer) { producers_[{e.node, e.port}] = layer; }
  Layer* Producer(Endpoint e) const {
    auto it = producers_.find({e.node, e.port});
    return it == producers_.end() ? nullptr : it->second;
  }
  // The layer whose result this is, behind FakeQuant nodes and ops that PassesInt8; nullptr: none.
  Layer* Behind(Endpoint e) const;
  // The tensor behind FakeQuant nodes.
  static Endpoint Unfaked(Endpoint e) {
    while (IsFakeQuant(*e.node)) e = e.node->inputs()[0];
    return e;
  }

 private:
  absl::flat_hash_map<std::pair<const Node*, int>, Layer*> producers_;
};

// On int8 the op does the same as on floats, and its output has the scale of its input.
bool PassesInt8(const Node& n);

}  // namespace smelt::quantize

#endif  // SMELT_CONVERT_QUANTIZE_INT8_FLOW_H_
