// What a tensor holds of a request's rows: the answers of the row analysis (proof.h). Plain data.
#ifndef SMELT_ANALYSIS_ROWS_STATE_H_
#define SMELT_ANALYSIS_ROWS_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace smelt {

enum class RowKind : uint8_t {
  kWhole,      // the same for all requests
  kSizes,      // depends on how many rows there are, not on what is in them
  kRows,       // dimension `axis` holds the rows
  kItems,      // values of all rows one after another, of some more than of others
  kEmptyList,  // a list in which nothing was put yet
  kList,     // a list of tensors with rows: `axis` is that of each element, -1: elements are whole
  kRowList,  // a list with one element for each row, which depends on that row alone
  kPlace,    // in a loop over rows: the number of the row that it is at
  kOneRow,   // in a loop over rows: depends on that row alone
};

struct RowState {
  RowKind kind = RowKind::kWhole;
  // Of kPlace and kOneRow: `axis` is the argument of the loop that numbers the rows. Of kRows and
  // kList: dimension `axis` has outer * rows * inner elements, of which the middle
  // number says the row.
  int axis = 0;
  int64_t outer = 1, inner = 1;
  // Of kSizes, a scalar or vector, by element: 0 for one that does not depend on the number of
  // rows, k for k times that number, -1 for what depends on it in another way. Empty: any may.
  std::vector<int64_t> per_row = {};

  bool operator==(const RowState&) const = default;

  static RowState Rows(int axis, int64_t outer = 1, int64_t inner = 1) {
    return {RowKind::kRows, axis, outer, inner, {}};
  }
  static RowState List(const RowState& element) {
    return {RowKind::kList,
            element.kind == RowKind::kRows ? element.axis : -1,
            element.outer,
            element.inner,
            {}};
  }
  // kWhole where no element depends on the rows.
  static RowState Sizes(std::vector<int64_t> per_row = {});
  // Rows at another place of the shape.
  RowState At(int new_axis) const {
    RowState out = *this;
    out.axis = new_axis;
    return out;
  }
};

// What is true of both; false when nothing useful is.
bool JoinRowStates(const RowState& a, const RowState& b, RowState* out);
// For texts: "rows in dimension 1".
std::string RowStateText(const RowState& s);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_ROWS_STATE_H_
