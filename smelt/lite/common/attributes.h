// Attributes of the nodes of a graph of operators, beside those of their definitions.
#ifndef SMELT_LITE_COMMON_ATTRIBUTES_H_
#define SMELT_LITE_COMMON_ATTRIBUTES_H_

#include "absl/strings/string_view.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/graph.h"

namespace smelt {

// The shapes of an operator's outputs, and of an argument's: list(shape). Free sizes are -1.
inline constexpr absl::string_view kOutputShapes = "_output_shapes";
// Of an operator whose outputs are variables, which operators behind it write as well: bool.
inline constexpr absl::string_view kVariableOutputs = "_variable";
// A number that no other node has: common subgraphs are not one where they are to be written into.
inline constexpr absl::string_view kOwnOutputs = "_own_outputs";

// Of an operator whose operands have the same shape, though some sizes of it are not known: bool.
inline constexpr absl::string_view kSameShapes = "_same_shapes";

// Why a node cannot be exported, in words that go behind its op; of nodes that somebody gave up on.
inline constexpr absl::string_view kWhyNot = "_why_not_lite";  // string

// The shape of the variable that a ResourceSparseApply writes, where its handle says it.
inline constexpr absl::string_view kVariableShape = "_variable_shape";

// Of operators, arguments and constants whose outputs are quantized (docs/formats/tflite.md): for
// output 0, and with "_1" behind them for output 1.
inline constexpr absl::string_view kScales = "_scales";           // list(float)
inline constexpr absl::string_view kZeroPoints = "_zero_points";  // list(int)
inline constexpr absl::string_view kQuantizedDim =
    "_quantized_dim";  // int, where there are several

// Of a QUANTIZE that stands for a rounding of the model's own, which its training did too: the
// least and the greatest number that the model names, list(float).
inline constexpr absl::string_view kDeclaresRange = "_declares_range";

// Of a VAR_HANDLE: what its variable begins with, for runs of samples; a tensor.
inline constexpr absl::string_view kVariableBegin = "_variable_begin";
// Of a VAR_HANDLE whose variable holds integers: what they stand for, float and int.
inline constexpr absl::string_view kVariableScale = "_variable_scale";
inline constexpr absl::string_view kVariableZero = "_variable_zero_point";
inline constexpr absl::string_view kVariableType = "_variable_type";

// Of operators, arguments and variables: the least and the greatest number that samples showed,
// list(float); with "_1" behind it as above, and of numbers in between as calibrate.h counts them.
inline constexpr absl::string_view kSeenRange = "_seen_range";

// Of constants whose scales are each for so many elements of a row, which has several, one row's
// scales behind another's: int.
inline constexpr absl::string_view kBlockSize = "_block_size";

// Of operators with numbers in between that files state as tensors (LSTMs: four gates, and what is
// before the projection): scales, 0 where one is not quantized, and zero points.
inline constexpr absl::string_view kIntermediateScales = "_intermediate_scales";      // list(float)
inline constexpr absl::string_view kIntermediateZeros = "_intermediate_zero_points";  // list(int)

// What the node says of the output's shape; unknown where it says nothing.
inline PartialShape StatedShape(Endpoint e) {
  if (const TensorValue* value = StatedConstant(*e.node)) return value->shape;
  const Attr* shapes = e.node->attrs().Find(kOutputShapes);
  const auto* list = shapes == nullptr ? nullptr : shapes->get<std::vector<PartialShape>>();
  if (list == nullptr || static_cast<size_t>(e.port) >= list->size()) return {};
  return (*list)[static_cast<size_t>(e.port)];
}

}  // namespace smelt

#endif  // SMELT_LITE_COMMON_ATTRIBUTES_H_
