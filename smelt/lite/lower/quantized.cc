// Operators on quantized tensors. Those that move integers, or compare them on one scale, are the
// same as on plain ones; the others keep their op, for which kernels/lite/ has kernels.
#include "smelt/kernels/kernel.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

bool IsNarrow(Dtype type) {
  return type == Dtype::kInt8 || type == Dtype::kUint8 || type == Dtype::kInt16 ||
         type == Dtype::kInt4;
}

LoweredEndpoints ByPlainRow(Node& n, Lowering& l) {
  for (const auto family : AllLowerRows()) {
    for (const LowerRow& row : family) {
      if (row.op != n.op_name()) continue;
      l.Begin(n, row);
      return row.lower(n, l);
    }
  }
  return Unimplemented("it is not known here");
}

// The same on integers where all that it reads and makes has one scale.
LoweredEndpoints OnOneScale(Node& n, Lowering& l) {
  const Quantization* to = l.quantization({&n, 0});
  bool one = to != nullptr && n.String("fused_activation_function", "NONE") == "NONE";
  for (int i = 0; i < n.num_inputs() && one; ++i) {
    if (!IsNarrow(l.type(n.input(i)))) continue;
    const Quantization* q = l.quantization(n.input(i));
    one = q != nullptr && *q == *to;
  }
  return one ? ByPlainRow(n, l) : KeptForKernel(n, l);
}

// uint8 of other scales is scaled anew; other types move integers as they are.
LoweredEndpoints QuantizedConcatenation(Node& n, Lowering& l) {
  return l.type({&n, 0}) == Dtype::kInt16 ? ByPlainRow(n, l) : OnOneScale(n, l);
}

// Elements beside the input are the zero point's.
LoweredEndpoints Pad(Node& n, Lowering& l) {
  if (n.num_inputs() == 3) return ByPlainRow(n, l);
  const Quantization* q = l.quantization(n.input(0));
  const int64_t zero = q == nullptr || q->zero_points.empty() ? 0 : q->zero_points[0];
  ASSIGN_OR_RETURN(const Endpoint fill, l.Number(static_cast<double>(zero), l.type(n.input(0))));
  return OneOf(l.Add("PadV2", {n.input(0), n.input(1), fill}));
}

// The same of the room around an image.
LoweredEndpoints SpaceToBatch(Node& n, Lowering& l) {
  const Quantization* q = l.quantization(n.input(0));
  if (q == nullptr || q->zero_points.empty() || q->zero_points[0] == 0) return ByPlainRow(n, l);
  const PartialShape &pads = l.shape(n.input(2)), &in = l.shape(n.input(0));
  if (!in.known_rank() || pads.rank() != 2 || pads[0] < 0 || pads[0] > in.rank() - 1) {
    return Unimplemented("the shape of its room, or its input's rank, is not known");
  }
  // Room of all dimensions: none of the first one and of those behind.
  const auto none = [&](int64_t dims) -> StatusOr<Endpoint> {
    ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(l.type(n.input(2)), Shape({dims, 2})));
    return l.Const(zeros);
  };
  ASSIGN_OR_RETURN(const Endpoint before, none(1));
  ASSIGN_OR_RETURN(const Endpoint behind, none(in.rank() - 1 - pads[0]));
  ASSIGN_OR_RETURN(const Endpoint all, l.Add("ConcatV2", {before, n.input(2), behind, l.Int(0)}));
  ASSIGN_OR_RETURN(const Endpoint fill,
                   l.Number(static_cast<double>(q->zero_points[0]), l.type(n.input(0))));
  ASSIGN_OR_RETURN(const Endpoint padded, l.Add("PadV2", {n.input(0), all, fill}));
  ASSIGN_OR_RETURN(const Endpoint nothing, none(pads[0]));
  return OneOf(l.Add("SpaceToBatchND", {padded, n.input(1), nothing}));
}

// Rows of other types are moved as they are.
LoweredEndpoints QuantizedEmbedding(Node& n, Lowering& l) {
  const Dtype type = l.type(n.input(1));
  return type == Dtype::kInt16 && n.output_types[0] == type ? ByPlainRow(n, l)
                                                            : KeptForKernel(n, l);
}

