// Arguments and results of quantized graphs as integers.
#include "smelt/graph/constant.h"
#include "smelt/lite/common/quantization.h"
#include "smelt/lite/quantize/conversion.h"
#include "smelt/lite/quantize/integer_format.h"
#include "smelt/lite/quantize/quantize.h"

namespace smelt {
namespace {

// Of a tensor of uint8 that stands for the same reals as one of int8.
Quantization Shifted(Quantization q) {
  for (int64_t& zero : q.zero_points) zero += 128;
  return q;
}

// The result of the conversion that the readers of an argument want becomes the argument; those
// that want floats read them from it.
Status NarrowArgument(Graph& graph, Node* n, Dtype type) {
  // Nobody reads it: it may as well be what is asked for, but has no scale.
  if (n->uses().empty()) return OkStatus();
  std::vector<Node*> quantizers;
  std::vector<Use> floats;
  for (const Use& use : n->OrderedUses()) {
    if (!use.is_control() && use.node->Is("tfl.quantize")) {
      quantizers.push_back(use.node);
    } else if (!use.is_control()) {
      floats.push_back(use);
    }
  }
  if (quantizers.empty()) {
    const Node* reader = n->OrderedUses()[0].node;
    return FailedPrecondition("input '", n->name(), "' stays float: '", reader->name(), "' (",
                              reader->op(), ") reads it so");
  }
  Node* q = quantizers[0];
  const Dtype inner = q->output_types[0];
  const bool shifted = type == Dtype::kUint8 && inner == Dtype::kInt8;
  if (quantizers.size() != 1 || (inner != type && !shifted)) {
    return FailedPrecondition("input '", n->name(), "' is read as ", DtypeName(inner),
                              quantizers.size() == 1 ? "" : " in several scales",
                              ", and cannot be ", DtypeName(type));
  }
  if (!floats.empty()) {
    ASSIGN_OR_RETURN(const Endpoint real, AddConversion(graph, absl::StrCat(n->name(), "/float"),
                                                        "tfl.dequantize", {q, 0}, Dtype::kFloat));
    for (const Use& use : floats) graph.SetInput(use.node, use.input, real);
  }
  const Quantization stated = QuantizationOf(*q, 0);
  SetQuantization(n->AttrsToChange(), 0, shifted ? Shifted(stated) : stated);
  n->AttrsToChange().Set("T", type);
  RETURN_IF_ERROR(graph.ResolveTypes(n));
  if (shifted) {  // the QUANTIZE stays, from integers to integers
    q->AttrsToChange().Set("Tin", DtypeVector{type});
    return graph.ResolveTypes(q);
  }
  graph.ReplaceAllUses({q, 0}, {n, 0});
  graph.Remove(q);
  return OkStatus();
}

// A constant result, by its own range.
Status NarrowConstant(Graph& graph, Node* n, const Tensor& value, Dtype type) {
  const IntegerFormat& format = type == Dtype::kInt8    ? kInt8Format
                                : type == Dtype::kUint8 ? kUint8Format
                                                        : kInt16Format;
  LiteRange range;
  for (const float v : value.flat<float>()) {
    if (!std::isfinite(v)) return FailedPrecondition("output ", n->Int("index"), " holds ", v);
    range.min = std::min(range.min, v);
    range.max = std::max(range.max, v);
  }
  const Params p = ParamsOf(range, format);
  ASSIGN_OR_RETURN(const Tensor q, QuantizedTo(value, p, format));
  AttrMap attrs;
  attrs.Set("dtype", type);
  attrs.Set("value", q);
  SetQuantization(attrs, 0, {{p.scale}, {p.zero}, 0});
  Node* before = n->input(0).node;
  ASSIGN_OR_RETURN(Node * made, graph.Add(absl::StrCat(before->name(), "/quantized"), "Const", {},
                                          std::move(attrs)));
  graph.SetInput(n, 0, {made, 0});
  n->AttrsToChange().Set("T", type);
  RETURN_IF_ERROR(graph.ResolveTypes(n));
  if (before->uses().empty()) graph.Remove(before);
  return OkStatus();
}

Status NarrowResult(Graph& graph, Node* n, Dtype type) {
  Node* d = n->input(0).node;
  // An argument that is passed on: as integers it is what its other readers have of it.
  Node* passed = nullptr;
  for (const Use& use : d->OrderedUses()) {
    if (d->Is("_Arg") && !use.is_control() && use.node->Is("tfl.quantize")) passed = use.node;
  }
  if (const TensorValue* stated = StatedConstant(*d)) {
    ASSIGN_OR_RETURN(const Tensor value, stated->Materialize());
    return NarrowConstant(graph, n, value, type);
  }
  if (passed == nullptr && !d->Is("tfl.dequantize")) {
    return FailedPrecondition("output ", n->Int("index"), " stays float: '", d->name(), "' (",
                              d->op(), ") gives it so");
  }
  Endpoint from = passed != nullptr ? Endpoint{passed, 0} : d->input(0);
  const Dtype inner = from.node->output_types[static_cast<size_t>(from.port)];
  if (type == Dtype::kUint8 && inner == Dtype::kInt8) {
    AttrMap how;
    SetQuantization(how, 0, Shifted(QuantizationOf(from)));
    ASSIGN_OR_RETURN(from, AddConversion(graph, absl::StrCat(d->name(), "/uint8"), "tfl.quantize",
                                         from, type, std::move(how)));
  } else if (inner != type) {
    return FailedPrecondition("output ", n->Int("index"), " is given as ", DtypeName(inner),
                              ", and cannot be ", DtypeName(type));
  }
  graph.SetInput(n, 0, from);
  n->AttrsToChange().Set("T", type);
  RETURN_IF_ERROR(graph.ResolveTypes(n));
  if (d->uses().empty() && passed == nullptr) graph.Remove(d);
  return OkStatus();
}

}  // namespace

Status NarrowBorders(Graph& graph, Dtype input, Dtype output, bool some) {
  const auto narrowed = [&](const Status& s) {
    return some && absl::IsFailedPrecondition(s) ? OkStatus() : s;
  };
  for (Node* n : graph.Nodes()) {
    if (input != Dtype::kFloat && n->Is("_Arg") && n->output_types[0] == Dtype::kFloat) {
      RETURN_IF_ERROR(narrowed(NarrowArgument(graph, n, input)));
    } else if (output != Dtype::kFloat && n->Is("_Retval") &&
               n->input(0).node->output_types[static_cast<size_t>(n->input(0).port)] ==
                   Dtype::kFloat) {
      RETURN_IF_ERROR(narrowed(NarrowResult(graph, n, output)));
    }
  }
  return OkStatus();
}

}  // namespace smelt
