#include "smelt/optimize/precision/paint.h"

#include <algorithm>

#include "smelt/graph/op_facts.h"
#include "smelt/optimize/passes.h"
#include "smelt/optimize/precision/kernels.h"
#include "smelt/optimize/precision/lists_of_tensors.h"

namespace smelt {
namespace {

constexpr OpSet kRefVariables = {"Variable", "VariableV2"};

// What they take or give is somebody else's.
constexpr OpSet kPassesToOthers = {"_Arg", "OptionalFromValue", "OptionalGetValue", "Placeholder"};

// Loops in loops that a variable is followed through.
constexpr int kMostEnters = 64;

// Reads a ref variable where it stands, through Enters too: what watches training, or the loop
// itself, wants the variable's own type there.
bool PassesRefVariable(const Node& n) {
  const Node* at = &n;
  for (int i = 0; at->Is("Enter"); ++i) {
    if (i == kMostEnters) return true;
    at = at->input(0).node;
  }
  return at->Is("Identity") && at->input(0).node->Is(kRefVariables);
}

// A walk passes from place to place. What is written into a list goes on as lists go, to what reads
// them: each place of a list is then a hop in one direction, so that the walk from the writers to
// the readers takes time that is linear in both.
class Painter {
 public:
  Painter(const TypeGraph& types, const Graph& graph, const PaintOptions& options,
          absl::FunctionRef<bool(const Node&)> may_change,
          absl::FunctionRef<bool(const Node&)> on_gpu)
      : types_(types),
        graph_(graph),
        options_(options),
        may_change_(may_change),
        on_gpu_(on_gpu),
        size_(static_cast<size_t>(types.size())),
        allow_(size_),
        deny_(size_) {}

  StatusOr<std::vector<bool>> Run() {
    if (!Allow()) return std::move(allow_);
    clusters_ = FindListClusters(types_, may_change_, [&](const Node& n) {
      return n.def() == nullptr || n.Is(kPassesToOthers) || IsRoot(n) ||
             CallsFunctions(*graph_.library(), n);
    });
    for (const ListCluster& cluster : clusters_) {
      if (cluster.must_stay) deny_[Index(cluster.places.front())] = true;
    }
    DenyBehindDenied();
    MatchLists();
    AllowBetweenAllowed();
    AllowBehindAllowed();
    AllowThroughClear();
    DropWide();
    MatchLists();
    RETURN_IF_ERROR(MatchLoops());
    AllowCasts();
    return std::move(allow_);
  }

 private:
  enum Direction { kUp = 1, kDown = 2, kBoth = 3 };
  static size_t Index(int place) { return static_cast<size_t>(place); }
  const Node& NodeOf(int place) const { return *types_.at(place).node; }
  bool In(int place, const OpSet& ops) const { return NodeOf(place).Is(ops); }

  bool DefinitionAllowsNarrow(int place) const {
    const TypePlace& p = types_.at(place);
    return !p.is_fixed() && DefinitionAllows(*p.node, p.attr, options_.narrow);
  }
  // Can the place, which is float, be narrow where its neighbors are?
  bool MayFollow(int place) const {
    const TypePlace& p = types_.at(place);
    return p.type == Dtype::kFloat && may_change_(*p.node) && DefinitionAllowsNarrow(place) &&
           KernelTakes(*p.node, p.attr, options_.narrow, on_gpu_(*p.node));
  }