// Kernels of TensorFlow Lite compare int16 as it is.
LoweredEndpoints Ordered(Node& n, Lowering& l) {
  return l.type(n.input(0)) == Dtype::kInt16 ? ByPlainRow(n, l) : KeptForKernel(n, l);
}

// float16 constants, or integers.
LoweredEndpoints Dequantize(Node& n, Lowering& l) {
  if (l.quantization(n.input(0)) != nullptr) return KeptForKernel(n, l);
  AttrMap attrs;
  attrs.Set("DstT", n.output_types[0]);
  return OneOf(l.Add("Cast", {n.input(0)}, std::move(attrs)));
}

// Kernels of StableHLO's operators there know no scales, and neither do those of NEG, BITWISE_XOR
// and RIGHT_SHIFT: they compute with the integers.
constexpr LowerRow kQuantizedLowering[] = {
    {"tfl.arg_max", ByPlainRow},
    {"tfl.arg_min", ByPlainRow},
    {"tfl.batch_to_space_nd", ByPlainRow},
    {"tfl.bitwise_xor", ByPlainRow},
    {"tfl.broadcast_to", ByPlainRow},
    {"tfl.call", ByPlainRow},
    {"tfl.cast", ByPlainRow},
    {"tfl.custom", ByPlainRow},
    {"tfl.depth_to_space", ByPlainRow},
    {"tfl.dilate", ByPlainRow},
    {"tfl.dynamic_update_slice", ByPlainRow},
    {"tfl.expand_dims", ByPlainRow},
    {"tfl.fill", ByPlainRow},
    {"tfl.floor_div", ByPlainRow},
    {"tfl.floor_mod", ByPlainRow},
    {"tfl.gather", ByPlainRow},
    {"tfl.gather_nd", ByPlainRow},
    {"tfl.hashtable_lookup", ByPlainRow},
    {"tfl.if", ByPlainRow},
    {"tfl.max_pool_2d", KeptForKernel},
    {"tfl.matrix_diag", ByPlainRow},
    {"tfl.matrix_set_diag", ByPlainRow},
    {"tfl.mirror_pad", ByPlainRow},
    {"tfl.one_hot", ByPlainRow},
    {"tfl.pack", ByPlainRow},
    {"tfl.rank", ByPlainRow},
    {"tfl.read_variable", ByPlainRow},
    {"tfl.assign_variable", ByPlainRow},
    {"tfl.variable", ByPlainRow},
    {"tfl.reshape", ByPlainRow},
    {"tfl.resize_nearest_neighbor", ByPlainRow},
    {"tfl.reverse_sequence", ByPlainRow},
    {"tfl.reverse_v2", ByPlainRow},
    {"tfl.right_shift", ByPlainRow},
    {"tfl.scatter_nd", ByPlainRow},
    {"tfl.select", ByPlainRow},
    {"tfl.select_v2", ByPlainRow},
    {"tfl.shape", ByPlainRow},
    {"tfl.slice", ByPlainRow},
    {"tfl.space_to_depth", ByPlainRow},
    {"tfl.sparse_to_dense", ByPlainRow},
    {"tfl.split", ByPlainRow},
    {"tfl.split_v", ByPlainRow},
    {"tfl.squeeze", ByPlainRow},
    {"tfl.reduce_window", ByPlainRow},
    {"tfl.stablehlo_add", ByPlainRow},
    {"tfl.stablehlo_and", ByPlainRow},
    {"tfl.stablehlo_case", ByPlainRow},
    {"tfl.stablehlo_composite", ByPlainRow},
    {"tfl.stablehlo_gather", ByPlainRow},
    {"tfl.stablehlo_maximum", ByPlainRow},
    {"tfl.stablehlo_minimum", ByPlainRow},
    {"tfl.stablehlo_multiply", ByPlainRow},
    {"tfl.stablehlo_pad", ByPlainRow},
    {"tfl.stablehlo_reduce_window", ByPlainRow},
    {"tfl.stablehlo_scatter", ByPlainRow},
    {"tfl.stablehlo_shift_left", ByPlainRow},
    {"tfl.stablehlo_while", ByPlainRow},
    {"tfl.strided_slice", ByPlainRow},
    {"tfl.tile", ByPlainRow},
    {"tfl.topk_v2", ByPlainRow},
    {"tfl.transpose", ByPlainRow},
    {"tfl.unique", ByPlainRow},
    {"tfl.unpack", ByPlainRow},
    {"tfl.where", ByPlainRow},
    {"tfl.while", ByPlainRow},
    {"tfl.zeros_like", ByPlainRow},
    {"tfl.densify", ByPlainRow},
    {"tfl.concatenation", QuantizedConcatenation},
    {"tfl.reduce_max", OnOneScale},
    {"tfl.reduce_min", OnOneScale},
    {"tfl.maximum", OnOneScale},
    {"tfl.minimum", OnOneScale},
    {"tfl.pad", Pad},
    {"tfl.padv2", Pad},
    {"tfl.dequantize", Dequantize},
    {"tfl.quantize", KeptForKernel},
    {"tfl.abs", KeptForKernel},
    {"tfl.add", KeptForKernel},
    {"tfl.average_pool_2d", KeptForKernel},
    {"tfl.batch_matmul", KeptForKernel},
    {"tfl.conv_2d", KeptForKernel},
    {"tfl.div", KeptForKernel},
    {"tfl.depthwise_conv_2d", KeptForKernel},
    {"tfl.elu", KeptForKernel},
    {"tfl.embedding_lookup", QuantizedEmbedding},
    {"tfl.equal", KeptForKernel},
    {"tfl.exp", KeptForKernel},
    {"tfl.fully_connected", KeptForKernel},
    {"tfl.gelu", KeptForKernel},
    {"tfl.greater", Ordered},
    {"tfl.greater_equal", Ordered},
    {"tfl.hard_swish", KeptForKernel},
    {"tfl.l2_normalization", KeptForKernel},
    {"tfl.leaky_relu", KeptForKernel},
    {"tfl.less", Ordered},
    {"tfl.less_equal", Ordered},
    {"tfl.log", KeptForKernel},
    {"tfl.log_softmax", KeptForKernel},
    {"tfl.logistic", KeptForKernel},
    {"tfl.mean", KeptForKernel},
    {"tfl.mul", KeptForKernel},
    {"tfl.neg", ByPlainRow},
    {"tfl.not_equal", KeptForKernel},
    {"tfl.prelu", KeptForKernel},
    {"tfl.reduce_prod", KeptForKernel},
    {"tfl.relu", KeptForKernel},
    {"tfl.relu6", KeptForKernel},
    {"tfl.relu_0_to_1", KeptForKernel},
    {"tfl.relu_n1_to_1", KeptForKernel},
    {"tfl.resize_bilinear", KeptForKernel},
    {"tfl.rsqrt", KeptForKernel},
    {"tfl.softmax", KeptForKernel},
    {"tfl.space_to_batch_nd", SpaceToBatch},
    {"tfl.sqrt", KeptForKernel},
    {"tfl.squared_difference", KeptForKernel},
    {"tfl.sub", KeptForKernel},
    {"tfl.sum", KeptForKernel},
    {"tfl.tanh", KeptForKernel},
    {"tfl.transpose_conv", KeptForKernel},
    // Kernels of recurrences say what they take of quantized weights.
    {"tfl.lstm", ByPlainRow},
    {"tfl.unidirectional_sequence_lstm", ByPlainRow},
    {"tfl.bidirectional_sequence_lstm", ByPlainRow},
    {"tfl.rnn", ByPlainRow},
    {"tfl.unidirectional_sequence_rnn", ByPlainRow},
    {"tfl.bidirectional_sequence_rnn", ByPlainRow},
    {"tfl.svdf", ByPlainRow},
};

}  // namespace

LoweredEndpoints KeptForKernel(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(Node * made, l.Keep(n));
  RETURN_IF_ERROR(FindKernel(*made).status());
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back({made, i});
  return out;
}

bool IsQuantized(const Node& n, const Lowering& l) {
  if (n.Is({"tfl.quantize", "tfl.dequantize"})) return true;
  const auto narrow = [&](Endpoint e) {
    return IsNarrow(l.type(e)) && l.quantization(e) != nullptr;
  };
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (narrow(n.input(i))) return true;
  }
  for (int i = 0; i < n.num_outputs(); ++i) {
    if (narrow({const_cast<Node*>(&n), i})) return true;
  }
  return false;
}

std::span<const LowerRow> QuantizedLowering() { return kQuantizedLowering; }

}  // namespace smelt
