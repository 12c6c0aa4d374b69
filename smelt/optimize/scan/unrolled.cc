// A loop that was unrolled, found by what it computes: Keras' unroll=True, static_rnn of version 1.
#include <algorithm>
#include <map>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/optimize/passes.h"
#include "smelt/optimize/scan/raised_loop.h"

namespace smelt {
namespace {

// A shorter run is not worth a loop. The computation is read off the third of five turns: the first
// may begin otherwise, and who reads the last is not known to be a turn.
constexpr int kLeastTurns = 5;
constexpr int kRead = 2;

Dtype UnrolledType(Endpoint e) {
  return BaseType(e.node->output_types[static_cast<size_t>(e.port)]);
}

// Waiting for constants orders nothing.
bool Waits(const Node& n) {
  return std::ranges::any_of(n.control_inputs(), [](const Node* c) {
    return !c->Is("Const") || !c->control_inputs().empty();
  });
}
bool StandsForMore(const Node& n) { return Waits(n) || HasEffect(n) || IsRoot(n) || IsFed(n); }

// Attributes that begin with an underscore are hints.
bool SameComputation(const Node& a, const Node& b) {
  if (a.op() != b.op() || a.num_inputs() != b.num_inputs() || a.num_outputs() != b.num_outputs() ||
      a.device != b.device) {
    return false;
  }
  const auto all_in = [](const Node& x, const Node& y) {
    return std::ranges::all_of(x.attrs(), [&](const AttrMap::Entry& e) {
      const Attr* other = y.Find(e.first);
      return absl::StartsWith(e.first, "_") || (other != nullptr && *other == e.second);
    });
  };
  return all_in(a, b) && all_in(b, a);
}

// Turns that read the slices of `sources`, all of which make as many, in their order or from the
// last one on. A turn's nodes are those that need its slices and none of later turns.
class Unrolled {
 public:
  Unrolled(Graph& graph, std::vector<Node*> sources, bool backwards,
           const std::vector<Node*>& order)
      : graph_(graph),
        sources_(std::move(sources)),
        backwards_(backwards),
        turns_(sources_[0]->num_outputs()),
        order_(order) {}

  // Finds what there is, and changes nothing.
  bool Read() {
    FindTurns();
    if (!FindStates()) return No("nothing goes on from slice to slice");
    if (!FindTurn()) return No("what is made of a slice reads others, or has an effect");
    if (!FindRange()) return No(absl::StrCat("no ", kLeastTurns, " slices are treated alike"));
    if (!FindOutputs()) return No("others wait for what is made of a slice");
    return StandsBehindItsInputs() || No("what is made of slices is read by what they are made of");
  }
  const std::string& why() const { return why_; }
  int length() const { return last_ - first_ + 1; }

  StatusOr<RaisedLoop> Raise() {
    RETURN_IF_ERROR(AddLoop());
    RETURN_IF_ERROR(AddOutputs());
    for (int t = first_; t <= last_; ++t) {
      for (Node* n : turn_) {
        if (const Endpoint same = InTurn({n, 0}, t); same.node != nullptr) {
          loop_.old.push_back(same.node);
        }
      }
    }
    return std::move(loop_);
  }

 private:
  bool No(std::string why) {
    why_ = std::move(why);
    return false;
  }

  // By node of the turn that was read, that of another turn.
  using Turn = std::map<Node*, Node*>;
  using Before = std::vector<std::optional<Endpoint>>;

  int SourceOf(Endpoint e) const {
    const auto it = std::ranges::find(sources_, e.node);
    return it == sources_.end() ? -1 : static_cast<int>(it - sources_.begin());
  }
  // The turn that a value belongs to; -1: to none.
  int TurnOf(Endpoint e) const {
    if (SourceOf(e) >= 0) return backwards_ ? turns_ - 1 - e.port : e.port;
    const auto id = static_cast<size_t>(e.node->id());
    return id < turn_of_.size() ? turn_of_[id] : -1;
  }
  Endpoint SliceOf(Node* source, int t) const { return {source, backwards_ ? turns_ - 1 - t : t}; }

