#include "smelt/compile/elementwise_chain.h"

#include <algorithm>
#include <optional>
#include <set>

#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/elementwise/chain.h"

namespace smelt {
namespace {

// A chain of fewer elements has no more to do than its actions have.
constexpr int64_t kLeastChained = 64;
constexpr size_t kMaxChainSteps = 24;
// Larger values do not wait for a chain's end while products and the like are at work: what the
// chain reads would leave the caches.
constexpr int64_t kMostDelayed = 1 << 16;

Dims WithoutOnes(const Shape& shape) {
  Dims dims;
  for (const int64_t d : shape.dims()) {
    if (d != 1) dims.push_back(d);
  }
  return dims;
}

class ChainJoiner {
 public:
  ChainJoiner(Plan& plan, Reasons* reasons)
      : plan_(plan),
        reasons_(reasons),
        ops_(plan.actions.size()),
        group_of_(plan.actions.size(), -1),
        readers_(plan) {}

  void Run() {
    FindOps();
    ListProducers();
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i]) Join(i);
    }
    std::erase_if(groups_, [](const Group& g) { return g.members.size() < 2; });
    BindGroups();
    Replace();
  }

 private:
  struct Group {
    std::vector<size_t> members;  // actions, ascending
    std::vector<size_t> views;    // actions that it reads through
    PlanAction joined;
  };

  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }
  const PlanAction& Action(size_t i) const { return plan_.actions[i]; }
  int64_t Elements(size_t i) const { return At(Action(i).outputs[0]).shape.num_elements(); }

  void FindOps() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      const PlanAction& a = Action(i);
      const auto* state = dynamic_cast<const TiledState*>(a.state.get());
      if (state == nullptr || !a.then.empty() || a.outputs.size() != 1) continue;
      auto op = state->tile_op();
      if (!op || op->operands() != static_cast<int>(a.inputs.size()) ||
          Elements(i) < kLeastChained) {
        continue;
      }
      const Shape& out = At(a.outputs[0]).shape;
      const bool fits = std::ranges::all_of(a.inputs, [&](int v) {
        const Shape& in = At(v).shape;
        if (op->same_shapes && v == a.inputs[0] && ChoosesRows(in, out)) return true;
        if (op->same_shapes || op->kind == TileOp::Kind::kUnary) return in == out;
        return in.rank() <= out.rank();
      });
      const bool is_unsigned =
          At(a.inputs[0]).dtype == Dtype::kUint8 || At(a.outputs[0]).dtype == Dtype::kUint8;
      if (is_unsigned) op->scaled = op->scaled_unsigned;
      if (fits) ops_[i] = op;
    }
  }

  // Select's vector, which goes along the first dimension.
  static bool ChoosesRows(const Shape& condition, const Shape& out) {
    return condition.rank() == 1 && out.rank() > 1 && condition[0] == out[0];
  }

  void ListProducers() {
    producer_.assign(plan_.values.size(), -1);
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      for (const int v : Action(i).outputs) {
        producer_[static_cast<size_t>(plan_.Root(v))] = static_cast<int>(i);
      }
    }
  }
  int ProducerOf(int value) const { return producer_[static_cast<size_t>(plan_.Root(value))]; }

  // Puts the action into the groups of those whose results it reads, as far as they can be one.
  void Join(size_t i) {
    std::vector<size_t> members = {i};
    std::set<int> joined;
    for (const int v : Action(i).inputs) {
      const int from = ProducerOf(v);
      const int g = from < 0 ? -1 : group_of_[static_cast<size_t>(from)];
      if (g < 0 || joined.contains(g)) continue;
      std::vector<size_t> all = members;
      const std::vector<size_t>& more = groups_[static_cast<size_t>(g)].members;
      all.insert(all.end(), more.begin(), more.end());
      std::ranges::sort(all);
      if (const absl::string_view why = WhyApart(all); !why.empty()) {
        NoteReason(reasons_, *Action(i).node, "is not joined with the chain before: ", why);
        continue;
      }
      members = std::move(all);
      joined.insert(g);
    }
    for (const int g : joined) groups_[static_cast<size_t>(g)].members.clear();
    for (const size_t m : members) group_of_[m] = static_cast<int>(groups_.size());
    groups_.push_back({std::move(members), {}, {}});
  }

  static bool IsView(const PlanAction& a) { return a.bound != nullptr && a.bound->view(0); }

  // All of it runs where the last of `members` stands: nobody else reads what is made before.
  // Empty: they can be one chain.
  absl::string_view WhyApart(const std::vector<size_t>& members) {
    if (members.size() > kMaxChainSteps) return "a chain has at most 24 steps";
    const Dims sizes = WithoutOnes(At(Action(members[0]).outputs[0]).shape);
    const std::set<size_t> all(members.begin(), members.end());
    if (At(Action(members[0]).outputs[0]).bytes() > kMostDelayed) {
      for (size_t i = members.front(); i < members.back(); ++i) {
        if (!all.contains(i) && !ops_[i] && !IsView(Action(i))) {
          return "what it reads would leave the caches while other actions run";
        }
      }
    }
    for (const size_t m : members) {
      const int out = Action(m).outputs[0];
      if (WithoutOnes(At(out).shape) != sizes) return "its results have other sizes";
      for (const size_t reader : readers_.Of(out)) {
        if (!all.contains(reader)) {
          if (reader < members.back()) return "another action in between reads what is made";
          continue;
        }
        for (const int v : Action(reader).inputs) {
          if (plan_.Root(v) == plan_.Root(out) && WithoutOnes(At(v).shape) != sizes) {
            return "what is made is read in another shape";
          }
        }
      }
    }
    return "";
  }

  // A group that cannot be bound may leave a view to nobody, which other groups then read again.
  void BindGroups() {
    for (bool changed = true; changed;) {
      changed = false;
      FindViews();
      for (size_t g = 0; g < groups_.size(); ++g) {
        if (Bind(groups_[g])) continue;
        NoteReason(reasons_, *Action(groups_[g].members.back()).node, "is in no chain of ",
                   groups_[g].members.size(), ": no pass over tiles reads such operands");
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(g));
        changed = true;
        break;
      }
    }
  }

  // Actions whose outputs are views that groups alone read.
  void FindViews() {
    std::set<size_t> members;
    for (const Group& g : groups_) members.insert(g.members.begin(), g.members.end());
    is_view_.assign(plan_.actions.size(), false);
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      const PlanAction& a = Action(i);
      if (a.bound == nullptr || !a.then.empty()) continue;
      bool view = true;
      for (size_t o = 0; view && o < a.outputs.size(); ++o) {
        const auto& readers = readers_.Of(a.outputs[o]);
        view = std::ranges::all_of(readers, [&](size_t r) { return members.contains(r); });
        if (!view) break;
        const auto seen = a.bound->view(static_cast<int>(o));
        const auto steps = seen ? StepsOf(*seen, At(a.outputs[o]).shape) : std::nullopt;
        view = steps && (steps->empty() || steps->back() == 0 || steps->back() == 1);
        for (const size_t r : readers) {
          for (const int v : Action(r).inputs) {
            if (plan_.Root(v) != plan_.Root(a.outputs[o])) continue;
            view = view && At(v).shape == At(a.outputs[o]).shape;
          }
        }
      }
      is_view_[i] = view;
    }
  }

  // Of each dimension, where the loops are made of whole dimensions.
  static std::optional<Dims> StepsOf(const BoundView& view, const Shape& shape) {
    if (shape.num_elements() == 0) return std::nullopt;
    Dims steps(static_cast<size_t>(shape.rank()), 0);
    size_t left = view.loops.size();
    int64_t inside = 1;  // of the loop left - 1: how much of it dimensions have taken
    for (int d = shape.rank(); d-- > 0;) {
      if (shape[d] == 1) continue;
      if (left == 0) return std::nullopt;
      const BoundView::Loop& loop = view.loops[left - 1];
      if (loop.size % (inside * shape[d]) != 0) return std::nullopt;
      steps[static_cast<size_t>(d)] = loop.step * inside;
      inside *= shape[d];
      if (inside == loop.size) {
        --left;
        inside = 1;
      }
    }
    if (left != 0) return std::nullopt;
    return steps;
  }

  // How far apart neighbors along the dimensions of `out` lie that are not 1.
  // `first`: dimensions are counted from the first one on, not from the last.
  static Dims AlongResult(const Shape& in, const Dims& steps, const Shape& out, bool first) {
    Dims along;
    for (int d = 0; d < out.rank(); ++d) {
      if (out[d] == 1) continue;
      const int at = first ? d : d - (out.rank() - in.rank());
      const bool has = at >= 0 && at < in.rank() && in[at] != 1;
      along.push_back(has ? steps[static_cast<size_t>(at)] : 0);
    }
    return along;
  }

  bool Bind(Group& group) {
    Chain chain;
    chain.sizes = WithoutOnes(At(Action(group.members[0]).outputs[0]).shape);
    PlanAction joined;
    group.views.clear();
    std::vector<std::pair<int, int>> made;  // root value, step
    for (const size_t m : group.members) {
      const PlanAction& a = Action(m);
      const Shape& out = At(a.outputs[0]).shape;
      Chain::Step step;
      step.op = *ops_[m];
      step.size = static_cast<int>(DtypeSize(At(a.outputs[0]).dtype));
      for (const int v : a.inputs) {
        const auto own = std::ranges::find(made, plan_.Root(v), &std::pair<int, int>::first);
        if (own != made.end()) {
          step.from.push_back(-1 - own->second);
          continue;
        }
        step.from.push_back(static_cast<int>(chain.operands.size()));
        const bool rows = step.op.same_shapes && v == a.inputs[0] && ChoosesRows(At(v).shape, out);
        chain.operands.push_back(OperandOf(v, out, rows, group, joined));
      }
      const auto& readers = readers_.Of(a.outputs[0]);
      if (!std::ranges::all_of(
              readers, [&](size_t r) { return std::ranges::binary_search(group.members, r); })) {
        step.output = static_cast<int>(joined.outputs.size());
        joined.outputs.push_back(a.outputs[0]);
      }
      made.emplace_back(plan_.Root(a.outputs[0]), static_cast<int>(chain.steps.size()));
      chain.steps.push_back(std::move(step));
    }
    joined.bound = BindChain(chain);
    if (joined.bound == nullptr) return false;
    std::vector<size_t> nodes = group.views;
    nodes.insert(nodes.end(), group.members.begin(), group.members.end());
    std::ranges::sort(nodes);
    joined.node = Action(nodes[0]).node;
    joined.kernel = &ChainKernel(chain);
    for (size_t i = 1; i < nodes.size(); ++i) joined.then.push_back(Action(nodes[i]).node);
    group.joined = std::move(joined);
    return true;
  }

  Chain::Operand OperandOf(int value, const Shape& out, bool rows, Group& group,
                           PlanAction& joined) const {
    Chain::Operand operand;
    const Shape& shape = At(value).shape;
    Dims steps = Strides(shape);
    const int from = ProducerOf(value);
    if (from >= 0 && is_view_[static_cast<size_t>(from)]) {
      const auto i = static_cast<size_t>(from);
      const PlanAction& a = Action(i);
      const auto port = std::ranges::find(a.outputs, plan_.Root(value)) - a.outputs.begin();
      const auto view = a.bound->view(static_cast<int>(port));
      steps = *StepsOf(*view, shape);
      operand.first = view->first;
      value = a.inputs[static_cast<size_t>(view->input)];
      if (std::ranges::find(group.views, i) == group.views.end()) group.views.push_back(i);
    }
    operand.steps = AlongResult(shape, steps, out, rows);
    operand.size = static_cast<int>(DtypeSize(At(value).dtype));
    const auto known = std::ranges::find(joined.inputs, value);
    operand.input = static_cast<int>(known - joined.inputs.begin());
    if (known == joined.inputs.end()) joined.inputs.push_back(value);
    return operand;
  }

  void Replace() {
    std::vector<bool> gone = is_view_;
    gone.resize(plan_.actions.size(), false);
    for (Group& g : groups_) {
      for (const size_t m : g.members) gone[m] = true;
      gone[g.members.back()] = false;
      plan_.actions[g.members.back()] = std::move(g.joined);
    }
    size_t kept = 0;
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      if (gone[i]) continue;
      if (kept != i) plan_.actions[kept] = std::move(plan_.actions[i]);
      ++kept;
    }
    plan_.actions.resize(kept);
  }

  Plan& plan_;
  Reasons* const reasons_;
  std::vector<std::optional<TileOp>> ops_;  // by action
  std::vector<int> group_of_;               // by action
  std::vector<Group> groups_;
  std::vector<bool> is_view_;  // by action: groups read through it, so that it need not run
  PlanReaders readers_;
  std::vector<int> producer_;  // by root value: the action that makes it; -1: none does
};

}  // namespace

void JoinElementwise(Plan& plan, Reasons* reasons) { ChainJoiner(plan, reasons).Run(); }

}  // namespace smelt
