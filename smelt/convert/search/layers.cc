#include "smelt/convert/search/layers.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "smelt/convert/bfloat16/bfloat16.h"

namespace smelt {
namespace {

// The error of a product that bfloat16 rounds, relative, root mean square: operands and result are
// rounded to 8 bits, each by up to 2^-9 of its value whatever the layer, so that it is not
// measured.
constexpr double kBfloat16Error = 3e-3;
constexpr double kInt8Part = 0.25, kBfloat16Part = 0.5;

bool IsNodeOf(absl::string_view inlined, absl::string_view node) {
  return inlined == node || absl::EndsWith(inlined, absl::StrCat("/", node));
}

// Of a layer that computes in float only the weights are read as int8; a lookup reads nothing else.
double Int8Cost(const QuantizedLayer& l) {
  const auto cost = static_cast<double>(l.cost);
  const bool lookup = absl::StrContains(l.op, "Gather");
  if (l.method != "weight_only" || lookup) return kInt8Part * cost;
  const double weights = static_cast<double>(l.bytes_before) / sizeof(float);
  return std::max(cost - (1 - kInt8Part) * weights, kInt8Part * cost);
}

struct LayerStep {
  size_t layer;
  LayerType to;
  double worth;  // what the squared error falls by, for each unit of cost
};

void AddSteps(const SearchedLayer& l, size_t i, std::vector<LayerStep>* steps) {
  const auto squared = [](double v) { return v * v; };
  const double int8 = squared(l.error), bfloat16 = squared(kBfloat16Error);
  const auto worth = [&](double gain, LayerType from, LayerType to) {
    return gain / std::max(l.CostAs(to) - l.CostAs(from), 1e-9);
  };
  const double wide = worth(bfloat16, LayerType::kBfloat16, LayerType::kFloat32);
  if (!l.int8) {
    if (l.MayBe(LayerType::kBfloat16)) steps->push_back({i, LayerType::kFloat32, wide});
    return;
  }
  const double narrow = worth(int8 - bfloat16, LayerType::kInt8, LayerType::kBfloat16);
  // bfloat16 is passed over where float32 is the better bargain.
  if (!l.MayBe(LayerType::kBfloat16) || narrow <= wide) {
    steps->push_back({i, LayerType::kFloat32, worth(int8, LayerType::kInt8, LayerType::kFloat32)});
    return;
  }
  steps->push_back({i, LayerType::kBfloat16, narrow});
  steps->push_back({i, LayerType::kFloat32, wide});
}

// A regular expression for the name alone, as text in quotes.
std::string NameText(const std::string& name) {
  static const RE2& plain = *new RE2("[A-Za-z0-9_/:<>=,-]*");
  return absl::StrCat(
      "\"", absl::CEscape(RE2::FullMatch(name, plain) ? name : RE2::QuoteMeta(name)), "\"");
}

}  // namespace

bool SearchedLayer::MayBe(LayerType type) const {
  return type == LayerType::kInt8 ? int8 : type == LayerType::kFloat32 || !bfloat16.empty();
}

double SearchedLayer::CostAs(LayerType type) const {
  return type == LayerType::kInt8       ? int8_cost
         : type == LayerType::kBfloat16 ? kBfloat16Part * cost
                                        : cost;
}

std::vector<SearchedLayer> FindSearchedLayers(const Conversion* int8, const Conversion* bfloat16) {
  std::vector<SearchedLayer> layers;
  if (int8 != nullptr) {
    for (const QuantizedLayer& l : int8->records.layers) {
      SearchedLayer& layer = layers.emplace_back();
      layer.function = l.function;
      layer.node = l.node;
      layer.int8 = l.quantized;
      layer.error = std::max(l.own_error, l.weight_error);
      layer.cost = static_cast<double>(l.cost);
      layer.int8_cost = Int8Cost(l);
    }
  }
  if (bfloat16 == nullptr) return layers;
  const size_t known = layers.size();
  for (const PrecisionChoice& p : bfloat16->records.precision) {
    if (!p.converted) continue;
    bool found = false;
    for (size_t i = 0; i < known; ++i) {
      if (!IsNodeOf(p.node, layers[i].node)) continue;
      layers[i].bfloat16.push_back(p.node);
      found = true;
    }
    const Bf16Op* row = FindBf16Op(OpName::Of(p.op));
    if (found || row == nullptr || row->kind != Bf16Class::kAnchor) continue;
    SearchedLayer& layer = layers.emplace_back();
    layer.bfloat16 = {p.node};
    layer.cost = static_cast<double>(p.cost);
  }
  return layers;
}

LayerTypes CheapestTypes(const std::vector<SearchedLayer>& layers, LayerType least) {
  LayerTypes types;
  for (const SearchedLayer& l : layers) {
    LayerType type = least;
    while (!l.MayBe(type)) type = static_cast<LayerType>(static_cast<int>(type) + 1);
    types.push_back(type);
  }
  return types;
}

LayerTypes TypesIn(const Conversion& c, const std::vector<SearchedLayer>& layers) {
  absl::flat_hash_set<std::pair<std::string, std::string>> quantized;
  for (const QuantizedLayer& l : c.records.layers) {
    if (l.quantized) quantized.emplace(l.function, l.node);
  }
  absl::flat_hash_set<std::string> rounded;
  for (const PrecisionChoice& p : c.records.precision) {
    if (p.converted) rounded.insert(p.node);
  }
  LayerTypes types;
  for (const SearchedLayer& l : layers) {
    const bool narrow = std::ranges::any_of(
        l.bfloat16, [&](const std::string& node) { return rounded.contains(node); });
    types.push_back(quantized.contains({l.function, l.node}) ? LayerType::kInt8
                    : narrow                                 ? LayerType::kBfloat16
                                                             : LayerType::kFloat32);
  }
  return types;
}

double CostOf(const std::vector<SearchedLayer>& layers, const LayerTypes& types) {
  double all = 0, cost = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    all += layers[i].cost;
    cost += layers[i].CostAs(types[i]);
  }
  return all == 0 ? 1 : cost / all;
}

