// Follows a request's rows through a graph and all that it calls: which results hold them, each row
// computed from that row of the arguments alone. Rules for ops are in rules.h.
#ifndef SMELT_ANALYSIS_ROWS_PROOF_H_
#define SMELT_ANALYSIS_ROWS_PROOF_H_

#include <string>
#include <vector>

#include "smelt/analysis/rows/state.h"
#include "smelt/graph/graph.h"

namespace smelt {

struct RowQuestion {
  const Graph* graph = nullptr;
  std::string function;           // its name for texts; may be empty
  std::vector<Endpoint> args;     // flat
  std::vector<Endpoint> results;  // flat
  // By argument: dimension 0 are rows; the others are the same for all rows.
  std::vector<bool> rows;
  // By argument, of a resource what it holds. Sizes that are not known make proofs fail where
  // elements move from dimension to dimension; dimension 0 of rows is not read.
  std::vector<PartialShape> shapes;
  // Two numbers of rows, few < many, for which shapes are inferred: what follows the rows differs.
  int64_t few = 0, many = 0;
  // May the graph draw random numbers, write state or have other effects? They are what a request
  // that runs alone would not have in common with others.
  bool effects_refused = true;
};

struct RowAnswer {
  // Empty, or why not: the node, its function and how that is called, and what the node does.
  std::string why_not;
  bool proved() const { return why_not.empty(); }
  std::vector<RowState> results;
  // Of the graph's own nodes: what all of `many` rows take, in multiply-adds of products with
  // constant weights and elements of other results.
  int64_t work = 0;
};

// Safe from any thread while nobody changes the graph and its library.
RowAnswer FollowRows(const RowQuestion& question);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_ROWS_PROOF_H_
