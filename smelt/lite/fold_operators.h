// Operators of constants alone as constants.
#ifndef SMELT_LITE_FOLD_OPERATORS_H_
#define SMELT_LITE_FOLD_OPERATORS_H_

#include "smelt/graph/graph.h"

namespace smelt {

// What rows spell out of constants, the operators of a graph compute on each run: here they are
// computed once. Statements of ranges, and what would take noticeably more bytes than what it is
// made of, stay. What was folded is left unread.
//
// Errors of an operator that cannot run stay for the file's own runs.
Status FoldOperators(Graph& graph);

}  // namespace smelt

#endif  // SMELT_LITE_FOLD_OPERATORS_H_
