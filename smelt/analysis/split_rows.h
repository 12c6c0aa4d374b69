// Can a request be split by rows? Rows are dimension 0 of what is fed. A graph whose every op
// treats each row by itself gives, for a part of the rows, the same part of its results
// (docs/design/2026-11-21-split-rows.md). Safe from any thread while nobody changes the graph.
#ifndef SMELT_ANALYSIS_SPLIT_ROWS_H_
#define SMELT_ANALYSIS_SPLIT_ROWS_H_

#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {

struct RowSplit {
  // Empty, or why not: the node and what it does.
  std::string why_not;
  bool possible() const { return why_not.empty(); }
  // By index: true: each part gets its rows of the argument; false: every part gets all of it.
  std::vector<bool> args;
  // By index: true: the parts' results, joined along dimension 0, are the result; false: any
  // part's result is.
  std::vector<bool> results;
  // By number of those that were asked about: the value's bytes are those of the rows, one row
  // after the other.
  std::vector<bool> values;
  // What all rows take: multiply-adds of products with constant weights, elements of other
  // results. Nodes of unknown shape are left out.
  int64_t work = 0;
};

// For a callable graph (passes.h) whose arguments, by index, have the shapes `args` (resources:
// what they hold), and a part of `part` of the request's `rows`. Arguments with `rows` rows are
// split, others are given whole to every part. A split that is possible is proved: every op is
// known to treat rows by themselves, and every shape is inferred to grow with the rows. `values`
// are those that are asked about.
RowSplit ProveRowSplit(const Graph& graph, std::span<const PartialShape> args, int64_t rows,
                       int64_t part, std::span<const Endpoint> values = {});
// The same before anything runs, for any number of rows: arguments whose dimension 0 is unknown in
// `shapes`, the function's, are split. An estimate: the run time, which knows all sizes, may decide
// otherwise.
RowSplit ExpectRowSplit(const Function& function, const ShapeTable& shapes);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_SPLIT_ROWS_H_
