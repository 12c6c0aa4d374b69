// Makes a graph that fails smaller while it fails.
#ifndef SMELT_TESTS_RANDOM_GRAPHS_SHRINK_H_
#define SMELT_TESTS_RANDOM_GRAPHS_SHRINK_H_

#include <functional>

#include "tests/random_graphs/drawn_graph.h"

namespace smelt {

// `fails` says whether a graph still shows what was found. The result fails.
DrawnGraph Shrunk(DrawnGraph graph, const std::function<bool(const DrawnGraph&)>& fails);

}  // namespace smelt

#endif  // SMELT_TESTS_RANDOM_GRAPHS_SHRINK_H_
