// Where rounding to 8 bits would be felt far beyond itself: indices and decisions, powers and
// angles, the statistics of normalizations, scaling by a tensor's own extremes, sums that grow from
// step to step of a loop, and the few numbers that are computed from weights alone.
#include <algorithm>

#include "absl/strings/match.h"
#include "smelt/convert/bfloat16/bfloat16.h"

namespace smelt {
namespace {

// How far back from an op its inputs are followed: what lies farther is another computation.
constexpr int kLongestChain = 24;
// Weights of a normalization or a bias, not those of a product.
constexpr int64_t kFewWeights = 8192;

constexpr Bf16Op kUnlistedDecision = {OpName(), Bf16Class::kKeep, Bf16Inputs::kDecision, "", ""};

// An op without a row that makes whole numbers, choices or texts of floats (a histogram, a search,
// a decoder). What runs functions decides nothing itself.
bool Decides(const Node& n) {
  if (n.def() == nullptr || n.Is("Cast") || n.Is("Merge") || n.Is("RefMerge") ||
      !std::ranges::any_of(n.inputs(), IsFloat32) ||
      std::ranges::any_of(n.def()->attrs,
                          [](const AttrDef& a) { return absl::StrContains(a.type, "func"); })) {
    return false;
  }
  return std::ranges::any_of(n.output_types, [](Dtype t) {
    t = BaseType(t);
    return IsInteger(t) || IsQuantized(t) || t == Dtype::kBool || t == Dtype::kString;
  });
}

class Sensitive {
 public:
  Sensitive(FloatGraph& g, const Bf16Filter& filter) : g_(g), filter_(filter) {}

  void Run() {
    absl::flat_hash_set<const Node*> with_unit;
    const size_t n = g_.units.size();
    for (size_t i = 0; i < n; ++i) {
      const FloatUnit& u = g_.units[i];
      with_unit.insert(u.node);
      if (u.row == nullptr || !filter_.Why(*u.node).empty()) continue;
      if (u.row->inputs == Bf16Inputs::kStatistic) {
        Keep(static_cast<int>(i), "the variance of a normalization");
        variance_.clear();
        for (int input : u.inputs) Variance(u.node->inputs()[input], false, kLongestChain);
      } else {
        Exact(*u.node, *u.row);
        if (ScaledByExtremes(*u.node)) KeepScaling(static_cast<int>(i));
      }
    }
    // Ops without a unit: no type attribute makes them bfloat16.
    for (const Node* node : g_.graph->Nodes()) {
      if (with_unit.contains(node) || g_.outside.contains(node) || filter_.IsOfInt8(*node))
        continue;
      const Bf16Op* row = FindBf16Op(node->op_name());
      if (row != nullptr ? row->kind == Bf16Class::kKeep : Decides(*node)) {
        Exact(*node, row != nullptr ? *row : kUnlistedDecision);
      }
    }
    for (const Endpoint& e : DecidingFloats(g_)) {
      reached_.clear();
      Chain(e, "decides what runs next", true, kLongestChain);
    }
    if (g_.loop_body) GrowingSums();
    WeightsAlone();
  }

 private:
  // Keeps float32 what leads to the op, as far as its row asks.
  void Exact(const Node& n, const Bf16Op& row) {
    if (row.inputs == Bf16Inputs::kPlain) return;
    const bool spectrum = row.inputs == Bf16Inputs::kLogarithm;
    const bool through = spectrum || row.inputs == Bf16Inputs::kDecision;
    const std::string why = absl::StrCat("leads to ", n.op());
    reached_.clear();
    products_.clear();
    for (const Endpoint& e : n.inputs()) Chain(e, why, through, kLongestChain);
    if (!spectrum) return;
    for (int product : products_) FrontEnd(product, why);
  }

  void Keep(int unit, std::string why) {
    FloatUnit& u = g_.units[unit];
    if (u.keep.empty()) u.keep = std::move(why);
    u.fixed = false;
  }

  // Keeps float32 all that leads to `e`, up to the nearest products; with `through`, these too.
  void Chain(Endpoint e, const std::string& why, bool through, int steps) {
    if (!IsFloat32(e) || steps == 0) return;
    const int unit = g_.Out(e);
    if (unit < 0 || !reached_.insert(unit).second) return;
    const FloatUnit& u = g_.units[unit];
    if (u.row == nullptr && u.fixed) return;
    if (u.kind == Bf16Class::kAnchor) {
      if (through) {
        Keep(unit, why);
        products_.push_back(unit);
      }
      return;
    }
    Keep(unit, why);
    for (int input : u.inputs) Chain(u.node->inputs()[input], why, through, steps - 1);
  }

