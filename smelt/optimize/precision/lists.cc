#include "smelt/optimize/precision/lists.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace smelt {
namespace {

// Everywhere that half is fast.
constexpr OpSet kAllowHalf = {"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Einsum",
                              "MatMul"};

// Ops that only GPUs have in half.
constexpr OpSet kAllowHalfOnGpu = {"BlockLSTM",          "BlockLSTMGrad",      "BlockLSTMGradV2",
                                   "BlockLSTMV2",        "CudnnRNN",           "CudnnRNNBackprop",
                                   "CudnnRNNBackpropV2", "CudnnRNNBackpropV3", "CudnnRNNV2",
                                   "CudnnRNNV3",         "GRUBlockCell",       "GRUBlockCellGrad",
                                   "LSTMBlockCell",      "LSTMBlockCellGrad"};

// Slow before CUDA 9.1.
constexpr OpSet kAllowHalfBatches = {"BatchMatMul", "BatchMatMulV2"};

// Slow before cuDNN 7.6.2.
constexpr OpSet kAllowHalfVolumes = {"Conv3D", "Conv3DBackpropFilter", "Conv3DBackpropFilterV2",
                                     "Conv3DBackpropInput", "Conv3DBackpropInputV2"};

// Slow before cuDNN 8.
constexpr OpSet kAllowHalfDepthwise = {"DepthwiseConv2dNative",
                                       "DepthwiseConv2dNativeBackpropFilter",
                                       "DepthwiseConv2dNativeBackpropInput"};

//
constexpr OpSet kAllowBfloat16 = {"BatchMatMul",
                                  "BatchMatMulV2",
                                  "Conv2D",
                                  "Conv2DBackpropFilter",
                                  "Conv2DBackpropInput",
                                  "Conv3D",
                                  "Conv3DBackpropFilterV2",
                                  "Conv3DBackpropInputV2",
                                  "DepthwiseConv2dNative",
                                  "DepthwiseConv2dNativeBackpropFilter",
                                  "DepthwiseConv2dNativeBackpropInput",
                                  "Einsum",
                                  "FusedPadConv2D",
                                  "MatMul"};

//
constexpr OpSet kDenyHalf = {"Exp",
                             "Expm1",
                             "L2Loss",
                             "Mean",
                             "Pow",
                             "SaveV2",
                             "SoftmaxCrossEntropyWithLogits",
                             "SparseSoftmaxCrossEntropyWithLogits",
                             "Sum"};

//
constexpr OpSet kDenyBfloat16 = {"Exp",
                                 "Expm1",
                                 "L2Loss",
                                 "Pow",
                                 "SaveV2",
                                 "SoftmaxCrossEntropyWithLogits",
                                 "SparseSoftmaxCrossEntropyWithLogits"};

//
constexpr OpSet kInferHalf = {"Add",
                              "AddN",
                              "AddV2",
                              "AvgPool",
                              "AvgPool3D",
                              "AvgPool3DGrad",
                              "AvgPoolGrad",
                              "BiasAdd",
                              "BiasAddGrad",
                              "BiasAddV1",
                              "Elu",
                              "EluGrad",
                              "Erf",
                              "Erfc",
                              "FloorDiv",
                              "FusedBatchNormGradV2",
                              "FusedBatchNormGradV3",
                              "FusedBatchNormV2",
                              "FusedBatchNormV3",
                              "Inv",
                              "LeakyRelu",
                              "LeakyReluGrad",
                              "Log",
                              "Log1p",
                              "LogSoftmax",
                              "Mul",
                              "Prod",
                              "RealDiv",
                              "Reciprocal",
                              "Selu",
                              "SeluGrad",
                              "Sigmoid",
                              "SigmoidGrad",
                              "Softmax",
                              "Softplus",
                              "SoftplusGrad",
                              "Softsign",
                              "SoftsignGrad",
                              "Sqrt",
                              "Sub",
                              "Tanh",
                              "TanhGrad",
                              "_FusedBatchNormEx"};

//
constexpr OpSet kInferHalfOnCpu = {"Rsqrt", "Square", "SquaredDifference"};

//
constexpr OpSet kInferBfloat16More = {"Mean", "Rsqrt", "Square", "SquaredDifference", "Sum"};

//
constexpr OpSet kClear = {"Abs",
                          "ArgMax",
                          "ArgMin",
                          "BatchToSpace",
                          "BatchToSpaceND",
                          "BroadcastTo",
                          "Ceil",
                          "CheckNumerics",
                          "ClipByValue",
                          "Concat",
                          "ConcatV2",
                          "DepthToSpace",
                          "DynamicPartition",
                          "DynamicStitch",
                          "EnsureShape",
                          "Enter",
                          "Equal",
                          "Exit",
                          "ExpandDims",
                          "Fill",
                          "Floor",
                          "Gather",
                          "GatherNd",
                          "GatherV2",
                          "Greater",
                          "GreaterEqual",
                          "Identity",
                          "IdentityN",
                          "IsFinite",
                          "IsInf",
                          "IsNan",
                          "Less",
                          "LessEqual",
                          "Max",
                          "MaxPool",
                          "MaxPool3D",
                          "MaxPool3DGrad",
                          "MaxPoolGrad",
                          "MaxPoolGradGrad",
                          "MaxPoolGradGradV2",
                          "MaxPoolGradV2",
                          "MaxPoolV2",
                          "Maximum",
                          "Merge",
                          "Min",
                          "Minimum",
                          "MirrorPad",
                          "MirrorPadGrad",
                          "Neg",
                          "NextIteration",
                          "NotEqual",
                          "OnesLike",
                          "Pack",
                          "Pad",
                          "PadV2",
                          "PreventGradient",
                          "Rank",
                          "Relu",
                          "Relu6",
                          "Relu6Grad",
                          "ReluGrad",
                          "Reshape",
                          "ResizeNearestNeighbor",
                          "ResizeNearestNeighborGrad",
                          "Reverse",
                          "ReverseSequence",
                          "ReverseV2",
                          "Round",
                          "Select",
                          "SelectV2",
                          "Shape",
                          "ShapeN",
                          "Sign",
                          "Slice",
                          "Snapshot",
                          "SpaceToBatch",
                          "SpaceToBatchND",
                          "SpaceToDepth",
                          "Split",
                          "SplitV",
                          "Squeeze",
                          "StopGradient",
                          "StridedSlice",
                          "StridedSliceGrad",
                          "Switch",
                          "TensorListConcat",
                          "TensorListConcatLists",
                          "TensorListConcatV2",
                          "TensorListFromTensor",
                          "TensorListGather",
                          "TensorListGetItem",
                          "TensorListPopBack",
                          "TensorListPushBack",
                          "TensorListPushBackBatch",
                          "TensorListScatter",
                          "TensorListScatterIntoExistingList",
                          "TensorListScatterV2",
                          "TensorListSetItem",
                          "TensorListSplit",
                          "TensorListStack",
                          "Tile",
                          "TopK",
                          "TopKV2",
                          "Transpose",
                          "Unpack",
                          "Where",
                          "ZerosLike"};

//
constexpr OpSet kClearHalf = {"MaxPool3DGradGrad", "OneHot", "Size"};

//
constexpr OpSet kClearBfloat16 = {"ResizeBilinear", "ScatterNd", "StatelessWhile", "While"};

void AddAll(const OpSet& from, OpSet* to) {
  for (int i = 0; i < kNumOps; ++i) {
    const OpName op = OpName::OfNumber(i);
    if (from.Contains(op)) to->Add(op);
  }
}

// Ops of functions and of no table cannot be made narrow, so that lists need not hold them.
OpSet Named(const std::string& comma_separated) {
  OpSet ops = {};
  for (const absl::string_view name : absl::StrSplit(comma_separated, ',', absl::SkipEmpty())) {
    const OpName op = OpName::Of(name);
    if (!op.unknown()) ops.Add(op);
  }
  return ops;
}

// What VARIABLE_ADD names joins the list, what VARIABLE_REMOVE names leaves it.
void Adjust(absl::string_view variable, OpSet* list) {
  AddAll(Named(PrecisionVariable(absl::StrCat(variable, "_ADD"))), list);
  const OpSet removed = Named(PrecisionVariable(absl::StrCat(variable, "_REMOVE")));
  OpSet kept = {};
  for (int i = 0; i < kNumOps; ++i) {
    const OpName op = OpName::OfNumber(i);
    if (list->Contains(op) && !removed.Contains(op)) kept.Add(op);
  }
  *list = kept;
}

PrecisionLists HalfLists(PrecisionMode mode, int cuda, int cudnn) {
  PrecisionLists lists;
  AddAll(kAllowHalf, &lists.allow);
  const bool on_gpu = mode != PrecisionMode::kHalfOnCpu;
  if (on_gpu) AddAll(kAllowHalfOnGpu, &lists.allow);
  if (!on_gpu || cuda >= 9010) AddAll(kAllowHalfBatches, &lists.allow);
  if (!on_gpu || cudnn >= 7602) AddAll(kAllowHalfVolumes, &lists.allow);
  if (!on_gpu || cudnn >= 8000) AddAll(kAllowHalfDepthwise, &lists.allow);
  lists.deny = kDenyHalf;
  lists.infer = kInferHalf;
  if (!on_gpu) AddAll(kInferHalfOnCpu, &lists.infer);
  lists.clear = kClear;
  AddAll(kClearHalf, &lists.clear);
  return lists;
}

PrecisionLists Bfloat16Lists() {
  PrecisionLists lists;
  lists.allow = kAllowBfloat16;
  lists.deny = kDenyBfloat16;
  lists.infer = kInferHalf;
  AddAll(kInferBfloat16More, &lists.infer);
  lists.clear = kClear;
  AddAll(kClearBfloat16, &lists.clear);
  return lists;
}

}  // namespace

