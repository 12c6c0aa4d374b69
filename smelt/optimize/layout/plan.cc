#include "smelt/optimize/layout/plan.h"

namespace smelt::layout {
namespace {

using RowsByOp = std::vector<const LayoutRow*>;

RowsByOp Index(std::span<const LayoutRow> rows) {
  RowsByOp by_op(static_cast<size_t>(kNumOps), nullptr);
  for (int op = 0; op < kNumOps; ++op) {
    const auto row = std::ranges::find_if(
        rows, [&](const LayoutRow& r) { return r.ops.Contains(OpName::OfNumber(op)); });
    if (row != rows.end()) by_op[static_cast<size_t>(op)] = &*row;
  }
  return by_op;
}

const LayoutRow* RowOf(const Node& n, const RowsByOp& rows) {
  return n.op_name().unknown() ? nullptr : rows[static_cast<size_t>(n.op_name().number())];
}

uint8_t BitOf(const Formats& formats) { return formats.rank() == 4 ? kImages : kVolumes; }

// The inputs whose format a node of the row takes over.
bool IsFollowed(const LayoutRow& row, int input, const Node& n) {
  return (row.data.empty() ? row.vectors : row.data).Has(input, n.num_inputs());
}

constexpr OpSet kLoopOps = {"NextIteration", "Merge"};

}  // namespace

const LayoutRow* FindSensitiveRow(const Node& n) {
  static const auto* rows = new RowsByOp(Index(SensitiveRows()));
  return RowOf(n, *rows);
}

const LayoutRow* FindAgnosticRow(const Node& n) {
  static const auto* rows = new RowsByOp(Index(AgnosticRows()));
  return RowOf(n, *rows);
}

LayoutPlan::LayoutPlan(const Conversion& conversion, Rewriter& r)
    : conversion_(conversion),
      r_(r),
      places_(static_cast<size_t>(r.graph().max_id()), -1),
      follows_(static_cast<size_t>(r.graph().max_id()), 0) {}

Status LayoutPlan::Make() {
  const bool any = std::ranges::any_of(r_.graph().Nodes(),
                                       [](Node* n) { return FindSensitiveRow(*n) != nullptr; });
  if (!any) return OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Node*> order, r_.graph().TopologicalOrder());
  for (Node* n : order) {
    if (const LayoutRow* row = FindSensitiveRow(*n)) TryNode(n, *row, true);
  }
  if (plans_.empty()) return OkStatus();
  FindLoopRanks(order, r_);
  FindFollowers();
  for (Node* n : order) {
    const LayoutRow* row = FindAgnosticRow(*n);
    if (row == nullptr) continue;
    MarkFollower(*n);
    if (follows_[static_cast<size_t>(n->id())] == 0) continue;
    TryNode(n, *row, false);
    MarkFollower(*n);
  }
  DropBrokenLoops();
  return OkStatus();
}

std::vector<const NodePlan*> LayoutPlan::Changes() const {
  std::vector<const NodePlan*> changes;
  for (const NodePlan& plan : plans_) {
    if (Of(*plan.node) == &plan) changes.push_back(&plan);
  }
  return changes;
}

