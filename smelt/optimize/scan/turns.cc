#include "smelt/optimize/scan/turns.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// Waiting for constants orders nothing.
bool Waits(const Node& n) {
  return std::ranges::any_of(n.control_inputs(), [](const Node* c) {
    return !c->Is("Const") || !c->control_inputs().empty();
  });
}
bool StandsForMore(const Node& n) { return Waits(n) || HasEffect(n) || IsRoot(n) || IsFed(n); }

// Attributes that begin with an underscore are hints, but operators of TensorFlow Lite have the
// scales of their integers there.
bool IsHint(const Node& n, absl::string_view name) {
  return absl::StartsWith(name, "_") &&
         (name == "_output_shapes" || !absl::StartsWith(n.op(), "tfl."));
}

bool SameComputation(const Node& a, const Node& b) {
  if (a.op() != b.op() || a.num_inputs() != b.num_inputs() || a.num_outputs() != b.num_outputs() ||
      a.device != b.device) {
    return false;
  }
  const auto all_in = [](const Node& x, const Node& y) {
    return std::ranges::all_of(x.attrs(), [&](const AttrMap::Entry& e) {
      const Attr* other = y.Find(e.first);
      return IsHint(x, e.first) || (other != nullptr && *other == e.second);
    });
  };
  return all_in(a, b) && all_in(b, a);
}

// Turns that read the slices of `sources`, all of which make as many, in their order or from the
// last one on. A turn's nodes are those that need its slices and none of later turns.
class TurnReader {
 public:
  TurnReader(const Graph& graph, const std::vector<Node*>& order, Turns& turns)
      : graph_(graph), order_(order), t_(turns) {
    t_.turns = t_.sources[0]->num_outputs();
  }

  // Finds what there is, and changes nothing.
  bool Read() {
    NumberTurns();
    if (!FindStates()) return No("nothing goes on from slice to slice");
    if (!FindTurn()) return No("what is made of a slice reads others, or has an effect");
    if (!FindRange()) return No(absl::StrCat("no ", kLeastTurns, " slices are treated alike"));
    if (!FindOutputs()) return No("others wait for what is made of a slice");
    return StandsBehindItsInputs() || No("what is made of slices is read by what they are made of");
  }
  const std::string& why() const { return why_; }

 private:
  bool No(std::string why) {
    why_ = std::move(why);
    return false;
  }

  // By node of the turn that was read, that of another turn.
  using Turn = std::map<Node*, Node*>;
  using Before = std::vector<std::optional<Endpoint>>;

  int SourceOf(Endpoint e) const {
    const auto it = std::ranges::find(t_.sources, e.node);
    return it == t_.sources.end() ? -1 : static_cast<int>(it - t_.sources.begin());
  }
  // The turn that a value belongs to; -1: to none.
  int TurnOf(Endpoint e) const {
    if (SourceOf(e) >= 0) return t_.backwards ? t_.turns - 1 - e.port : e.port;
    const auto id = static_cast<size_t>(e.node->id());
    return id < turn_of_.size() ? turn_of_[id] : -1;
  }

  // Which turn each node is of, and what it looks like from there.
  void NumberTurns() {
    turn_of_.assign(static_cast<size_t>(graph_.max_id()), -1);
    look_of_.assign(turn_of_.size(), 0);
    by_look_.resize(static_cast<size_t>(t_.turns));
    for (Node* n : order_) {
      if (std::ranges::find(t_.sources, n) != t_.sources.end()) continue;
      int turn = -1;
      for (const Endpoint& e : n->inputs()) turn = std::max(turn, TurnOf(e));
      if (turn < 0) continue;
      const auto id = static_cast<size_t>(n->id());
      turn_of_[id] = turn;
      look_of_[id] = absl::HashOf(std::string(n->op()), n->num_inputs());
      // Other passes put the operands of commutative ops in an order of their own.
      size_t operands = 0;
      for (int i = 0; i < n->num_inputs(); ++i) {
        const size_t look = LookOf(n->input(i), turn);
        operands = i < 2 && n->Is(kCommutativeOps) ? operands + look : absl::HashOf(operands, look);
      }
      look_of_[id] = absl::HashOf(look_of_[id], operands);
      by_look_[static_cast<size_t>(turn)][look_of_[id]].push_back(n);
    }
  }

