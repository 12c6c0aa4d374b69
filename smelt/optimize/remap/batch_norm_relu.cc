// A normalization with the Relu that follows it, and the gradients of both. On GPUs one that is
// trained is fused where their library, cuDNN, has a kernel for it and the environment asks for it.
#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "smelt/optimize/onednn.h"
#include "smelt/optimize/remap/contraction.h"
#include "smelt/optimize/remap/patterns.h"
#include "smelt/optimize/remap/rules.h"

namespace smelt::remap {
namespace {

bool OnGpu(const Node& n) { return absl::StrContains(n.device, "GPU"); }

bool PersistentModeWanted() {
  const char* value = std::getenv("TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT");
  return value != nullptr &&
         (absl::string_view(value) == "1" || absl::EqualsIgnoreCase(value, "true"));
}

bool HasPersistentMode(std::span<const DeviceProperties> devices) {
  constexpr int kFirstCudnn = 7402;
  return std::ranges::any_of(devices, [](const DeviceProperties& d) {
    const auto it = d.environment.find("cudnn");
    int version = 0;
    return d.type == "GPU" && it != d.environment.end() && absl::SimpleAtoi(it->second, &version) &&
           version >= kFirstCudnn;
  });
}

// Why cuDNN does not train the normalization of `x`, or its gradient, together with a Relu; empty:
// it does.
absl::string_view WhyNotTrained(const Node& n, Endpoint x, Rewriter& r) {
  constexpr int64_t kChannelsAtOnce = 4;
  if (!PersistentModeWanted()) return "it is trained";
  if (!HasPersistentMode(r.context().devices)) return "no GPU is known that has a kernel for it";
  if (n.String("data_format", "NHWC") != "NHWC") return "channels must come last";
  if (n.Type("T") != Dtype::kHalf) return "it is trained in other numbers than half";
  const PartialShape& shape = r.shape(x);
  if (shape.rank() != 4 || shape[3] < 0 || shape[3] % kChannelsAtOnce != 0) {
    return "the number of channels is not known, or no multiple of four";
  }
  return "";
}

// Relu(FusedBatchNorm(x)), or of a sum with another tensor.
struct NormWithRelu {
  Node* norm = nullptr;  // nullptr: there is none
  const Node* sum = nullptr;
  Endpoint other;
  absl::string_view why;  // that there is none, though it nearly was
};

// Does all that reads the statistics come after the Relu, as gradients do? Then the tensor that is
// added, which becomes an input of the norm, depends on none of them.
bool StatisticsReadAfter(const Node& norm, const Node& relu) {
  return std::ranges::all_of(norm.uses(), [&](const Use& use) {
    return !use.is_control() &&
           (use.node->input(use.input).port == 0 || RunsAfter(*use.node, relu));
  });
}

NormWithRelu FindNormWithRelu(const Node& relu, Rewriter& r) {
  constexpr OpSet kAdds = {"Add", "AddV2"};
  NormWithRelu found;
  Node* norm = relu.input(0).node;
  if (norm->Is(kAdds)) {
    found.sum = norm;
    const auto [side, rest] = Sides(*norm, kBatchNorms);
    if (side == nullptr) return {};
    norm = const_cast<Node*>(side);
    found.other = rest;
    if (!SameSymbolicShape(r.shape({norm, 0}), r.shape(rest))) {
      return {.why = "the shapes differ, or are not known"};
    }
  }
  if (!norm->Is(kBatchNorms)) return {};
  const Node* const sum = found.sum;
  const bool on_gpu = OnGpu(*norm);
  const Dtype t = norm->Type("T");
  if (!on_gpu && (!r.OnCpu(*norm) || !IsForOneDnn())) {
    return {.why = "it is for no GPU, and not for oneDNN"};
  }
  if (on_gpu && norm->Bool("is_training", true)) {
    if (const absl::string_view why = WhyNotTrained(*norm, norm->input(0), r); !why.empty()) {
      return {.why = why};
    }
  }
  if (on_gpu ? t != Dtype::kHalf && t != Dtype::kFloat : t != Dtype::kFloat) {
    return {.why = "numbers of this type are not fused"};
  }
  if (!on_gpu && sum != nullptr) return {.why = "on a CPU it is fused without a sum"};
  if (!on_gpu && ChannelsFirst(*norm)) return {.why = "on a CPU channels must come last"};
  if (norm->device != relu.device || (sum != nullptr && sum->device != relu.device)) {
    return {.why = "it is on another device"};
  }
  if (IsRoot(*norm) || !IsOutOfOrder(*norm) || norm->NumUses(0) != 1 ||
      (sum != nullptr && !IsInner(*sum))) {
    return {.why = "others need the normalized tensor"};
  }
  // Readers of the statistics stay: the new op gives them too, as V3 does.
  if (!norm->Is("FusedBatchNormV3") && NumDataUses(*norm) != norm->NumUses(0)) {
    return {.why = "others read its statistics"};
  }
  if (sum != nullptr && !StatisticsReadAfter(*norm, relu)) {
    return {.why = "others read its statistics, maybe what is added to it"};
  }
  if (norm->Type("U", Dtype::kFloat) != Dtype::kFloat) return {.why = "its scales are no floats"};
  found.norm = norm;
  return found;
}

// The attributes of `from` that `op` has as well.
AttrMap AttrsFor(OpName op, const Node& from) {
  AttrMap attrs;
  const OpDef* def = DefinitionOf(op);
  for (const auto& [name, value] : from.attrs()) {
    if (def->FindAttr(name) != nullptr) attrs.Set(name, value);
  }
  attrs.Set("U", Dtype::kFloat);
  attrs.Set("activation_mode", std::string("Relu"));
  return attrs;
}

// `node` passes on what the fused op gives.
Status PassOn(Node* node, Endpoint e, Rewriter& r) {
  AttrMap attrs;
  attrs.Set("T", node->Type("T"));
  r.graph().SetInputs(node, {e});
  return r.Become(node, "Identity", std::move(attrs));
}

StatusOr<Rewritten> BatchNormWithRelu(Node& node, Rewriter& r) {
  const NormWithRelu found = FindNormWithRelu(node, r);
  if (found.norm == nullptr) return found.why.empty() ? r.No() : r.No(found.why);
  AttrMap attrs = AttrsFor("_FusedBatchNormEx", *found.norm);
  attrs.Set("num_side_inputs", int64_t{found.sum != nullptr});
  if (found.sum != nullptr) r.graph().AddInput(found.norm, found.other);
  RETURN_IF_ERROR(r.Become(found.norm, "_FusedBatchNormEx", std::move(attrs)));
  RETURN_IF_ERROR(PassOn(&node, {found.norm, 0}, r));
  return r.InPlace();
}

// FusedBatchNormGrad(ReluGrad(dy, y), ...), where y is a Relu that will be fused with the
// normalization: one op computes both gradients, and that of the tensor which is added.
StatusOr<Rewritten> BatchNormGradWithReluGrad(Node& node, Rewriter& r) {
  Node* const relu_grad = node.input(0).node;
  if (!OnGpu(node) || !relu_grad->Is("ReluGrad")) return r.No();
  if (r.context().config.global_jit) return r.No("XLA compiles it, and fuses it there");
  if (!node.Bool("is_training", true)) return r.No("it is not trained");
  if (const absl::string_view why = WhyNotTrained(node, node.input(0), r); !why.empty()) {
    return r.No(why);
  }
  if (node.Type("U", Dtype::kFloat) != Dtype::kFloat) return r.No("its scales are no floats");
  if (!IsOutOfOrder(node) || !IsOutOfOrder(*relu_grad) || IsRoot(*relu_grad)) {
    return r.No("an order hangs on it");
  }
  const Endpoint y = relu_grad->input(1);
  if (!y.node->Is("Relu") || !IsOutOfOrder(*y.node)) return r.No("it is the gradient of no Relu");
  const NormWithRelu forward = FindNormWithRelu(*y.node, r);
  if (forward.norm == nullptr) {
    return forward.why.empty() ? r.No("it is the gradient of no normalization") : r.No(forward.why);
  }
  Node* const norm = forward.norm;
  // That the inputs are the normalization's own keeps the graph free of cycles as well.
  const Endpoint wanted[] = {norm->input(0), norm->input(1), {norm, 3}, {norm, 4}, {norm, 5}};
  if (!norm->Is("FusedBatchNormV3") || !std::equal(node.inputs().begin() + 1, node.inputs().end(),
                                                   std::begin(wanted), std::end(wanted))) {
    return r.No("it is the gradient of another normalization");
  }
  const bool sum = forward.sum != nullptr;
  if (NumDataUses(*relu_grad) != (sum ? 2 : 1) ||
      std::ranges::count(node.inputs(), relu_grad, &Endpoint::node) != 1) {
    return r.No("others read the gradient of the Relu");
  }
  if (node.device != relu_grad->device || node.device != norm->device) {
    return r.No("it is on another device");
  }
  AttrMap attrs = AttrsFor("_FusedBatchNormGradEx", node);
  attrs.Set("num_side_inputs", int64_t{sum});
  r.graph().SetInput(&node, 0, relu_grad->input(0));
  r.graph().AddInput(&node, norm->input(2));
  r.graph().AddInput(&node, y);
  RETURN_IF_ERROR(r.Become(&node, "_FusedBatchNormGradEx", std::move(attrs)));
  if (sum) RETURN_IF_ERROR(PassOn(relu_grad, {&node, 5}, r));
  return r.InPlace();
}

bool ForUsers(const PassContext& context) { return !context.for_execution; }

}  // namespace

const Rule kBatchNormWithRelu = {"BatchNormWithRelu",
                                 {"Relu"},
                                 BatchNormWithRelu,
                                 "Relu(FusedBatchNorm) -> _FusedBatchNormEx",
                                 ForUsers};
const Rule kBatchNormGradWithReluGrad = {"BatchNormGradWithReluGrad",
                                         {"FusedBatchNormGradV3"},
                                         BatchNormGradWithReluGrad,
                                         "FusedBatchNormGrad(ReluGrad) -> _FusedBatchNormGradEx",
                                         ForUsers};

}  // namespace smelt::remap
