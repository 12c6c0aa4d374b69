#include "smelt/lite/recurrences/sequence.h"

#include <algorithm>
#include <numeric>

#include "smelt/lite/common/attributes.h"

namespace smelt {
namespace {

// What shape inference finds as well, for who asks before it runs again.
void Declare(Endpoint e, const PartialShape& shape) {
  e.node->AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{shape});
}

// Does it read the last row of an array, as a tensor of one dimension less?
bool ReadsLast(const Node& n, bool only_one) {
  if (!n.Is("StridedSlice") || n.Int("shrink_axis_mask") != 1 || n.Int("begin_mask") != 0) {
    return false;
  }
  const auto begin = StatedInts(n.input(1));
  if (!begin || begin->size() != 1) return false;
  return begin->front() == -1 || (only_one && begin->front() == 0);
}

bool SameSize(const ShapeTable& shapes, Endpoint a, Endpoint b, int dim) {
  const int64_t x = shapes.of(a)[dim], y = shapes.of(b)[dim];
  return x == y && (x >= 0 || IsSymbolicDim(x));
}

}  // namespace

std::string_view CellActivation(Endpoint e) {
  if (e.node->Is("Tanh")) return "TANH";
  if (e.node->Is("Relu")) return "RELU";
  if (e.node->Is("Relu6")) return "RELU6";
  return "NONE";
}

StatusOr<Endpoint> SequenceBuilder::Op(absl::string_view op, std::initializer_list<Endpoint> inputs,
                                       AttrMap attrs) {
  return AddOp(graph_, scan_.node->name(), op, inputs, std::move(attrs));
}

StatusOr<bool> SequenceBuilder::Build(Endpoint x, const std::function<Status()>& build,
                                      std::string* why) {
  *why = WhyNotAllRows(scan_, x, shapes_);
  if (!why->empty()) return false;
  if (cell_.masked()) {
    const ShapeTable sizes = InferSymbolicShapes(graph_, {});
    const PartialShape& mask = sizes.of(cell_.mask());
    const PartialShape& rows = sizes.of(x);
    const bool fits = rows.rank() == 3 && (mask.rank() == 2 || (mask.rank() == 3 && mask[2] == 1));
    if (!fits || !SameSize(sizes, x, cell_.mask(), 0) || !SameSize(sizes, x, cell_.mask(), 1)) {
      *why = absl::StrCat("its mask ", shapes_.of(cell_.mask()).ToString(),
                          " is not known to be one for each step of ", shapes_.of(x).ToString());
      return false;
    }
  }
  for (int i = 0; i < scan_.states; ++i) {
    const PartialShape &first = shapes_.of(scan_.state(i)), &rows = shapes_.of(x);
    if (first.rank() != 2 || first[0] < 0 || rows.rank() != 3 || rows[1] < 0) continue;
    if (first[0] == rows[1]) continue;
    *why = "one state is shared by several sequences at first";
    return false;
  }
  static const ExportRow row = {"_Scan", nullptr};
  l_.Begin(*scan_.node, row);
  const Status built = build();
  if (absl::IsUnimplemented(built)) {
    *why = std::string(built.message());
    return false;
  }
  RETURN_IF_ERROR(built);
  return true;
}

// [batch, time, ...] of [time, batch, ...]: what turned it need not run.
StatusOr<Endpoint> SequenceBuilder::Turned(Endpoint e, int rank) {
  e = BehindChecks(e);
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  if (e.node->Is("Transpose") && StatedInts(e.node->input(1)) == order) return e.node->input(0);
  const bool back =
      e.node->Is("ReverseV2") && StatedInts(e.node->input(1)) == std::vector<int64_t>{0};
  if (back) {
    ASSIGN_OR_RETURN(const Endpoint of, Turned(e.node->input(0), rank));
    return Op("ReverseV2", {of, l_.Ints(std::array<int64_t, 1>{1})});
  }
  return Op("Transpose", {e, l_.Ints(order)});
}

// Rows of [batch, time, ...] by numbers [batch] or [batch, n].
StatusOr<Endpoint> SequenceBuilder::Picked(Endpoint from, Endpoint at) {
  return Op("GatherV2", {from, at, l_.Int(1)}, Options({{"batch_dims", int64_t{1}}}));
}

