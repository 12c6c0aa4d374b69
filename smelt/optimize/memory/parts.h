// The parts of the memory optimizer, each by itself.
#ifndef SMELT_OPTIMIZE_MEMORY_PARTS_H_
#define SMELT_OPTIMIZE_MEMORY_PARTS_H_

#include <set>
#include <utility>

#include "smelt/analysis/estimate/schedule.h"
#include "smelt/optimize/passes.h"

namespace smelt::memory {

// What is known of the graph as it is now: made anew when it changed.
struct MemoryModel {
  // INVALID_ARGUMENT when nothing of the graph can run.
  static StatusOr<MemoryModel> Of(const Graph& graph, const PassContext& context);

  Placement placement;
  ShapeTable shapes;
  Schedule schedule;
  std::vector<PeakMemory> peaks;  // by device
};

// Steps that searches may take in one graph, together: each asks for others, so that on a graph
// made to harm they would take the square of its size.
class Budget {
 public:
  explicit Budget(const Graph& graph) : left_(kStepsPerNode * int64_t{graph.num_nodes()}) {}
  // False when they are used up.
  bool Take(int64_t steps = 1) { return (left_ -= steps) >= 0; }

 private:
  static constexpr int64_t kStepsPerNode = 20;
  int64_t left_;
};

// Assigns whose value no other kind of device and no other task gets need no memory that these can
// reach.
void RelaxAssigns(Graph& graph, const PassContext& context);

// What is cheap to compute, or marked with _recompute_hint, is computed again for the gradients
// that read it, so that it need not live until then. Gradients are nodes in `scope`.
Status Recompute(Graph& graph, const PassContext& context, absl::string_view scope,
                 bool cheap_ones);

// A sum of many tensors, some of which are alive when memory is scarce, adds each to a temporary
// variable as soon as it is there. Did it change the graph?
StatusOr<bool> AccumulateSums(Graph& graph, const PassContext& context, const MemoryModel& model);

// Inputs that are marked with _swap_to_host, and with `find_more` such that a GPU has no memory
// for at its peak, wait in the host's memory for their readers.
Status Swap(Graph& graph, const PassContext& context, const MemoryModel* model, bool find_more);

}  // namespace smelt::memory

#endif  // SMELT_OPTIMIZE_MEMORY_PARTS_H_
