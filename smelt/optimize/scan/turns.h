// Turns of a loop that was unrolled: copies of one computation, each of which takes what the one
// before it made and the next of some slices.
#ifndef SMELT_OPTIMIZE_SCAN_TURNS_H_
#define SMELT_OPTIMIZE_SCAN_TURNS_H_

#include <map>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// A shorter run is not worth a loop. The computation is read off the third of five turns: the first
// may begin otherwise, and who reads the last is not known to be a turn.
inline constexpr int kLeastTurns = 5;
inline constexpr int kReadTurn = 2;

struct Turns {
  std::vector<Node*> sources;  // Unpacks of as many slices each
  bool backwards = false;      // the first turn takes the last slices
  int turns = 0;               // as many as slices
  int first = 0, last = 0;     // of the turns that are alike
  // Of turn kReadTurn: its nodes, in running order; the states that it makes, and those that it
  // takes; what others read of it or of its like, beside the states that the last turn makes.
  std::vector<Node*> nodes;
  std::vector<Endpoint> made, taken, arrays;
  // What the first takes and the last makes; no node: the last does without it.
  std::vector<Endpoint> start, ends;
  // By turn, then by node of turn kReadTurn: the node that does the same.
  std::vector<std::map<Node*, Node*>> copies;

  int length() const { return last - first + 1; }
  // What turn `t` takes of a source.
  Endpoint SliceOf(Node* source, int t) const { return {source, backwards ? turns - 1 - t : t}; }
  // Of turn `t` what `e` is of turn kReadTurn; no node: it lacks that.
  Endpoint InTurn(Endpoint e, int t) const {
    const auto& turn = copies[static_cast<size_t>(t)];
    const auto it = turn.find(e.node);
    return it == turn.end() ? Endpoint() : Endpoint{it->second, e.port};
  }
};

// Fills `turns`, whose sources and direction are set. False, and `why` says why, where there are
// none. `order`: the graph's topological order.
bool FindTurns(const Graph& graph, const std::vector<Node*>& order, Turns& turns, std::string* why);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_SCAN_TURNS_H_
