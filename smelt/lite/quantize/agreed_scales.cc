#include "smelt/lite/quantize/agreed_scales.h"

#include <algorithm>
#include <vector>

#include "smelt/lite/quantize/declared_ranges.h"
#include "smelt/lite/quantize/quantized_ops.h"

namespace smelt {
namespace {

bool KeepsScale(const Node& n) {
  const QuantizedOp* row = FindQuantizedOp(n.op_name());
  return row != nullptr && row->results == ResultRange::kAsInput;
}

// Three bits of eight: what others read would keep less than five, or the smallest of a join.
constexpr float kMostCoarser = 8;

bool MixesSizes(const Node& n, const LiteRanges& ranges) {
  if (!n.Is({"tfl.concatenation", "tfl.pack"})) return false;
  float least = 0, most = 0;
  for (const Endpoint& e : n.inputs()) {
    const auto known = ranges.find({e.node, e.port});
    if (e.node->Is("Const") || known == ranges.end()) continue;
    const float size = std::max(known->second.max, 0.0f) - std::min(known->second.min, 0.0f);
    if (size == 0) continue;
    least = least == 0 ? size : std::min(least, size);
    most = std::max(most, size);
  }
  return most > kMostCoarser * least;
}

class Agreement {
 public:
  explicit Agreement(const ScaleChoices& choices) : c_(choices) {}

  void Run(std::span<Node* const> order) {
    // From the last operator back: what a producer takes over comes before its own inputs are
    // asked.
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      if (c_.chosen.contains(*n) && Joins(**n)) Join(**n);
    }
    for (const auto& [key, group] : group_of_) c_.params[key] = groups_[GroupOf(group)].params;
    if (c_.stated) return;
    for (const Node* n : order) {
      if (!Follows(*n)) continue;
      const Params p = ParamsAt(n->input(FirstActivation(*n)));
      for (int i = 0; i < n->num_outputs(); ++i) {
        const auto known = c_.params.find({n, i});
        if (known != c_.params.end()) known->second = p;
      }
    }
  }

 private:
  using Key = ScaleChoices::Key;
  static Key KeyOf(Endpoint e) { return {e.node, e.port}; }
  struct Group {
    size_t parent;
    Params params;
    bool zero;
    float finest;  // scale that anything joined has of its own
  };

  Params ParamsAt(Endpoint e) const {
    const auto known = c_.params.find(KeyOf(e));
    return known != c_.params.end() ? known->second : c_.calibrated(e);
  }

  // Does the operator give what it reads of one input, on the scale of that?
  bool Follows(const Node& n) const {
    return c_.chosen.contains(&n) && KeepsScale(n) && NumActivations(n) == 1 &&
           !c_.beyond.contains(&n);
  }
  // With one activation, it joins constants.
  bool Joins(const Node& n) const {
    return KeepsScale(n) && (NumActivations(n) > 1 || c_.beyond.contains(&n));
  }

  static bool IsReadOnce(Endpoint e) { return e.node->NumUses(e.port) == 1; }

  struct Source {
    Endpoint value;  // of which what is read is a part, an arrangement or a mean
    bool alone;      // nobody else reads any of it
    bool mixed;      // numbers that are not read themselves count
  };
  Source SourceOf(Endpoint e) const {
    constexpr OpSet kMixes = {"tfl.average_pool_2d", "tfl.resize_bilinear"};
    Source s{e, IsReadOnce(e), false};
    while (Follows(*s.value.node)) {
      s.mixed = s.mixed || s.value.node->Is(kMixes);
      const int gives = s.value.node->num_outputs();
      s.value = s.value.node->input(FirstActivation(*s.value.node));
      s.alone = s.alone && IsReadOnce(s.value) && gives == 1;
    }
    return s;
  }

  bool MayChoose(Endpoint e) const {
    if (c_.fixed(e)) return false;
    if (!c_.chosen.contains(e.node)) return true;
    // One of constants alone takes these on any scale.
    const QuantizedOp& row = *FindQuantizedOp(e.node->op_name());
    return row.results == ResultRange::kCalibrated ||
           (row.results == ResultRange::kAsInput &&
            (NumActivations(*e.node) != 1 || c_.beyond.contains(e.node)));
  }

  void Join(Node& n) {
    for (const Endpoint& e : n.inputs()) {
      if (!IsActivation(e) || c_.stated) continue;
      const Endpoint from = SourceOf(e).value;
      float& finest = groups_[GroupOf({&n, 0})].finest;
      if (!c_.fixed(from) && !c_.zero(from)) finest = std::min(finest, ParamsAt(from).scale);
    }
    for (const Endpoint& e : n.inputs()) {
      if (!IsActivation(e)) continue;
      if (c_.stated) {
        JoinStated(n, e);
        continue;
      }
      const Source source = SourceOf(e);
      if (!MayChoose(source.value)) continue;
      if (source.alone && !source.mixed) {
        Take(source.value, GroupOf({&n, 0}));
      } else {
        Merge(GroupOf({&n, 0}), GroupOf(KeyOf(source.value)), !source.alone);
      }
    }
  }

