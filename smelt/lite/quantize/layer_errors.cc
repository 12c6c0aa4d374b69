// One graph has the float operators, the quantized ones, and for each quantized operator the pair
// of both on the float graph's numbers, rounded: what differs there is the layer's own.
#include "smelt/lite/quantize/layer_errors.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/quantization.h"
#include "smelt/lite/quantize/conversion.h"
#include "smelt/lite/quantize/quantized_ops.h"

namespace smelt {
namespace {

int64_t StepAt(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case Dtype::kInt8:
      return t.data<int8_t>()[i];
    case Dtype::kInt4:
      return static_cast<const int8_t*>(t.raw())[i];
    case Dtype::kUint8:
      return t.data<uint8_t>()[i];
    case Dtype::kInt16:
      return t.data<int16_t>()[i];
    case Dtype::kInt32:
      return t.data<int32_t>()[i];
    default:
      return t.data<int64_t>()[i];
  }
}

bool HasSteps(Dtype t) {
  return t == Dtype::kInt4 || t == Dtype::kInt8 || t == Dtype::kUint8 || t == Dtype::kInt16 ||
         t == Dtype::kInt32 || t == Dtype::kInt64;
}

// The reals that the integers stand for; what is not quantized stays.
StatusOr<Tensor> Reals(const Tensor& t, const Quantization& q) {
  if (q.scales.empty() || !HasSteps(t.dtype())) return t;
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(Dtype::kFloat, t.shape()));
  const bool several = q.scales.size() > 1;
  const int64_t inner = q.block != 0 ? q.block
                        : several    ? t.shape().Product(static_cast<int>(q.dim) + 1, t.rank())
                                     : 1;
  const auto count = static_cast<int64_t>(q.scales.size());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const auto at = static_cast<size_t>(several ? i / inner % count : 0);
    const int64_t zero = at < q.zero_points.size() ? q.zero_points[at] : 0;
    out.data<float>()[i] = q.scales[at] * static_cast<float>(StepAt(t, i) - zero);
  }
  return out;
}

bool IsQuantizedLayer(const Node& n) {
  if (!absl::StartsWith(n.op(), "tfl.") || IsConversion(n)) return false;
  for (int i = 0; i < n.num_outputs(); ++i) {
    if (!QuantizationOf(n, i).scales.empty()) return true;
  }
  return std::ranges::any_of(n.inputs(),
                             [](const Endpoint& e) { return !QuantizationOf(e).scales.empty(); });
}

// Where a run answers the values of one result of a layer.
struct ResultPlaces {
  size_t plain, quantized, alone_plain, alone;
  Quantization scaled;
  size_t statistics;  // in LayerError::results
};
struct Layer {
  LayerError error;
  std::vector<ResultPlaces> results;
  std::bitset<65536> used;
};

// How the range of the layer's results reads, and in how many steps it is told.
void StateResults(const Node& n, const Node& twin, int port, const LiteRanges& ranges,
                  LayerError& error) {
  const Dtype type = n.output_types[static_cast<size_t>(port)];
  error.steps = type == Dtype::kInt8 ? 256 : type == Dtype::kInt16 ? 65536 : 0;
  const auto range = ranges.find({&twin, port});
  if (range != ranges.end()) error.range = range->second;
}

Status AddWeights(Endpoint f, Endpoint q, const Quantization& scaled, Noise& noise) {
  const auto wanted = ConstantTensor(*f.node), got = ConstantTensor(*q.node);
  if (!wanted || !got || wanted->dtype() != Dtype::kFloat || scaled.scales.empty()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor reals, Reals(*got, scaled));
  return noise.Add(*wanted, reals);
}

LayerError LayerOf(const Node& n, const std::string& function) {
  LayerError out;
  out.function = function;
  out.node = n.name();
  out.op = OperatorName(n);
  const QuantizedOp* row = FindQuantizedOp(n.op_name());
  out.moves = row != nullptr && row->results == ResultRange::kAsInput;
  return out;
}

// Calls visit(operator, the float operator that it was).
template <typename Visit>
Status ForEachLayer(const std::vector<Node*>& order, const Graph& plain, Visit visit) {
  for (Node* n : order) {
    const Node* twin = plain.Find(n->name());
    if (twin == nullptr || twin->op() != n->op() || !IsQuantizedLayer(*n)) continue;
    RETURN_IF_ERROR(visit(*n, *twin));
  }
  return OkStatus();
}