  // (x - min(x)) / max(x): the differences may be a small part of the numbers, so that roundings
  // before the subtraction grow with the scaling.
  static bool ScaledByExtremes(const Node& n) {
    return (n.Is("Sub") || n.Is("RealDiv") || n.Is("Div") || n.Is("DivNoNan")) &&
           LeadsToExtreme(n.inputs()[1], 6);
  }

  static bool LeadsToExtreme(Endpoint e, int steps) {
    const Node& n = *e.node;
    if (n.Is("Max") || n.Is("Min")) return true;
    if (steps == 0) return false;
    const bool both = n.Is("Sub") || n.Is("Add") || n.Is("AddV2") || n.Is("Maximum");
    if (!both && !n.Is("Identity") && !n.Is("Reshape") && !n.Is("ExpandDims") && !n.Is("Squeeze") &&
        !n.Is("StopGradient") && !n.Is("BroadcastTo") && !n.Is("Tile")) {
      return false;
    }
    return LeadsToExtreme(n.inputs()[0], steps - 1) ||
           (both && LeadsToExtreme(n.inputs()[1], steps - 1));
  }

  void KeepScaling(int unit) {
    const std::string why = "scaled by its own extremes";
    Keep(unit, why);
    reached_.clear();
    products_.clear();
    for (const Endpoint& e : g_.units[unit].node->inputs()) Chain(e, why, false, kLongestChain);
  }

  static bool IsLinear(const FloatUnit& u) {
    static constexpr OpSet kBends = {"Relu", "Relu6",       "Maximum", "Minimum",   "Max",
                                     "Min",  "MaxPool",     "Abs",     "MaxPoolV2", "MaxPool3D",
                                     "Sign", "ClipByValue", "Select",  "SelectV2"};
    static constexpr OpSet kSums = {"Add",     "AddV2",   "AddN", "Sub", "Mul",
                                    "RealDiv", "BiasAdd", "Mean", "Sum", "AvgPool"};
    if (u.kind == Bf16Class::kArithmetic) return u.node->Is(kSums);
    return u.kind != Bf16Class::kKeep && !u.node->Is(kBends);
  }

  // Keeps float32 a filter bank that ends in `product`: all that leads from the arguments to it, if
  // that is linear. The logarithm of a quiet band would show the rounding noise of any part of it.
  void FrontEnd(int product, const std::string& why) {
    absl::flat_hash_set<int> seen{product};
    std::vector<int> stack{product};
    while (!stack.empty()) {
      const FloatUnit& u = g_.units[stack.back()];
      stack.pop_back();
      if (!IsLinear(u)) return;
      for (int input : u.inputs) {
        const Endpoint from = u.node->inputs()[input];
        if (IsFloatSource(*from.node)) continue;
        const int unit = g_.Out(from);
        if (unit < 0) return;
        if (seen.insert(unit).second) stack.push_back(unit);
      }
    }
    for (int unit : seen) Keep(unit, why);
  }

  // Keeps float32 what a normalization's root is taken of: up through the mean of squares and the
  // mean within it. The tensor whose statistics these are is not touched.
  void Variance(Endpoint e, bool beyond_square, int steps) {
    if (!IsFloat32(e) || steps == 0) return;
    const int unit = g_.Out(e);
    if (unit < 0 || !variance_.insert({unit, beyond_square}).second) return;
    const FloatUnit& u = g_.units[unit];
    const Node& n = *u.node;
    const bool mean = n.Is("Mean") || n.Is("Sum");
    const bool square = n.Is("Square") || n.Is("SquaredDifference") ||
                        (n.Is("Mul") && n.inputs()[0] == n.inputs()[1]);
    const bool moves = n.Is("Identity") || n.Is("StopGradient") || n.Is("Reshape") ||
                       n.Is("Squeeze") || n.Is("ExpandDims");
    const bool scales = n.Is("Add") || n.Is("AddV2") || n.Is("Maximum") || n.Is("Sub") ||
                        n.Is("Mul") || n.Is("RealDiv") || n.Is("Relu");
    const char* why = "the variance of a normalization";
    if (beyond_square) {
      // x - mean(x): the mean and the difference stay float32.
      if (mean) {
        Keep(unit, why);
      } else if (moves || n.Is("Sub")) {
        if (!LeadsToMean(e, 4)) return;
        Keep(unit, why);
        for (int input : u.inputs) Variance(n.inputs()[input], true, steps - 1);
      }
      return;
    }
    if (!mean && !square && !moves && !scales) return;
    // Between the root and the mean the variance may be scaled; beyond a mean only squares belong
    // to it.
    Keep(unit, why);
    for (int input : u.inputs) {
      const Endpoint from = n.inputs()[input];
      if (square) {
        Variance(from, true, steps - 1);
      } else if (!mean || IsSquare(from)) {
        Variance(from, false, steps - 1);
      }
    }
  }

