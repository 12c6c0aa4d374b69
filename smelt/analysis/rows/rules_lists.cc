// Lists of tensors: what loops over steps, or over rows, read and write.
#include "smelt/analysis/rows/rules.h"

namespace smelt {
namespace {

constexpr char kOtherRow[] = "reads or writes a list of rows elsewhere than at the loop's own row";

bool IsList(const RowState& s) {
  return s.kind == RowKind::kEmptyList || s.kind == RowKind::kList || s.kind == RowKind::kRowList;
}
RowState ElementOf(const RowState& list) {
  return list.axis < 0 ? RowState() : RowState::Rows(list.axis, list.outer, list.inner);
}

std::string NewList(RowNode& n) {
  n.Set(0, {RowKind::kEmptyList, 0, 1, 1, {}});
  for (int i = 0; i < n.inputs(); ++i) {
    if (!n.whole(i) && !n.sizes(i)) return "takes sizes from rows";
  }
  return "";
}

// Along dimension 0: steps, or rows.
std::string ListFromTensor(RowNode& n) {
  if (!n.rows(0)) return "makes a list of the number of rows";
  const RowState& in = n.in(0);
  if (in.axis > 0) {
    n.Set(0, RowState::List(in.At(in.axis - 1)));
    return "";
  }
  n.Set(0, {RowKind::kRowList, 0, 1, 1, {}});
  return in.outer == 1 && in.inner == 1 ? "" : "makes a list of parts of rows";
}

std::string SetsItem(RowNode& n) {
  const RowState& list = n.in(0);
  const RowState& item = n.in(2);
  if (n.in(1).kind == RowKind::kPlace) {
    if (list.kind != RowKind::kEmptyList && list.kind != RowKind::kRowList) return kOtherRow;
    // Of the row that the same argument of the loop numbers.
    const bool own = item.kind == RowKind::kOneRow && item.axis == n.in(1).axis;
    if (!own && item.kind != RowKind::kWhole) return kOtherRow;
    n.Set(0, {RowKind::kRowList, 0, 1, 1, {}});
    return "";
  }
  if (!n.whole(1) || !(n.rows(2) || n.whole(2))) return kOtherRow;
  RowState out;
  if (!JoinRowStates(list.kind == RowKind::kWhole ? RowState::List({}) : list, RowState::List(item),
                     &out)) {
    return "puts rows into a list that holds others";
  }
  n.Set(0, out);
  return "";
}
std::string PushesBack(RowNode& n) {
  RowState out;
  if (!(n.rows(1) || n.whole(1)) ||
      !JoinRowStates(n.whole(0) ? RowState::List({}) : n.in(0), RowState::List(n.in(1)), &out)) {
    return "puts rows into a list that holds others";
  }
  n.Set(0, out);
  return "";
}

std::string GetsItem(RowNode& n) {
  const RowState& list = n.in(0);
  if (n.whole(0)) {
    n.Set(0, RowState::Sizes());
    return "";
  }
  if (list.kind == RowKind::kRowList) {
    n.Set(0, {RowKind::kOneRow, n.in(1).axis, 1, 1, {}});
    return n.in(1).kind == RowKind::kPlace ? "" : kOtherRow;
  }
  if (list.kind != RowKind::kList || !n.whole(1)) return kOtherRow;
  n.Set(0, ElementOf(list));
  return "";
}
std::string PopsBack(RowNode& n) {
  if (n.in(0).kind != RowKind::kList) return kOtherRow;
  n.Set(0, n.in(0));
  n.Set(1, ElementOf(n.in(0)));
  return "";
}
std::string StacksItems(RowNode& n) {
  const RowState& list = n.in(0);
  if (list.kind == RowKind::kRowList) {
    n.Set(0, RowState::Rows(0));
    return "";
  }
  if (list.kind != RowKind::kList) return "stacks a list of which nothing is known";
  if (list.axis >= 0) n.Set(0, ElementOf(list).At(list.axis + 1));
  return "";
}
std::string GathersItems(RowNode& n) { return n.whole(1) ? StacksItems(n) : kOtherRow; }
std::string Counts(RowNode& n) {
  n.Set(0, n.in(0).kind == RowKind::kList ? RowState() : RowState::Sizes());
  return IsList(n.in(0)) ? "" : "counts rows";
}
std::string SameList(RowNode& n) {
  if (!n.whole(1) || n.in(0).kind == RowKind::kRowList) return kOtherRow;
  n.Set(0, n.in(0));
  return "";
}

constexpr RowRule kListRows[] = {
    {"EmptyTensorList", NewList, true},       {"TensorListReserve", NewList, true},
    {"TensorListFromTensor", ListFromTensor}, {"TensorListSetItem", SetsItem, true},
    {"TensorListPushBack", PushesBack},       {"TensorListGetItem", GetsItem, true},
    {"TensorListPopBack", PopsBack},          {"TensorListStack", StacksItems},
    {"TensorListGather", GathersItems},       {"TensorListLength", Counts},
    {"TensorListResize", SameList},
};

}  // namespace

extern const std::span<const RowRule> kListRowRules;
constinit const std::span<const RowRule> kListRowRules = kListRows;

}  // namespace smelt
