// Moves out of a scan's body what need not wait for its states: what is computed of invariant
// values runs once, and what is computed of one row alone runs for all rows at once, a matrix
// product above all.
#ifndef SMELT_OPTIMIZE_SCAN_HOIST_H_
#define SMELT_OPTIMIZE_SCAN_HOIST_H_

#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// What a body takes beside its states.
struct ScanInput {
  Node* arg = nullptr;  // in the body
  Endpoint from;        // in the caller's graph
};
struct ScanParts {
  Graph& caller;
  Graph& body;
  std::string name;             // of the loop: those of new nodes begin with it
  std::vector<Node*> waits;     // what new nodes of the caller wait for
  std::vector<ScanInput> rows;  // `from` has one dimension more, the first, by iteration
  std::vector<ScanInput> rest;  // the same in all iterations
};

// Arguments that are not read any more stay in the lists.
Status Hoist(ScanParts& parts);
// A new argument of the body; its index is not set yet.
StatusOr<Node*> AddScanArg(Graph& body, Endpoint from);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_SCAN_HOIST_H_
