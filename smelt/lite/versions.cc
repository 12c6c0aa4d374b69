#include "smelt/lite/versions.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace smelt {
namespace {

// One use of an operator.
struct OperatorUse {
  const LiteOperator& op;
  const LiteSubgraph& graph;

  // nullptr: it is left out.
  const LiteTensor* input(size_t i) const {
    const bool there = i < op.inputs.size() && op.inputs[i] >= 0;
    return there ? &graph.tensors[static_cast<size_t>(op.inputs[i])] : nullptr;
  }
  const LiteTensor* output() const {
    return op.outputs.empty() ? nullptr : &graph.tensors[static_cast<size_t>(op.outputs[0])];
  }
  int64_t Int(absl::string_view option) const {
    const Attr* a = op.options.Find(option);
    return a == nullptr ? 0 : *a->get<int64_t>();
  }
  bool Bool(absl::string_view option) const {
    const Attr* a = op.options.Find(option);
    return a != nullptr && *a->get<bool>();
  }
};

bool IsGrouped(const OperatorUse& u) {
  const LiteTensor *x = u.input(0), *w = u.input(1);
  return x->shape.size() == 4 && w->shape.size() == 4 && x->shape[3] != w->shape[3];
}
bool IsDilated(const OperatorUse& u) {
  return u.Int("dilation_h_factor") > 1 || u.Int("dilation_w_factor") > 1;
}
bool HasBatchDims(const OperatorUse& u) { return u.Int("batch_dims") != 0; }
bool IsAligned(const OperatorUse& u) {
  return u.Bool("align_corners") || u.Bool("half_pixel_centers");
}
bool HasFiveDims(const OperatorUse& u) { return u.input(0)->shape.size() > 4; }
bool CastsHalf(const OperatorUse& u) {
  return u.input(0)->type == Dtype::kHalf || u.output()->type == Dtype::kHalf;
}
bool CastsInt8(const OperatorUse& u) {
  constexpr DtypeSet kTypes = Types(Dtype::kInt8, Dtype::kUint8, Dtype::kInt16);
  return Has(kTypes, u.input(0)->type) || Has(kTypes, u.output()->type);
}
bool IsHybrid(const OperatorUse& u) {
  const LiteTensor* w = u.input(1);
  const LiteTensor* y = u.output();
  const bool narrow = w != nullptr && (w->type == Dtype::kInt8 || w->type == Dtype::kInt4);
  return narrow && y != nullptr && y->type == Dtype::kFloat;
}
bool HasInt4Weights(const OperatorUse& u) {
  const LiteTensor* w = u.input(1);
  return w != nullptr && w->type == Dtype::kInt4;
}
bool HasActivationFused(const OperatorUse& u) {
  const Attr* a = u.op.options.Find("fused_activation_function");
  return a != nullptr && *a->get<std::string>() != "NONE";
}
bool HasFourthInput(const OperatorUse& u) { return u.input(3) != nullptr; }
bool HasSparseWeights(const OperatorUse& u) {
  const LiteTensor* w = u.input(1);
  return w != nullptr && w->sparsity != nullptr;
}
bool HasBlocks(const OperatorUse& u) {
  const LiteTensor* w = u.input(1);
  return w != nullptr && w->quantization.blockwise;
}
bool IsHybridPerChannel(const OperatorUse& u) {
  return IsHybrid(u) && u.input(1)->quantization.scale.size() > 1;
}
bool IsHybridAsymmetric(const OperatorUse& u) {
  return IsHybrid(u) && u.Bool("asymmetric_quantize_inputs");
}

// Of integers that stand for themselves, which came later.
bool IsNotQuantized(const OperatorUse& u) { return u.input(0)->quantization.scale.empty(); }

// Measured: what TensorFlow 2.21's converter writes for each use. Of an operator the first row that
// fits counts.
struct VersionRow {
  absl::string_view op;
  int32_t version;
  absl::string_view runtime;
  size_t input = 0;
  DtypeSet types = kAnyType;  // of that input
  bool (*when)(const OperatorUse& u) = nullptr;
};
constexpr VersionRow kVersions[] = {
    {.op = "ABS", .version = 5, .runtime = "2.12.0", .types = Types(Dtype::kInt32)},
    {.op = "ABS", .version = 2, .runtime = "2.4.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "ABS", .version = 1, .runtime = "1.13.0"},
    {.op = "ADD",
     .version = 5,
     .runtime = "2.13.0",
     .types = Types(Dtype::kInt16),
     .when = IsNotQuantized},
    {.op = "ADD", .version = 4, .runtime = "2.6.0", .types = Types(Dtype::kInt64)},
    {.op = "ADD",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "ADD", .version = 1, .runtime = "1.5.0"},
    {.op = "ADD_N", .version = 1, .runtime = "1.14.0"},
    {.op = "ARG_MAX",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "ARG_MAX", .version = 1, .runtime = "1.9.0"},
    {.op = "ARG_MIN",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "ARG_MIN", .version = 1, .runtime = "1.9.0"},
    {.op = "ATAN2", .version = 1, .runtime = "2.10.0"},
    {.op = "AVERAGE_POOL_2D",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "AVERAGE_POOL_2D", .version = 1, .runtime = "1.5.0"},
    {.op = "BATCH_MATMUL", .version = 4, .runtime = "2.5.0", .when = IsHybridAsymmetric},
    {.op = "BATCH_MATMUL",
     .version = 2,
     .runtime = "2.3.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "BATCH_MATMUL", .version = 1, .runtime = "2.3.0"},
    {.op = "BATCH_TO_SPACE_ND",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "BATCH_TO_SPACE_ND", .version = 1, .runtime = "1.6.0"},
    {.op = "BITCAST", .version = 1, .runtime = "2.13.0"},
    {.op = "BITWISE_XOR", .version = 1, .runtime = "2.13.0"},
    {.op = "BROADCAST_ARGS", .version = 1, .runtime = "2.6.0"},
    {.op = "BROADCAST_TO",
     .version = 3,
     .runtime = "2.5.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "BROADCAST_TO", .version = 2, .runtime = "2.5.0"},
    {.op = "BUCKETIZE", .version = 1, .runtime = "2.8.0"},
    {.op = "CAST", .version = 5, .runtime = "2.12.0", .when = CastsHalf},
    {.op = "CAST", .version = 3, .runtime = "2.8.0", .when = CastsInt8},
    {.op = "CAST", .version = 1, .runtime = "1.5.0"},
    {.op = "CEIL", .version = 1, .runtime = "1.14.0"},
    {.op = "COMPLEX_ABS", .version = 1, .runtime = "2.5.0"},
    {.op = "CONCATENATION",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "CONCATENATION", .version = 1, .runtime = "1.5.0"},
    {.op = "CONV_2D", .version = 7, .runtime = "2.11.0", .when = HasInt4Weights},
    {.op = "CONV_2D", .version = 5, .runtime = "2.4.0", .when = IsHybridPerChannel},
    {.op = "CONV_2D", .version = 6, .runtime = "2.9.0", .when = IsGrouped},
    {.op = "CONV_2D", .version = 2, .runtime = "1.14.0", .when = IsHybrid},
    {.op = "CONV_2D",
     .version = 3,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "CONV_2D", .version = 1, .runtime = "1.5.0"},
    {.op = "CONV_3D", .version = 1, .runtime = "2.5.0"},
    {.op = "CONV_3D_TRANSPOSE", .version = 1, .runtime = "2.6.0"},
    {.op = "COS", .version = 1, .runtime = "1.14.0"},
    {.op = "CUMSUM", .version = 1, .runtime = "2.4.0"},
    {.op = "DENSIFY", .version = 1, .runtime = "2.2.0"},
    {.op = "DEPTHWISE_CONV_2D", .version = 7, .runtime = "2.11.0", .when = HasInt4Weights},
    {.op = "DEPTHWISE_CONV_2D", .version = 6, .runtime = "2.3.0", .when = IsHybridPerChannel},
    {.op = "DEPTHWISE_CONV_2D", .version = 4, .runtime = "2.2.0", .when = IsHybrid},
    {.op = "DEPTHWISE_CONV_2D",
     .version = 3,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "DEPTHWISE_CONV_2D", .version = 2, .runtime = "1.12.0", .when = IsDilated},
    {.op = "DEPTHWISE_CONV_2D", .version = 1, .runtime = "1.5.0"},
    {.op = "DEPTH_TO_SPACE",
     .version = 2,
     .runtime = "2.5.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "DEPTH_TO_SPACE", .version = 1, .runtime = "2.1.0"},
    {.op = "DEQUANTIZE", .version = 3, .runtime = "1.15.0", .types = Types(Dtype::kHalf)},
    {.op = "DEQUANTIZE",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "DEQUANTIZE", .version = 1, .runtime = "1.14.0"},
    {.op = "DIV", .version = 1, .runtime = "1.6.0"},
    {.op = "ELU", .version = 1, .runtime = "1.14.0"},
    {.op = "EMBEDDING_LOOKUP", .version = 4, .runtime = "2.18.0", .when = HasInt4Weights},
    {.op = "EMBEDDING_LOOKUP", .version = 4, .runtime = "2.18.0", .when = HasBlocks},
    {.op = "EQUAL", .version = 3, .runtime = "2.3.0", .types = Types(Dtype::kString)},
    {.op = "EQUAL", .version = 2, .runtime = "1.14.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "EQUAL", .version = 1, .runtime = "1.14.0"},
    {.op = "EXP", .version = 2, .runtime = "2.12.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "EXP", .version = 1, .runtime = "1.7.0"},
    {.op = "EXPAND_DIMS", .version = 1, .runtime = "1.10.0"},
    {.op = "FILL", .version = 2, .runtime = "2.3.0", .input = 1, .types = Types(Dtype::kBool)},
    {.op = "FILL", .version = 1, .runtime = "1.13.0"},
    {.op = "FLOOR", .version = 1, .runtime = "1.9.0"},
    {.op = "FLOOR_DIV",
     .version = 3,
     .runtime = "2.13.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "FLOOR_DIV", .version = 2, .runtime = "1.14.0", .types = Types(Dtype::kFloat)},
    {.op = "FLOOR_DIV", .version = 1, .runtime = "1.14.0"},
    {.op = "FLOOR_MOD",
     .version = 2,
     .runtime = "2.13.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "FLOOR_MOD", .version = 1, .runtime = "1.13.0"},
    {.op = "FULLY_CONNECTED", .version = 13, .runtime = "2.18.0", .when = HasBlocks},
    {.op = "FULLY_CONNECTED", .version = 12, .runtime = "2.17.0", .when = IsHybridPerChannel},
    {.op = "FULLY_CONNECTED", .version = 10, .runtime = "2.11.0", .when = HasInt4Weights},
    {.op = "FULLY_CONNECTED", .version = 8, .runtime = "2.3.0", .when = HasSparseWeights},
    {.op = "FULLY_CONNECTED", .version = 9, .runtime = "2.3.0", .when = IsHybridAsymmetric},
    {.op = "FULLY_CONNECTED", .version = 3, .runtime = "1.14.0", .when = IsHybrid},
    {.op = "FULLY_CONNECTED",
     .version = 4,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "FULLY_CONNECTED", .version = 1, .runtime = "1.5.0"},
    {.op = "GATHER", .version = 5, .runtime = "2.5.0", .when = HasBatchDims},
    {.op = "GATHER", .version = 3, .runtime = "1.15.0", .types = Types(Dtype::kBool)},
    {.op = "GATHER",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "GATHER", .version = 1, .runtime = "1.6.0"},
    {.op = "GATHER_ND", .version = 5, .runtime = "2.16.0", .types = Types(Dtype::kBool)},
    {.op = "GATHER_ND", .version = 2, .runtime = "2.3.0", .types = Types(Dtype::kString)},
    {.op = "GATHER_ND", .version = 1, .runtime = "1.14.0"},
    {.op = "GELU", .version = 2, .runtime = "2.9.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "GELU", .version = 1, .runtime = "2.9.0"},
    {.op = "GREATER",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "GREATER", .version = 1, .runtime = "1.14.0"},
    {.op = "GREATER_EQUAL",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "GREATER_EQUAL", .version = 1, .runtime = "1.14.0"},
    {.op = "HARD_SWISH", .version = 1, .runtime = "1.15.0"},
    {.op = "IF", .version = 1, .runtime = "1.15.0"},
    {.op = "IMAG", .version = 1, .runtime = "2.5.0"},
    {.op = "L2_NORMALIZATION",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "L2_NORMALIZATION", .version = 1, .runtime = "1.5.0"},
    {.op = "LEAKY_RELU", .version = 1, .runtime = "1.13.1"},
    {.op = "LESS", .version = 2, .runtime = "1.14.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "LESS", .version = 1, .runtime = "1.14.0"},
    {.op = "LESS_EQUAL",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "LESS_EQUAL", .version = 1, .runtime = "1.14.0"},
    {.op = "LOCAL_RESPONSE_NORMALIZATION", .version = 1, .runtime = "1.5.0"},
    {.op = "LOG", .version = 2, .runtime = "2.15.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "LOG", .version = 1, .runtime = "1.14.0"},
    {.op = "LOGICAL_AND", .version = 1, .runtime = "1.11.0"},
    {.op = "LOGICAL_NOT", .version = 1, .runtime = "1.11.0"},
    {.op = "LOGICAL_OR", .version = 1, .runtime = "1.11.0"},
    {.op = "LOGISTIC",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "LOGISTIC", .version = 1, .runtime = "1.14.0"},
    {.op = "LOG_SOFTMAX",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "LOG_SOFTMAX", .version = 1, .runtime = "1.14.0"},
    {.op = "MATRIX_DIAG", .version = 1, .runtime = "1.14.0"},
    {.op = "MATRIX_SET_DIAG", .version = 1, .runtime = "1.14.0"},
    {.op = "MAXIMUM",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "MAXIMUM", .version = 1, .runtime = "1.14.0"},
    {.op = "MAX_POOL_2D",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "MAX_POOL_2D", .version = 1, .runtime = "1.5.0"},
    {.op = "MEAN",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "MEAN", .version = 1, .runtime = "1.6.0"},
    {.op = "MINIMUM",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "MINIMUM", .version = 1, .runtime = "1.14.0"},
    {.op = "MIRROR_PAD",
     .version = 2,
     .runtime = "2.3.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "MIRROR_PAD", .version = 1, .runtime = "1.13.1"},
    {.op = "MUL",
     .version = 7,
     .runtime = "2.13.0",
     .types = Types(Dtype::kInt16, Dtype::kUint32),
     .when = IsNotQuantized},
    {.op = "MUL", .version = 6, .runtime = "2.11.0", .types = Types(Dtype::kComplex64)},
    {.op = "MUL", .version = 5, .runtime = "2.6.0", .types = Types(Dtype::kInt64)},
    {.op = "MUL", .version = 4, .runtime = "2.3.0", .types = Types(Dtype::kInt16)},
    {.op = "MUL",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "MUL", .version = 1, .runtime = "1.5.0"},
    {.op = "NEG", .version = 1, .runtime = "1.9.0"},
    {.op = "NON_MAX_SUPPRESSION_V4", .version = 1, .runtime = "2.1.0"},
    {.op = "NON_MAX_SUPPRESSION_V5", .version = 1, .runtime = "2.1.0"},
    {.op = "NOT_EQUAL", .version = 3, .runtime = "2.3.0", .types = Types(Dtype::kString)},
    {.op = "NOT_EQUAL", .version = 1, .runtime = "1.14.0"},
    {.op = "ONE_HOT", .version = 1, .runtime = "1.11.0"},
    {.op = "PACK",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "PACK", .version = 1, .runtime = "1.11.0"},
    {.op = "PAD",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "PAD", .version = 1, .runtime = "1.5.0"},
    {.op = "PADV2", .version = 2, .runtime = "1.14.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "PADV2", .version = 1, .runtime = "1.9.0"},
    {.op = "POW", .version = 1, .runtime = "1.10.0"},
    {.op = "PRELU", .version = 1, .runtime = "1.8.0"},
    {.op = "QUANTIZE", .version = 1, .runtime = "1.14.0"},
    {.op = "RANGE", .version = 1, .runtime = "1.13.0"},
    {.op = "REAL", .version = 1, .runtime = "2.5.0"},
    {.op = "REDUCE_ALL", .version = 1, .runtime = "2.6.0"},
    {.op = "REDUCE_ANY", .version = 1, .runtime = "1.11.0"},
    {.op = "REDUCE_MAX",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "REDUCE_MAX", .version = 1, .runtime = "1.11.0"},
    {.op = "REDUCE_MIN",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "REDUCE_MIN", .version = 1, .runtime = "1.11.0"},
    {.op = "REDUCE_PROD",
     .version = 2,
     .runtime = "2.6.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "REDUCE_PROD", .version = 1, .runtime = "1.11.0"},
    {.op = "RELU", .version = 2, .runtime = "2.1.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "RELU", .version = 1, .runtime = "1.5.0"},
    {.op = "RELU6", .version = 2, .runtime = "1.14.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "RELU6", .version = 1, .runtime = "1.5.0"},
    {.op = "RELU_N1_TO_1", .version = 1, .runtime = "1.5.0"},
    {.op = "RESHAPE", .version = 1, .runtime = "1.5.0"},
    {.op = "RESIZE_BILINEAR", .version = 3, .runtime = "2.2.0", .when = IsAligned},
    {.op = "RESIZE_BILINEAR",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "RESIZE_BILINEAR", .version = 1, .runtime = "1.7.0"},
    {.op = "RESIZE_NEAREST_NEIGHBOR", .version = 3, .runtime = "2.3.0", .when = IsAligned},
    {.op = "RESIZE_NEAREST_NEIGHBOR",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "RESIZE_NEAREST_NEIGHBOR", .version = 1, .runtime = "1.13.1"},
    {.op = "REVERSE_SEQUENCE", .version = 1, .runtime = "1.14.0"},
    {.op = "REVERSE_V2",
     .version = 3,
     .runtime = "2.5.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "REVERSE_V2", .version = 2, .runtime = "2.2.0", .types = Types(Dtype::kBool)},
    {.op = "REVERSE_V2", .version = 1, .runtime = "1.14.0"},
    {.op = "RFFT2D", .version = 1, .runtime = "2.5.0"},
    {.op = "RIGHT_SHIFT", .version = 1, .runtime = "2.13.0"},
    {.op = "ROUND", .version = 1, .runtime = "1.14.0"},
    {.op = "RSQRT", .version = 2, .runtime = "2.5.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "RSQRT", .version = 1, .runtime = "1.10.0"},
    {.op = "SCATTER_ND", .version = 1, .runtime = "2.1.0"},
    {.op = "SEGMENT_SUM", .version = 1, .runtime = "2.2.0"},
    {.op = "SELECT", .version = 1, .runtime = "1.14.0"},
    {.op = "SELECT_V2", .version = 1, .runtime = "2.2.0"},
    {.op = "SHAPE", .version = 1, .runtime = "1.10.0"},
    {.op = "SIGN", .version = 2, .runtime = "2.12.0", .types = Types(Dtype::kInt32)},
    {.op = "SIGN", .version = 1, .runtime = "2.11.0"},
    {.op = "SIN", .version = 1, .runtime = "1.9.0"},
    {.op = "SLICE", .version = 3, .runtime = "1.14.0", .types = Types(Dtype::kString)},
    {.op = "SLICE",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "SLICE", .version = 1, .runtime = "1.14.0"},
    {.op = "SOFTMAX",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "SOFTMAX", .version = 1, .runtime = "1.5.0"},
    {.op = "SPACE_TO_BATCH_ND",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "SPACE_TO_BATCH_ND", .version = 1, .runtime = "1.6.0"},
    {.op = "SPACE_TO_DEPTH",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "SPACE_TO_DEPTH", .version = 1, .runtime = "1.5.0"},
    {.op = "SPARSE_TO_DENSE", .version = 1, .runtime = "1.9.0"},
    {.op = "SPLIT", .version = 3, .runtime = "1.14.0", .input = 1, .types = Types(Dtype::kInt32)},
    {.op = "SPLIT", .version = 2, .runtime = "1.14.0", .input = 1, .types = Types(Dtype::kInt8)},
    {.op = "SPLIT", .version = 1, .runtime = "1.5.0"},
    {.op = "SPLIT_V", .version = 1, .runtime = "1.13.1"},
    {.op = "SQRT", .version = 2, .runtime = "2.21.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "SQRT", .version = 1, .runtime = "1.10.0"},
    {.op = "SQUARE", .version = 1, .runtime = "1.12.0"},
    {.op = "SQUARED_DIFFERENCE",
     .version = 2,
     .runtime = "2.5.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "SQUARED_DIFFERENCE", .version = 1, .runtime = "1.13.1"},
    {.op = "STRIDED_SLICE", .version = 4, .runtime = "2.2.0", .when = HasFiveDims},
    {.op = "STRIDED_SLICE", .version = 5, .runtime = "2.5.0", .types = Types(Dtype::kString)},
    {.op = "STRIDED_SLICE", .version = 3, .runtime = "2.1.0", .types = Types(Dtype::kBool)},
    {.op = "STRIDED_SLICE",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "STRIDED_SLICE", .version = 1, .runtime = "1.6.0"},
    {.op = "SUB", .version = 4, .runtime = "2.4.0", .types = Types(Dtype::kInt64)},
    {.op = "SUB",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "SUB", .version = 1, .runtime = "1.6.0"},
    {.op = "SUM", .version = 2, .runtime = "1.15.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "SUM", .version = 1, .runtime = "1.10.0"},
    {.op = "TANH",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "TANH", .version = 1, .runtime = "1.14.0"},
    {.op = "TILE", .version = 3, .runtime = "2.8.0", .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "TILE", .version = 2, .runtime = "2.2.0", .types = Types(Dtype::kString)},
    {.op = "TILE", .version = 1, .runtime = "1.10.1"},
    {.op = "TOPK_V2",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "TOPK_V2", .version = 1, .runtime = "1.7.0"},
    {.op = "TRANSPOSE", .version = 3, .runtime = "1.15.0", .types = Types(Dtype::kBool)},
    {.op = "TRANSPOSE",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "TRANSPOSE", .version = 1, .runtime = "1.6.0"},
    {.op = "TRANSPOSE_CONV", .version = 4, .runtime = "2.13.0", .when = HasActivationFused},
    {.op = "TRANSPOSE_CONV", .version = 3, .runtime = "2.3.0", .when = HasFourthInput},
    {.op = "TRANSPOSE_CONV", .version = 2, .runtime = "2.2.0", .when = IsHybridPerChannel},
    {.op = "TRANSPOSE_CONV",
     .version = 2,
     .runtime = "2.2.0",
     .input = 2,
     .types = Types(Dtype::kInt16, Dtype::kInt8, Dtype::kUint8)},
    {.op = "TRANSPOSE_CONV", .version = 1, .runtime = "1.9.0"},
    {.op = "UNIQUE", .version = 1, .runtime = "1.14.0"},
    {.op = "UNPACK", .version = 3, .runtime = "2.2.0", .types = Types(Dtype::kBool)},
    {.op = "UNPACK",
     .version = 2,
     .runtime = "1.14.0",
     .types = Types(Dtype::kInt8, Dtype::kUint8)},
    {.op = "UNPACK", .version = 1, .runtime = "1.11.0"},
    {.op = "UNSORTED_SEGMENT_MAX", .version = 1, .runtime = "2.10.0"},
    {.op = "UNSORTED_SEGMENT_MIN", .version = 1, .runtime = "2.11.0"},
    {.op = "UNSORTED_SEGMENT_PROD", .version = 1, .runtime = "2.10.0"},
    {.op = "UNSORTED_SEGMENT_SUM", .version = 1, .runtime = "2.10.0"},
    {.op = "WHERE", .version = 1, .runtime = "1.14.0"},
    {.op = "WHILE", .version = 1, .runtime = "1.15.0"},
    {.op = "ZEROS_LIKE", .version = 1, .runtime = "1.12.0"},
};

// Measured as well: kernels took uint8 from the first version on, but for these.
bool IsOldUint8(const OperatorUse& u, const LiteTensor* input) {
  constexpr absl::string_view kLater[] = {"ABS",  "CAST",   "GELU",
                                          "RELU", "UNPACK", "TRANSPOSE_CONV"};
  return input != nullptr && input->type == Dtype::kUint8 &&
         std::ranges::find(kLater, u.op.op) == std::end(kLater);
}

const VersionRow* FindVersion(const OperatorUse& u) {
  for (const VersionRow& row : kVersions) {
    if (row.op != u.op.op) continue;
    const LiteTensor* input = u.input(row.input);
    // Rows say int8 and uint8 together.
    if (row.types != kAnyType && Has(row.types, Dtype::kInt8) && IsOldUint8(u, input)) continue;
    const bool typed = row.types == kAnyType || (input != nullptr && Has(row.types, input->type));
    if (typed && (row.when == nullptr || row.when(u))) return &row;
  }
  return nullptr;
}

// "2.10.0" comes behind "2.9.0".
std::array<int, 3> NumbersOf(absl::string_view runtime) {
  std::array<int, 3> out{};
  size_t i = 0;
  for (const absl::string_view part : absl::StrSplit(runtime, '.')) {
    if (i < out.size() && absl::SimpleAtoi(part, &out[i])) ++i;
  }
  return out;
}

}  // namespace

void SetVersions(LiteModel& model) {
  absl::string_view runtime;
  for (LiteSubgraph& graph : model.subgraphs) {
    for (LiteOperator& op : graph.operators) {
      if (op.custom) continue;
      const VersionRow* row = FindVersion({op, graph});
      if (row == nullptr) continue;
      op.version = row->version;
      if (NumbersOf(row->runtime) > NumbersOf(runtime)) runtime = row->runtime;
    }
  }
  auto text = std::make_shared<std::string>(runtime);
  text->resize(16, '\0');
  model.metadata.push_back({"min_runtime_version", static_cast<uint32_t>(model.buffers.size())});
  model.buffers.push_back({*text, text});
}

}  // namespace smelt
