#include "smelt/lite/quantize/left_float.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/quantize/agreed_scales.h"
#include "smelt/lite/quantize/pair_scales.h"
#include "smelt/lite/quantize/quantized_ops.h"

namespace smelt {
namespace {

// How many times the least the greatest may be: a quotient has the error of its divisor, the
// others less.
constexpr float kMostOfDivisors = 16, kMost = 64;

class NearZero {
 public:
  NearZero(const LiteRanges& ranges, const DeclaredParams& stated)
      : ranges_(ranges), stated_(stated) {}

  absl::flat_hash_set<const Node*> Find(std::span<Node* const> order, bool only_div) {
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& n = **it;
      if (n.Is("tfl.div") && !IsScaling(n)) {
        if (!IsFarFromZero(n.input(1), kMostOfDivisors)) Add(n, n.input(1), only_div);
      } else if (!only_div && n.Is({"tfl.log", "tfl.rsqrt"}) && Spreads(n.input(0), kMost)) {
        Add(n, n.input(0), false);
      } else if (exact_.contains(&n)) {
        Add(n, {}, false);
      }
    }
    return std::move(found_);
  }

 private:
  const LiteRange* RangeOf(Endpoint e) const {
    const auto known = ranges_.find({e.node, e.port});
    return known == ranges_.end() ? nullptr : &known->second;
  }

  bool IsFarFromZero(Endpoint e, float most) const {
    const LiteRange* r = RangeOf(e);
    if (r == nullptr) return false;
    return r->min > 0 ? r->max < most * r->min : r->max < 0 && r->min > most * r->max;
  }

  // Of one sign, from near zero to far.
  bool Spreads(Endpoint e, float most) const {
    const LiteRange* r = RangeOf(e);
    return r != nullptr && !stated_.contains({e.node, e.port}) && r->min >= 0 && r->max > 0 &&
           !IsFarFromZero(e, most);
  }

  // `counts`: the input that it is for; none: all.
  void Add(const Node& n, Endpoint counts, bool alone) {
    found_.insert(&n);
    if (alone) return;
    for (const Endpoint& e : n.inputs()) {
      const bool any = counts.node == nullptr || e == counts;
      if (any && !e.node->Is({"Const", "_Arg"}) && Spreads(e, kMostOfDivisors)) {
        exact_.insert(e.node);
      }
    }
  }

  const LiteRanges& ranges_;
  const DeclaredParams& stated_;
  absl::flat_hash_set<const Node*> found_, exact_;
};

bool IsNumber(Endpoint e) {
  return e.node->output_types[static_cast<size_t>(e.port)] == Dtype::kFloat;
}

// May the operator be one of an island? Adds its neighbours among the chosen, and sets `read` where
// an operator of floats reads it.
bool IsOfIsland(const Node& n, const absl::flat_hash_set<const Node*>& chosen,
                std::vector<const Node*>& near, bool& read) {
  const QuantizedOp& row = *FindQuantizedOp(n.op_name());
  bool may = row.first_weights < 0 && !row.recurrent;
  for (const Endpoint& e : n.inputs()) {
    if (!IsNumber(e) || e.node->Is("Const")) continue;
    if (chosen.contains(e.node)) near.push_back(e.node);
    may = may && !e.node->Is("tfl.read_variable");  // which may be integers
  }
  for (const Use& use : n.uses()) {
    if (use.is_control() || !IsNumber({const_cast<Node*>(&n), use.port()})) continue;
    if (chosen.contains(use.node)) {
      near.push_back(use.node);
    } else {
      read = true;
    }
    may = may && absl::StartsWith(use.node->op(), "tfl.") &&
          !use.node->Is({"tfl.assign_variable", "tfl.while", "tfl.if"});
  }
  return may;
}

// Those that hang together, have no weights and no products of matrices, and stand between what is
// float and operators of floats.
absl::flat_hash_set<const Node*> IslandsOf(const absl::flat_hash_set<const Node*>& chosen) {
  absl::flat_hash_set<const Node*> seen, out;
  for (const Node* first : chosen) {
    if (!seen.insert(first).second) continue;
    std::vector<const Node*> island = {first};
    bool may = true, read = false;
    for (size_t i = 0; i < island.size(); ++i) {
      std::vector<const Node*> near;
      may = IsOfIsland(*island[i], chosen, near, read) && may;
      for (const Node* n : near) {
        if (seen.insert(n).second) island.push_back(n);
      }
    }
    if (may && read) out.insert(island.begin(), island.end());
  }
  return out;
}

// Operators by constants on what is float: two bits of what they give may be those of no steps.
constexpr double kMostMagnified = 4;

// By how much the operator magnifies a step of its one activation; 0: it does more than that.
double MagnifiedBy(const Node& n) {
  if (n.num_outputs() != 1 || NumActivations(n) != 1) return 0;
  if (n.Is({"tfl.add", "tfl.sub", "tfl.reshape", "tfl.expand_dims", "tfl.squeeze"})) return 1;
  if (!n.Is("tfl.mul")) return 0;
  const auto by = ConstantTensor(*n.input(1 - FirstActivation(n)).node);
  if (!by) return 0;
  double most = 0;
  for (const float v : by->flat<float>()) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

// Those that bring numbers of several sizes, or beside a large one, to one: steps of what they read
// are those of the largest.
absl::flat_hash_set<const Node*> Normalizers(std::span<Node* const> order, const LiteRanges& ranges,
                                             const absl::flat_hash_set<const Node*>& chosen) {
  absl::flat_hash_map<const Node*, double> steps;  // behind what is float
  absl::flat_hash_set<const Node*> out;
  const auto size = [&](Endpoint e) {
    const auto r = ranges.find({e.node, e.port});
    if (r == ranges.end()) return 0.0;
    return static_cast<double>(std::max(r->second.max, 0.0f) - std::min(r->second.min, 0.0f));
  };
  for (Node* n : order) {
    const double by = chosen.contains(n) ? MagnifiedBy(*n) : 0;
    if (by == 0) continue;
    const Endpoint from = n->input(FirstActivation(*n));
    const auto before = steps.find(from.node);
    if (before == steps.end() &&
        (chosen.contains(from.node) || from.node->Is("tfl.read_variable"))) {
      continue;
    }
    const double own = size({n, 0});
    double step = by * (before == steps.end() ? size(from) : before->second);
    if (own > 0 && step > kMostMagnified * own) {
      for (const Node* at = n; steps.contains(at) || at == n;
           at = at->input(FirstActivation(*at)).node) {
        out.insert(at);
      }
      step = own;
    }
    steps[n] = step;
  }
  return out;
}

}  // namespace

absl::flat_hash_set<const Node*> FindNearZero(std::span<Node* const> order,
                                              const LiteRanges& ranges, bool only_div,
                                              const DeclaredParams& stated) {
  return NearZero(ranges, stated).Find(order, only_div);
}

void LeaveFloat(std::span<Node* const> order, const LiteRanges& ranges, const IntegerFlags& flags,
                absl::flat_hash_set<const Node*>& chosen) {
  if (flags.output_type == Dtype::kFloat) {
    for (const Node* n : FindMixedResults(order, chosen, ranges)) chosen.erase(n);
  }
  if (flags.input_type != Dtype::kFloat) return;
  for (const Node* n : Normalizers(order, ranges, chosen)) chosen.erase(n);
  for (const Node* n : IslandsOf(chosen)) chosen.erase(n);
}

}  // namespace smelt