  static bool IsSquare(Endpoint e) {
    for (int i = 0; i < 4 && (e.node->Is("Identity") || e.node->Is("Reshape")); ++i) {
      e = e.node->inputs()[0];
    }
    const Node& n = *e.node;
    return n.Is("Square") || n.Is("SquaredDifference") ||
           (n.Is("Mul") && n.inputs()[0] == n.inputs()[1]);
  }

  bool LeadsToMean(Endpoint e, int steps) const {
    const Node& n = *e.node;
    if (n.Is("Mean") || n.Is("Sum")) return true;
    if (steps == 0) return false;
    if (!n.Is("Identity") && !n.Is("StopGradient") && !n.Is("Sub") && !n.Is("Reshape") &&
        !n.Is("Squeeze") && !n.Is("ExpandDims")) {
      return false;
    }
    return std::ranges::any_of(
        n.inputs(), [&](Endpoint from) { return IsFloat32(from) && LeadsToMean(from, steps - 1); });
  }

  // Keeps float32 loop state to which each step adds: rounding errors would add up as well.
  void GrowingSums() {
    const std::vector<Endpoint> results = g_.function->FlatResults();
    for (size_t i = 0; i < results.size() && i < g_.function->args.size(); ++i) {
      Node* arg = g_.function->args[i];
      if (arg->num_outputs() != 1 || !IsFloat32({arg, 0}) || !IsFloat32(results[i])) continue;
      absl::flat_hash_set<int> forward, both;
      std::vector<Endpoint> stack{{arg, 0}};
      while (!stack.empty()) {
        const Endpoint e = stack.back();
        stack.pop_back();
        for (const Use& use : e.node->uses()) {
          if (use.port() != e.port) continue;
          const int u = g_.In(use.node, use.input);
          if (u < 0 || g_.units[u].kind == Bf16Class::kAnchor || !forward.insert(u).second) {
            continue;
          }
          for (int o : g_.units[u].outputs) stack.push_back({g_.units[u].node, o});
        }
      }
      stack = {results[i]};
      while (!stack.empty()) {
        const int u = g_.Out(stack.back());
        stack.pop_back();
        if (u < 0 || !forward.contains(u) || !both.insert(u).second) continue;
        for (int input : g_.units[u].inputs) stack.push_back(g_.units[u].node->inputs()[input]);
      }
      const bool grows = std::ranges::any_of(
          both, [&](int u) { return g_.units[u].kind == Bf16Class::kArithmetic; });
      if (!grows) continue;
      for (int u : both) Keep(u, "grows from step to step of a loop");
    }
  }

  void WeightsAlone() {
    auto order = g_.graph->TopologicalOrder();
    if (!order.ok()) return;
    absl::flat_hash_set<const Node*> weights;
    for (Node* n : *order) {
      if (n->Is("Const") || n->Is("ReadVariableOp")) {
        weights.insert(n);
        continue;
      }
      if (n->num_inputs() == 0 || n->num_outputs() == 0 ||
          !std::ranges::all_of(n->inputs(), [&](Endpoint e) { return weights.contains(e.node); })) {
        continue;
      }
      const int unit = g_.Out({n, 0});
      if (unit < 0) continue;
      weights.insert(n);
      FloatUnit& u = g_.units[unit];
      if (u.kind == Bf16Class::kArithmetic && g_.shapes->of({n, 0}).known_rank() &&
          g_.Elements({n, 0}) <= kFewWeights) {
        Keep(unit, "computed from a few weights alone");
      }
    }
  }

  FloatGraph& g_;
  const Bf16Filter& filter_;
  absl::flat_hash_set<int> reached_;
  absl::flat_hash_set<std::pair<int, bool>> variance_;
  std::vector<int> products_;  // that the last chain went through
};

}  // namespace

void KeepSensitive(FloatGraph& g, const Bf16Filter& filter) { Sensitive(g, filter).Run(); }

}  // namespace smelt