Status SequenceBuilder::TakeMask(Endpoint x) {
  const int rank = l_.rank(cell_.mask());
  ASSIGN_OR_RETURN(mask_, Turned(cell_.mask(), rank));
  if (rank == 3) {
    ASSIGN_OR_RETURN(mask_,
                     Op("Squeeze", {mask_}, Options({{"squeeze_dims", std::vector<int64_t>{2}}})));
  }
  AttrMap to_int;
  to_int.Set("DstT", Dtype::kInt32);
  ASSIGN_OR_RETURN(const Endpoint one, Op("Cast", {mask_}, std::move(to_int)));
  ASSIGN_OR_RETURN(counts_, Op("Cumsum", {one, l_.Int(1)}));
  ASSIGN_OR_RETURN(total_, Op("Sum", {one, l_.Ints(std::array<int64_t, 1>{1})}));
  Endpoint steps;
  const int64_t known = l_.shape(x)[0];
  if (known >= 0) {
    steps = l_.Int(known);
  } else {
    ASSIGN_OR_RETURN(const Endpoint shape, Op("Shape", {mask_}));
    const auto at = [&](int64_t i) { return l_.Ints(std::array<int64_t, 1>{i}); };
    ASSIGN_OR_RETURN(steps, Op("StridedSlice", {shape, at(1), at(2), at(1)},
                               Options({{"shrink_axis_mask", int64_t{1}}})));
  }
  // Rows that count, the first of them first, are before all others.
  ASSIGN_OR_RETURN(const Endpoint time, Op("Range", {l_.Int(0), steps, l_.Int(1)}));
  ASSIGN_OR_RETURN(const Endpoint first, Op("Mul", {one, steps}));
  ASSIGN_OR_RETURN(const Endpoint key, Op("Sub", {first, time}));
  ASSIGN_OR_RETURN(order_, Op("TopKV2", {key, steps}));
  order_.port = 1;
  return OkStatus();
}

StatusOr<Endpoint> SequenceBuilder::TakeInput(Endpoint x) {
  if (!cell_.masked()) {
    const Endpoint from = BehindChecks(x);
    const bool back = from.node->Is("ReverseV2") &&
                      StatedInts(from.node->input(1)) == std::vector<int64_t>{0} &&
                      SwapsTime(*BehindChecks(from.node->input(0)).node);
    // The operator reads sequences side by side as well.
    if (!SwapsTime(*from.node) && !back) {
      major_ = true;
      return x;
    }
  }
  const PartialShape from = l_.shape(x);
  ASSIGN_OR_RETURN(Endpoint to, Turned(x, 3));
  if (cell_.masked()) {
    RETURN_IF_ERROR(TakeMask(x));
    ASSIGN_OR_RETURN(to, Picked(to, order_));
  }
  if (!l_.shape(to).known_rank() && from.known_rank()) {
    Declare(to, PartialShape::Of(std::vector<int64_t>{from[1], from[0], from[2]}));
  }
  return to;
}

LiteOutput SequenceBuilder::OutputOf(Endpoint input, int64_t units) const {
  const PartialShape x = l_.shape(input);
  const auto size = [&](int i) { return x.known_rank() ? std::max<int64_t>(x[i], -1) : -1; };
  return {Dtype::kFloat, PartialShape::Of(std::vector<int64_t>{size(0), size(1), units})};
}

// What the state is at first. Zeros as many as a first step gives, which Keras runs for that alone,
// are those of another state.
Endpoint SequenceBuilder::FirstOf(int state) const {
  const Endpoint e = BehindChecks(scan_.state(state));
  if (!e.node->Is("ZerosLike")) return scan_.state(state);
  for (int i = 0; i < scan_.states; ++i) {
    const Endpoint other = BehindChecks(scan_.state(i));
    if (other.node->Is({"Fill", "Const"}) && cell_.IsZeros(other, false)) return scan_.state(i);
  }
  return scan_.state(state);
}

// All outputs of closed up sequences, the state's first value before them.
StatusOr<Endpoint> SequenceBuilder::WithFirst(int state) {
  const auto [it, added] = with_first_.try_emplace(state);
  if (added) {
    for (const auto& [other, e] : with_first_) {
      if (other == state || !(FirstOf(other) == FirstOf(state))) continue;
      it->second = e;
      return e;
    }
    ASSIGN_OR_RETURN(const Endpoint first, Op("ExpandDims", {FirstOf(state), l_.Int(1)}));
    ASSIGN_OR_RETURN(it->second,
                     Op("ConcatV2", {first, all_, l_.Int(1)}, Options({{"N", int64_t{2}}})));
  }
  return it->second;
}