void LayoutPlan::TryNode(Node* n, const LayoutRow& row, bool sensitive) {
  if (!IsOnDevice(*n, conversion_.device_type)) return;
  const int input = row.rank_of_input;
  if (input >= n->num_inputs() || (input < 0 && n->num_outputs() == 0)) return;
  const int rank = r_.shape(input < 0 ? Endpoint{n, 0} : n->input(input)).rank();
  NodePlan plan{
      .node = n, .row = &row, .formats = conversion_.OfRank(rank), .sensitive = sensitive};
  const auto declined = [&](absl::string_view why) { r_.context().Declined(row.name, *n, why); };
  if (plan.formats == nullptr || (row.ranks & BitOf(*plan.formats)) == 0) {
    return declined("its rank has no other format");
  }
  const Formats& formats = *plan.formats;
  const bool results_change = row.results_if.empty() || n->Bool(row.results_if);
  for (int i = 0; i < n->num_inputs(); ++i) {
    Form form = Form::kSame;
    if (row.data.Has(i, n->num_inputs())) form = Form::kTensor;
    if (row.vectors.Has(i, n->num_inputs())) form = Form::kVector;
    if (row.dims.Has(i, n->num_inputs())) form = Form::kDimension;
    const int rank_of_input = form == Form::kTensor ? r_.shape(n->input(i)).rank() : rank;
    if (row.by_rank && rank_of_input != rank) form = Form::kSame;
    if (row.by_rank && !n->Is("Select") && rank_of_input == 1) plan.vector_input = i;
    if (row.each_by_itself && (rank_of_input != rank || !Follows(n->input(i), formats))) {
      form = Form::kSame;
    }
    plan.inputs.push_back(form);
  }
  for (int i = 0; i < n->num_outputs(); ++i) {
    const bool changes =
        results_change && row.results.Has(i, n->num_outputs()) &&
        (!row.each_by_itself || plan.inputs[static_cast<size_t>(i)] != Form::kSame);
    plan.outputs.push_back(changes ? row.results_form : Form::kSame);
  }
  if (const absl::string_view why = WhyNot(*n, plan); !why.empty()) return declined(why);
  places_[static_cast<size_t>(n->id())] = static_cast<int>(plans_.size());
  plans_.push_back(std::move(plan));
}

absl::string_view LayoutPlan::WhyNot(const Node& n, const NodePlan& plan) const {
  const LayoutRow& row = *plan.row;
  const Formats& formats = *plan.formats;
  if (IsRoot(n)) return "the node must stay";
  if (n.uses().empty()) return "nobody reads it";
  if (plan.sensitive) {
    const absl::string_view why = CannotChangeFormat(n, row, conversion_, formats);
    if (!why.empty()) return why;
  } else if (!MayFollow(n, plan)) {
    return "it does not follow a node whose format changes";
  }
  if (std::ranges::count(plan.inputs, Form::kSame) == n.num_inputs())
    return "nothing of it changes";
  for (int i = 0; i < n.num_inputs(); ++i) {
    const Form form = plan.inputs[static_cast<size_t>(i)];
    if (form == Form::kSame) continue;
    // What reads a reference does so when it runs; a transposition would run before.
    const Endpoint e = n.input(i);
    if (IsRef(e.node->output_types[static_cast<size_t>(e.port)])) return "it reads a reference";
    const Dtype type = n.input_types[static_cast<size_t>(i)];
    if (form != Form::kTensor && type != Dtype::kInt32 && type != Dtype::kInt64) {
      return "there is no permutation of integers of that type";
    }
  }
  for (int i = 0; i < n.num_outputs(); ++i) {
    const Form form = plan.outputs[static_cast<size_t>(i)];
    if (form == Form::kTensor && !plan.row->each_by_itself &&
        r_.shape({plan.node, i}).rank() != formats.rank()) {
      return "a result has another rank";
    }
  }
  if (!VectorsFit(n, plan)) return "what it states of dimensions does not fit its rank";
  return row.declines == nullptr ? "" : row.declines(n, formats, r_);
}

bool LayoutPlan::VectorsFit(const Node& n, const NodePlan& plan) const {
  if (plan.row->per_dimension == 0) return true;
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (plan.inputs[static_cast<size_t>(i)] != Form::kVector) continue;
    const PartialShape& shape = r_.shape(n.input(i));
    if (!shape.known_rank()) continue;
    const bool rows = plan.row->per_dimension > 1;
    if (shape.rank() != (rows ? 2 : 1)) return false;
    if (shape[0] >= 0 && shape[0] != plan.formats->rank()) return false;
    if (rows && shape[1] >= 0 && shape[1] != plan.row->per_dimension) return false;
  }
  return true;
}

// ---- what follows a node that changes