  size_t LookOf(Endpoint e, int turn) const {
    const int from = TurnOf(e);
    if (const int source = SourceOf(e); source >= 0) return absl::HashOf(1, source, turn - from);
    if (from < 0) return absl::HashOf(2, e.node->id(), e.port);
    if (from == turn) return absl::HashOf(3, look_of_[static_cast<size_t>(e.node->id())], e.port);
    return absl::HashOf(4, turn - from);
  }

  // The values of a turn that look as `e` does in its own.
  std::vector<Endpoint> LookAlikes(Endpoint e, int turn) const {
    const auto& looks = by_look_[static_cast<size_t>(turn)];
    const auto it = looks.find(look_of_[static_cast<size_t>(e.node->id())]);
    std::vector<Endpoint> values;
    if (it == looks.end()) return values;
    for (Node* n : it->second) values.push_back({n, e.port});
    return values;
  }

  // What its turn and the next one do with a value.
  size_t ReadersOf(Endpoint e) const {
    size_t readers = 0;
    for (const Use& use : e.node->uses()) {
      const int turn = use.port() == e.port ? TurnOf({use.node, 0}) - TurnOf(e) : 2;
      if (turn < 2) readers += absl::HashOf(std::string(use.node->op()), use.input, turn);
    }
    return readers;
  }

  // What the next turn reads.
  bool FindStates() {
    for (Node* n : order_) {
      if (TurnOf({n, 0}) != kReadTurn || SourceOf({n, 0}) >= 0) continue;
      for (int p = 0; p < n->num_outputs(); ++p) {
        const bool read = std::ranges::any_of(n->uses(), [&](const Use& use) {
          return use.port() == p && TurnOf({use.node, 0}) == kReadTurn + 1;
        });
        if (!read) continue;
        const Endpoint made = MadeByAll({n, p});
        if (std::ranges::find(t_.made, made) != t_.made.end()) continue;
        // States may look alike where they come from, as an output that a mask keeps does.
        std::vector<Endpoint> before = LookAlikes(made, kReadTurn - 1);
        std::erase_if(before, [&](Endpoint e) { return ReadersOf(e) != ReadersOf(made); });
        if (before.size() != 1 || std::ranges::find(t_.taken, before[0]) != t_.taken.end())
          continue;
        t_.made.push_back(made);
        t_.taken.push_back(before[0]);
      }
    }
    return !t_.made.empty();
  }

  // What the next turn alone does with a state belongs to that turn, and the last one lacks it.
  Endpoint MadeByAll(Endpoint e) const {
    for (Endpoint made = e; TurnOf(made) == kReadTurn && SourceOf(made) < 0;) {
      if (!LookAlikes(made, t_.turns - 1).empty()) return made;
      Endpoint from;
      for (const Endpoint& input : made.node->inputs()) {
        if (TurnOf(input) < 0) continue;
        if (from.node != nullptr) return e;
        from = input;
      }
      made = from;
    }
    return e;
  }

  // The nodes that make the states, in order. What no turn takes up is no state.
  bool FindTurn() {
    for (size_t states = 0; states != t_.made.size();) {
      states = t_.made.size();
      if (!FindNeeded()) return false;
    }
    return !t_.made.empty();
  }

  bool FindNeeded() {
    absl::flat_hash_set<const Node*> needed;
    std::vector<Endpoint> todo = t_.made;
    std::vector<bool> read(t_.made.size(), false);
    while (!todo.empty()) {
      const Endpoint e = todo.back();
      todo.pop_back();
      const int turn = TurnOf(e);
      if (turn < 0) continue;
      if (SourceOf(e) >= 0) {
        if (turn != kReadTurn) return false;
        continue;
      }
      if (turn < kReadTurn) {
        const auto state = std::ranges::find(t_.taken, e);
        if (state != t_.taken.end()) {
          read[static_cast<size_t>(state - t_.taken.begin())] = true;
          continue;
        }
        if (turn < kReadTurn - 1) return false;
      }
      if (!needed.insert(e.node).second) continue;
      if (StandsForMore(*e.node)) return false;
      todo.insert(todo.end(), e.node->inputs().begin(), e.node->inputs().end());
    }
    t_.nodes.clear();
    for (Node* n : order_) {
      if (needed.contains(n)) t_.nodes.push_back(n);
    }
    size_t kept = 0;
    for (size_t i = 0; i < t_.made.size(); ++i) {
      if (!read[i]) continue;
      t_.made[kept] = t_.made[i];
      t_.taken[kept++] = t_.taken[i];
    }
    t_.made.resize(kept);
    t_.taken.resize(kept);
    return true;
  }