// [batch, time, units] of what each step gives; where the mask says no, of the state, or zeros.
StatusOr<Endpoint> SequenceBuilder::AllOf(int state) {
  if (!cell_.masked()) return all_;
  ASSIGN_OR_RETURN(const Endpoint from, WithFirst(std::max(state, 0)));
  ASSIGN_OR_RETURN(const Endpoint all, Picked(from, counts_));
  if (state >= 0) return all;
  ASSIGN_OR_RETURN(const Endpoint mask, Op("ExpandDims", {mask_, l_.Int(2)}));
  return Op("SelectV2", {mask, all, l_.Floats(0)});
}

// What the state is at last; of -1, the last of `all`.
StatusOr<Endpoint> SequenceBuilder::LastOf(int state, Endpoint all) {
  const auto [it, added] = last_.try_emplace(cell_.masked() ? state : -1);
  if (!added) return it->second;
  if (cell_.masked() && state >= 0) {
    ASSIGN_OR_RETURN(const Endpoint from, WithFirst(state));
    ASSIGN_OR_RETURN(it->second, Picked(from, total_));
    return it->second;
  }
  std::array<int64_t, 3> begin = {0, -1, 0};
  if (major_) begin = {-1, 0, 0};
  const std::array<int64_t, 3> zeros = {0, 0, 0}, ones = {1, 1, 1};
  ASSIGN_OR_RETURN(it->second,
                   Op("StridedSlice", {all, l_.Ints(begin), l_.Ints(zeros), l_.Ints(ones)},
                      Options({{"begin_mask", int64_t{major_ ? 6 : 5}},
                               {"end_mask", int64_t{7}},
                               {"shrink_axis_mask", int64_t{major_ ? 1 : 2}}})));
  return it->second;
}

// An array of all outputs by time, or of the last one alone.
Status SequenceBuilder::ReplaceArray(int i) {
  const Endpoint array = {scan_.node, scan_.states + i};
  const bool last = scan_.last[static_cast<size_t>(i)];
  const int state = cell_.result(scan_.states + i).instead;
  if (array.node->NumUses(array.port) == 0) return OkStatus();
  ASSIGN_OR_RETURN(const Endpoint all, AllOf(state));
  std::vector<Endpoint> todo = {array};
  while (!todo.empty()) {
    const Endpoint e = todo.back();
    todo.pop_back();
    for (const Use& use : e.node->OrderedUses()) {
      if (use.is_control() || use.port() != e.port) continue;
      Node* n = use.node;
      if (n->Is({"EnsureShape", "Identity"})) {
        todo.push_back({n, 0});
      } else if (use.input == 0 && ReadsLast(*n, last)) {
        ASSIGN_OR_RETURN(const Endpoint by, LastOf(state, all));
        graph_.ReplaceAllUses({n, 0}, by);
      } else if (use.input == 0 && !last && !major_ && SwapsTime(*n)) {
        graph_.ReplaceAllUses({n, 0}, all);
      }
    }
  }
  if (array.node->NumUses(array.port) == 0) return OkStatus();
  Endpoint by = all;
  if (last) {
    ASSIGN_OR_RETURN(by, LastOf(state, all));
    ASSIGN_OR_RETURN(by, Op("ExpandDims", {by, l_.Int(0)}));
  } else if (!major_) {
    ASSIGN_OR_RETURN(by, Op("Transpose", {by, l_.Ints(std::array<int64_t, 3>{1, 0, 2})}));
  }
  graph_.ReplaceAllUses(array, by);
  return OkStatus();
}

Status SequenceBuilder::Replace(Endpoint all, int own) {
  all_ = all;
  for (int i = 0; i < scan_.states; ++i) {
    if (i == own || scan_.node->NumUses(i) == 0) continue;
    ASSIGN_OR_RETURN(const Endpoint last, LastOf(i, all_));
    graph_.ReplaceAllUses({scan_.node, i}, last);
  }
  for (int i = 0; i < scan_.arrays; ++i) RETURN_IF_ERROR(ReplaceArray(i));
  graph_.ReplaceControlUses(scan_.node, all_.node);
  for (Node* before : scan_.node->control_inputs()) graph_.AddControlInput(all_.node, before);
  graph_.Remove(scan_.node);
  return OkStatus();
}

}  // namespace smelt
