// When each node of a graph would run, and what memory that takes: TensorFlow's VirtualScheduler
// and GraphMemory. A device runs one node at a time: of those that are ready the one that was ready
// first, and of these the first by name. What another device reads is sent to it, once for each
// tensor and device. Loops turn once, and both sides of a Switch run.
//
// All of it takes time of the order of nodes and edges, times the logarithm of the nodes that are
// ready at once.
#ifndef SMELT_ANALYSIS_ESTIMATE_SCHEDULE_H_
#define SMELT_ANALYSIS_ESTIMATE_SCHEDULE_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/analysis/estimate/placement.h"

namespace smelt {

// Nanoseconds since the begin; -1: it does not run.
struct NodeRun {
  int64_t start = -1, finish = -1;
};

// A tensor that was copied to another device.
struct TensorCopy {
  const Node* source = nullptr;
  int port = 0;  // -1: of a control edge
  int device = 0;
  NodeRun run;  // of the node that receives it
};

struct Schedule {
  std::vector<NodeRun> nodes;  // by id
  std::vector<TensorCopy> copies;
  int64_t finish = 0;  // of the last node

  const NodeRun& of(const Node& n) const { return nodes[static_cast<size_t>(n.id())]; }
};

struct ScheduleOptions {
  // The nodes that are asked for; what they do not need does not run.
  std::span<const Node* const> fetches;
  // Is the value given from outside? It is there from the begin, and what it is made of does not
  // run.
  absl::FunctionRef<bool(const Node&)> is_fed;
  // How long the node takes on the device of this number.
  absl::FunctionRef<int64_t(const Node&, int device)> duration;
};

// INVALID_ARGUMENT when no node can begin.
StatusOr<Schedule> SimulateRun(const Graph& graph, Placement& placement,
                               const ScheduleOptions& options);

// Microseconds, in nanoseconds: TensorFlow's memory model takes the times of its scheduler in these
// units, and frees a nanosecond after the last reader.
struct LiveTensor {
  const Node* node = nullptr;  // nullptr: a copy from another device
  int port = 0;
  int64_t bytes = 0, allocated = 0, freed = 0;
};

struct PeakMemory {
  int64_t bytes = 0;
  std::vector<LiveTensor> live;  // then, in the order of the graph
};

// For each device. `more_bytes` is what a node takes beside its outputs while it runs.
std::vector<PeakMemory> PeakMemoryOf(
    const Graph& graph, const ShapeTable& shapes, Placement& placement, const Schedule& schedule,
    absl::FunctionRef<int64_t(const Node&)> more_bytes = [](const Node&) { return int64_t{0}; });

// The time when each node has run at the earliest, were there as many devices as wanted, by id; -1
// for those that never begin. A Merge begins with its first input.
std::vector<int64_t> EarliestFinishTimes(const Graph& graph, const ShapeTable& shapes,
                                         Placement& placement);
// The time when each node must have run so that the nodes without readers finish as `finish` says
// (by id); the largest number for nodes from which no such node is reached.
std::vector<int64_t> RequiredFinishTimes(const Graph& graph, const ShapeTable& shapes,
                                         Placement& placement, std::span<const int64_t> finish);

}  // namespace smelt

#endif  // SMELT_ANALYSIS_ESTIMATE_SCHEDULE_H_