bool ComputesFloats(const Graph& graph) {
  return std::ranges::any_of(graph.Nodes(), [](const Node* n) {
    return FindQuantizedOp(n->op_name()) != nullptr &&
           std::ranges::count(n->output_types, Dtype::kFloat) > 0;
  });
}

// What is known of a body's layers without a run.
Status AddBody(const LiteBody& plain, const LiteBody& quantized, const LiteRanges& ranges,
               LayerErrors& out) {
  const size_t before = out.in_bodies.size();
  ASSIGN_OR_RETURN(const std::vector<Node*> order, quantized.graph->TopologicalOrder());
  const auto add = [&](const Node& n, const Node& twin) -> Status {
    LayerError& error = out.in_bodies.emplace_back(LayerOf(n, quantized.function));
    for (int i = 0; i < n.num_inputs(); ++i) {
      const Endpoint q = n.input(i);
      RETURN_IF_ERROR(AddWeights(twin.input(i), q, QuantizationOf(q), error.weights));
    }
    if (n.num_outputs() > 0) StateResults(n, twin, 0, ranges, error);
    return OkStatus();
  };
  RETURN_IF_ERROR(ForEachLayer(order, *plain.graph, add));
  if (out.in_bodies.size() == before && ComputesFloats(*quantized.graph)) {
    out.float_bodies.push_back(quantized.function);
  }
  return OkStatus();
}

class LayerMeter {
 public:
  LayerMeter(const Graph& plain, const Graph& quantized, const LiteRanges& ranges,
             std::shared_ptr<FunctionLibrary> library)
      : from_plain_(plain),
        from_quantized_(quantized),
        ranges_(ranges),
        graph_(std::make_shared<Graph>(std::move(library))) {}

  StatusOr<LayerErrors> Run(std::span<const LiteSample> samples) {
    RETURN_IF_ERROR(Build());
    ASSIGN_OR_RETURN(const auto run, SampleRun::Make(std::move(graph_), asked_));
    for (size_t s = 0; s < samples.size(); ++s) {
      auto got = run->Run(samples[s]);
      Status added = got.status();
      if (added.ok()) added = Add(*got);
      if (!added.ok()) return Prefix(added, absl::StrCat("sample ", s, ": "));
    }
    for (Layer& l : layers_) {
      l.error.used = static_cast<int64_t>(l.used.count());
      for (ResultStatistics& r : l.error.results) Average(static_cast<double>(samples.size()), r);
      out_.layers.push_back(std::move(l.error));
    }
    return std::move(out_);
  }

 private:
  Status Build() {
    ASSIGN_OR_RETURN(plain_, graph_->CopyFrom(from_plain_, ""));
    ASSIGN_OR_RETURN(quantized_, graph_->CopyFrom(from_quantized_, "quantized/"));
    std::map<int64_t, Node*> arguments;
    for (const Node* n : from_plain_.Nodes()) {
      if (n->Is("_Arg")) arguments[n->Int("index")] = plain_.Of(n);
    }
    ASSIGN_OR_RETURN(const std::vector<Node*> order, from_quantized_.TopologicalOrder());
    std::map<int64_t, std::pair<size_t, size_t>> results;
    for (const Node* n : order) {
      if (n->Is("_Arg")) {
        graph_->ReplaceAllUses({quantized_.Of(n), 0}, {arguments.at(n->Int("index")), 0});
      }
    }
    for (const Node* n : from_plain_.Nodes()) {
      if (n->Is("_Retval")) results[n->Int("index")].first = Ask(plain_.Of(n)->input(0));
    }
    for (Node* n : order) {
      if (n->Is("_Retval")) results[n->Int("index")].second = Ask(quantized_.Of(n)->input(0));
    }
    RETURN_IF_ERROR(ForEachLayer(
        order, from_plain_, [&](const Node& n, const Node& twin) { return AddLayer(n, twin); }));
    for (const Node* n : order) {
      if (!n->Is("_Arg") && !n->Is("_Retval")) continue;
      graph_->ReplaceControlUses(quantized_.Of(n), nullptr);
      graph_->Remove(quantized_.Of(n));
    }
    for (const auto& [index, places] : results) outputs_.push_back(places);
    out_.outputs.resize(outputs_.size());
    return OkStatus();
  }

  size_t Ask(Endpoint e) {
    asked_.push_back(e);
    return asked_.size() - 1;
  }

