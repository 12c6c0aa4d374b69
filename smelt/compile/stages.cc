#include "smelt/compile/stages.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <random>
#include <utility>

#include "smelt/base/cache_size.h"
#include "smelt/base/team.h"
#include "smelt/graph/op_facts.h"

namespace smelt {

int64_t OwnCacheBytes() { return NearCacheBytes(int64_t{1} << 20); }

namespace {

int64_t LastCacheBytes() { return FarCacheBytes(int64_t{32} << 20); }

// Costs are in bytes that come from the last cache.
//
// To begin an action, and to work with the ends of its tiles.
constexpr int64_t kCall = int64_t{64} << 10;
// For each thread, to meet at the end of an action.
constexpr int64_t kMeeting = int64_t{64} << 10;
// A stage has to be worth its tensor, its arena and its compilation, and more than the costs may be
// wrong: this, and that part of what all costs without it.
constexpr int64_t kStage = int64_t{256} << 10;
constexpr int64_t kStageShare = 32;
// No value is larger that is left for the next stage, unless a request is, nor one within a stage,
// unless the smallest part has it.
constexpr int64_t kMostKept = int64_t{32} << 20;

constexpr OpSet kLooksUp = {"Gather", "GatherV2", "ResourceGather"};

int64_t PartsOf(int64_t rows, int64_t part) { return (rows + part - 1) / part; }

// What a byte costs that moves among so many: nothing in a core's own cache, and from memory about
// three times what it costs from the last cache.
int64_t CostOfByte(int64_t among) {
  if (among <= OwnCacheBytes()) return 0;
  return among <= LastCacheBytes() ? 1 : 3;
}

// Weights are read in turn, so that none of them stays where all do not fit beside the values that
// live at a time.
bool WeightsStay(int64_t weights) { return 2 * weights <= OwnCacheBytes(); }
int64_t CostOfWeight(int64_t weights) { return weights <= LastCacheBytes() / 4 * 3 ? 1 : 3; }

// A value that moves: how many bytes, and how often.
struct Moved {
  int64_t bytes = 0, times = 0;
  // Where `part` of all rows are made and read at a time; beside it lies what it is made of. Of
  // what is little more than a core's cache much stays there.
  int64_t CostOf(int64_t part, int64_t rows) const {
    const int64_t among = 2 * bytes / rows * part, own = OwnCacheBytes();
    const int64_t all = times * bytes * CostOfByte(among);
    return among < 2 * own ? all / 16 * (16 * (among - own) / own) : all;
  }
};

// What lies between two cuts.
struct Segment {
  int64_t actions = 0;
  int64_t largest = 0;        // of its values
  int64_t moved = 0;          // all that its values move, wherever they lie
  std::vector<int64_t> cost;  // of them, by size of a part
  int64_t weights = 0;        // of constants that no segment before reads
  struct Again {
    size_t segment;
    int64_t bytes;
  };
  std::vector<Again> again;  // of those that one reads, by the last of them
};

class StageChooser {
 public:
  StageChooser(const Plan& plan, std::span<const PlanCut> cuts, int64_t rows, bool for_threads)
      : plan_(plan), cuts_(cuts), rows_(rows), threads_(for_threads ? Threads() : 1) {
    // All rows, then the fewest parts that threads share evenly, or more.
    sizes_.push_back(rows);
    for (int64_t part = PartsOf(rows, for_threads ? threads_ : 2);; part = (part + 1) / 2) {
      sizes_.push_back(part);
      if (part == 1) break;
    }
    FindValues();
    FindSegments();
  }

  struct Stage {
    size_t begin = 0, end = 0;  // segments
    int64_t part = 0, weights = 0;
  };

  // Every second cut or so, and any size.
  std::vector<Stage> Draw(uint64_t number) const {
    std::vector<Stage> stages;
    std::minstd_rand random(static_cast<uint32_t>(number));
    size_t begin = 0;
    for (size_t end = 1; end <= segments_.size(); ++end) {
      if (end < segments_.size() && random() / 64 % 2 == 0) continue;
      stages.push_back({begin, end, sizes_[random() / 64 % sizes_.size()], 0});
      begin = end;
    }
    return stages;
  }

  // The cheapest.
  std::vector<Stage> Choose() const {
    const size_t n = segments_.size();
    std::vector<std::optional<int64_t>> best(n + 1);
    std::vector<Stage> last(n + 1);
    best[0] = 0;
    const int64_t most_left = MostLeft();
    const int64_t each = std::max(kStage, CostOfOne() / kStageShare);
    for (size_t begin = 0; begin < n; ++begin) {
      if (!best[begin]) continue;
      Sum sum;
      for (size_t end = begin + 1; end <= n; ++end) {
        Add(segments_[end - 1], begin, sum);
        if (end < n && cut_[end - 1].bytes > most_left) continue;
        for (size_t s = 0; s < sizes_.size(); ++s) {
          if (!MayTake(sum, s)) continue;
          const int64_t cost = *best[begin] + each + CostOf(sum, s, end);
          if (best[end] && *best[end] <= cost) continue;
          best[end] = cost;
          last[end] = {begin, end, sizes_[s], sum.weights};
        }
      }
    }
    std::vector<Stage> stages;
    for (size_t end = n; end > 0; end = last[end].begin) stages.push_back(last[end]);
    std::ranges::reverse(stages);
    return stages;
  }