bool LayoutPlan::Follows(Endpoint e, const Formats& formats) const {
  const NodePlan* plan = Of(*e.node);
  if (plan != nullptr && plan->outputs[static_cast<size_t>(e.port)] != Form::kSame) {
    return plan->formats == &formats;
  }
  return (follows_[static_cast<size_t>(e.node->id())] & BitOf(formats)) != 0;
}

bool LayoutPlan::MayFollow(const Node& n, const NodePlan& plan) const {
  if (!n.Is("Merge")) {
    return (follows_[static_cast<size_t>(n.id())] & BitOf(*plan.formats)) != 0;
  }
  return std::ranges::all_of(n.inputs(), [&](const Endpoint& e) {
    return r_.shape(e).rank() == plan.formats->rank() && Follows(e, *plan.formats);
  });
}

// Before agnostic nodes are asked: marks those that are reached from sensitive ones through
// agnostic ones alone, around loops as well.
void LayoutPlan::FindFollowers() {
  std::vector<const Node*> todo;
  const auto visit = [&](const Use& use, uint8_t bits) {
    if (use.is_control()) return;
    const LayoutRow* row = FindAgnosticRow(*use.node);
    if (row == nullptr || !IsFollowed(*row, use.input, *use.node)) return;
    uint8_t& marks = follows_[static_cast<size_t>(use.node->id())];
    if ((marks | bits) == marks) return;
    marks |= bits;
    todo.push_back(use.node);
  };
  for (const NodePlan& plan : plans_) {
    for (const Use& use : plan.node->uses()) {
      if (use.is_control() || plan.outputs[static_cast<size_t>(use.port())] == Form::kSame)
        continue;
      visit(use, BitOf(*plan.formats));
    }
  }
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    for (const Use& use : n->uses()) visit(use, follows_[static_cast<size_t>(n->id())]);
  }
}

// Once what it reads is decided. Who reads an output that does not change follows what the inputs
// follow that do not change either.
void LayoutPlan::MarkFollower(const Node& n) {
  uint8_t& marks = follows_[static_cast<size_t>(n.id())];
  if (marks == 0) return;
  const NodePlan* plan = Of(n);
  uint8_t found = 0;
  for (int i = 0; i < n.num_inputs(); ++i) {
    const bool changes = plan != nullptr && plan->inputs[static_cast<size_t>(i)] != Form::kSame;
    if (changes || !IsFollowed(*FindAgnosticRow(n), i, n)) continue;
    for (const Formats* formats : {&conversion_.images, &conversion_.volumes}) {
      if (Follows(n.input(i), *formats)) found |= BitOf(*formats);
    }
  }
  marks = found;
}

// ---- loops

// Nothing may stand between a NextIteration and its Merge: both change, or neither.
void LayoutPlan::DropBrokenLoops() {
  std::vector<Node*> todo;
  for (const NodePlan& plan : plans_) {
    if (plan.node->Is(kLoopOps)) todo.push_back(plan.node);
  }
  const auto changes = [&](const Node* n, OpName op) { return n->Is(op) && Of(*n) != nullptr; };
  const auto may_change = [&](const Node& n) {
    if (n.Is("NextIteration")) {
      return std::ranges::all_of(
          n.uses(), [&](const Use& use) { return use.is_control() || changes(use.node, "Merge"); });
    }
    return std::ranges::all_of(n.inputs(), [&](const Endpoint& e) {
      return !e.node->Is("NextIteration") || Of(*e.node) != nullptr;
    });
  };
  while (!todo.empty()) {
    Node* n = todo.back();
    todo.pop_back();
    if (!n->Is(kLoopOps) || Of(*n) == nullptr || may_change(*n)) continue;
    r_.context().Declined(Of(*n)->row->name, *n, "not all of its loop changes");
    places_[static_cast<size_t>(n->id())] = -1;
    for (const Endpoint& e : n->inputs()) todo.push_back(e.node);
    for (const Use& use : n->uses()) todo.push_back(use.node);
  }
}

}  // namespace smelt::layout