  // The float graph's value as the quantized operator reads it, and as the float one reads that.
  StatusOr<std::pair<Endpoint, Endpoint>> Rounded(Endpoint from, Dtype type,
                                                  const Quantization& q) {
    auto& known =
        rounded_[{from.node, from.port, q.scales[0], q.zero_points.empty() ? 0 : q.zero_points[0]}];
    if (known.first.node != nullptr) return known;
    AttrMap how;
    SetQuantization(how, 0, q);
    constexpr char kName[] = "alone/value";
    ASSIGN_OR_RETURN(known.first,
                     AddConversion(*graph_, kName, "tfl.quantize", from, type, std::move(how)));
    ASSIGN_OR_RETURN(known.second,
                     AddConversion(*graph_, kName, "tfl.dequantize", known.first, Dtype::kFloat));
    return known;
  }

  Status AddLayer(const Node& n, const Node& twin) {
    Layer& layer = layers_.emplace_back();
    layer.error = LayerOf(n, "");
    std::vector<Endpoint> integers, floats;
    for (int i = 0; i < n.num_inputs(); ++i) {
      const Endpoint q = n.input(i), f = twin.input(i);
      Endpoint as_integer = {plain_.Of(f.node), f.port}, as_float = as_integer;
      const Quantization scaled = QuantizationOf(q);
      const Dtype type = q.node->output_types[static_cast<size_t>(q.port)];
      if (StatedConstant(*q.node) != nullptr || q.node->Is("tfl.variable")) {
        as_integer = {quantized_.Of(q.node), q.port};
        RETURN_IF_ERROR(AddWeights(f, q, scaled, layer.error.weights));
      } else if (!scaled.scales.empty() && type != Dtype::kFloat) {
        ASSIGN_OR_RETURN(const auto both, Rounded(as_float, type, scaled));
        as_integer = both.first;
        as_float = both.second;
      }
      integers.push_back(as_integer);
      floats.push_back(as_float);
    }
    const std::string name = absl::StrCat("alone/", n.name());
    ASSIGN_OR_RETURN(Node * alone, graph_->Add(name, n.op(), integers, n.attrs()));
    ASSIGN_OR_RETURN(Node * plain, graph_->Add(name, twin.op(), floats, twin.attrs()));
    for (int i = 0; i < n.num_outputs(); ++i) {
      if (twin.output_types[static_cast<size_t>(i)] != Dtype::kFloat) continue;
      const Quantization scaled = QuantizationOf(n, i);
      if (layer.results.empty()) StateResults(n, twin, i, ranges_, layer.error);
      ResultStatistics& says = layer.error.results.emplace_back();
      says.output = i;
      if (!scaled.scales.empty()) {
        says.scale = scaled.scales[0];
        says.zero_point = scaled.zero_points.empty() ? 0 : scaled.zero_points[0];
      }
      layer.results.push_back({Ask({plain_.Of(&twin), i}), Ask({quantized_.Of(&n), i}),
                               Ask({plain, i}), Ask({alone, i}), scaled,
                               layer.error.results.size() - 1});
    }
    return OkStatus();
  }

