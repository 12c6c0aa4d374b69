#include "smelt/optimize/functions/common.h"

#include <array>
#include <functional>
#include <queue>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace smelt {
namespace {

constexpr OpSet kLoopMerges = {"Merge", "RefMerge"};
constexpr OpSet kBackEdges = {"NextIteration", "RefNextIteration"};

constexpr std::array<absl::string_view, 4> kDeviceParts = {"job", "replica", "task", "device"};

// By part of a device's name what follows "PART:"; false: it is no such name.
bool SplitDevice(absl::string_view name, std::array<std::string, 4>& parts) {
  for (const absl::string_view piece : absl::StrSplit(name, '/', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(piece, absl::MaxSplits(':', 1));
    const auto* known = std::ranges::find(kDeviceParts, words.first);
    if (known != kDeviceParts.end()) {
      parts[static_cast<size_t>(known - kDeviceParts.begin())] = std::string(words.second);
    } else if (words.first == "cpu" || words.first == "gpu") {
      // The name of old: "/cpu:0".
      parts[3] = absl::StrCat(absl::AsciiStrToUpper(words.first), ":", words.second);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Node*> ReadyOrder(const Graph& graph) {
  std::vector<int> waits(static_cast<size_t>(graph.max_id()), 0);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  const std::vector<Node*> nodes = graph.Nodes();
  const auto counts = [](const Node& reader, const Node& source) {
    return !(reader.Is(kLoopMerges) && source.Is(kBackEdges));
  };
  for (const Node* n : nodes) {
    int& left = waits[static_cast<size_t>(n->id())];
    left = static_cast<int>(n->control_inputs().size());
    for (const Endpoint& e : n->inputs()) {
      if (counts(*n, *e.node)) ++left;
    }
    if (left == 0) ready.push(n->id());
  }
  std::vector<Node*> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    Node* n = graph.NodeOf(ready.top());
    ready.pop();
    order.push_back(n);
    for (const Use& use : n->uses()) {
      if (!use.is_control() && !counts(*use.node, *n)) continue;
      if (--waits[static_cast<size_t>(use.node->id())] == 0) ready.push(use.node->id());
    }
  }
  for (Node* n : nodes) {
    if (waits[static_cast<size_t>(n->id())] > 0) order.push_back(n);
  }
  return order;
}

std::string MergeDevices(absl::string_view device, absl::string_view caller) {
  if (device.empty() || caller.empty()) return std::string(device.empty() ? caller : device);
  std::array<std::string, 4> own, from;
  if (!SplitDevice(device, own) || !SplitDevice(caller, from)) return std::string(device);
  std::string merged;
  for (size_t i = 0; i < own.size(); ++i) {
    const std::string& part = own[i].empty() ? from[i] : own[i];
    if (!part.empty()) absl::StrAppend(&merged, "/", kDeviceParts[i], ":", part);
  }
  return merged;
}

void ColocateWith(Node* node, Endpoint e) {
  node->AttrsToChange().Set("_class",
                            std::vector<std::string>{absl::StrCat("loc:@", e.node->name())});
}

StatusOr<Node*> AddOn(Graph& graph, absl::string_view device, absl::string_view name,
                      absl::string_view op, std::span<const Endpoint> inputs, AttrMap attrs,
                      std::vector<Node*> controls) {
  ASSIGN_OR_RETURN(Node * n, graph.Add(name, op, inputs, std::move(attrs)));
  n->device = std::string(device);
  if (!controls.empty()) graph.SetControlInputs(n, std::move(controls));
  return n;
}

Dtype TypeOf(Endpoint e) { return BaseType(e.node->output_types[static_cast<size_t>(e.port)]); }

}  // namespace smelt
