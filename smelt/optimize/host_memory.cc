#include "smelt/optimize/host_memory.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace smelt {
namespace {

// Prod is none: GPUs multiply integers themselves.
constexpr OpSet kIntegersOnHost = {"Add",      "AddV2",    "Concat",   "ConcatV2", "ExpandDims",
                                   "FloorDiv", "FloorMod", "Identity", "Max",      "Maximum",
                                   "Merge",    "Min",      "Minimum",  "Mul",      "Pack",
                                   "Range",    "Reshape",  "Slice",    "Squeeze",  "StridedSlice",
                                   "Sub",      "Sum",      "Switch"};

}  // namespace

const OpSet kGiveToHost = {"Shape",
                           "ShapeN",
                           "Size",
                           "Rank",
                           "BroadcastArgs",
                           "BroadcastGradientArgs",
                           "TensorArraySizeV3",
                           "TensorListLength"};

bool IsOfIntegersOnHost(const Node& n) {
  return n.Is(kIntegersOnHost) && n.Type("T") == Dtype::kInt32;
}

bool IsInHostMemory(Endpoint e) {
  const Node& n = *e.node;
  if (!absl::StrContains(absl::AsciiStrToUpper(n.device), "GPU:")) return false;
  const bool constant = n.Is("Const") && n.Type("dtype") == Dtype::kInt32;
  return constant || n.Is(kGiveToHost) || IsOfIntegersOnHost(n);
}

}  // namespace smelt