  // Sums for now.
  static void AddStatistics(const Tensor& wanted, const Tensor& got, ResultStatistics& to) {
    const auto a = wanted.flat<float>(), b = got.flat<float>();
    if (a.empty()) return;
    double sum = 0, squares = 0, largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double d = static_cast<double>(b[i]) - static_cast<double>(a[i]);
      sum += d;
      squares += d * d;
      largest = std::max(largest, std::abs(d));
    }
    const auto count = static_cast<double>(a.size());
    const double mean = sum / count;
    to.elements += count;
    to.stddev += std::sqrt(std::max(0.0, squares / count - mean * mean));
    to.mean += mean;
    to.largest += largest;
    to.squared += squares / count;
  }
  static void Average(double samples, ResultStatistics& of) {
    for (double* sum : {&of.elements, &of.stddev, &of.mean, &of.largest, &of.squared}) {
      *sum /= samples;
    }
  }

  Status Add(const std::vector<Tensor>& got) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      RETURN_IF_ERROR(out_.outputs[i].Add(got[outputs_[i].first], got[outputs_[i].second]));
    }
    for (Layer& layer : layers_) {
      for (const ResultPlaces& p : layer.results) {
        ASSIGN_OR_RETURN(const Tensor real, Reals(got[p.quantized], p.scaled));
        ASSIGN_OR_RETURN(const Tensor alone, Reals(got[p.alone], p.scaled));
        RETURN_IF_ERROR(layer.error.accumulated.Add(got[p.plain], real));
        RETURN_IF_ERROR(layer.error.alone.Add(got[p.alone_plain], alone));
        AddStatistics(got[p.alone_plain], alone, layer.error.results[p.statistics]);
      }
      if (layer.error.steps == 0) continue;
      const Tensor& first = got[layer.results[0].quantized];
      for (int64_t i = 0; i < first.num_elements(); ++i) {
        layer.used.set(static_cast<size_t>(StepAt(first, i) + layer.error.steps / 2));
      }
    }
    return OkStatus();
  }

  const Graph& from_plain_;
  const Graph& from_quantized_;
  const LiteRanges& ranges_;
  std::shared_ptr<Graph> graph_;
  NodeCopies plain_, quantized_;
  std::map<std::tuple<Node*, int, float, int64_t>, std::pair<Endpoint, Endpoint>> rounded_;
  std::vector<Endpoint> asked_;
  std::vector<Layer> layers_;
  std::vector<std::pair<size_t, size_t>> outputs_;  // where answers have them: float, quantized
  LayerErrors out_;
};

}  // namespace

StatusOr<LayerErrors> MeasureLayers(const LiteGraphs& plain, const LiteGraphs& quantized,
                                    const LiteRanges& ranges, std::span<const LiteSample> samples) {
  // Both graphs run at once, and would write the same variable.
  for (const Graph* graph : plain.All()) {
    if (std::ranges::any_of(graph->Nodes(),
                            [](const Node* n) { return n->Is("tfl.var_handle"); })) {
      return Unimplemented("layers of a signature that writes variables are not measured");
    }
  }
  constexpr char kQuantized[] = "_quantized";
  const auto library = LibraryFor(plain);
  RETURN_IF_ERROR(AddLowered(plain, "", library));
  RETURN_IF_ERROR(AddLowered(quantized, kQuantized, library));
  ASSIGN_OR_RETURN(const auto main, quantized.main->Clone());
  RenameCallees(*main, kQuantized);
  ASSIGN_OR_RETURN(LayerErrors out, LayerMeter(*plain.main, *main, ranges, library).Run(samples));
  for (size_t i = 0; i < plain.bodies.size(); ++i) {
    RETURN_IF_ERROR(AddBody(plain.bodies[i], quantized.bodies[i], ranges, out));
  }
  return out;
}

StatusOr<std::vector<std::vector<Tensor>>> AnswersOf(const LiteGraphs& graphs,
                                                     std::span<const LiteSample> samples) {
  const auto library = LibraryFor(graphs);
  RETURN_IF_ERROR(AddLowered(graphs, "", library));
  auto copy = std::make_shared<Graph>(library);
  RETURN_IF_ERROR(copy->CopyFrom(*graphs.main, "").status());
  std::map<int64_t, Endpoint> results;
  for (const Node* n : copy->Nodes()) {
    if (n->Is("_Retval")) results[n->Int("index")] = n->input(0);
  }
  std::vector<Endpoint> asked;
  for (const auto& [index, e] : results) asked.push_back(e);
  ASSIGN_OR_RETURN(const auto run, SampleRun::Make(std::move(copy), asked));
  std::vector<std::vector<Tensor>> out;
  for (size_t s = 0; s < samples.size(); ++s) {
    auto got = run->Run(samples[s]);
    if (!got.ok()) return Prefix(got.status(), absl::StrCat("sample ", s, ": "));
    out.push_back(*std::move(got));
  }
  return out;
}

StatusOr<std::vector<Noise>> NoiseOf(std::span<const std::vector<Tensor>> wanted,
                                     std::span<const std::vector<Tensor>> got) {
  std::vector<Noise> out(wanted.empty() ? 0 : wanted[0].size());
  for (size_t s = 0; s < wanted.size(); ++s) {
    for (size_t i = 0; i < out.size(); ++i) RETURN_IF_ERROR(out[i].Add(wanted[s][i], got[s][i]));
  }
  return out;
}

Noise WorstOf(std::span<const Noise> outputs) {
  Noise worst;
  for (const Noise& n : outputs) {
    if (n.Relative() >= worst.Relative()) worst = n;
  }
  return worst;
}

}  // namespace smelt