  int64_t largest(const Stage& stage) const {
    int64_t most = 0;
    for (size_t s = stage.begin; s < stage.end; ++s) most = std::max(most, segments_[s].largest);
    return most / rows_ * stage.part;
  }
  size_t first_action(size_t segment) const {
    return segment == 0             ? 0
           : segment > cuts_.size() ? plan_.actions.size()
                                    : cuts_[segment - 1].action;
  }

 private:
  // Of neighboring segments.
  struct Sum {
    int64_t actions = 0, largest = 0, moved = 0, weights = 0;
    std::array<int64_t, 66> cost = {};  // halves of a number have no more sizes
  };

  bool MayTake(const Sum& sum, size_t size) const {
    return size + 1 == sizes_.size() || sum.largest / rows_ * sizes_[size] <= kMostKept;
  }

  // Of the best that is not cut.
  int64_t CostOfOne() const {
    Sum sum;
    for (const Segment& s : segments_) Add(s, 0, sum);
    int64_t least = CostOf(sum, sizes_.size() - 1, segments_.size());
    for (size_t s = 0; s < sizes_.size(); ++s) {
      if (MayTake(sum, s)) least = std::min(least, CostOf(sum, s, segments_.size()));
    }
    return least;
  }

  int64_t MostLeft() const {
    int64_t request = 0;
    for (const PlanValue& v : plan_.values) {
      const bool others =
          v.place == PlanValue::Place::kArgument || v.place == PlanValue::Place::kResult;
      if (others && v.same_as < 0) request += v.bytes();
    }
    return std::max(request, kMostKept);
  }

  static void Add(const Segment& s, size_t begin, Sum& sum) {
    sum.actions += s.actions;
    sum.largest = std::max(sum.largest, s.largest);
    sum.moved += s.moved;
    sum.weights += s.weights;
    for (const Segment::Again& a : s.again) {
      if (a.segment < begin) sum.weights += a.bytes;
    }
    for (size_t i = 0; i < s.cost.size(); ++i) sum.cost[i] += s.cost[i];
  }

  // Of a stage of parts of sizes_[size] that ends before segment `end`.
  int64_t CostOf(const Sum& sum, size_t size, size_t end) const {
    const int64_t part = sizes_[size], parts = PartsOf(rows_, part);
    const bool team = part == rows_ && threads_ > 1;
    const int64_t reads = WeightsStay(sum.weights) ? std::min<int64_t>(parts, threads_) : parts;
    int64_t cost = parts * sum.actions * kCall + reads * sum.weights * CostOfWeight(sum.weights);
    // What one thread writes the next one reads, from another core's cache.
    cost += team ? std::max(sum.cost[size], sum.moved) + sum.actions * threads_ * kMeeting
                 : sum.cost[size];
    if (end == segments_.size()) return cost;
    const Moved& left = cut_[end - 1];
    return cost - (team ? left.times * left.bytes : left.CostOf(part, rows_)) +
           left.CostOf(rows_, rows_);
  }

  // Values that exist when actions do what follows them: those that one elementwise action alone
  // reads do not, nor do floats on their way to or from int8.
  void FindValues() {
    moves_.resize(plan_.values.size());
    exists_.resize(plan_.values.size());
    std::vector<bool> passes(plan_.values.size(), false);
    for (const PlanAction& action : plan_.actions) {
      for (const int v : action.inputs) ++moves_[Root(v)].times;
      const bool follows = action.node->Is(kElementwiseOps) || action.node->Is("BiasAdd") ||
                           action.node->Is("_Int8Quantize");
      if (follows && !action.inputs.empty()) passes[Root(action.inputs[0])] = true;
      if (action.node->Is("_Int8Dequantize")) passes[Root(action.outputs[0])] = true;
    }
    for (size_t v = 0; v < moves_.size(); ++v) {
      const PlanValue& value = plan_.values[v];
      const int64_t readers = moves_[v].times;
      exists_[v] = value.same_as < 0 && !(passes[v] && readers == 1);
      const bool moves =
          exists_[v] && readers > 0 &&
          (value.place == PlanValue::Place::kArena || value.place == PlanValue::Place::kResult);
      moves_[v] = moves ? Moved{value.bytes(), readers + 1} : Moved();
    }
  }

