#include "smelt/lite/quantize/quantize_graphs.h"

#include <algorithm>

#include "smelt/lite/quantize/declared_ranges.h"

namespace smelt {
namespace {

Status QuantizeOne(Graph& graph, const LiteRanges& ranges, const QuantizeGraphsFlags& flags) {
  switch (flags.mode) {
    case LiteQuantize::kNone:
      return OkStatus();
    case LiteQuantize::kFloat16:
      return QuantizeToHalf(graph);
    case LiteQuantize::kDynamic: {
      // A model that states what activations are needs no hybrid kernels.
      if (!HasDeclaredRanges(graph)) return QuantizeDynamicRange(graph, flags.dynamic);
      IntegerFlags integer = flags.integer;
      integer.float_ops = flags.dynamic.float_ops;
      integer.float_nodes = flags.dynamic.float_nodes;
      return QuantizeToInteger(graph, ranges, integer);
    }
    case LiteQuantize::kInt8:
    case LiteQuantize::kInt16x8: {
      IntegerFlags integer = flags.integer;
      integer.int16 = flags.mode == LiteQuantize::kInt16x8;
      return QuantizeToInteger(graph, ranges, integer);
    }
  }
  return OkStatus();
}

Status QuantizeAll(const LiteGraphs& graphs, const LiteRanges& ranges,
                   const QuantizeGraphsFlags& flags) {
  RETURN_IF_ERROR(QuantizeOne(*graphs.main, ranges, flags));
  QuantizeGraphsFlags of_bodies = flags;
  of_bodies.integer.input_type = of_bodies.integer.output_type = Dtype::kFloat;
  of_bodies.integer.input_params.clear();
  for (const LiteBody& body : graphs.bodies) {
    const Status done = QuantizeOne(*body.graph, ranges, of_bodies);
    if (!done.ok()) return Prefix(done, absl::StrCat("function '", body.function, "': "));
  }
  return OkStatus();
}

// Nodes of a copy have the ranges of those that they were copied from.
LiteRanges RangesOfCopy(const LiteRanges& ranges, const LiteGraphs& from, const LiteGraphs& copy) {
  const auto twins = Twins(from, copy);
  LiteRanges out;
  for (const auto& [key, range] : ranges) out[{twins.at(key.first), key.second}] = range;
  return out;
}

QuantizeGraphsFlags WithFloatNodes(const QuantizeGraphsFlags& flags, const NodeNames& names) {
  QuantizeGraphsFlags out = flags;
  for (auto* nodes : {&out.integer.float_nodes, &out.dynamic.float_nodes}) {
    nodes->insert(names.begin(), names.end());
  }
  return out;
}

StatusOr<LiteGraphs> QuantizedCopy(const LiteGraphs& graphs, const LiteRanges& ranges,
                                   const QuantizeGraphsFlags& flags) {
  ASSIGN_OR_RETURN(LiteGraphs out, graphs.Clone());
  RETURN_IF_ERROR(QuantizeAll(out, RangesOfCopy(ranges, graphs, out), flags));
  return out;
}

// Chooses the nodes that stay float, which are added to the flags.
StatusOr<FloatLayers> Choose(const LiteGraphs& graphs, const LiteRanges& ranges,
                             std::span<const LiteSample> samples, QuantizeGraphsFlags& flags) {
  const Quantizer quantize = [&](const NodeNames& names) -> StatusOr<LiteGraphs> {
    QuantizeGraphsFlags trial = WithFloatNodes(flags, names);
    // Borders of integers refuse some layers in float, and change nothing else that is measured.
    const bool borders =
        trial.integer.input_type != Dtype::kFloat || trial.integer.output_type != Dtype::kFloat;
    if (borders) {
      RETURN_IF_ERROR(QuantizedCopy(graphs, ranges, trial).status());
      trial.integer.input_type = trial.integer.output_type = Dtype::kFloat;
    }
    return QuantizedCopy(graphs, ranges, trial);
  };
  ASSIGN_OR_RETURN(FloatLayers out,
                   ChooseFloatLayers(graphs, ranges, samples, quantize, flags.float_layers));
  flags = WithFloatNodes(flags, out.nodes);
  return out;
}

}  // namespace

StatusOr<std::optional<FloatLayers>> QuantizeGraphs(LiteGraphs& graphs,
                                                    std::span<const LiteSample> samples,
                                                    QuantizeGraphsFlags flags) {
  const bool integers = flags.mode == LiteQuantize::kInt8 || flags.mode == LiteQuantize::kInt16x8;
  const FloatLayerFlags& layers = flags.float_layers;
  const bool measures = layers.measure || layers.max_loss;
  const bool declares =
      std::ranges::any_of(graphs.All(), [](const Graph* g) { return HasDeclaredRanges(*g); });
  if (flags.by_ranges) {
    RETURN_IF_ERROR(QuantizeAll(graphs, {}, flags));
    return std::nullopt;
  }
  if (integers && samples.empty() && !declares) {
    return InvalidArgument("integers for activations need --representative, samples of inputs");
  }
  LiteRanges ranges;
  if (measures || (integers && !samples.empty())) {
    ASSIGN_OR_RETURN(ranges, Calibrate(graphs, samples));
    RETURN_IF_ERROR(CheckResults(*graphs.main, ranges));
  }
  if (flags.calibrate_only) {
    for (Graph* graph : graphs.All()) StateRanges(*graph, ranges);
    return std::nullopt;
  }
  std::optional<FloatLayers> out;
  if (measures || !layers.patterns.empty()) {
    ASSIGN_OR_RETURN(out, Choose(graphs, ranges, samples, flags));
  }
  RETURN_IF_ERROR(QuantizeAll(graphs, ranges, flags));
  return out;
}

}  // namespace smelt
