// TensorFlow's implementation_selector: of what a model says for several devices, what is for the
// device that a node stands on.
#include <algorithm>

#include "smelt/graph/device_properties.h"
#include "smelt/optimize/implementations.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr OpSet kCases = {"Case", "StatelessCase"};

// The branch of a Case for its device, as a constant in place of the DeviceIndex that chooses it:
// the place of the device among the names, or behind them, where the branch for all others stands.
Status ChooseBranch(Graph& graph, Node* choice, const Node& branches) {
  const std::string device = DeviceType(branches.device);
  if (device.empty()) return OkStatus();
  const auto names = choice->Get<std::vector<std::string>>("device_names", {});
  const auto place = std::ranges::find(names, device) - names.begin();
  AttrMap attrs;
  attrs.Set("dtype", Dtype::kInt32);
  attrs.Set("value", Tensor::Scalar(static_cast<int32_t>(place)));
  SetAttrsButMarks(choice, std::move(attrs));
  graph.SetOp(choice, "Const");
  return graph.ResolveTypes(choice);
}

}  // namespace

Status SelectImplementationsByDevice(Graph& graph, const PassContext& context) {
  for (Node* n : graph.Nodes()) {
    if (n->Is(kCases)) {
      Node* choice = n->input(0).node;
      if (!choice->Is("DeviceIndex")) continue;
      RETURN_IF_ERROR(ChooseBranch(graph, choice, *n));
      context.Fired("DeviceIndex", *choice);
      continue;
    }
    if (!CallsFunctions(*graph.library(), *n)) continue;
    const bool changed = SelectImplementations(graph, n, DeviceType(n->device));
    if (changed) context.Fired("api_implements", *n);
  }
  return OkStatus();
}

}  // namespace smelt