  // Visits `root` and what it reaches through places for which `enter` is true. `hops` holds what
  // walks of the same kind passed already, by hop; `enter` itself must be false where one was.
  void Walk(int root, Direction direction, std::vector<bool>* hops,
            absl::FunctionRef<bool(int)> enter, absl::FunctionRef<void(int)> visit) {
    if (!clusters_.empty()) hops->resize(2 * size_);
    visit(root);
    stack_.push_back(root);
    const auto pass = [&](int place) {
      if (place == root || !enter(place)) return;
      visit(place);
      stack_.push_back(place);
    };
    // Hops upwards are numbered behind the places, hops downwards behind those.
    const auto hop = [&](int list, bool up) {
      if (!may_change_(NodeOf(list))) return;
      const size_t number = Index(list) + (up ? 0 : size_);
      if ((*hops)[number]) return;
      (*hops)[number] = true;
      stack_.push_back(static_cast<int>(size_ + number));
    };
    while (!stack_.empty()) {
      const int at = stack_.back();
      stack_.pop_back();
      if (Index(at) < size_) {
        if (direction & kUp) {
          for (const int source : types_.sources(at)) pass(source);
        }
        if (direction & kDown) {
          for (const int reader : types_.readers(at)) pass(reader);
        }
        if (clusters_.empty() || FloatElements(types_, NodeOf(at)) != at) continue;
        const int list = ListOf(NodeOf(at));
        if (list < 0) continue;
        if ((direction & kUp) && ReadsList(NodeOf(at))) hop(list, true);
        if ((direction & kDown) && WritesList(NodeOf(at)) && may_change_(NodeOf(at))) {
          for (const int reader : types_.readers(list)) hop(reader, false);
        }
        continue;
      }
      const bool up = Index(at) < 2 * size_;
      const int list = at - static_cast<int>(up ? size_ : 2 * size_);
      const Node& n = NodeOf(list);
      const int elements = FloatElements(types_, n);
      if (elements >= 0 && (up ? WritesList(n) : ReadsList(n))) pass(elements);
      for (const int next : up ? types_.sources(list) : types_.readers(list)) hop(next, up);
    }
  }

  // The place of a list op's lists.
  int ListOf(const Node& n) const {
    const auto [first, end] = types_.Range(n);
    for (int place = first; place < end; ++place) {
      const TypePlace& p = types_.at(place);
      if (p.is_fixed() && p.type == Dtype::kVariant) return place;
    }
    return -1;
  }

  bool Allow() {
    bool any = false;
    for (int place = 0; place < types_.size(); ++place) {
      const Node& n = NodeOf(place);
      const bool forced = options_.force_all && !n.Is({"Const", "SoftmaxCrossEntropyWithLogits"}) &&
                          n.def() != nullptr && !n.def()->stateful && !TakesReference(n) &&
                          std::ranges::none_of(n.output_types, IsRef);
      if (!(forced || n.Is(options_.lists.allow)) || !may_change_(n)) continue;
      allow_[Index(place)] = any = true;
    }
    return any;
  }

  // What follows a denied op through clear and inferred ones, as far as another denied or inferred
  // one wants it.
  void DenyBehindDenied() {
    if (options_.force_all) return;
    const PrecisionLists& lists = options_.lists;
    std::vector<bool> before(size_), hops;
    for (int root = 0; root < types_.size(); ++root) {
      if (!In(root, lists.deny) && !In(root, lists.infer)) continue;
      Walk(
          root, kUp, &hops,
          [&](int place) { return !before[Index(place)] && In(place, lists.clear); },
          [&](int place) { before[Index(place)] = true; });
    }
    hops.clear();
    for (int root = 0; root < types_.size(); ++root) {
      if (deny_[Index(root)] || !In(root, lists.deny)) continue;
      Walk(
          root, kDown, &hops,
          [&](int place) { return !deny_[Index(place)] && before[Index(place)]; },
          [&](int place) { deny_[Index(place)] = true; });
    }
  }

  void AllowBetweenAllowed() {
    const PrecisionLists& lists = options_.lists;
    std::vector<bool> behind(size_), before(size_), hops;
    for (int root = 0; root < types_.size(); ++root) {
      if (!In(root, lists.allow) || !may_change_(NodeOf(root))) continue;
      Walk(
          root, kDown, &hops,
          [&](int place) {
            return !behind[Index(place)] && !deny_[Index(place)] && !In(place, lists.allow) &&
                   (In(place, lists.clear) || In(place, lists.infer)) && MayFollow(place);
          },
          [&](int place) { behind[Index(place)] = true; });
    }
    hops.clear();
    for (int root = 0; root < types_.size(); ++root) {
      if (before[Index(root)] || !In(root, lists.allow) || !may_change_(NodeOf(root))) continue;
      Walk(
          root, kUp, &hops,
          [&](int place) { return !before[Index(place)] && behind[Index(place)]; },
          [&](int place) { before[Index(place)] = allow_[Index(place)] = true; });
    }
  }

