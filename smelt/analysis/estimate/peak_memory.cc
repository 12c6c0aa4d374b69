#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "smelt/analysis/estimate/schedule.h"

namespace smelt {
namespace {

constexpr int64_t kBytesOfControlEdge = 4;

int64_t WholeMicroseconds(int64_t nanoseconds) { return nanoseconds / 1000 * 1000; }

LiveTensor DuringRun(const NodeRun& run) {
  return {.allocated = WholeMicroseconds(run.start), .freed = 1 + WholeMicroseconds(run.finish)};
}

// What the node reads from the host's memory does not stay on the device until it runs.
absl::flat_hash_set<int64_t> SwappedInputs(const Node& n) {
  const std::vector<int64_t> inputs = n.Ints("_swap_to_host");
  return {inputs.begin(), inputs.end()};
}

// Of each tensor of a node that runs, by id and port.
std::vector<std::vector<LiveTensor>> LivesOf(const Graph& graph, const ShapeTable& shapes,
                                             const Schedule& schedule) {
  std::vector<std::vector<LiveTensor>> lives(static_cast<size_t>(graph.max_id()));
  for (Node* n : graph.Nodes()) {
    if (schedule.of(*n).start < 0) continue;
    for (int port = 0; port < n->num_outputs(); ++port) {
      LiveTensor live = DuringRun(schedule.of(*n));
      live.node = n;
      live.port = port;
      live.bytes = EstimatedBytes(n->output_types[static_cast<size_t>(port)], shapes.of({n, port}));
      lives[static_cast<size_t>(n->id())].push_back(live);
    }
  }
  for (const Node* n : graph.Nodes()) {
    if (schedule.of(*n).start < 0) continue;
    const int64_t end = DuringRun(schedule.of(*n)).freed;
    const auto swapped = SwappedInputs(*n);
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Endpoint e = n->input(i);
      if (e.node == nullptr || swapped.contains(i)) continue;
      std::vector<LiveTensor>& tensors = lives[static_cast<size_t>(e.node->id())];
      if (static_cast<size_t>(e.port) >= tensors.size()) continue;
      int64_t& freed = tensors[static_cast<size_t>(e.port)].freed;
      freed = std::max(freed, end);
    }
  }
  return lives;
}

PeakMemory PeakOf(const std::vector<LiveTensor>& tensors) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // of the bytes, by time
  changes.reserve(2 * tensors.size());
  for (const LiveTensor& live : tensors) {
    changes.emplace_back(live.allocated, live.bytes);
    changes.emplace_back(live.freed, -live.bytes);
  }
  std::ranges::sort(changes, {}, [](const auto& change) { return change.first; });
  PeakMemory peak;
  int64_t when = -1;
  absl::int128 now = 0;  // sums of many that are as large as can be
  for (size_t i = 0; i < changes.size(); ++i) {
    now += changes[i].second;
    const bool last = i + 1 == changes.size() || changes[i].first != changes[i + 1].first;
    if (last && now > peak.bytes && peak.bytes < kMostEstimated) {
      peak.bytes = static_cast<int64_t>(std::min<absl::int128>(now, kMostEstimated));
      when = changes[i].first;
    }
  }
  for (const LiveTensor& live : tensors) {
    if (live.allocated <= when && when < live.freed) peak.live.push_back(live);
  }
  return peak;
}

}  // namespace

std::vector<PeakMemory> PeakMemoryOf(const Graph& graph, const ShapeTable& shapes,
                                     Placement& placement, const Schedule& schedule,
                                     absl::FunctionRef<int64_t(const Node&)> more_bytes) {
  std::vector<std::vector<LiveTensor>> tensors(static_cast<size_t>(placement.num_devices()));
  const auto on = [&](int device) -> std::vector<LiveTensor>& {
    return tensors[static_cast<size_t>(device)];
  };
  for (const std::vector<LiveTensor>& outputs : LivesOf(graph, shapes, schedule)) {
    for (const LiveTensor& live : outputs) on(placement.Of(*live.node)).push_back(live);
  }
  for (const Node* n : graph.Nodes()) {
    if (schedule.of(*n).start < 0) continue;
    LiveTensor more = DuringRun(schedule.of(*n));
    more.bytes = more_bytes(*n);
    if (more.bytes > 0) on(placement.Of(*n)).push_back(more);
  }
  for (const TensorCopy& copy : schedule.copies) {
    if (copy.run.start < 0) continue;
    LiveTensor live = DuringRun(copy.run);
    const size_t port = static_cast<size_t>(std::max(0, copy.port));
    live.bytes = kBytesOfControlEdge;
    if (copy.port >= 0 && port < copy.source->output_types.size()) {
      live.bytes = EstimatedBytes(copy.source->output_types[port],
                                  shapes.of({const_cast<Node*>(copy.source), copy.port}));
    }
    on(copy.device).push_back(live);
  }
  std::vector<PeakMemory> peaks;
  for (const std::vector<LiveTensor>& device : tensors) peaks.push_back(PeakOf(device));
  return peaks;
}

}  // namespace smelt
