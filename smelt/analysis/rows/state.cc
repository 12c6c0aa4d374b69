#include "smelt/analysis/rows/state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace smelt {

RowState RowState::Sizes(std::vector<int64_t> per_row) {
  if (!per_row.empty() && std::ranges::count(per_row, 0) == std::ssize(per_row)) return {};
  return {RowKind::kSizes, 0, 1, 1, std::move(per_row)};
}

bool JoinRowStates(const RowState& a, const RowState& b, RowState* out) {
  if (a == b) {
    *out = a;
    return true;
  }
  const auto either = [&](RowKind x, RowKind y) {
    return (a.kind == x && b.kind == y) || (a.kind == y && b.kind == x);
  };
  if (either(RowKind::kEmptyList, RowKind::kList) ||
      either(RowKind::kEmptyList, RowKind::kRowList)) {
    *out = a.kind == RowKind::kEmptyList ? b : a;
    return true;
  }
  if (either(RowKind::kSizes, RowKind::kWhole) || either(RowKind::kSizes, RowKind::kSizes)) {
    const RowState& sizes = a.kind == RowKind::kSizes ? a : b;
    const RowState& other = a.kind == RowKind::kSizes ? b : a;
    std::vector<int64_t> per_row;
    if (other.kind == RowKind::kWhole || sizes.per_row.size() == other.per_row.size()) {
      per_row = sizes.per_row;
      for (size_t i = 0; i < per_row.size(); ++i) {
        const int64_t theirs = other.kind == RowKind::kWhole ? 0 : other.per_row[i];
        if (per_row[i] != theirs) per_row[i] = -1;
      }
    }
    *out = RowState::Sizes(std::move(per_row));
    return true;
  }
  return false;
}

std::string RowStateText(const RowState& s) {
  switch (s.kind) {
    case RowKind::kWhole:
      return "no rows";
    case RowKind::kSizes:
      return "the number of rows";
    case RowKind::kRows:
      return absl::StrCat("rows in dimension ", s.axis,
                          s.outer != 1 || s.inner != 1 ? " together with others" : "");
    case RowKind::kItems:
      return "values of rows, of some more than of others";
    case RowKind::kEmptyList:
      return "an empty list";
    case RowKind::kList:
      return "a list";
    case RowKind::kRowList:
      return "a list of rows";
    case RowKind::kPlace:
      return "the place of a row";
    case RowKind::kOneRow:
      return "one row";
  }
  return "";
}

}  // namespace smelt