  // Which turn each node is of, and what it looks like from there.
  void FindTurns() {
    turn_of_.assign(static_cast<size_t>(graph_.max_id()), -1);
    look_of_.assign(turn_of_.size(), 0);
    by_look_.resize(static_cast<size_t>(turns_));
    for (Node* n : order_) {
      if (std::ranges::find(sources_, n) != sources_.end()) continue;
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
      if (TurnOf({n, 0}) != kRead || SourceOf({n, 0}) >= 0) continue;
      for (int p = 0; p < n->num_outputs(); ++p) {
        const bool read = std::ranges::any_of(n->uses(), [&](const Use& use) {
          return use.port() == p && TurnOf({use.node, 0}) == kRead + 1;
        });
        if (!read) continue;
        const Endpoint made = MadeByAll({n, p});
        if (std::ranges::find(made_, made) != made_.end()) continue;
        // States may look alike where they come from, as an output that a mask keeps does.
        std::vector<Endpoint> before = LookAlikes(made, kRead - 1);
        std::erase_if(before, [&](Endpoint e) { return ReadersOf(e) != ReadersOf(made); });
        if (before.size() != 1 || std::ranges::find(taken_, before[0]) != taken_.end()) continue;
        made_.push_back(made);
        taken_.push_back(before[0]);
      }
    }
    return !made_.empty();
  }

  // What the next turn alone does with a state belongs to that turn, and the last one lacks it.
  Endpoint MadeByAll(Endpoint e) const {
    for (Endpoint made = e; TurnOf(made) == kRead && SourceOf(made) < 0;) {
      if (!LookAlikes(made, turns_ - 1).empty()) return made;
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
    for (size_t states = 0; states != made_.size();) {
      states = made_.size();
      if (!FindNeeded()) return false;
    }
    return !made_.empty();
  }

  bool FindNeeded() {
    absl::flat_hash_set<const Node*> needed;
    std::vector<Endpoint> todo = made_;
    std::vector<bool> read(made_.size(), false);
    while (!todo.empty()) {
      const Endpoint e = todo.back();
      todo.pop_back();
      const int turn = TurnOf(e);
      if (turn < 0) continue;
      if (SourceOf(e) >= 0) {
        if (turn != kRead) return false;
        continue;
      }
      if (turn < kRead) {
        const auto state = std::ranges::find(taken_, e);
        if (state != taken_.end()) {
          read[static_cast<size_t>(state - taken_.begin())] = true;
          continue;
        }
        if (turn < kRead - 1) return false;
      }
      if (!needed.insert(e.node).second) continue;
      if (StandsForMore(*e.node)) return false;
      todo.insert(todo.end(), e.node->inputs().begin(), e.node->inputs().end());
    }
    turn_.clear();
    for (Node* n : order_) {
      if (needed.contains(n)) turn_.push_back(n);
    }
    size_t kept = 0;
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!read[i]) continue;
      made_[kept] = made_[i];
      taken_[kept++] = taken_[i];
    }
    made_.resize(kept);
    taken_.resize(kept);
    return true;
  }

  // Are the first two operands of a node of turn `t` those of `a` in the other order?
  bool Swaps(const Node& a, const Node& b, int t) const {
    if (!a.Is(kCommutativeOps) || a.num_inputs() < 2) return false;
    const auto alike = [&](int i, int j) {
      return LookOf(a.input(i), kRead) == LookOf(b.input(j), t);
    };
    if (alike(0, 0) || alike(1, 1)) return false;
    if (alike(0, 1) || alike(1, 0)) return true;
    // What begins otherwise looks otherwise: that the same op makes an operand has to do.
    const auto same_op = [&](int i, int j) {
      return TurnOf(a.input(i)) == kRead && a.input(i).node->op() == b.input(j).node->op();
    };
    return !same_op(0, 0) && !same_op(1, 1) && (same_op(0, 1) || same_op(1, 0));
  }

