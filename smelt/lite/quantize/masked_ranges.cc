#include "smelt/lite/quantize/masked_ranges.h"

#include <algorithm>
#include <map>
#include <optional>

#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"

namespace smelt {
namespace {

// So far below another, a number's share in a SOFTMAX is less than any step.
constexpr double kNothing = 10, kNothingOfInt16 = 20;
// What is lower than needed by this factor is a mask and no bias.
constexpr double kFar = 4;

using RangeKey = std::pair<const Node*, int>;
constexpr OpSet kMovesScores = {"tfl.reshape", "tfl.transpose", "tfl.squeeze", "tfl.expand_dims"};

class MaskReader {
 public:
  MaskReader(LiteRanges& ranges, double nothing) : ranges_(ranges), nothing_(nothing) {}

  // `e`: what SOFTMAX reads.
  void Narrow(Endpoint e) {
    Node& n = *e.node;
    if (n.NumUses(e.port) != 1 || !ranges_.contains(KeyOf(e))) return;
    if (n.Is(kMovesScores)) {
      Narrow(n.input(0));
      if (const auto from = RangeOf(n.input(0))) ranges_[KeyOf(e)] = *from;
    } else if (n.Is("tfl.add") && n.String("fused_activation_function", "NONE") == "NONE") {
      Narrow(n.input(0));
      Narrow(n.input(1));
      for (const int i : {0, 1}) {
        if (NarrowSum(e, n.input(i), n.input(1 - i))) return;
      }
    } else if (n.Is({"tfl.select", "tfl.select_v2"})) {
      Narrow(n.input(1));
      Narrow(n.input(2));
      for (const int i : {1, 2}) NarrowChoice(e, n.input(i), n.input(3 - i));
    }
  }

  absl::flat_hash_set<const Node*> Choices() { return std::move(choices_); }

  // A mask that many add is narrowed where all who read it agree that it is one.
  void NarrowMasks() {
    for (const auto& [key, mask] : masks_) {
      if (mask.readers != mask.of.node->NumUses(mask.of.port)) continue;
      LiteRange range = *RangeOf(mask.of);
      range = {static_cast<float>(mask.low), std::max(range.max, 0.0f)};
      ranges_[key] = range;
    }
  }

 private:
  struct Mask {
    Endpoint of;
    double low = 0;
    int readers = 0;
  };
  static RangeKey KeyOf(Endpoint e) { return {e.node, e.port}; }

  std::optional<LiteRange> RangeOf(Endpoint e) const {
    const auto value = ConstantTensor(*e.node);
    if (!value) {
      const auto known = ranges_.find(KeyOf(e));
      return known == ranges_.end() ? std::nullopt : std::optional(known->second);
    }
    if (value->dtype() != Dtype::kFloat || value->num_elements() == 0) return std::nullopt;
    const auto [low, high] = std::ranges::minmax(value->flat<float>());
    return LiteRange{low, high};
  }

  // `sum` is of scores and a mask, which is nothing where it is greatest.
  bool NarrowSum(Endpoint sum, Endpoint scores, Endpoint mask) {
    const auto s = RangeOf(scores), m = RangeOf(mask);
    if (!s || !m) return false;
    const double width = static_cast<double>(s->max) - static_cast<double>(s->min);
    const double high = m->max, low = high - width - nothing_;
    if (static_cast<double>(m->min) - high > kFar * (low - high)) return false;
    Mask& known = masks_[KeyOf(mask)];
    known.low = known.readers == 0 ? low : std::min(known.low, low);
    known.of = mask;
    ++known.readers;
    Lift(sum, static_cast<double>(s->min) + low);
    return true;
  }

  // Where the condition says so, one number stands, which is the mask.
  void NarrowChoice(Endpoint choice, Endpoint scores, Endpoint mask) {
    const auto s = RangeOf(scores), m = RangeOf(mask);
    if (!s || !m || !mask.node->Is("Const") || m->min != m->max) return;
    const double width = static_cast<double>(s->max) - static_cast<double>(s->min);
    const double low = static_cast<double>(s->min) - nothing_;
    if (static_cast<double>(m->max) - static_cast<double>(s->max) > -kFar * (width + nothing_)) {
      return;
    }
    Lift(choice, low);
    choices_.insert(choice.node);
  }

  void Lift(Endpoint e, double low) {
    LiteRange& range = ranges_.at(KeyOf(e));
    range.min = std::max(range.min, static_cast<float>(low));
  }

  LiteRanges& ranges_;
  const double nothing_;
  absl::flat_hash_set<const Node*> choices_;
  std::map<RangeKey, Mask> masks_;
};

}  // namespace

absl::flat_hash_set<const Node*> NarrowMaskedRanges(const std::vector<Node*>& order, bool int16,
                                                    LiteRanges& ranges) {
  MaskReader reader(ranges, int16 ? kNothingOfInt16 : kNothing);
  for (const Node* n : order) {
    if (n->Is("tfl.softmax")) reader.Narrow(n->input(0));
  }
  reader.NarrowMasks();
  return reader.Choices();
}

}  // namespace smelt
