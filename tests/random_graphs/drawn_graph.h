// A random graph as data: what it was drawn as, so that it can be printed, disturbed and made
// smaller. Not thread safe.
#ifndef SMELT_TESTS_RANDOM_GRAPHS_DRAWN_GRAPH_H_
#define SMELT_TESTS_RANDOM_GRAPHS_DRAWN_GRAPH_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// Output `port` of node `node`.
struct DrawnPort {
  int node = -1;
  int port = 0;
  bool operator==(const DrawnPort&) const = default;
};

struct DrawnNode {
  std::string op;
  std::vector<DrawnPort> inputs;
  std::string attrs;  // without braces
  // What each output was when it was drawn; empty: the node fails. Of a Const, its value.
  std::vector<Tensor> values;
  // Programs may round it otherwise than the executor does: products sum in another order.
  bool rounds = false;
  // Of a Placeholder: the shape it states, and whether dimension 0 is the requests' batch.
  std::string stated_shape;
  bool batched = false;
  bool Is(const char* name) const { return op == name; }
};

// One value for each Placeholder, in the order of the nodes.
using DrawnFeeds = std::vector<std::pair<int, Tensor>>;

struct DrawnGraph {
  std::vector<DrawnNode> nodes;  // inputs first
  std::string library;           // functions, as text
  std::vector<DrawnPort> fetches;
  std::vector<DrawnFeeds> requests;  // in turn; the first is what the values were drawn of
  // Later requests may bring NaN to a Relu behind a product, where it may become a number.
  bool nan_after_relu = false;

  const Tensor& ValueOf(DrawnPort p) const {
    return nodes[static_cast<size_t>(p.node)].values[static_cast<size_t>(p.port)];
  }
};

// The text form. `disturbed` > 0: what programs may round otherwise is rounded otherwise, by
// pseudo-random noise that the number chooses, of `times` a few units of the last place: how far
// the results move tells how far they may be apart.
std::string TextOf(const DrawnGraph& graph, int disturbed = 0, int times = 1);
std::string NameOf(DrawnPort p);
// A case of tests/sessions that has `results`, by request and fetch, for answers.
std::string CaseOf(const DrawnGraph& graph, const std::string& name,
                   const std::vector<StatusOr<std::vector<Tensor>>>& results);

// By node: does it, or what it is made of, round otherwise?
std::vector<bool> Rounded(const DrawnGraph& graph);
// Without nodes that no fetch needs.
DrawnGraph Pruned(const DrawnGraph& graph);

}  // namespace smelt

#endif  // SMELT_TESTS_RANDOM_GRAPHS_DRAWN_GRAPH_H_