  // Do the values of turn `t` come about as made_ do, those that it has? `before`: what it takes of
  // the turn before; where that is open it is what the nodes read.
  bool Matches(const std::vector<Endpoint>& values, int t, Before& before, Turn& turn) const {
    std::vector<std::pair<Endpoint, Endpoint>> todo;
    for (size_t i = 0; i < made_.size(); ++i) {
      if (values[i].node != nullptr) todo.emplace_back(made_[i], values[i]);
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
        if (b != SliceOf(a.node, t)) return false;
        continue;
      }
      if (TurnOf(a) < 0) {
        if (a != b) return false;
        continue;
      }
      if (const auto taken = std::ranges::find(taken_, a); taken != taken_.end()) {
        auto& state = before[static_cast<size_t>(taken - taken_.begin())];
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
    std::vector<Endpoint> values(made_.size());
    for (size_t i = 0; i < made_.size(); ++i) {
      for (const Endpoint& candidate : LookAlikes(made_[i], t)) {
        Before taken(before.begin(), before.end());
        Turn turn;
        if (!Match({{made_[i], candidate}}, t, taken, turn)) continue;
        values[i] = candidate;
        break;
      }
      if (values[i].node == nullptr && t < turns_ - 1) return {};
    }
    return values;
  }

  // Which turns are alike.
  bool FindRange() {
    copies_.resize(static_cast<size_t>(turns_));
    Before before(taken_.begin(), taken_.end());
    Turn own;
    if (!Matches(made_, kRead, before, own)) return false;
    copies_[kRead] = own;
    first_ = last_ = kRead;
    std::vector<Endpoint> ends = made_;
    for (int t = kRead + 1; t < turns_; ++t) {
      std::vector<Endpoint> values = StatesOf(t, ends);
      Before taken(ends.begin(), ends.end());
      Turn turn;
      if (values.empty() || !Matches(values, t, taken, turn) || turn.empty()) break;
      copies_[static_cast<size_t>(t)] = std::move(turn);
      ends = std::move(values);
      last_ = t;
    }
    ends_ = ends;
    start_ = taken_;
    for (int t = kRead - 1; t >= 0; --t) {
      Before taken(made_.size());
      Turn turn;
      if (!Matches(start_, t, taken, turn)) break;
      if (!std::ranges::all_of(taken, [](const auto& e) { return e.has_value(); })) break;
      copies_[static_cast<size_t>(t)] = std::move(turn);
      for (size_t i = 0; i < start_.size(); ++i) start_[i] = *taken[i];
      first_ = t;
    }
    return length() >= kLeastTurns;
  }

  // Who else reads what turns make: of the last turn the states, or any value of all turns.
  bool FindOutputs() {
    absl::flat_hash_set<const Node*> inside;
    for (const Turn& turn : copies_) {
      for (const auto& [n, same] : turn) {
        if (!inside.insert(same).second) return false;
      }
    }
    for (int t = first_; t <= last_; ++t) {
      for (Node* n : turn_) {
        const Node* same = InTurn({n, 0}, t).node;
        if (same == nullptr) continue;
        for (const Use& use : same->OrderedUses()) {
          if (use.is_control()) return false;
          if (inside.contains(use.node)) continue;
          const Endpoint of_turn = {n, use.port()};
          const auto state = std::ranges::find(made_, of_turn);
          if (t == last_ && state != made_.end()) continue;
          if (std::ranges::find(arrays_, of_turn) == arrays_.end()) arrays_.push_back(of_turn);
        }
      }
    }
    return true;
  }

  // Does nothing that the turns take come from what they make?
  bool StandsBehindItsInputs() const {
    absl::flat_hash_set<const Node*> inside, seen;
    for (const Turn& turn : copies_) {
      for (const auto& [n, same] : turn) inside.insert(same);
    }
    std::vector<const Node*> todo;
    for (const Endpoint& e : start_) todo.push_back(e.node);
    for (const Node* n : turn_) {
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

  // The value of turn `t`; no node: that one lacks it.
  Endpoint InTurn(Endpoint e, int t) const {
    const Turn& turn = copies_[static_cast<size_t>(t)];
    const auto it = turn.find(e.node);
    return it == turn.end() ? Endpoint() : Endpoint{it->second, e.port};
  }

  // ---- building

  std::string Name(absl::string_view what) const {
    return absl::StrCat(sources_[0]->name(), "/rolled/", what);
  }
  StatusOr<Endpoint> Add(absl::string_view what, absl::string_view op,
                         const std::vector<Endpoint>& inputs, AttrMap attrs) {
    ASSIGN_OR_RETURN(Node * n, graph_.Add(Name(what), op, inputs, std::move(attrs)));
    loop_.added.push_back(n);
    return Endpoint{n, 0};
  }
  Endpoint AddConst(absl::string_view what, const Tensor& value) {
    loop_.added.push_back(graph_.AddConst(Name(what), value));
    return {loop_.added.back(), 0};
  }
  static AttrMap OneType(absl::string_view name, Dtype t) {
    AttrMap attrs;
    attrs.Set(name, t);
    return attrs;
  }
  static AttrMap ListAttrs(Dtype t) {
    AttrMap attrs = OneType("element_dtype", t);
    attrs.Set("shape_type", Dtype::kInt32);
    return attrs;
  }

  // The slices that the turns read, as one tensor.
  StatusOr<Endpoint> AddRows(Node* source) {
    if (source->Int("axis") == 0 && !backwards_ && length() == turns_) return source->input(0);
    std::vector<Endpoint> slices;
    for (int t = first_; t <= last_; ++t) slices.push_back(SliceOf(source, t));
    AttrMap attrs = OneType("T", source->output_types[0]);
    attrs.Set("N", static_cast<int64_t>(slices.size()));
    attrs.Set("axis", int64_t{0});
    return Add("rows", "Pack", slices, std::move(attrs));
  }

  // The size of a slice's last dimension, where the turn puts it beside a value of known size in
  // front of a matrix; -1: it does not.
  int64_t WidthOf(const Node* source, const ShapeTable& shapes) const {
    for (const Node* n : turn_) {
      if (!n->Is("MatMul") || n->Bool("transpose_a") || n->Bool("transpose_b")) continue;
      const Node& parts = *n->input(0).node;
      const TensorValue* weights = StatedConstant(*n->input(1).node);
      if (!parts.Is("ConcatV2") || parts.num_inputs() != 3 || weights == nullptr ||
          weights->shape.rank() != 2) {
        continue;
      }
      for (const int side : {0, 1}) {
        const Endpoint other = parts.input(1 - side);
        const auto state = std::ranges::find(taken_, other);
        // At least two turns follow each other, which give what they take.
        const PartialShape& shape = shapes.of(
            state == taken_.end() ? other : made_[static_cast<size_t>(state - taken_.begin())]);
        if (parts.input(side).node == source && shape.known_rank() && shape.rank() == 2 &&
            shape[1] >= 0 && weights->shape[0] >= shape[1]) {
          return weights->shape[0] - shape[1];
        }
      }
    }
    return -1;
  }

  Status AddLoop() {
    ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph_, {}));
    loop_.where = turn_[0];
    loop_.cond = std::make_unique<Graph>(graph_.library());
    loop_.body = std::make_unique<Graph>(graph_.library());
    const Endpoint zero = AddConst("zero", Tensor::Scalar<int32_t>(0));
    any_ = AddConst("element_shape", Tensor::Scalar<int32_t>(-1));
    const Endpoint count = AddConst("count", Tensor::Scalar<int32_t>(length()));
    ASSIGN_OR_RETURN(const Endpoint i, AddVariable(zero));
    Node* one = loop_.body->AddConst("one", Tensor::Scalar<int32_t>(1));
    ASSIGN_OR_RETURN(Node * next,
                     loop_.body->Add("next", "AddV2", {i, {one, 0}}, OneType("T", Dtype::kInt32)));
    results_[0] = {next, 0};
    for (Node* source : sources_) {
      const bool read = std::ranges::any_of(turn_, [&](const Node* n) {
        return std::ranges::any_of(n->inputs(), [&](Endpoint e) { return e.node == source; });
      });
      if (!read) continue;
      const Dtype type = source->output_types[0];
      Endpoint shape = any_;
      if (const int64_t width = WidthOf(source, shapes); width >= 0) {
        shape =
            AddConst("element_shape", Tensor::Vector<int32_t>({-1, static_cast<int32_t>(width)}));
      }
      ASSIGN_OR_RETURN(const Endpoint rows, AddRows(source));
      ASSIGN_OR_RETURN(const Endpoint list,
                       Add("list", "TensorListFromTensor", {rows, shape}, ListAttrs(type)));
      ASSIGN_OR_RETURN(const Endpoint arg, AddVariable(list));
      Node* of = loop_.body->AddConst("element_shape", Tensor::Scalar<int32_t>(-1));
      ASSIGN_OR_RETURN(Node * row, loop_.body->Add("row", "TensorListGetItem", {arg, i, {of, 0}},
                                                   OneType("element_dtype", type)));
      copied_[{source->id(), SliceOf(source, kRead).port}] = {row, 0};
    }
    first_state_ = results_.size();
    for (size_t k = 0; k < made_.size(); ++k) {
      ASSIGN_OR_RETURN(copied_[KeyOf(taken_[k])], AddVariable(start_[k]));
    }
    RETURN_IF_ERROR(CopyTurn());
    for (size_t k = 0; k < made_.size(); ++k) results_[first_state_ + k] = copied_[KeyOf(made_[k])];
    first_array_ = results_.size();
    for (const Endpoint& e : arrays_) {
      const Dtype type = UnrolledType(e);
      ASSIGN_OR_RETURN(const Endpoint list,
                       Add("list", "TensorListReserve", {any_, count}, ListAttrs(type)));
      ASSIGN_OR_RETURN(const Endpoint arg, AddVariable(list));
      ASSIGN_OR_RETURN(Node * write,
                       loop_.body->Add("write", "TensorListSetItem", {arg, i, copied_[KeyOf(e)]},
                                       OneType("element_dtype", type)));
      results_.back() = {write, 0};
    }
    return Close(count);
  }

  static std::pair<int, int> KeyOf(Endpoint e) { return {e.node->id(), e.port}; }

  // A variable of the loop that is `from` at first; stays what it is until its result is set.
  StatusOr<Endpoint> AddVariable(Endpoint from) {
    AttrMap attrs = OneType("T", UnrolledType(from));
    attrs.Set("index", static_cast<int64_t>(inputs_.size()));
    ASSIGN_OR_RETURN(Node * arg, loop_.body->Add(from.node->name(), "_Arg", {}, std::move(attrs)));
    inputs_.push_back(from);
    results_.push_back({arg, 0});
    return Endpoint{arg, 0};
  }

  Status CopyTurn() {
    for (Node* n : turn_) {
      std::vector<Endpoint> inputs;
      for (const Endpoint& e : n->inputs()) {
        auto it = copied_.find(KeyOf(e));
        if (it == copied_.end()) {
          Endpoint from;
          if (e.node->Is("Const")) {
            ASSIGN_OR_RETURN(from.node, AddCopy(*loop_.body, *e.node, e.node->name()));
          } else {
            ASSIGN_OR_RETURN(from, AddVariable(e));
          }
          it = copied_.emplace(KeyOf(e), from).first;
        }
        inputs.push_back(it->second);
      }
      ASSIGN_OR_RETURN(Node * copy, AddCopy(*loop_.body, *n, n->name()));
      copy->EraseAttr("_class");
      loop_.body->SetInputs(copy, inputs);
      for (int p = 0; p < n->num_outputs(); ++p) copied_[{n->id(), p}] = {copy, p};
    }
    return OkStatus();
  }

  // The condition, the results and the loop itself.
  Status Close(Endpoint count) {
    DtypeVector types;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      types.push_back(UnrolledType(inputs_[k]));
      AttrMap attrs = OneType("T", types.back());
      attrs.Set("index", static_cast<int64_t>(k));
      RETURN_IF_ERROR(loop_.body->Add("_retval", "_Retval", {results_[k]}, attrs).status());
      if (k > 0) continue;
      Graph& cond = *loop_.cond;
      ASSIGN_OR_RETURN(Node * i, cond.Add("i", "_Arg", {}, attrs));
      ASSIGN_OR_RETURN(Node * below, AddCopy(cond, *count.node, "below"));
      ASSIGN_OR_RETURN(Node * less,
                       cond.Add("less", "Less", {{i, 0}, {below, 0}}, OneType("T", Dtype::kInt32)));
      AttrMap result = OneType("T", Dtype::kBool);
      result.Set("index", int64_t{0});
      RETURN_IF_ERROR(cond.Add("_retval", "_Retval", {{less, 0}}, std::move(result)).status());
    }
    AttrMap attrs;
    attrs.Set("T", types);
    attrs.Set("cond", FuncAttr());
    attrs.Set("body", FuncAttr());
    ASSIGN_OR_RETURN(const Endpoint loop, Add("loop", "StatelessWhile", inputs_, std::move(attrs)));
    loop_.node = loop.node;
    loop_.node->device = turn_[0]->device;
    return OkStatus();
  }

