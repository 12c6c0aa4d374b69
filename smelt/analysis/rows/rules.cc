#include "smelt/analysis/rows/rules.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/values.h"

namespace smelt {
namespace {

// Axes and permutations are computed in a few steps, or they stand in the graph.
constexpr int kMaxValueDepth = 12;

// The elements of a small integer tensor, as far as constants and shapes say.
std::optional<IntVector> ValueOf(Endpoint e, const ShapeTable& shapes, int depth) {
  if (const auto t = ConstantTensor(*e.node)) return IntVectorOf(*t);
  if (depth == 0) return std::nullopt;
  std::vector<std::optional<IntVector>> values;
  std::vector<const PartialShape*> input_shapes;
  for (const Endpoint& in : e.node->inputs()) {
    values.push_back(ValueOf(in, shapes, depth - 1));
    input_shapes.push_back(&shapes.of(in));
  }
  std::vector<const IntVector*> known;
  for (const auto& value : values) known.push_back(value ? &*value : nullptr);
  auto results = FollowValues(*e.node, input_shapes, known);
  return e.port < std::ssize(results) ? results[e.port] : std::nullopt;
}

}  // namespace

bool RowNode::WholeFrom(int from) const {
  for (int i = from; i < inputs(); ++i) {
    if (!whole(i)) return false;
  }
  return true;
}

bool RowNode::Has(RowKind kind) const {
  return std::ranges::any_of(in_, [&](const RowState& s) { return s.kind == kind; });
}

int RowNode::rank(Endpoint e) const {
  const PartialShape &few = shapes_.few->of(e), &many = shapes_.many->of(e);
  return few.known_rank() && many.known_rank() && few.rank() == many.rank() ? few.rank() : -1;
}

int64_t RowNode::Dim(Endpoint e, int d) const {
  if (d < 0 || d >= rank(e)) return -1;
  const int64_t few = shapes_.few->of(e)[d];
  return few == shapes_.many->of(e)[d] ? few : -1;
}

int64_t RowNode::PerRow(Endpoint e, int d) const {
  if (d < 0 || d >= rank(e)) return 0;
  const int64_t few = shapes_.few->of(e)[d], many = shapes_.many->of(e)[d];
  if (few <= 0 || few % shapes_.few_rows != 0) return 0;
  const int64_t each = few / shapes_.few_rows;
  return many == each * shapes_.many_rows ? each : 0;
}

std::optional<std::vector<int64_t>> RowNode::Ints(int i) const {
  if (!whole(i)) return std::nullopt;
  const auto stated = ConstantTensor(*BehindIdentities(input(i)).node);
  if (stated && (stated->dtype() == Dtype::kInt32 || stated->dtype() == Dtype::kInt64)) {
    std::vector<int64_t> out;
    for (int64_t k = 0; k < stated->num_elements(); ++k) out.push_back(IndexAt(*stated, k));
    return out;
  }
  const auto value = ValueOf(BehindIdentities(input(i)), *shapes_.few, kMaxValueDepth);
  if (!value || !value->complete()) return std::nullopt;
  return std::vector<int64_t>(value->values.begin(), value->values.end());
}

std::string BroadcastRows(const RowNode& n, int from, int to, int rank, RowState* out, bool given) {
  bool found = given;
  for (int i = from; i < to; ++i) {
    if (!n.rows(i)) continue;
    if (n.rank(i) < 0 || rank < n.rank(i)) return "has an input of unknown rank";
    const RowState here = n.in(i).At(n.in(i).axis + rank - n.rank(i));
    if (found && here.axis != out->axis) return "puts rows against rows";
    if (found && !(here == *out)) return "puts rows against rows in another order";
    *out = here;
    found = true;
  }
  for (int i = from; i < to; ++i) {
    if (n.rows(i)) continue;
    if (!n.whole(i)) return absl::StrCat("computes with ", RowStateText(n.in(i)));
    if (!found) continue;
    if (n.rank(i) < 0) return "has an input of unknown rank";
    const int d = out->axis - (rank - n.rank(i));
    if (d >= 0 && n.Dim(n.input(i), d) != 1) return "has another value for each place of a row";
  }
  return found ? "" : "has no rows where they are expected";
}

RowState RepeatedForRows(const RowNode& n, Endpoint e, const RowState& shape) {
  int axis = -1;
  int64_t each = 0;
  const int rank = n.rank(e);
  if (rank < 0) return RowState::Sizes();
  if (shape.kind == RowKind::kWhole) return {};
  const bool known = static_cast<int>(shape.per_row.size()) == rank;
  for (int d = 0; d < rank; ++d) {
    if (known ? shape.per_row[d] == 0 : n.Dim(e, d) >= 0) continue;
    if (axis >= 0) return RowState::Sizes();
    axis = d;
    each = known && shape.per_row[d] > 0 ? shape.per_row[d] : n.PerRow(e, d);
  }
  if (axis < 0) return {};
  return each > 0 ? RowState::Rows(axis, 1, each) : RowState::Sizes();
}

namespace {

// RowState::per_row of a scalar or vector; nothing where its length or rank is unknown.
std::optional<std::vector<int64_t>> PerRowOf(const RowNode& n, int i) {
  const int rank = n.rank(i);
  if (rank < 0 || rank > 1) return std::nullopt;
  const int64_t size = rank == 0 ? 1 : n.Dim(n.input(i), 0);
  if (size < 0 || size > 1024) return std::nullopt;
  if (n.whole(i)) return std::vector<int64_t>(size, 0);
  if (!n.sizes(i) || static_cast<int64_t>(n.in(i).per_row.size()) != size) return std::nullopt;
  return n.in(i).per_row;
}

std::optional<std::vector<int64_t>> ElementsOfSlice(const RowNode& n) {
  const auto in = PerRowOf(n, 0);
  const auto begin = n.Ints(1), end = n.Ints(2), strides = n.Ints(3);
  const Node& node = n.node();
  if (!in || !begin || !end || !strides || begin->size() != 1 || (*strides)[0] <= 0 ||
      node.Int("new_axis_mask") != 0 || node.Int("ellipsis_mask") != 0) {
    return std::nullopt;
  }
  const auto size = static_cast<int64_t>(in->size());
  const auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  const int64_t first = (node.Int("begin_mask") & 1) != 0 ? 0 : place((*begin)[0]);
  int64_t last = (node.Int("end_mask") & 1) != 0 ? size : place((*end)[0]);
  if ((node.Int("shrink_axis_mask") & 1) != 0) last = std::min(first + 1, size);
  std::vector<int64_t> out;
  for (int64_t k = first; k < last; k += (*strides)[0]) out.push_back((*in)[k]);
  return out;
}

std::optional<std::vector<int64_t>> ElementsJoined(const RowNode& n, int end) {
  std::vector<int64_t> out;
  for (int i = 0; i < end; ++i) {
    const auto in = PerRowOf(n, i);
    if (!in) return std::nullopt;
    out.insert(out.end(), in->begin(), in->end());
  }
  return out;
}

std::optional<std::vector<int64_t>> ElementsPicked(const RowNode& n) {
  const auto in = PerRowOf(n, 0);
  const auto at = n.Ints(1);
  if (!in || !at) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t k : *at) {
    if (k < 0 || k >= std::ssize(*in)) return std::nullopt;
    out.push_back((*in)[k]);
  }
  return out;
}

std::optional<std::vector<int64_t>> ElementsCombined(const RowNode& n) {
  std::vector<int64_t> out;
  for (int i = 0; i < n.inputs(); ++i) {
    const auto in = PerRowOf(n, i);
    if (!in) return std::nullopt;
    if (in->size() > 1 && out.size() > 1 && in->size() != out.size()) return std::nullopt;
    if (out.size() <= 1) out.resize(in->size(), out.empty() ? 0 : out[0]);
    for (size_t k = 0; k < out.size(); ++k) {
      if ((*in)[in->size() == 1 ? 0 : k] != 0) out[k] = -1;
    }
  }
  return out;
}

constexpr OpSet kSameElements = {"Identity", "Snapshot",    "StopGradient",
                                 "Cast",     "Reshape",     "ExpandDims",
                                 "Squeeze",  "EnsureShape", "PreventGradient"};

}  // namespace

