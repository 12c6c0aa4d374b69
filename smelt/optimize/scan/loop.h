// What a While of version 2 does with its variables, where that is what a scan does (docs/design,
// _Scan in own_ops.txt): it counts, reads rows of arrays, writes rows of arrays, and keeps states.
#ifndef SMELT_OPTIMIZE_SCAN_LOOP_H_
#define SMELT_OPTIMIZE_SCAN_LOOP_H_

#include <memory>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// One variable of a loop: input i, output i, argument i and result i of its body.
struct LoopVariable {
  enum class Kind : uint8_t {
    kInvariant,  // what came in stays
    kCounter,    // `start`, then one more in each iteration
    kRows,       // a list that stays, of which each iteration reads the element of its number
    kArray,      // a list of which each iteration writes the element of its number, or element 0
    kState,
  };
  Kind kind = Kind::kState;
  int64_t start = 0;         // kCounter
  bool last = false;         // kArray: element 0 is written, so that the last value stays
  bool grows = false;        // kArray: it is as long as iterations make it
  Endpoint list;             // kRows, kArray: the node of the caller that made the list
  Node* write = nullptr;     // kArray: the node of the body that writes
  std::vector<Node*> reads;  // kRows: the nodes of the body that read
};

struct Loop {
  Node* node = nullptr;         // in the caller's graph
  const Graph* cond = nullptr;  // callable graphs (passes.h)
  std::unique_ptr<Graph> body;
  std::vector<Node*> args, results;
  std::vector<LoopVariable> variables;
  // The loop goes on while for each of these the counter is less than the bound, a value of the
  // caller's graph of the counter's type.
  struct Bound {
    int counter;
    Endpoint below;
  };
  std::vector<Bound> bounds;
  // Or, where it has no bounds, while this is true: a value of the condition's graph, which
  // outlives the loop. `begins`: what it is before the first iteration, in the caller's graph.
  Endpoint goes_on, begins;
};

// Reads the loop, whose condition and body are callable graphs; may add what the condition
// computes to `graph`. Empty, and `why` says why, where it is no scan.
StatusOr<std::unique_ptr<Loop>> ReadLoop(Graph& graph, Node* node, const Graph& cond,
                                         std::unique_ptr<Graph> body, std::string* why);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_SCAN_LOOP_H_
