// Arguments and results of quantized graphs as integers.
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/quantize/quantize.h"

namespace smelt {
namespace {

// The attributes of a tensor of uint8 that stands for the same reals as one of int8.
AttrMap Shifted(const AttrMap& from) {
  AttrMap out;
  out.Set(kScales, *from.Find(kScales));
  std::vector<int64_t> zeros = *from.Find(kZeroPoints)->get<std::vector<int64_t>>();
  for (int64_t& zero : zeros) zero += 128;
  out.Set(kZeroPoints, zeros);
  return out;
}

std::string Suffix(int port) { return port == 0 ? "" : absl::StrCat("_", port); }

// How an output is quantized, under the names of output 0.
AttrMap QuantizationOf(Endpoint e) {
  AttrMap out;
  for (const absl::string_view name : {kScales, kZeroPoints}) {
    out.Set(name, *e.node->attrs().Find(absl::StrCat(name, Suffix(e.port))));
  }
  return out;
}

StatusOr<Node*> AddQuantize(Graph& graph, const std::string& name, Endpoint from, Dtype type,
                            AttrMap attrs, const PartialShape& shape) {
  attrs.Set("Tin", DtypeVector{from.node->output_types[static_cast<size_t>(from.port)]});
  attrs.Set("Tout", DtypeVector{type});
  attrs.Set(kOutputShapes, std::vector<PartialShape>{shape});
  return graph.Add(name, "tfl.quantize", {from}, std::move(attrs));
}

// The result of a conversion that every reader of an argument wants becomes the argument.
Status NarrowArgument(Graph& graph, Node* n, Dtype type) {
  // Nobody reads it: it may as well be what is asked for, but has no scale.
  if (n->uses().empty()) return OkStatus();
  std::vector<Node*> quantizers;
  for (const Use& use : n->OrderedUses()) {
    if (use.is_control() || !use.node->Is("tfl.quantize")) {
      return FailedPrecondition("input '", n->name(), "' stays float: '", use.node->name(), "' (",
                                use.node->op(), ") reads it so");
    }
    quantizers.push_back(use.node);
  }
  Node* q = quantizers[0];
  const Dtype inner = q->output_types[0];
  const bool shifted = type == Dtype::kUint8 && inner == Dtype::kInt8;
  if (quantizers.size() != 1 || (inner != type && !shifted)) {
    return FailedPrecondition("input '", n->name(), "' is read as ", DtypeName(inner),
                              quantizers.size() == 1 ? "" : " in several scales",
                              ", and cannot be ", DtypeName(type));
  }
  const AttrMap attrs = shifted ? Shifted(q->attrs()) : QuantizationOf({q, 0});
  for (const auto& [name, value] : attrs) n->AttrsToChange().Set(name, value);
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

Status NarrowResult(Graph& graph, Node* n, Dtype type) {
  Node* d = n->input(0).node;
  if (!d->Is("tfl.dequantize")) {
    return FailedPrecondition("output ", n->Int("index"), " stays float: '", d->name(), "' (",
                              d->op(), ") gives it so");
  }
  Endpoint from = d->input(0);
  const Dtype inner = from.node->output_types[static_cast<size_t>(from.port)];
  if (type == Dtype::kUint8 && inner == Dtype::kInt8) {
    ASSIGN_OR_RETURN(Node * q, AddQuantize(graph, absl::StrCat(d->name(), "/uint8"), from, type,
                                           Shifted(QuantizationOf(from)), StatedShape(from)));
    from = {q, 0};
  } else if (inner != type) {
    return FailedPrecondition("output ", n->Int("index"), " is given as ", DtypeName(inner),
                              ", and cannot be ", DtypeName(type));
  }
  graph.SetInput(n, 0, from);
  n->AttrsToChange().Set("T", type);
  RETURN_IF_ERROR(graph.ResolveTypes(n));
  if (d->uses().empty()) graph.Remove(d);
  return OkStatus();
}

}  // namespace

Status NarrowBorders(Graph& graph, Dtype input, Dtype output) {
  for (Node* n : graph.Nodes()) {
    if (input != Dtype::kFloat && n->Is("_Arg") && n->output_types[0] == Dtype::kFloat) {
      RETURN_IF_ERROR(NarrowArgument(graph, n, input));
    } else if (output != Dtype::kFloat && n->Is("_Retval") &&
               n->input(0).node->output_types[static_cast<size_t>(n->input(0).port)] ==
                   Dtype::kFloat) {
      RETURN_IF_ERROR(NarrowResult(graph, n, output));
    }
  }
  return OkStatus();
}

}  // namespace smelt