  Status AddOutputs() {
    for (size_t k = 0; k < made_.size(); ++k) {
      if (ends_[k].node == nullptr) continue;
      if (std::ranges::find(arrays_, made_[k]) != arrays_.end()) continue;
      loop_.outputs.push_back({ends_[k], {loop_.node, static_cast<int>(first_state_ + k)}});
    }
    for (size_t k = 0; k < arrays_.size(); ++k) {
      const Dtype type = UnrolledType(arrays_[k]);
      AttrMap attrs = OneType("element_dtype", type);
      attrs.Set("num_elements", int64_t{-1});
      const Endpoint list = {loop_.node, static_cast<int>(first_array_ + k)};
      ASSIGN_OR_RETURN(const Endpoint all,
                       Add("stack", "TensorListStack", {list, any_}, std::move(attrs)));
      AttrMap unpack = OneType("T", type);
      unpack.Set("num", static_cast<int64_t>(length()));
      unpack.Set("axis", int64_t{0});
      ASSIGN_OR_RETURN(const Endpoint rows, Add("unpack", "Unpack", {all}, std::move(unpack)));
      std::vector<Endpoint> values;
      for (int t = first_; t <= last_; ++t) values.push_back(InTurn(arrays_[k], t));
      for (const Use& use : values[0].node->OrderedUses()) {
        if (use.is_control() || !use.node->Is("Pack") || use.node->Int("axis") != 0) continue;
        if (!std::ranges::equal(use.node->inputs(), values)) continue;
        loop_.outputs.push_back({{use.node, 0}, all});
      }
      for (int t = first_; t <= last_; ++t) {
        const Endpoint value = values[static_cast<size_t>(t - first_)];
        if (value.node != nullptr) loop_.outputs.push_back({value, {rows.node, t - first_}});
      }
    }
    return OkStatus();
  }