  // Are the first two operands of a node of turn `t` those of `a` in the other order?
  bool Swaps(const Node& a, const Node& b, int t) const {
    if (!a.Is(kCommutativeOps) || a.num_inputs() < 2) return false;
    const auto alike = [&](int i, int j) {
      return LookOf(a.input(i), kReadTurn) == LookOf(b.input(j), t);
    };
    if (alike(0, 0) || alike(1, 1)) return false;
    if (alike(0, 1) || alike(1, 0)) return true;
    // What begins otherwise looks otherwise: that the same op makes an operand has to do.
    const auto same_op = [&](int i, int j) {
      return TurnOf(a.input(i)) == kReadTurn && a.input(i).node->op() == b.input(j).node->op();
    };
    return !same_op(0, 0) && !same_op(1, 1) && (same_op(0, 1) || same_op(1, 0));
  }

  // Do the values of turn `t` come about as t_.made do, those that it has? `before`: what it takes
  // of the turn before; where that is open it is what the nodes read.
  bool Matches(const std::vector<Endpoint>& values, int t, Before& before, Turn& turn) const {
    std::vector<std::pair<Endpoint, Endpoint>> todo;
    for (size_t i = 0; i < t_.made.size(); ++i) {
      if (values[i].node != nullptr) todo.emplace_back(t_.made[i], values[i]);
    }
    return Match(std::move(todo), t, before, turn);
  }
  bool Match(std::vector<std::pair<Endpoint, Endpoint>> todo, int t, Before& before,
             Turn& turn) const {
    absl::flat_hash_set<const Node*> copied;
    while (!todo.empty()) {
      const auto [a, b] = todo.back();
      todo.pop_back();
      if (const int source = SourceOf(a); source >= 0) {
        if (b != t_.SliceOf(a.node, t)) return false;
        continue;
      }
      if (TurnOf(a) < 0) {
        if (a != b) return false;
        continue;
      }
      if (const auto taken = std::ranges::find(t_.taken, a); taken != t_.taken.end()) {
        auto& state = before[static_cast<size_t>(taken - t_.taken.begin())];
        if (TurnOf(b) > t || (state && *state != b)) return false;
        state = b;
        continue;
      }
      if (a.port != b.port || SourceOf(b) >= 0) return false;
      const auto [it, first] = turn.try_emplace(a.node, b.node);
      if (!first) {
        if (it->second != b.node) return false;
        continue;
      }
      if (!copied.insert(b.node).second || !SameComputation(*a.node, *b.node) ||
          StandsForMore(*b.node)) {
        return false;
      }
      const bool swaps = Swaps(*a.node, *b.node, t);
      for (int i = 0; i < a.node->num_inputs(); ++i) {
        todo.emplace_back(a.node->input(i), b.node->input(swaps && i < 2 ? 1 - i : i));
      }
    }
    // Zeros that the first turn takes may have their shape from its slice, not from what it makes.
    std::vector<const Node*> behind;
    absl::flat_hash_set<const Node*> seen;
    for (const auto& e : before) {
      if (e) behind.push_back(e->node);
    }
    while (!behind.empty()) {
      const Node* n = behind.back();
      behind.pop_back();
      if (copied.contains(n)) return false;
      for (const Endpoint& e : n->inputs()) {
        if (SourceOf(e) < 0 && TurnOf(e) == t && seen.insert(e.node).second) {
          behind.push_back(e.node);
        }
      }
    }
    return true;
  }

