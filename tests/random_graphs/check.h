// Holds what sessions answer that compile to what the plain executor answers.
#ifndef SMELT_TESTS_RANDOM_GRAPHS_CHECK_H_
#define SMELT_TESTS_RANDOM_GRAPHS_CHECK_H_

#include <string>
#include <vector>

#include "tests/random_graphs/drawn_graph.h"

namespace smelt {

struct CheckCounts {
  int64_t requests = 0, errors = 0, values = 0, rounded = 0, programs = 0, in_parts = 0;
  int64_t in_stages = 0;  // of more than one
  int64_t in_place = 0;   // values that lie within others
  int64_t chains = 0;     // actions that are several elementwise nodes
  int64_t followed = 0;   // actions that do what follows them
  int64_t far = 0;        // elements that only noise which is stronger explains
};

// Each request in turn, in sessions with compiled programs of one and of two threads, against one
// without. Values that no rounding may tell apart are the same bits, but for NaNs, of which there
// is one; others are as near as results are to each other when what programs may round otherwise is
// disturbed by few units in the last place. Errors have one code and text. `clients`: then so many
// threads send all requests at once to a session that has made nothing yet. Returns what is wrong;
// empty: nothing.
std::string CheckGraph(const DrawnGraph& graph, int64_t clients = 0, CheckCounts* counts = nullptr);

// What the plain executor answers, by request.
std::vector<StatusOr<std::vector<Tensor>>> PlainResults(const DrawnGraph& graph);

}  // namespace smelt

#endif  // SMELT_TESTS_RANDOM_GRAPHS_CHECK_H_
