#include "smelt/lite/quantize/masked_ranges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"

namespace smelt {
namespace {

// So far below another, a number's share in a SOFTMAX is less than any step; the kernel of int16
// tells no lower numbers apart.
constexpr double kNothing = 10;
// What is lower than needed by this factor is a mask and no bias.
constexpr double kFar = 4;

using RangeKey = std::pair<const Node*, int>;
constexpr OpSet kMovesScores = {"tfl.reshape", "tfl.transpose", "tfl.squeeze", "tfl.expand_dims"};
constexpr OpSet kRepeats = {"tfl.broadcast_to", "tfl.tile", "tfl.slice", "tfl.strided_slice",
                            "tfl.neg"};

bool IsOneNumber(Endpoint e) {
  const auto value = ConstantTensor(*e.node);
  if (!value || value->dtype() != Dtype::kFloat || value->num_elements() == 0) return false;
  const auto numbers = value->flat<float>();
  const auto [low, high] = std::ranges::minmax(numbers);
  return low == high;
}

bool AreTwoNumbers(const Tensor& value) {
  if (value.dtype() != Dtype::kFloat || value.num_elements() == 0) return false;
  const auto numbers = value.flat<float>();
  const auto ends = std::ranges::minmax(numbers);
  return std::ranges::all_of(numbers, [&](float v) { return v == ends.min || v == ends.max; });
}

class MaskReader {
 public:
  explicit MaskReader(LiteRanges& ranges) : ranges_(ranges) {}

  // `e`: what SOFTMAX reads, or that divided by `factor`.
  void Narrow(Endpoint e, double factor = 1) {
    Node& n = *e.node;
    if (n.NumUses(e.port) != 1 || !ranges_.contains(KeyOf(e))) return;
    if (n.Is(kMovesScores)) {
      Narrow(n.input(0), factor);
      if (const auto from = RangeOf(n.input(0))) ranges_[KeyOf(e)] = *from;
    } else if (n.String("fused_activation_function", "NONE") != "NONE") {
      return;
    } else if (n.Is("tfl.add")) {
      Narrow(n.input(0), factor);
      Narrow(n.input(1), factor);
      for (const int i : {0, 1}) {
        if (NarrowSum(e, n.input(i), n.input(1 - i), false, factor)) return;
      }
      // With a bias or an epsilon, of what was narrowed before.
      const auto a = RangeOf(n.input(0)), b = RangeOf(n.input(1));
      if (a && b) Lift(e, static_cast<double>(a->min) + static_cast<double>(b->min));
    } else if (n.Is("tfl.sub")) {
      Narrow(n.input(0), factor);
      if (NarrowSum(e, n.input(0), n.input(1), true, factor)) return;
      const auto a = RangeOf(n.input(0)), b = RangeOf(n.input(1));
      if (a && b) Lift(e, static_cast<double>(a->min) - static_cast<double>(b->max));
    } else if (n.Is({"tfl.mul", "tfl.div"})) {
      NarrowScaled(e, factor);
    } else if (n.Is({"tfl.select", "tfl.select_v2"})) {
      Narrow(n.input(1), factor);
      Narrow(n.input(2), factor);
      for (const int i : {1, 2}) NarrowChoice(e, n.input(i), n.input(3 - i), factor);
    }
  }

  // What EXP reads: what is far below the greatest gives less than half a step.
  void NarrowExponent(Endpoint e) {
    constexpr double kLessThanAStep = 11;
    if (e.node->NumUses(e.port) != 1 || !ranges_.contains(KeyOf(e))) return;
    Narrow(e);
    if (const auto r = RangeOf(e)) Lift(e, static_cast<double>(r->max) - kLessThanAStep);
  }

  absl::flat_hash_set<const Node*> Choices() { return std::move(choices_); }

  // A mask that many add is narrowed where all who read it agree that it is one.
  void NarrowMasks() {
    for (const auto& [key, mask] : masks_) {
      if (mask.readers != mask.of.node->NumUses(mask.of.port)) continue;
      const LiteRange range = *RangeOf(mask.of);
      const auto low = static_cast<float>(mask.low);
      ranges_[key] = mask.negated ? LiteRange{std::min(range.min, 0.0f), -low}
                                  : LiteRange{low, std::max(range.max, 0.0f)};
    }
  }

 private:
  struct Mask {
    Endpoint of;
    bool negated = false;  // it is subtracted: `low` is of what it adds
    double low = 0;
    int readers = 0;
  };
  static RangeKey KeyOf(Endpoint e) { return {e.node, e.port}; }

  std::optional<LiteRange> RangeOf(Endpoint e) const {
    const auto value = ConstantTensor(*e.node);
    if (!value) {
      const auto known = ranges_.find(KeyOf(e));
      if (known == ranges_.end() || !std::isfinite(known->second.max)) return std::nullopt;
      return known->second;
    }
    if (value->dtype() != Dtype::kFloat || value->num_elements() == 0) return std::nullopt;
    const auto [low, high] = std::ranges::minmax(value->flat<float>());
    return LiteRange{low, high};
  }