  Graph& graph_;
  std::string why_;
  const std::vector<Node*> sources_;
  const bool backwards_;
  const int turns_;
  const std::vector<Node*>& order_;
  std::vector<int> turn_of_;                                              // by node id
  std::vector<size_t> look_of_;                                           // by node id
  std::vector<absl::flat_hash_map<size_t, std::vector<Node*>>> by_look_;  // by turn
  std::vector<Endpoint> made_, taken_;  // the states that turn kRead makes, and takes
  std::vector<Node*> turn_;             // the nodes of turn kRead
  std::vector<Turn> copies_;            // by turn
  int first_ = 0, last_ = 0;            // of the turns that are alike
  std::vector<Endpoint> start_, ends_;  // what the first takes and the last makes
  std::vector<Endpoint> arrays_;        // of turn kRead: what others read of turns
  RaisedLoop loop_;
  std::vector<Endpoint> inputs_, results_;  // of the loop, of its body
  size_t first_state_ = 0, first_array_ = 0;
  absl::flat_hash_map<std::pair<int, int>, Endpoint> copied_;  // of turn kRead, into the body
  Endpoint any_;
};

}  // namespace

StatusOr<RaisedLoop> RollUp(Graph& graph, Node** where, std::string* why) {
  const auto is_source = [](const Node& n) {
    return n.Is("Unpack") && n.num_outputs() >= kLeastTurns && !IsFed(n);
  };
  const std::vector<Node*> nodes = graph.Nodes();
  if (std::ranges::none_of(nodes, [&](const Node* n) { return is_source(*n); })) {
    return RaisedLoop();
  }
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  // By number of slices, then by how many such sources stand behind each other: the slices of one
  // may be made by turns that read another's.
  std::map<std::pair<int, int>, std::vector<Node*>> sources;
  std::vector<int> depth(static_cast<size_t>(graph.max_id()), 0);
  for (Node* n : order) {
    int& own = depth[static_cast<size_t>(n->id())];
    for (const Endpoint& e : n->inputs()) {
      own = std::max(own, depth[static_cast<size_t>(e.node->id())]);
    }
    if (is_source(*n)) sources[{n->num_outputs(), own++}].push_back(n);
  }
  std::unique_ptr<Unrolled> longest;
  std::vector<Node*> so_far;
  int turns = 0;
  for (const auto& [key, of_depth] : sources) {
    if (key.first != turns) so_far.clear();
    turns = key.first;
    so_far.insert(so_far.end(), of_depth.begin(), of_depth.end());
    for (const bool backwards : {false, true}) {
      auto unrolled = std::make_unique<Unrolled>(graph, so_far, backwards, order);
      if (!unrolled->Read()) {
        if (*where != nullptr || backwards) continue;
        *where = so_far[0];
        *why = unrolled->why();
        continue;
      }
      if (longest == nullptr || unrolled->length() > longest->length()) {
        longest = std::move(unrolled);
      }
    }
  }
  if (longest == nullptr) return RaisedLoop();
  return longest->Raise();
}

}  // namespace smelt
