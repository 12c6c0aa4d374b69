// Adds the nodes that one layer is written as. Errors stick: ask for `status` when done.
#ifndef SMELT_CONVERT_QUANTIZE_NODE_MAKER_H_
#define SMELT_CONVERT_QUANTIZE_NODE_MAKER_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "smelt/convert/quantize/quantize.h"

namespace smelt::quantize {

class NodeMaker {
 public:
  using Attrs = std::initializer_list<std::pair<absl::string_view, Attr>>;
  NodeMaker(Graph& graph, std::string layer) : graph_(graph), layer_(std::move(layer)) {}

  // Named LAYER/SUFFIX.
  Endpoint Op(absl::string_view suffix, absl::string_view op, std::vector<Endpoint> inputs,
              Attrs attrs) {
    if (!status_.ok()) return {};
    AttrMap map;
    for (const auto& [name, value] : attrs) map.Set(name, value);
    map.Set(kLayerAttr, layer_);
    auto node =
        graph_.Add(absl::StrCat(layer_, "/", suffix), op, std::move(inputs), std::move(map));
    status_ = node.status();
    return status_.ok() ? Endpoint{*node, 0} : Endpoint{};
  }
  // An op of two float operands.
  Endpoint Float(absl::string_view suffix, absl::string_view op, Endpoint x, Endpoint y) {
    return Op(suffix, op, {x, y}, {{"T", Dtype::kFloat}});
  }
  Endpoint Cast(absl::string_view suffix, Endpoint x, Dtype from, Dtype to) {
    return Op(suffix, "Cast", {x}, {{"SrcT", from}, {"DstT", to}});
  }
  Endpoint Const(absl::string_view suffix, const Tensor& value) {
    return {graph_.AddConst(graph_.FreeName(absl::StrCat(layer_, "/", suffix)), value), 0};
  }
  Endpoint Scalar(absl::string_view suffix, float value) {
    return Const(suffix, Tensor::Scalar(value));
  }
  Endpoint Ints(absl::string_view suffix, std::initializer_list<int32_t> values) {
    return Const(suffix, Tensor::Vector(values));
  }
  const Status& status() const { return status_; }
  void Fail(Status status) { status_.Update(std::move(status)); }

 private:
  Graph& graph_;
  const std::string layer_;
  Status status_ = OkStatus();
};

// What XlaConvV2 is given beside its operands.
struct ConvGeometry {
  std::vector<int32_t> strides, dilations;
  std::vector<int32_t> padding;  // [2,2]
  int32_t groups = 1;
  bool padded() const {
    for (const int32_t p : padding) {
      if (p != 0) return true;
    }
    return false;
  }
};
// Of a Conv2D or DepthwiseConv2dNative whose input has the shape. INVALID_ARGUMENT says why not.
StatusOr<ConvGeometry> GeometryOf(const Layer& layer, const PartialShape& input);

// Why a BatchMatMul whose input has the shape is no product of XlaDotV2; empty when it is one.
std::string WhyNoProduct(const Layer& layer, const PartialShape& input);

// The layer's int32 sums of products: XlaConvV2 or XlaDotV2. Of convolutions `geometry` is read
// (its padding becomes XlaConvV2's, which pads with zeros), of BatchMatMul `rank`, the input's, and
// of Einsum `form`; the sums of an Einsum still have to be put in order (Ordered).
StatusOr<Endpoint> Accumulate(NodeMaker& make, Layer& layer, Endpoint x,
                              const ConvGeometry& geometry, int rank, const ProductForm& form);
// The result of an Einsum in the order that its equation says; others as they are.
Endpoint Ordered(NodeMaker& make, Endpoint x, const ProductForm& form);

// Every reader of `from` in the layer's scope reads `to`, the scope's results and signatures too.
void ReplaceEverywhere(Conversion& c, Scope& scope, Endpoint from, Endpoint to);
// Removes those of the nodes that nothing uses, then those of their inputs, and so on. Returns the
// addresses of what was removed, which must not be followed; the variables' uses are without them.
absl::flat_hash_set<const Node*> RemoveUnread(Conversion& c, Scope& scope,
                                              std::vector<Node*> nodes);

// int8 to float: s * (q - z).
Endpoint Dequantize(NodeMaker& make, Endpoint q, ActivationScale scale);

// A tensor of these values in the shape.
Tensor FloatTensor(const Shape& shape, const std::vector<float>& values);

}  // namespace smelt::quantize

#endif  // SMELT_CONVERT_QUANTIZE_NODE_MAKER_H_