void FollowSizes(RowNode& n) {
  const Node& node = n.node();
  std::optional<std::vector<int64_t>> per_row;
  if (node.Is("IdentityN")) {
    for (int i = 0; i < n.inputs(); ++i) n.Set(i, n.in(i));
    return;
  }
  if (node.Is("Unpack") && n.rank(0) == 1) {
    per_row = PerRowOf(n, 0);
    for (int port = 0; port < node.num_outputs(); ++port) {
      const bool known = per_row && port < std::ssize(*per_row);
      n.Set(port, RowState::Sizes({known ? (*per_row)[port] : -1}));
    }
    return;
  }
  if (node.Is("SplitV") && n.rank(0) == 1 && n.Ints(1)) {
    per_row = PerRowOf(n, 0);
    int64_t from = 0;
    for (int port = 0; port < node.num_outputs(); ++port) {
      const int64_t size = (*n.Ints(1))[port];
      if (!per_row || size < 0 || from + size > std::ssize(*per_row)) {
        return n.SetAll(RowState::Sizes());
      }
      const auto begin = per_row->begin() + from;
      n.Set(port, RowState::Sizes({begin, begin + size}));
      from += size;
    }
    return;
  }
  const bool like = node.Is("ZerosLike") || node.Is("OnesLike");
  if (like && n.rank(0) >= 0) {
    // The same numbers whatever the sizes are, and as many where the shape is known.
    bool known = true;
    for (int d = 0; d < n.rank(0); ++d) known = known && n.Dim(n.input(0), d) >= 0;
    n.SetAll(known ? RowState() : RowState::Sizes());
    return;
  }
  if (node.Is(kSameElements)) {
    per_row = PerRowOf(n, 0);
  } else if (node.Is("StridedSlice")) {
    per_row = ElementsOfSlice(n);
  } else if (node.Is("Pack") && n.rank(0) == 0) {
    per_row = ElementsJoined(n, n.inputs());
  } else if (node.Is("ConcatV2") && n.rank(0) == 1) {
    per_row = ElementsJoined(n, n.inputs() - 1);
  } else if (node.Is("GatherV2")) {
    per_row = ElementsPicked(n);
  } else if (node.Is(kElementwiseOps)) {
    per_row = ElementsCombined(n);
  }
  n.SetAll(RowState::Sizes(per_row.value_or(std::vector<int64_t>())));
}

const RowRule* FindRowRule(const Node& node) {
  static const auto* rules = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, const RowRule*>;
    for (const auto& family : {kComputeRowRules, kMovementRowRules, kListRowRules}) {
      for (const RowRule& rule : family) map->try_emplace(rule.op.text(), &rule);
    }
    return map;
  }();
  if (auto it = rules->find(node.op()); it != rules->end()) return it->second;
  static constexpr OpName kAnyElementwise = "Identity";
  return node.Is(kElementwiseOps) ? rules->at(kAnyElementwise.text()) : nullptr;
}

}  // namespace smelt