  // Inferred ops that read what is narrow, and nothing that is denied. In the order of the graph,
  // so that a chain of them follows where it stands in order.
  void AllowBehindAllowed() {
    for (int place = 0; place < types_.size(); ++place) {
      if (allow_[Index(place)] || deny_[Index(place)] || !In(place, options_.lists.infer) ||
          !MayFollow(place)) {
        continue;
      }
      const auto sources = types_.sources(place);
      const auto is = [&](const std::vector<bool>& set) {
        return std::ranges::any_of(sources, [&](int source) { return set[Index(source)]; });
      };
      if (is(allow_) && !is(deny_)) allow_[Index(place)] = true;
    }
  }

  void AllowThroughClear() {
    std::vector<bool> met(size_), hops;
    for (int root = 0; root < types_.size(); ++root) {
      if (met[Index(root)] || !allow_[Index(root)] || !may_change_(NodeOf(root))) continue;
      Walk(
          root, kBoth, &hops,
          [&](int place) {
            return !met[Index(place)] && !allow_[Index(place)] && !deny_[Index(place)] &&
                   In(place, options_.lists.clear) && MayFollow(place) &&
                   !PassesRefVariable(NodeOf(place));
          },
          [&](int place) { met[Index(place)] = allow_[Index(place)] = true; });
    }
  }

  // Of the ops on the list those that cannot be narrow.
  void DropWide() {
    for (int place = 0; place < types_.size(); ++place) {
      if (In(place, options_.lists.allow) && !DefinitionAllowsNarrow(place)) {
        allow_[Index(place)] = false;
      }
    }
  }

  // Elements of one list have one type: float where one of them must.
  void MatchLists() {
    for (const ListCluster& cluster : clusters_) {
      const auto is = [&](const std::vector<bool>& set) {
        return std::ranges::any_of(cluster.places, [&](int place) { return set[Index(place)]; });
      };
      const bool denied = is(deny_);
      if (!denied && !is(allow_)) continue;
      for (const int place : cluster.places) {
        allow_[Index(place)] = !denied;
        if (denied) deny_[Index(place)] = true;
      }
    }
  }

  // What a loop brings back has the type of what goes in.
  Status MatchLoops() {
    for (const Node* n : graph_.Nodes()) {
      if (!n->Is("NextIteration")) continue;
      std::vector<int> merges;
      for (const Use& use : n->uses()) {
        if (use.is_control()) continue;
        if (!use.node->Is("Merge")) {
          return FailedPrecondition("Expected Merge node after NextIteration, got ",
                                    use.node->op());
        }
        merges.push_back(types_.OfInput(*use.node, use.input));
      }
      const bool narrow =
          !merges.empty() && may_change_(*n) &&
          std::ranges::all_of(merges, [&](int place) { return allow_[Index(place)]; });
      allow_[Index(types_.OfOutput(*n, 0))] = narrow;
      if (narrow) continue;
      for (const int place : merges) allow_[Index(place)] = false;
    }
    return OkStatus();
  }

  // A Cast whose readers are all narrow gives narrow numbers itself.
  void AllowCasts() {
    for (const Node* n : graph_.Nodes()) {
      if (!n->Is("Cast") || n->Type("DstT") != Dtype::kFloat || !may_change_(*n)) continue;
      int readers = 0;
      bool narrow = true;
      for (const Use& use : n->uses()) {
        if (use.is_control()) continue;
        ++readers;
        narrow = narrow && allow_[Index(types_.OfInput(*use.node, use.input))];
      }
      if (narrow && readers > 0) allow_[Index(types_.OfOutput(*n, 0))] = true;
    }
  }

  const TypeGraph& types_;
  const Graph& graph_;
  const PaintOptions& options_;
  const absl::FunctionRef<bool(const Node&)> may_change_, on_gpu_;
  const size_t size_;
  std::vector<bool> allow_, deny_;
  std::vector<ListCluster> clusters_;
  std::vector<int> stack_;
};

}  // namespace

StatusOr<std::vector<bool>> PaintTypes(const TypeGraph& types, const Graph& graph,
                                       const PaintOptions& options,
                                       absl::FunctionRef<bool(const Node&)> may_change,
                                       absl::FunctionRef<bool(const Node&)> on_gpu) {
  return Painter(types, graph, options, may_change, on_gpu).Run();
}

}  // namespace smelt