  // Is each number of it one of two, whatever comes? So no biases are among them.
  bool HasTwoNumbers(Endpoint e, int steps = 16) const {
    const Node& n = *e.node;
    if (steps == 0) return false;
    if (const auto value = ConstantTensor(n)) return AreTwoNumbers(*value);
    if (n.Is(kMovesScores) || n.Is(kRepeats)) return HasTwoNumbers(n.input(0), steps - 1);
    if (n.Is({"tfl.select", "tfl.select_v2"}))
      return IsOneNumber(n.input(1)) && IsOneNumber(n.input(2));
    if (n.Is({"tfl.add", "tfl.sub", "tfl.mul"})) {
      return (IsOneNumber(n.input(0)) && HasTwoNumbers(n.input(1), steps - 1)) ||
             (IsOneNumber(n.input(1)) && HasTwoNumbers(n.input(0), steps - 1));
    }
    if (!n.Is("tfl.cast")) return false;
    const Endpoint of = n.input(0);
    const Dtype from = of.node->output_types[static_cast<size_t>(of.port)];
    if (from == Dtype::kBool) return true;
    const auto range = RangeOf(e);
    return (from == Dtype::kInt32 || from == Dtype::kInt64) && range &&
           range->max - range->min <= 1;
  }

  // A mask of two numbers, so large that its sum with any of the scores is the mask again: where
  // it hides a whole row, all scores of the row are one.
  bool Hides(Endpoint mask, const LiteRange& m, const LiteRange& s) const {
    return m.min + s.min == m.min && m.min + s.max == m.min && HasTwoNumbers(mask);
  }

  // `sum` is of scores and a mask, which is nothing where it is greatest; where it is subtracted,
  // the mask is what that adds.
  bool NarrowSum(Endpoint sum, Endpoint scores, Endpoint mask, bool negated, double factor) {
    const auto s = RangeOf(scores);
    auto m = RangeOf(mask);
    if (!s || !m) return false;
    if (negated) m = LiteRange{-m->max, -m->min};
    const double width = static_cast<double>(s->max) - static_cast<double>(s->min);
    const double nothing = kNothing / factor;
    const double high = m->max, low = high - width - nothing;
    if (static_cast<double>(m->min) - high > kFar * (low - high)) return false;
    Mask& known = masks_[KeyOf(mask)];
    if (known.readers == 0) {
      known = {mask, negated, low, 1};
    } else if (known.negated == negated) {  // else it is a mask for some of its readers only
      known.low = std::min(known.low, low);
      ++known.readers;
    }
    // What is hidden saturates with every score where it does in floats, else differs as there.
    Lift(sum, static_cast<double>(s->min) + (Hides(mask, *m, *s) ? high - nothing : low));
    return true;
  }

  // Scores that are scaled by one number behind their mask.
  void NarrowScaled(Endpoint product, double factor) {
    const Node& n = *product.node;
    for (const int i : {0, 1}) {
      if (!IsOneNumber(n.input(1 - i)) || (i == 1 && n.Is("tfl.div"))) continue;
      const double number = RangeOf(n.input(1 - i))->max,
                   by = n.Is("tfl.div") ? 1 / number : number;
      if (!(by > 0) || !std::isfinite(by)) continue;
      Narrow(n.input(i), factor * by);
      if (const auto from = RangeOf(n.input(i))) Lift(product, by * static_cast<double>(from->min));
      return;
    }
  }

  // Where the condition says so, one number stands, which is the mask.
  void NarrowChoice(Endpoint choice, Endpoint scores, Endpoint mask, double factor) {
    const auto s = RangeOf(scores), m = RangeOf(mask);
    if (!s || !m || !mask.node->Is("Const") || m->min != m->max) return;
    const double width = static_cast<double>(s->max) - static_cast<double>(s->min);
    const double nothing = kNothing / factor, low = static_cast<double>(s->min) - nothing;
    if (static_cast<double>(m->max) - static_cast<double>(s->max) > -kFar * (width + nothing)) {
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
  absl::flat_hash_set<const Node*> choices_;
  std::map<RangeKey, Mask> masks_;
};

// `n` is of `scores` and one number so large that it is what comes of each: that number.
std::optional<float> NumberThatHides(const Node& n, Endpoint scores, const LiteRanges& ranges) {
  if (!n.Is({"tfl.add", "tfl.sub"}) || n.String("fused_activation_function", "NONE") != "NONE") {
    return std::nullopt;
  }
  const int i = n.Is("tfl.add") && n.input(1) == scores ? 1 : 0;
  const auto known = ranges.find({scores.node, scores.port});
  if (n.input(i) != scores || !IsOneNumber(n.input(1 - i)) || known == ranges.end()) {
    return std::nullopt;
  }
  const float given = ConstantTensor(*n.input(1 - i).node)->flat<float>()[0];
  const float number = n.Is("tfl.sub") ? -given : given;
  const auto hides = [&](float score) { return number + score == number; };
  if (!hides(known->second.min) || !hides(known->second.max)) return std::nullopt;
  return number;
}

}  // namespace

void StateHiddenScores(Graph& graph, const LiteRanges& ranges) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is("tfl.select_v2")) continue;
    for (const int i : {1, 2}) {
      Node* made = n->input(i).node;
      if (made->uses().size() != 1) continue;
      const auto number = NumberThatHides(*made, n->input(3 - i), ranges);
      if (!number) continue;
      const std::string name = absl::StrCat(made->name(), "/number");
      graph.SetInput(n, i, {graph.AddConst(name, Tensor::Scalar(*number)), 0});
      graph.Remove(made);
    }
  }
}

absl::flat_hash_set<const Node*> NarrowMaskedRanges(
    std::span<Node* const> order, const absl::flat_hash_set<const Node*>& in_float,
    LiteRanges& ranges) {
  MaskReader reader(ranges);
  for (const Node* n : order) {
    if (n->Is("tfl.softmax")) reader.Narrow(n->input(0));
    if (n->Is("tfl.exp") && !in_float.contains(n)) reader.NarrowExponent(n->input(0));
  }
  reader.NarrowMasks();
  return reader.Choices();
}

}  // namespace smelt
