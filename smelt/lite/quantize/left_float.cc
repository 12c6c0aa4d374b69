#include "smelt/lite/quantize/left_float.h"

#include <algorithm>
#include <cmath>
#include <optional>
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

// Operators in integers that hang together, and what is around them.
struct Island {
  std::vector<const Node*> nodes;
  bool may = true;     // no weights are among them, nor anything that wants integers around
  bool fed = false;    // an operator of floats gives what they read
  bool read = false;   // one reads what they give
  bool gives = false;  // that is a result
};

// Adds what is around `n`, of its nodes, and its neighbours among the chosen to `near`.
void LookAround(const Node& n, const absl::flat_hash_set<const Node*>& chosen, bool float_results,
                Island& island, std::vector<const Node*>& near) {
  const QuantizedOp& row = *FindQuantizedOp(n.op_name());
  bool& may = island.may;
  may = may && row.first_weights < 0 && !row.recurrent;
  for (const Endpoint& e : n.inputs()) {
    if (!IsNumber(e) || e.node->Is("Const")) continue;
    if (chosen.contains(e.node)) {
      near.push_back(e.node);
    } else if (!e.node->Is("_Arg")) {
      island.fed = true;
    }
    may = may && !e.node->Is("tfl.read_variable");  // which may be integers
  }
  for (const Use& use : n.uses()) {
    if (use.is_control() || !IsNumber({const_cast<Node*>(&n), use.port()})) continue;
    if (use.node->Is("_Retval")) {
      island.gives = true;
      may = may && float_results;
      continue;
    }
    if (chosen.contains(use.node)) {
      near.push_back(use.node);
    } else {
      island.read = true;
    }
    may = may && absl::StartsWith(use.node->op(), "tfl.") &&
          !use.node->Is({"tfl.assign_variable", "tfl.while", "tfl.if"});
  }
}

// Those that hang together, have no weights and no products of matrices, and stand between what is
// float and operators of floats; or between operators of floats and results.
absl::flat_hash_set<const Node*> IslandsOf(const absl::flat_hash_set<const Node*>& chosen,
                                           bool float_results) {
  absl::flat_hash_set<const Node*> seen, out;
  for (const Node* first : chosen) {
    if (!seen.insert(first).second) continue;
    Island island;
    island.nodes = {first};
    for (size_t i = 0; i < island.nodes.size(); ++i) {
      std::vector<const Node*> near;
      LookAround(*island.nodes[i], chosen, float_results, island, near);
      for (const Node* n : near) {
        if (seen.insert(n).second) island.nodes.push_back(n);
      }
    }
    const bool between = island.gives ? island.fed : island.read;
    if (island.may && between) out.insert(island.nodes.begin(), island.nodes.end());
  }
  return out;
}

// What conversions an operator needs as it is, and those that it would need in floats.
struct Conversions {
  int in_integers = 0, in_floats = 0;
};

// Is the value made float for somebody, or will it be?
bool HasFloatReader(Endpoint e, const absl::flat_hash_set<const Node*>& chosen) {
  return std::ranges::any_of(e.node->uses(), [&](const Use& use) {
    return !use.is_control() && use.port() == e.port && !chosen.contains(use.node);
  });
}

bool OthersTakeIntegers(Endpoint e, const Node& n, const absl::flat_hash_set<const Node*>& chosen) {
  return std::ranges::any_of(e.node->uses(), [&](const Use& use) {
    return use.node != &n && !use.is_control() && use.port() == e.port && chosen.contains(use.node);
  });
}

// Nothing where no operator of floats gives what it reads, or what it gives may go to no QUANTIZE.
std::optional<Conversions> ConversionsOf(const Node& n,
                                         const absl::flat_hash_set<const Node*>& chosen,
                                         bool float_results) {
  const QuantizedOp& row = *FindQuantizedOp(n.op_name());
  if (row.first_weights >= 0 || row.recurrent) return std::nullopt;
  Conversions out;
  for (int i = 0; i < n.num_outputs(); ++i) {
    const Endpoint e = {const_cast<Node*>(&n), i};
    if (!IsNumber(e) || e.node->NumUses(i) == 0) continue;
    bool in_integers = false, in_floats = false;
    for (const Use& use : n.uses()) {
      if (use.is_control() || use.port() != i) continue;
      const bool taken = chosen.contains(use.node);
      const bool result = use.node->Is("_Retval") && float_results;
      const bool reads = absl::StartsWith(use.node->op(), "tfl.") &&
                         !use.node->Is({"tfl.assign_variable", "tfl.while", "tfl.if"});
      if (!result && !reads) return std::nullopt;
      (taken ? in_integers : in_floats) = true;
    }
    out.in_integers += in_floats ? 1 : 0;
    out.in_floats += in_integers ? 1 : 0;
  }
  bool from_floats = false;
  std::vector<Endpoint> seen;
  for (const Endpoint& e : n.inputs()) {
    if (!IsNumber(e) || e.node->Is({"Const", "_Arg"}) || std::ranges::count(seen, e) > 0) continue;
    seen.push_back(e);
    if (e.node->Is("tfl.read_variable")) return std::nullopt;
    if (chosen.contains(e.node)) {
      out.in_floats += HasFloatReader(e, chosen) ? 0 : 1;
    } else if (!OthersTakeIntegers(e, n, chosen)) {
      from_floats = true;
      ++out.in_integers;
    }
  }
  return from_floats ? std::optional(out) : std::nullopt;
}

// From the last back: what is float then is a float reader of what comes before.
void LeaveDearer(std::span<Node* const> order, bool float_results,
                 absl::flat_hash_set<const Node*>& chosen) {
  for (bool again = true; again;) {
    again = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (!chosen.contains(*it)) continue;
      const auto c = ConversionsOf(**it, chosen, float_results);
      if (!c || c->in_integers <= c->in_floats) continue;
      chosen.erase(*it);
      again = true;
    }
  }
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
  const bool float_results = flags.output_type == Dtype::kFloat;
  for (const Node* n : IslandsOf(chosen, float_results)) chosen.erase(n);
  LeaveDearer(order, float_results, chosen);
}

}  // namespace smelt