  void JoinStated(Node& n, Endpoint e) {
    // A statement in between goes with what it is of.
    const Node* q = DeclarationOf(e);
    const Endpoint from = q == nullptr ? e : q->input(0);
    const bool alone = IsReadOnce(e) && IsReadOnce(from) && (q == nullptr || q->NumUses(0) == 1);
    if (!alone || !c_.chosen.contains(from.node) || !MayChoose(from)) return;
    Take(from, GroupOf({&n, 0}));
    if (q != nullptr) Take(e, GroupOf({&n, 0}));
  }

  void Take(Endpoint e, size_t group) { group_of_[KeyOf(e)] = group; }

  size_t GroupOf(size_t group) const {
    while (groups_[group].parent != group) group = groups_[group].parent;
    return group;
  }
  size_t GroupOf(Key key) {
    const auto known = group_of_.find(key);
    if (known != group_of_.end()) return GroupOf(known->second);
    const size_t made = groups_.size();
    const Endpoint e = {const_cast<Node*>(key.first), key.second};
    const Params p = ParamsAt(e);
    groups_.push_back({made, p, c_.zero(e), p.scale});
    group_of_[key] = made;
    return made;
  }

  void Merge(size_t a, size_t b, bool shared) {
    if (a == b) return;
    Group &of = groups_[a], &with = groups_[b];
    if (of.zero) {
      of.params = with.params;
      of.finest = with.finest;
    } else if (!with.zero) {
      const float finer = std::min(of.finest, with.finest);
      const float coarser = std::max(of.params.scale, with.params.scale);
      if (shared && coarser > kMostCoarser * finer) return;
      of.params = Wider(of.params, with.params);
      of.finest = finer;
    }
    of.zero = of.zero && with.zero;
    with.parent = a;
  }

  double Low(const Params& p) const {
    return static_cast<double>(p.scale) * static_cast<double>(c_.format.low - p.zero);
  }
  double High(const Params& p) const {
    return static_cast<double>(p.scale) * static_cast<double>(c_.format.high - p.zero);
  }
  // But for what zeros moved, which are whole steps.
  bool Covers(const Params& a, const Params& b) const {
    const double step = static_cast<double>(a.scale + b.scale) / 2;
    return Low(a) - step <= Low(b) && High(b) <= High(a) + step && a.scale >= b.scale;
  }
  Params Wider(const Params& a, const Params& b) const {
    if (Covers(a, b)) return a;
    if (Covers(b, a)) return b;
    return ParamsOf({static_cast<float>(std::min(Low(a), Low(b))),
                     static_cast<float>(std::max(High(a), High(b)))},
                    c_.format);
  }

  const ScaleChoices& c_;
  std::vector<Group> groups_;
  absl::flat_hash_map<Key, size_t> group_of_;
};

}  // namespace

bool IsActivation(Endpoint e) {
  return e.node->output_types[static_cast<size_t>(e.port)] == Dtype::kFloat && !e.node->Is("Const");
}

int64_t NumActivations(const Node& n) { return std::ranges::count_if(n.inputs(), IsActivation); }

int FirstActivation(const Node& n) {
  return static_cast<int>(std::ranges::find_if(n.inputs(), IsActivation) - n.inputs().begin());
}

bool JoinsBeyond(const Node& n, int port, const LiteRanges& ranges, const Params& from,
                 const IntegerFormat& f) {
  const auto result = ranges.find({&n, port});
  const bool joins = std::ranges::any_of(n.inputs(), [](const Endpoint& e) {
    return e.node->output_types[static_cast<size_t>(e.port)] == Dtype::kFloat &&
           e.node->Is("Const");
  });
  return joins && result != ranges.end() &&
         (result->second.min < from.scale * static_cast<float>(f.low - 1 - from.zero) ||
          result->second.max > from.scale * static_cast<float>(f.high + 1 - from.zero));
}

absl::flat_hash_set<const Node*> FindMixedResults(std::span<Node* const> order,
                                                  const absl::flat_hash_set<const Node*>& chosen,
                                                  const LiteRanges& ranges) {
  absl::flat_hash_set<const Node*> last, out;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node* n = *it;
    if (!chosen.contains(n) || !KeepsScale(*n)) continue;
    const bool ends = std::ranges::all_of(n->uses(), [&](const Use& use) {
      return use.is_control() || last.contains(use.node) || !chosen.contains(use.node);
    });
    if (ends) last.insert(n);
  }
  for (const Node* n : order) {
    if (!last.contains(n)) continue;
    const bool behind =
        std::ranges::any_of(n->inputs(), [&](const Endpoint& e) { return out.contains(e.node); });
    if (behind || MixesSizes(*n, ranges)) out.insert(n);
  }
  return out;
}

void AgreeOnScales(std::span<Node* const> order, const ScaleChoices& choices) {
  Agreement(choices).Run(order);
}

}  // namespace smelt
