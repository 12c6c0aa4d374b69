// smelt_case_tests estimates FILE...: what analysis/estimate says of a graph, beside TensorFlow's
// virtual cluster.
//
//   case NAME
//   device NAME CPU frequency=1000 num_cores=4    any number
//   fetches y
//   in
//   ...graph text; what a Placeholder gives is fed...
//   runs
//   NODE START FINISH COMPUTE MEMORY    of each node that runs, in nanoseconds; the last two, which
//                                       its device needs for it, in whole microseconds
//   peaks
//   peak DEVICE BYTES                   of each device on which a node runs
//   live DEVICE NODE:PORT BYTES ALLOCATED FREED    what makes the peak; `copy`: from another device
//
// tools/make_estimate_cases.py writes `runs` and `peaks`.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "smelt/analysis/estimate/schedule.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/text.h"
#include "tests/case_tests.h"

namespace smelt {
namespace {

struct EstimateCase {
  std::string name, graph, runs, peaks;
  std::vector<std::string> fetches;
  std::vector<DeviceProperties> devices;
};

StatusOr<std::vector<EstimateCase>> ReadEstimateCases(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound(path);
  std::vector<EstimateCase> cases(1);
  std::string* section = nullptr;
  for (std::string line; std::getline(file, line);) {
    EstimateCase& now = cases.back();
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const std::map<std::string, std::string*> sections = {
        {"in", &now.graph}, {"runs", &now.runs}, {"peaks", &now.peaks}};
    if (absl::StartsWith(line, "---")) {
      cases.emplace_back();
      section = nullptr;
    } else if (const auto found = sections.find(line); found != sections.end()) {
      section = found->second;
    } else if (section != nullptr) {
      absl::StrAppend(section, line, "\n");
    } else if (words.first == "case") {
      now.name = words.second;
    } else if (words.first == "fetches") {
      now.fetches = absl::StrSplit(words.second, ' ', absl::SkipEmpty());
    } else if (words.first == "device") {
      ASSIGN_OR_RETURN(now.devices.emplace_back(), ParseDeviceProperties(words.second));
    } else {
      return InvalidArgument(path, ": ", line);
    }
  }
  for (const EstimateCase& c : cases) {
    if (c.name.empty() || c.graph.empty() || c.runs.empty() || c.peaks.empty()) {
      return InvalidArgument(path, ": case '", c.name, "' lacks a part");
    }
  }
  return cases;
}

int64_t Microseconds(int64_t nanoseconds) { return nanoseconds / 1000 * 1000; }

Status RunEstimateCase(const EstimateCase& c) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, ParseGraph(c.graph));
  const ShapeTable shapes = InferSymbolicShapes(*graph, XlaShapeRules());
  Placement placement(c.devices);
  std::vector<const Node*> fetches;
  for (const std::string& name : c.fetches) {
    ASSIGN_OR_RETURN(const Endpoint e, graph->FindEndpoint(name));
    fetches.push_back(e.node);
  }
  const auto time_of = [&](const Node& n, int device) {
    return TimeOf(EstimateOp(n, shapes), placement.speed(device));
  };
  const auto is_fed = [](const Node& n) { return n.Is("Placeholder"); };
  const auto duration = [&](const Node& n, int device) { return time_of(n, device).total; };
  ASSIGN_OR_RETURN(const Schedule schedule,
                   SimulateRun(*graph, placement, {fetches, is_fed, duration}));
  std::vector<std::string> runs, peaks;
  std::vector<bool> used(static_cast<size_t>(placement.num_devices()), false);
  for (const Node* n : graph->Nodes()) {
    const NodeRun& run = schedule.of(*n);
    if (run.start < 0) continue;
    const int device = placement.Of(*n);
    used[static_cast<size_t>(device)] = true;
    const OpTime time = time_of(*n, device);
    runs.push_back(
        absl::StrJoin(std::make_tuple(n->name(), run.start, run.finish, Microseconds(time.compute),
                                      Microseconds(time.memory)),
                      " "));
  }
  const std::vector<PeakMemory> memory = PeakMemoryOf(*graph, shapes, placement, schedule);
  for (size_t i = 0; i < memory.size(); ++i) {
    if (!used[i]) continue;
    const std::string& device = placement.device(static_cast<int>(i)).name;
    peaks.push_back(absl::StrCat("peak ", device, " ", memory[i].bytes));
    for (const LiveTensor& live : memory[i].live) {
      const std::string what =
          live.node == nullptr ? "copy" : absl::StrCat(live.node->name(), ":", live.port);
      peaks.push_back(absl::StrJoin(
          std::make_tuple("live", device, what, live.bytes, live.allocated, live.freed), " "));
    }
  }
  std::ranges::sort(runs);
  std::ranges::sort(peaks);
  const auto sorted = [](const std::string& text) {
    std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    std::ranges::sort(lines);
    return lines;
  };
  if (runs != sorted(c.runs)) {
    return Internal("wanted:\n", c.runs, "got:\n", absl::StrJoin(runs, "\n"));
  }
  if (peaks != sorted(c.peaks)) {
    return Internal("wanted:\n", c.peaks, "got:\n", absl::StrJoin(peaks, "\n"));
  }
  return OkStatus();
}

}  // namespace

int EstimateTests(int argc, char** argv) {
  int failed = 0, run = 0;
  for (int i = 1; i < argc; ++i) {
    const auto cases = ReadEstimateCases(argv[i]);
    if (!cases.ok()) {
      std::printf("%s\n", std::string(cases.status().message()).c_str());
      return 2;
    }
    for (const EstimateCase& c : *cases) {
      ++run;
      const Status status = RunEstimateCase(c);
      if (status.ok()) continue;
      ++failed;
      std::printf("FAILED %s: %s: %s\n", argv[i], c.name.c_str(),
                  std::string(status.message()).c_str());
    }
  }
  std::printf("%d cases, %d failed\n", run, failed);
  return failed == 0 && run > 0 ? 0 : 1;
}

}  // namespace smelt