std::string PrecisionVariable(absl::string_view name) {
  const std::string variable = absl::StrCat("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_", name);
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

StatusOr<bool> PrecisionSwitch(absl::string_view name, bool otherwise) {
  const std::string value = absl::AsciiStrToLower(PrecisionVariable(name));
  if (value.empty()) return otherwise;
  if (value == "0" || value == "false") return false;
  if (value == "1" || value == "true") return true;
  return InvalidArgument("Failed to parse the env-var ${TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_",
                         name, "} into bool: ", value, ". Use the default value: ", otherwise);
}

StatusOr<PrecisionLists> ReadPrecisionLists(PrecisionMode mode, int cuda, int cudnn) {
  PrecisionLists lists =
      mode == PrecisionMode::kBfloat16 ? Bfloat16Lists() : HalfLists(mode, cuda, cudnn);
  const std::string level = absl::AsciiStrToUpper(PrecisionVariable("LEVEL"));
  // The second name of each is an older one.
  for (const absl::string_view name : {"ALLOWLIST", "WHITELIST"}) Adjust(name, &lists.allow);
  if (level == "TENSOR_CORES_ONLY") {
    // Only what has units of its own for narrow numbers.
    lists.deny = lists.infer = lists.clear = OpSet{};
  } else {
    for (const absl::string_view name : {"INFERLIST", "GRAYLIST"}) Adjust(name, &lists.infer);
    for (const absl::string_view name : {"DENYLIST", "BLACKLIST"}) Adjust(name, &lists.deny);
    Adjust("CLEARLIST", &lists.clear);
  }
  if (level == "TREAT_INFER_AS_DENY") {
    AddAll(lists.infer, &lists.deny);
    lists.infer = OpSet{};
  }
  const OpSet* all[] = {&lists.allow, &lists.deny, &lists.infer, &lists.clear};
  for (int i = 0; i < kNumOps; ++i) {
    const OpName op = OpName::OfNumber(i);
    int in = 0;
    for (const OpSet* list : all) in += list->Contains(op);
    if (in > 1) return InvalidArgument("Op lists have conflicting entries: ", op.text());
  }
  return lists;
}

}  // namespace smelt
