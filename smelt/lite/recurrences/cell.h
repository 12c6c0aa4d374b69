// What the body of a loop computes, as cells of recurrent networks have it: products of a row and
// of the last output with constant matrices, added up for each gate, and masks that let a step
// change nothing.
#ifndef SMELT_LITE_RECURRENCES_CELL_H_
#define SMELT_LITE_RECURRENCES_CELL_H_

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/lite/recurrences/recurrence.h"

namespace smelt {

inline constexpr OpSet kCellAdds = {"Add", "AddV2"};

// The value that EnsureShape and Identity hand on.
Endpoint BehindChecks(Endpoint e);
// Integers of a constant.
std::optional<std::vector<int64_t>> StatedInts(Endpoint e);
// Does it exchange the first two of three dimensions?
bool SwapsTime(const Node& n);
// Is the number that of the rows of x?
bool IsRowsOf(Endpoint number, Endpoint x, const ShapeTable& shapes);
// Why the loop does not run over all rows of x, or gives others than its steps; empty: it does.
std::string WhyNotAllRows(const Scan& scan, Endpoint x, const ShapeTable& shapes);

// What is added up for one gate.
struct GateSum {
  Endpoint x;                       // of the caller's graph
  std::optional<Tensor> weights;    // [inputs, units]
  std::optional<Tensor> recurrent;  // [units, units]
  std::vector<Tensor> biases;       // [units], or one number

  int64_t units() const { return weights->dim(1); }
  // All biases, zeros where there are none.
  StatusOr<Tensor> Bias() const;
};

// A result of the body without its mask.
struct Unmasked {
  Endpoint value;
  // Where the mask says no, the state's old value stands there; -1: zeros do.
  int instead = -1;
};

// Reads cells. Results are those of the scan: states, then arrays.
class CellReader {
 public:
  explicit CellReader(const Scan& scan) : scan_(scan) {}

  // Takes masks off all results; false, and why() says why, where some have none or another.
  bool TakeMask();
  // True where steps may change nothing: mask() is a row's, [time, batch] or [time, batch, 1].
  bool masked() const { return mask_.node != nullptr; }
  Endpoint mask() const { return mask_; }
  const Unmasked& result(int i) const { return results_[static_cast<size_t>(i)]; }
  // The old value of a state.
  Endpoint old(int state) const { return {scan_.args[static_cast<size_t>(state)], 0}; }

  // Are all of it zeros? `in_body`: it is of the body's graph, else of the caller's.
  bool IsZeros(Endpoint e, bool in_body) const;

  // Adds what `e` of the body sums to the gate's; false, and why() says why.
  StatusOr<bool> AddGate(Endpoint e, int hidden, GateSum& sum) {
    return Add(e, hidden, true, {}, sum);
  }
  // Do all gates read one input and one state, and are they of one size?
  bool CheckGates(std::span<const GateSum> sums);
  // Are all results the new value of state `hidden`, but that of state `own`?
  bool GivesOnly(int hidden, int own);

  const std::string& why() const { return why_; }
  template <typename... T>
  bool No(T&&... why) {
    why_ = absl::StrCat(std::forward<T>(why)...);
    return false;
  }

 private:
  // Columns `part` of `parts`, where a matrix is split.
  struct Columns {
    int64_t part = 0, parts = 1;
  };

  StatusOr<bool> Add(Endpoint e, int hidden, bool in_body, Columns c, GateSum& sum);
  static StatusOr<Tensor> Part(const Tensor& t, Columns c, bool transposed);
  std::optional<Tensor> Constant(Endpoint e, bool in_body) const;
  Endpoint MaskOf(Endpoint condition) const;

  const Scan& scan_;
  Endpoint mask_ = {nullptr, 0};
  std::vector<Unmasked> results_;
  std::string why_;
};

}  // namespace smelt

#endif  // SMELT_LITE_RECURRENCES_CELL_H_
