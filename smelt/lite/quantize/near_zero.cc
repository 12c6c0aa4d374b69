#include "smelt/lite/quantize/near_zero.h"

#include "smelt/lite/quantize/pair_scales.h"

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

}  // namespace

absl::flat_hash_set<const Node*> FindNearZero(std::span<Node* const> order,
                                              const LiteRanges& ranges, bool only_div,
                                              const DeclaredParams& stated) {
  return NearZero(ranges, stated).Find(order, only_div);
}

}  // namespace smelt
