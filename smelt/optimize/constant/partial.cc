// The constants among many inputs, put together.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/optimize/constant/rules.h"

namespace smelt::constant {
namespace {

// AddN(x, c1, c2, ...) -> AddN(x, AddN(c1, c2, ...))
StatusOr<Rewritten> PartialAssocOpConstFolding(Node& node, Rewriter& r) {
  if (node.num_inputs() <= 2) return r.No("it has two inputs at most");
  std::vector<Endpoint> constants, left;
  for (const Endpoint& e : node.inputs()) {
    if (IsConstant(e, r)) constants.push_back(e);
  }
  const auto count = constants.size();
  if (count == node.inputs().size() && node.Is("AccumulateNV2")) {
    AttrMap attrs = node.attrs();
    attrs.Erase("shape");
    RETURN_IF_ERROR(r.Become(&node, "AddN", std::move(attrs)));
    return r.InPlace();
  }
  if (count <= 1 || count == node.inputs().size()) return r.No("not some inputs are constant");
  AttrMap attrs = node.attrs();
  attrs.Erase("shape");
  attrs.Erase("_root");
  attrs.Set("N", static_cast<int64_t>(count));
  ASSIGN_OR_RETURN(Node * sum, r.Add(r.PrefixedName(node, absl::StrCat("_partial_split_", count)),
                                     "AddN", constants, std::move(attrs), node));
  bool placed = false;
  for (const Endpoint& e : node.inputs()) {
    if (!IsConstant(e, r)) {
      left.push_back(e);
    } else if (!placed) {
      left.push_back({sum, 0});
      placed = true;
    }
  }
  node.AttrsToChange().Set("N", static_cast<int64_t>(left.size()));
  r.graph().SetInputs(&node, left);
  RETURN_IF_ERROR(r.graph().ResolveTypes(&node));
  return r.InPlace();
}

std::optional<int64_t> ConcatAxis(const Node& node, Rewriter& r) {
  if (!node.Is("ConcatV2") || node.num_inputs() == 0) return std::nullopt;
  const auto axis = r.Integers(node.input(node.num_inputs() - 1));
  return axis && axis->size() == 1 ? std::optional<int64_t>(axis->front()) : std::nullopt;
}

// Concat(a, Concat(b, c)) -> Concat(a, b, c)
StatusOr<Rewritten> MergeConcat(Node& node, Rewriter& r) {
  const auto axis = ConcatAxis(node, r);
  if (!axis) return r.No("its axis is not constant");
  if (IsRoot(node)) return r.No("it must stay");
  if (node.uses().empty()) return r.No();
  Node* parent = node.uses().front().node;
  const bool one_reader = std::ranges::all_of(
      node.uses(), [&](const Use& use) { return use.node == parent && !use.is_control(); });
  if (!one_reader) return r.No("others need it");
  if (ConcatAxis(*parent, r) != axis) return r.No("its reader is of another kind or axis");
  // An axis counted from the end, or an input that names it, is of the same rank in both.
  const int last = parent->num_inputs() - 1;
  if (parent->input(last).node == &node) return r.No();
  const bool constant =
      std::ranges::all_of(std::span(node.inputs().data(), node.inputs().size() - 1),
                          [&](const Endpoint& e) { return IsConstant(e, r); });
  if (constant) return r.No("it is to be folded");
  absl::flat_hash_set<absl::string_view> tasks;
  std::vector<Endpoint> inputs;
  for (int i = 0; i < last; ++i) {
    const Endpoint e = parent->input(i);
    const absl::string_view task = TaskOfDevice(e.node->device);
    if (!e.node->device.empty()) tasks.insert(task);
    if (e.node != &node) {
      inputs.push_back(e);
      continue;
    }
    inputs.insert(inputs.end(), node.inputs().begin(), node.inputs().end() - 1);
  }
  if (tasks.size() >= 2) return r.No("what its reader joins is on several machines");
  inputs.push_back(parent->input(last));
  RETURN_IF_ERROR(r.WaitAs(parent, node));
  RETURN_IF_ERROR(r.WaitAs(parent, *node.input(node.num_inputs() - 1).node));
  parent->AttrsToChange().Set("N", static_cast<int64_t>(inputs.size()) - 1);
  r.graph().SetInputs(parent, inputs);
  RETURN_IF_ERROR(r.graph().ResolveTypes(parent));
  r.Visit(parent);
  return r.InPlace();
}

// Neighbors that are constant are joined first.
StatusOr<Rewritten> PartialConcatConstFolding(Node& node, Rewriter& r) {
  if (absl::StrContains(node.name(), "_partial_split_")) return r.No();
  const int inputs = node.num_inputs();
  if (inputs <= 3) return r.No("it joins two at most");
  const bool axis_first = node.Is("Concat");
  const int begin = axis_first ? 1 : 0, end = axis_first ? inputs : inputs - 1;
  const Endpoint axis = node.input(axis_first ? 0 : inputs - 1);
  std::vector<std::pair<int, int>> runs;
  for (int i = begin; i < end;) {
    int stop = i;
    while (stop < end && IsConstant(node.input(stop), r)) ++stop;
    if (stop - i > 1) runs.emplace_back(i, stop);
    i = std::max(stop, i + 1);
  }
  if (runs.empty()) return r.No("no two neighbors are constant");
  if (runs.front() == std::pair(begin, end)) return r.No("it is to be folded");
  std::vector<Endpoint> left;
  auto run = runs.begin();
  for (int i = 0; i < inputs; ++i) {
    if (run == runs.end() || i != run->first) {
      left.push_back(node.input(i));
      continue;
    }
    std::vector<Endpoint> joined;
    if (axis_first) joined.push_back(axis);
    for (; i < run->second; ++i) joined.push_back(node.input(i));
    --i;
    if (!axis_first) joined.push_back(axis);
    AttrMap attrs = node.attrs();
    attrs.Erase("_root");
    attrs.Set("N", static_cast<int64_t>(run->second - run->first));
    ASSIGN_OR_RETURN(Node * part,
                     r.Add(r.PrefixedName(node, absl::StrCat("_partial_split_", run->first)),
                           node.op(), joined, std::move(attrs), node));
    left.push_back({part, 0});
    ++run;
  }
  node.AttrsToChange().Set("N", static_cast<int64_t>(left.size()) - 1);
  r.graph().SetInputs(&node, left);
  RETURN_IF_ERROR(r.graph().ResolveTypes(&node));
  return r.InPlace();
}

}  // namespace

const Rule kPartialAssocOpConstFolding = {"PartialAssocOpConstFolding",
                                          {"AddN", "AccumulateNV2"},
                                          PartialAssocOpConstFolding,
                                          "AddN(x, c1, c2) -> AddN(x, AddN(c1, c2))"};
const Rule kMergeConcat = {
    "MergeConcat", {"ConcatV2"}, MergeConcat, "Concat(a, Concat(b, c)) -> Concat(a, b, c)"};
const Rule kPartialConcatConstFolding = {"PartialConcatConstFolding",
                                         {"Concat", "ConcatV2"},
                                         PartialConcatConstFolding,
                                         "Concat(x, c1, c2) -> Concat(x, Concat(c1, c2))"};

}  // namespace smelt::constant