std::vector<LayerTypes> WideningPath(const std::vector<SearchedLayer>& layers) {
  std::vector<LayerStep> steps;
  for (size_t i = 0; i < layers.size(); ++i) AddSteps(layers[i], i, &steps);
  std::ranges::stable_sort(
      steps, [](const LayerStep& a, const LayerStep& b) { return a.worth > b.worth; });
  std::vector<LayerTypes> path = {CheapestTypes(layers, LayerType::kInt8)};
  for (const LayerStep& step : steps) {
    path.push_back(path.back());
    path.back()[step.layer] = step.to;
  }
  return path;
}

std::string OptionsText(const std::vector<SearchedLayer>& layers, const LayerTypes& types,
                        const TypeOptions& options) {
  std::map<std::string, int> bearers;
  for (const SearchedLayer& l : layers) ++bearers[l.node];
  std::string units, nodes;
  bool int8 = false, bfloat16 = false;
  absl::flat_hash_set<std::string> named;
  for (size_t i = 0; i < layers.size(); ++i) {
    const SearchedLayer& l = layers[i];
    int8 |= types[i] == LayerType::kInt8;
    bfloat16 |= types[i] == LayerType::kBfloat16;
    if (l.int8 && types[i] != LayerType::kInt8) {
      absl::StrAppend(&units, " unit { node_name: ", NameText(l.node),
                      bearers[l.node] > 1 ? absl::StrCat(" func_name: ", NameText(l.function)) : "",
                      " }");
    }
    if (types[i] != LayerType::kFloat32) continue;
    for (const std::string& node : l.bfloat16) {
      if (named.insert(node).second) absl::StrAppend(&nodes, " node_filterlist: ", NameText(node));
    }
  }
  std::string out;
  if (int8) {
    absl::StrAppend(&out, "quantization_options { ", options.quantization);
    if (!units.empty()) {
      absl::StrAppend(&out, " unit_wise_quantization_specs {", units,
                      " quantization_method { preset_method: METHOD_NO_QUANTIZE } }");
    }
    absl::StrAppend(&out, " } ");
  }
  if (!bfloat16) return absl::StrCat(out, "bfloat16_optimization: DISABLED");
  absl::StrAppend(&out, "bfloat16_optimization: ENABLED");
  if (options.everything) absl::StrAppend(&nodes, " scope: ALL");
  if (int8) absl::StrAppend(&nodes, " before_int8: true");
  if (!nodes.empty()) absl::StrAppend(&out, " bfloat16_optimization_options {", nodes, " }");
  return out;
}

}  // namespace smelt
