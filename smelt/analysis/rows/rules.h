// How ops treat rows: one table of rules by op, for the row analysis (proof.h).
#ifndef SMELT_ANALYSIS_ROWS_RULES_H_
#define SMELT_ANALYSIS_ROWS_RULES_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smelt/analysis/rows/state.h"
#include "smelt/graph/graph.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {

// Shapes of one graph for two numbers of rows.
struct RowShapes {
  const ShapeTable* few = nullptr;
  const ShapeTable* many = nullptr;
  int64_t few_rows = 0, many_rows = 0;
};

// A node as a rule sees it: what its inputs hold, and what the rule finds of its outputs, which are
// whole where it says nothing.
class RowNode {
 public:
  RowNode(const Node& node, std::vector<RowState> in, const RowShapes& shapes)
      : node_(node), in_(std::move(in)), shapes_(shapes), out_(node.num_outputs()) {}

  const Node& node() const { return node_; }
  int inputs() const { return node_.num_inputs(); }
  const RowState& in(int i) const { return in_[static_cast<size_t>(i)]; }
  bool rows(int i) const { return in(i).kind == RowKind::kRows; }
  bool whole(int i) const { return in(i).kind == RowKind::kWhole; }
  bool sizes(int i) const { return in(i).kind == RowKind::kSizes; }
  // Inputs [from, end) are whole.
  bool WholeFrom(int from) const;
  bool Has(RowKind kind) const;

  Endpoint input(int i) const { return node_.inputs()[i]; }
  Endpoint output(int port) const { return {const_cast<Node*>(&node_), port}; }
  int rank(Endpoint e) const;  // -1: unknown
  int rank(int i) const { return rank(input(i)); }
  // The dimension's size where it is known and does not follow the rows, else -1.
  int64_t Dim(Endpoint e, int d) const;
  // How many elements the dimension has for each row, where it follows the rows; 0 where it does
  // not.
  int64_t PerRow(Endpoint e, int d) const;
  // Elements of a constant integer input; nothing when it is none.
  std::optional<std::vector<int64_t>> Ints(int i) const;

  void Set(int port, RowState s) { out_[static_cast<size_t>(port)] = std::move(s); }
  void SetAll(const RowState& s) { out_.assign(out_.size(), s); }
  const std::vector<RowState>& out() const { return out_; }

 private:
  const Node& node_;
  const std::vector<RowState> in_;
  const RowShapes& shapes_;
  std::vector<RowState> out_;
};

struct RowRule {
  OpName op;
  // Sets the outputs' states and returns an empty text, or returns what the op does that no part of
  // the rows could do alone: "adds up rows". Called when some input is not whole, and none is of a
  // loop over rows (kPlace, kOneRow) unless the op is one of lists.
  std::string (*apply)(RowNode& n);
  // The rule also knows what becomes of sizes alone; otherwise these give sizes.
  bool sizes_too = false;
};

// The rule for the op, with what holds for all elementwise ops among them; nullptr: none is known.
const RowRule* FindRowRule(const Node& node);

// What an op makes of numbers of rows alone: of which elements of its outputs the number of rows is
// part.
void FollowSizes(RowNode& n);

// Inputs [from, to) broadcast to `rank` dimensions row by row: the rows of all are in one dimension
// of the result, and whole inputs are repeated for every row. `out` gets the result's state; with
// `given` it holds it already, and the inputs must agree.
std::string BroadcastRows(const RowNode& n, int from, int to, int rank, RowState* out,
                          bool given = false);
// The state of an output of which every element is the same but for how often it is repeated for
// each row; sizes where that cannot be said.
RowState RepeatedForRows(const RowNode& n, Endpoint e, const RowState& shape);

// The axis as a dimension of `rank`; negative ones count from the end.
inline int64_t RowDimension(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

// The families' rows.
extern const std::span<const RowRule> kComputeRowRules, kMovementRowRules, kListRowRules;

}  // namespace smelt

#endif  // SMELT_ANALYSIS_ROWS_RULES_H_