  // The states that turn `t` makes of those that the turn before made; the last turn need not make
  // all of them. Empty: it makes others.
  std::vector<Endpoint> StatesOf(int t, const std::vector<Endpoint>& before) const {
    std::vector<Endpoint> values(t_.made.size());
    for (size_t i = 0; i < t_.made.size(); ++i) {
      for (const Endpoint& candidate : LookAlikes(t_.made[i], t)) {
        Before taken(before.begin(), before.end());
        Turn turn;
        if (!Match({{t_.made[i], candidate}}, t, taken, turn)) continue;
        values[i] = candidate;
        break;
      }
      if (values[i].node == nullptr && t < t_.turns - 1) return {};
    }
    return values;
  }

  // Which turns are alike.
  bool FindRange() {
    t_.copies.resize(static_cast<size_t>(t_.turns));
    Before before(t_.taken.begin(), t_.taken.end());
    Turn own;
    if (!Matches(t_.made, kReadTurn, before, own)) return false;
    t_.copies[kReadTurn] = own;
    t_.first = t_.last = kReadTurn;
    std::vector<Endpoint> ends = t_.made;
    for (int t = kReadTurn + 1; t < t_.turns; ++t) {
      std::vector<Endpoint> values = StatesOf(t, ends);
      Before taken(ends.begin(), ends.end());
      Turn turn;
      if (values.empty() || !Matches(values, t, taken, turn) || turn.empty()) break;
      t_.copies[static_cast<size_t>(t)] = std::move(turn);
      ends = std::move(values);
      t_.last = t;
    }
    t_.ends = ends;
    t_.start = t_.taken;
    for (int t = kReadTurn - 1; t >= 0; --t) {
      Before taken(t_.made.size());
      Turn turn;
      if (!Matches(t_.start, t, taken, turn)) break;
      if (!std::ranges::all_of(taken, [](const auto& e) { return e.has_value(); })) break;
      t_.copies[static_cast<size_t>(t)] = std::move(turn);
      for (size_t i = 0; i < t_.start.size(); ++i) t_.start[i] = *taken[i];
      t_.first = t;
    }
    return t_.length() >= kLeastTurns;
  }

  // Who else reads what turns make: of the last turn the states, or any value of all turns.
  bool FindOutputs() {
    absl::flat_hash_set<const Node*> inside;
    for (const Turn& turn : t_.copies) {
      for (const auto& [n, same] : turn) {
        if (!inside.insert(same).second) return false;
      }
    }
    for (int t = t_.first; t <= t_.last; ++t) {
      for (Node* n : t_.nodes) {
        const Node* same = t_.InTurn({n, 0}, t).node;
        if (same == nullptr) continue;
        for (const Use& use : same->OrderedUses()) {
          if (use.is_control()) return false;
          if (inside.contains(use.node)) continue;
          const Endpoint of_turn = {n, use.port()};
          const auto state = std::ranges::find(t_.made, of_turn);
          if (t == t_.last && state != t_.made.end()) continue;
          if (std::ranges::find(t_.arrays, of_turn) == t_.arrays.end())
            t_.arrays.push_back(of_turn);
        }
      }
    }
    return true;
  }

  // Does nothing that the turns take come from what they make?
  bool StandsBehindItsInputs() const {
    absl::flat_hash_set<const Node*> inside, seen;
    for (const Turn& turn : t_.copies) {
      for (const auto& [n, same] : turn) inside.insert(same);
    }
    std::vector<const Node*> todo;
    for (const Endpoint& e : t_.start) todo.push_back(e.node);
    for (const Node* n : t_.nodes) {
      for (const Endpoint& e : n->inputs()) {
        if (TurnOf(e) < 0 || SourceOf(e) >= 0) todo.push_back(e.node);
      }
    }
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (inside.contains(n)) return false;
      if (!seen.insert(n).second) continue;
      for (const Endpoint& e : n->inputs()) todo.push_back(e.node);
      todo.insert(todo.end(), n->control_inputs().begin(), n->control_inputs().end());
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<Node*>& order_;
  Turns& t_;
  std::string why_;
  std::vector<int> turn_of_;                                              // by node id
  std::vector<size_t> look_of_;                                           // by node id
  std::vector<absl::flat_hash_map<size_t, std::vector<Node*>>> by_look_;  // by turn
};

}  // namespace

bool FindTurns(const Graph& graph, const std::vector<Node*>& order, Turns& turns,
               std::string* why) {
  TurnReader reader(graph, order, turns);
  if (reader.Read()) return true;
  *why = reader.why();
  return false;
}

}  // namespace smelt