  void FindSegments() {
    segments_.resize(cuts_.size() + 1);
    std::vector<int> last_read(plan_.values.size(), -1);  // of constants
    for (size_t s = 0; s < segments_.size(); ++s) {
      Segment& segment = segments_[s];
      segment.cost.resize(sizes_.size(), 0);
      for (size_t i = first_action(s); i < first_action(s + 1); ++i) {
        const PlanAction& action = plan_.actions[i];
        bool counts = false;
        for (const int v : action.outputs) {
          const Moved& m = moves_[Root(v)];
          counts = counts || exists_[Root(v)];
          segment.largest = std::max(segment.largest, m.bytes);
          segment.moved += m.times * m.bytes;
          for (size_t k = 0; k < sizes_.size(); ++k) segment.cost[k] += m.CostOf(sizes_[k], rows_);
        }
        segment.actions += counts ? 1 : 0;
        for (const int v : action.inputs) {
          const Tensor* t = plan_.ConstantOf(v);
          if (t == nullptr) continue;
          auto bytes = static_cast<int64_t>(t->bytes());
          if (action.node->Is(kLooksUp)) {
            bytes = std::min(bytes, plan_.values[static_cast<size_t>(action.outputs[0])].bytes());
          }
          const int before = std::exchange(last_read[static_cast<size_t>(v)], static_cast<int>(s));
          if (before < 0) {
            segment.weights += bytes;
          } else if (before < static_cast<int>(s)) {
            segment.again.push_back({static_cast<size_t>(before), bytes});
          }
        }
      }
    }
    for (const PlanCut& c : cuts_) {
      const auto v = static_cast<size_t>(c.value);
      cut_.push_back(moves_[v]);
      if (cut_.back().bytes == 0) cut_.back() = {plan_.values[v].bytes(), 2};
    }
  }

  size_t Root(int v) const { return static_cast<size_t>(plan_.Root(v)); }

  const Plan& plan_;
  const std::span<const PlanCut> cuts_;
  const int64_t rows_;
  const int threads_;
  std::vector<int64_t> sizes_;
  std::vector<Moved> moves_;  // by value
  std::vector<bool> exists_;  // the same
  std::vector<Moved> cut_;    // by cut
  std::vector<Segment> segments_;
};

std::atomic<uint64_t> drawn_by{0};

std::string WhatStageDoes(const StageChooser& chooser, const StageChooser::Stage& stage,
                          int64_t rows, int threads) {
  const int64_t parts = PartsOf(rows, stage.part);
  if (parts == 1) {
    return absl::StrCat("all rows at once: parts would read ", stage.weights,
                        " bytes of weights each");
  }
  return absl::StrCat("in ", parts, " parts, ",
                      threads > 1 ? absl::StrCat(threads, " threads take rows") : "one thread",
                      ": ", stage.weights, " bytes of weights, ",
                      WeightsStay(stage.weights) ? "read once, " : "", "values of up to ",
                      chooser.largest(stage), " for a core's cache of ", OwnCacheBytes());
}

}  // namespace

void DrawStages(uint64_t number) { drawn_by = number; }

int64_t WeightsOf(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlanValue& v : plan.values) {
    if (v.place == PlanValue::Place::kConstant) bytes += v.bytes();
  }
  return bytes;
}

std::vector<PlanStage> ChooseStages(const Plan& plan, std::span<const PlanCut> cuts, int64_t rows,
                                    int64_t work, Reasons* reasons) {
  const int threads = Threads();
  const int64_t arena = LeastArena(plan);
  const bool for_threads = threads > 1 && rows >= threads && work / threads >= kLeastWork;
  const uint64_t number = drawn_by;
  if (number == 0 && !for_threads && arena <= OwnCacheBytes()) {
    NoteReason(reasons, "all rows at once: what lives at a time, ", arena,
               " bytes, fits a core's cache of ", OwnCacheBytes());
    if (threads > 1) {
      NoteReason(reasons, "threads take no rows: ", rows, " rows of ", work,
                 " multiply-adds in all are too few for ", threads);
    }
    return {PlanStage()};
  }
  StageChooser chooser(plan, cuts, rows, for_threads);
  std::vector<PlanStage> stages;
  for (const StageChooser::Stage& s : number > 0 ? chooser.Draw(number) : chooser.Choose()) {
    PlanStage& stage = stages.emplace_back();
    if (s.part < rows) stage.part = s.part;
    const size_t end = chooser.first_action(s.end);
    for (size_t i = chooser.first_action(s.begin); i < end; ++i) {
      stage.nodes.insert(plan.actions[i].node);
    }
    std::string where;
    if (end < plan.actions.size()) {
      const PlanValue& cut = plan.values[static_cast<size_t>(cuts[s.end - 1].value)];
      stage.makes = cut.of;
      stage.shape = cut.shape;
      where = absl::StrCat("up to '", EndpointName(cut.of), "' of ", cut.bytes(), " bytes ");
    }
    NoteReason(reasons, where, WhatStageDoes(chooser, s, rows, for_threads ? threads : 1));
  }
  return stages;
}

}  // namespace smelt
