// Can a request be split by rows? Rows are dimension 0 of what is fed. A graph whose every op
// treats each row by itself gives, for a part of the rows, the same part of its results.
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
  std::vector<bool> args;  // by index: every part gets its rows; else the whole
  // By index: the parts' rows in turn are the whole; else any part has it.
  std::vector<bool> results;
  // Multiply-adds, and elements of what is no product, that all rows take: as far as shapes and
  // weights say.
  int64_t work = 0;
};

// Of a callable graph (passes.h) whose arguments have these shapes (resources: what they hold), for
// a part of `part` of the request's `rows`. Arguments that are read and have as many rows are
// split, others are given to every part whole. What is possible is proved: every op between is
// known to treat rows by themselves, and every shape to grow with the rows.
RowSplit ProveRowSplit(const Graph& graph, std::span<const PartialShape> args, int64_t rows,
                       int64_t part);
// The same before anything runs, for whatever number of rows: `shapes` are the graph's, rows the
// first unknown number of them among `args`. No proof where sizes are not known; a graph that is
// not optimised yet may fail where it will not later.
RowSplit ExpectRowSplit(const Graph& graph, std::span<Node* const> args, const ShapeTable& shapes);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_SPLIT_ROWS_H_
