// What a graph on its way to a .tflite file must run, and in which order.
#ifndef SMELT_LITE_PREPARE_EFFECTS_H_
#define SMELT_LITE_PREPARE_EFFECTS_H_

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Of nodes of a graph and its library, ops and operators alike. Not thread safe.
class Effects {
 public:
  // REQUIRES: the library outlives this and does not change. `asserts`: an Assert is an effect.
  Effects(const FunctionLibrary& library, bool asserts) : library_(library), asserts_(asserts) {}

  // Something is other than before when the node has run: a variable, a table, what a kernel of
  // one's own does. Of a call, a branch and a loop: whether a function of its does so; yes where
  // calls nest beyond any sense.
  bool Changes(const Node& n) { return Of(n).changes; }
  // Its result depends on when it runs, or it changes something.
  bool Ordered(const Node& n) { return Of(n).ordered; }

 private:
  struct Kind {
    bool changes = false, ordered = false;
  };
  Kind Of(const Node& n);
  Kind OfFunction(const std::string& name);

  const FunctionLibrary& library_;
  const bool asserts_;
  int depth_ = 0;  // of calls that are looked into
  absl::flat_hash_map<std::string, Kind> functions_;
};

// Control inputs from nodes behind which nothing is ordered go: what only fed a check would stay
// for the order's sake alone.
Status DropIdleOrder(Graph& graph, Effects& effects);

}  // namespace smelt

#endif  // SMELT_LITE_PREPARE_EFFECTS_H_
