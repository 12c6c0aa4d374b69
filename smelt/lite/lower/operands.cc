// The bounds are those that LiteRT 2.1's kernels check when they prepare an operator; of operators
// of StableHLO that have no kernel there, those of their definition.
#include "smelt/lite/lower/operands.h"

#include <array>
#include <limits>

#include "absl/strings/str_cat.h"

namespace smelt {
namespace {

constexpr int kAny = std::numeric_limits<int>::max();

struct Bounds {
  int least, most;
  bool Has(int n) const { return n >= least && n <= most; }
  std::string ToString() const {
    if (least == most) return absl::StrCat(least);
    if (most == kAny) return absl::StrCat("at least ", least);
    return absl::StrCat(least, " to ", most);
  }
};

struct OperandRow {
  Bounds inputs, outputs;
  OpSet ops;
};

constexpr OperandRow kOperands[] = {
    {{0, 0}, {1, 1}, {"tfl.hashtable", "tfl.var_handle", "tfl.variable", "tfl.stablehlo_iota"}},
    {{0, 0}, {0, 0}, {"tfl.call_once"}},
    {{1, 1},
     {1, 1},
     {"tfl.abs",
      "tfl.average_pool_2d",
      "tfl.bitcast",
      "tfl.bucketize",
      "tfl.cast",
      "tfl.ceil",
      "tfl.complex_abs",
      "tfl.cos",
      "tfl.densify",
      "tfl.depth_to_space",
      "tfl.dequantize",
      "tfl.elu",
      "tfl.exp",
      "tfl.fake_quant",
      "tfl.floor",
      "tfl.gelu",
      "tfl.hard_swish",
      "tfl.hashtable_size",
      "tfl.imag",
      "tfl.l2_normalization",
      "tfl.l2_pool_2d",
      "tfl.leaky_relu",
      "tfl.local_response_normalization",
      "tfl.log",
      "tfl.log_softmax",
      "tfl.logical_not",
      "tfl.logistic",
      "tfl.matrix_diag",
      "tfl.max_pool_2d",
      "tfl.neg",
      "tfl.quantize",
      "tfl.random_standard_normal",
      "tfl.random_uniform",
      "tfl.rank",
      "tfl.read_variable",
      "tfl.real",
      "tfl.relu",
      "tfl.relu6",
      "tfl.relu_0_to_1",
      "tfl.relu_n1_to_1",
      "tfl.round",
      "tfl.rsqrt",
      "tfl.shape",
      "tfl.sign",
      "tfl.sin",
      "tfl.skip_gram",
      "tfl.softmax",
      "tfl.space_to_depth",
      "tfl.sqrt",
      "tfl.square",
      "tfl.squeeze",
      "tfl.stablehlo_abs",
      "tfl.stablehlo_broadcast_in_dim",
      "tfl.stablehlo_cbrt",
      "tfl.stablehlo_convert",
      "tfl.stablehlo_cosine",
      "tfl.stablehlo_exponential",
      "tfl.stablehlo_floor",
      "tfl.stablehlo_log",
      "tfl.stablehlo_logistic",
      "tfl.stablehlo_negate",
      "tfl.stablehlo_reshape",
      "tfl.stablehlo_rsqrt",
      "tfl.stablehlo_slice",
      "tfl.stablehlo_tanh",
      "tfl.stablehlo_transpose",
      "tfl.tanh",
      "tfl.where",
      "tfl.zeros_like"}},
    {{1, 1}, {1, kAny}, {"tfl.unpack"}},
    {{1, 1}, {2, 2}, {"tfl.stablehlo_rng_bit_generator", "tfl.unique"}},
    {{1, 2}, {1, 1}, {"tfl.reshape"}},
    {{1, kAny},
     {1, 1},
     {"tfl.concat_embeddings", "tfl.concatenation", "tfl.pack", "tfl.stablehlo_concatenate",
      "tfl.stablehlo_dynamic_slice"}},
    {{2, 2}, {0, 0}, {"tfl.assign_variable"}},
    {{2, 2},
     {1, 1},
     {"tfl.add",
      "tfl.arg_max",
      "tfl.arg_min",
      "tfl.atan2",
      "tfl.batch_matmul",
      "tfl.bitwise_xor",
      "tfl.broadcast_args",
      "tfl.broadcast_to",
      "tfl.cumsum",
      "tfl.div",
      "tfl.embedding_lookup",
      "tfl.equal",
      "tfl.expand_dims",
      "tfl.fill",
      "tfl.floor_div",
      "tfl.floor_mod",
      "tfl.gather",
      "tfl.gather_nd",
      "tfl.greater",
      "tfl.greater_equal",
      "tfl.less",
      "tfl.less_equal",
      "tfl.logical_and",
      "tfl.logical_or",
      "tfl.matrix_set_diag",
      "tfl.maximum",
      "tfl.mean",
      "tfl.minimum",
      "tfl.mirror_pad",
      "tfl.mul",
      "tfl.multinomial",
      "tfl.not_equal",
      "tfl.pow",
      "tfl.prelu",
      "tfl.reduce_all",
      "tfl.reduce_any",
      "tfl.reduce_max",
      "tfl.reduce_min",
      "tfl.reduce_prod",
      "tfl.resize_bilinear",
      "tfl.resize_nearest_neighbor",
      "tfl.reverse_sequence",
      "tfl.reverse_v2",
      "tfl.rfft2d",
      "tfl.right_shift",
      "tfl.segment_sum",
      "tfl.squared_difference",
      "tfl.stablehlo_add",
      "tfl.stablehlo_and",
      "tfl.stablehlo_compare",
      "tfl.stablehlo_convolution",
      "tfl.stablehlo_divide",
      "tfl.stablehlo_dot_general",
      "tfl.stablehlo_gather",
      "tfl.stablehlo_maximum",
      "tfl.stablehlo_minimum",
      "tfl.stablehlo_multiply",
      "tfl.stablehlo_or",
      "tfl.stablehlo_pad",
      "tfl.stablehlo_power",
      "tfl.stablehlo_remainder",
      "tfl.stablehlo_shift_left",
      "tfl.stablehlo_subtract",
      "tfl.sub",
      "tfl.sum",
      "tfl.tile",
      "tfl.transpose"}},
    {{2, 2}, {2, 2}, {"tfl.topk_v2"}},
    {{2, 2}, {1, kAny}, {"tfl.split"}},
    {{2, 3},
     {1, 1},
     {"tfl.conv_2d", "tfl.conv_3d", "tfl.depthwise_conv_2d", "tfl.fully_connected",
      "tfl.lsh_projection", "tfl.pad", "tfl.padv2"}},
    {{2, kAny}, {1, 1}, {"tfl.add_n", "tfl.stablehlo_dynamic_update_slice"}},
    {{2, kAny}, {1, kAny}, {"tfl.stablehlo_reduce", "tfl.stablehlo_reduce_window"}},
    {{3, 3}, {0, 0}, {"tfl.hashtable_import"}},
    {{3, 3},
     {1, 1},
     {"tfl.batch_to_space_nd", "tfl.dilate", "tfl.dynamic_update_slice", "tfl.hashtable_find",
      "tfl.range", "tfl.scatter_nd", "tfl.select", "tfl.select_v2", "tfl.slice",
      "tfl.space_to_batch_nd", "tfl.stablehlo_clamp", "tfl.stablehlo_select",
      "tfl.unsorted_segment_max", "tfl.unsorted_segment_min", "tfl.unsorted_segment_prod",
      "tfl.unsorted_segment_sum"}},
    {{3, 3}, {2, 2}, {"tfl.hashtable_lookup"}},
    {{3, 3}, {1, kAny}, {"tfl.split_v"}},
    {{3, 4}, {1, 1}, {"tfl.conv_3d_transpose", "tfl.transpose_conv"}},
    {{3, kAny}, {1, kAny}, {"tfl.stablehlo_scatter"}},
    {{4, 4}, {1, 1}, {"tfl.one_hot", "tfl.sparse_to_dense", "tfl.strided_slice"}},
    {{5, 5},
     {1, 1},
     {"tfl.embedding_lookup_sparse", "tfl.rnn", "tfl.svdf", "tfl.unidirectional_sequence_rnn"}},
    {{5, 5}, {2, 2}, {"tfl.non_max_suppression_v4"}},
    {{6, 6}, {3, 3}, {"tfl.non_max_suppression_v5"}},
    {{6, 6}, {1, 1}, {"tfl.reduce_window"}},
    // A basic LSTM has 5 and 4: the row tells them apart.
    {{5, 24}, {1, 4}, {"tfl.lstm"}},
    {{20, 24}, {1, 1}, {"tfl.unidirectional_sequence_lstm"}},
    {{12, 12}, {1, 2}, {"tfl.bidirectional_sequence_rnn"}},
    {{48, 48}, {1, 2}, {"tfl.bidirectional_sequence_lstm"}},
    {{1, kAny}, {0, kAny}, {"tfl.if", "tfl.stablehlo_case"}},
    {{0, kAny},
     {0, kAny},
     {"tfl.call", "tfl.custom", "tfl.stablehlo_composite", "tfl.stablehlo_custom_call",
      "tfl.stablehlo_sort", "tfl.stablehlo_while", "tfl.while"}},
};

// Inputs that may be left out; of operators that are not here, none.
struct OptionalRow {
  OpSet ops;
  uint64_t inputs;  // bit i: input i
};
constexpr uint64_t At(std::initializer_list<int> inputs) {
  uint64_t bits = 0;
  for (const int i : inputs) bits |= uint64_t{1} << i;
  return bits;
}
constexpr uint64_t kAll = ~uint64_t{0};
constexpr OptionalRow kOptional[] = {
    {{"tfl.conv_2d", "tfl.conv_3d", "tfl.depthwise_conv_2d", "tfl.fully_connected"}, At({2})},
    {{"tfl.conv_3d_transpose", "tfl.svdf", "tfl.transpose_conv"}, At({3})},
    {{"tfl.reshape"}, At({1})},
    // Input gates, peepholes, projections, normalization.
    {{"tfl.lstm", "tfl.unidirectional_sequence_lstm"},
     At({1, 5, 9, 10, 11, 12, 16, 17, 20, 21, 22, 23})},
    {{"tfl.bidirectional_sequence_rnn"}, At({9, 10, 11})},
    {{"tfl.bidirectional_sequence_lstm"}, At({1,  5,  9,  10, 11, 12, 16, 17, 18, 22, 26, 27, 28,
                                              29, 33, 34, 39, 40, 41, 42, 43, 44, 45, 46, 47})},
    // Its own kernel says what it needs.
    {{"tfl.custom"}, kAll},
};

// Integers among the options.
struct OptionRow {
  absl::string_view option;
  int64_t least, most;
  OpSet ops;
};
constexpr int64_t kMostOption = std::numeric_limits<int32_t>::max();
constexpr OpSet kWindows = {"tfl.average_pool_2d", "tfl.max_pool_2d", "tfl.l2_pool_2d"};
constexpr OptionRow kOptions[] = {
    {"stride_h",
     1,
     kMostOption,
     {"tfl.average_pool_2d", "tfl.max_pool_2d", "tfl.l2_pool_2d", "tfl.conv_2d",
      "tfl.depthwise_conv_2d", "tfl.transpose_conv", "tfl.conv_3d", "tfl.conv_3d_transpose"}},
    {"stride_w",
     1,
     kMostOption,
     {"tfl.average_pool_2d", "tfl.max_pool_2d", "tfl.l2_pool_2d", "tfl.conv_2d",
      "tfl.depthwise_conv_2d", "tfl.transpose_conv", "tfl.conv_3d", "tfl.conv_3d_transpose"}},
    {"stride_d", 1, kMostOption, {"tfl.conv_3d", "tfl.conv_3d_transpose"}},
    {"filter_height", 1, kMostOption, kWindows},
    {"filter_width", 1, kMostOption, kWindows},
    {"dilation_h_factor",
     1,
     kMostOption,
     {"tfl.conv_2d", "tfl.depthwise_conv_2d", "tfl.conv_3d", "tfl.conv_3d_transpose"}},
    {"dilation_w_factor",
     1,
     kMostOption,
     {"tfl.conv_2d", "tfl.depthwise_conv_2d", "tfl.conv_3d", "tfl.conv_3d_transpose"}},
    {"dilation_d_factor", 1, kMostOption, {"tfl.conv_3d", "tfl.conv_3d_transpose"}},
    {"block_size", 1, kMostOption, {"tfl.depth_to_space", "tfl.space_to_depth"}},
    {"radius", 0, kMostOption, {"tfl.local_response_normalization"}},
    {"num_bits", 2, 16, {"tfl.fake_quant"}},
    {"rank", 1, kMostOption, {"tfl.svdf"}},
};

// Options that say how many inputs or outputs there are.
struct CountRow {
  OpName op;
  absl::string_view option;
  bool inputs;
};
constexpr CountRow kCounts[] = {
    {"tfl.pack", "values_count", true},
    {"tfl.split", "num_splits", false},
    {"tfl.split_v", "num_splits", false},
    {"tfl.unpack", "num", false},
};

const OperandRow* FindOperands(OpName op) {
  for (const OperandRow& row : kOperands) {
    if (row.ops.Contains(op)) return &row;
  }
  return nullptr;
}

uint64_t OptionalInputs(OpName op) {
  for (const OptionalRow& row : kOptional) {
    if (row.ops.Contains(op)) return row.inputs;
  }
  return 0;
}

}  // namespace

bool HasOperandBounds(OpName op) { return FindOperands(op) != nullptr; }

Status CheckOperands(const Node& n) {
  const OperandRow* row = FindOperands(n.op_name());
  if (row == nullptr) return Internal("the table of operands has no row for it");
  if (!row->inputs.Has(n.num_inputs())) {
    return InvalidArgument("it has ", n.num_inputs(), " inputs, not ", row->inputs.ToString());
  }
  if (!row->outputs.Has(n.num_outputs())) {
    return InvalidArgument("it has ", n.num_outputs(), " outputs, not ", row->outputs.ToString());
  }
  const uint64_t optional = OptionalInputs(n.op_name());
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (!n.input(i).node->Is("tfl.no_value")) continue;
    if (optional != kAll && (i >= 64 || (optional >> i & 1) == 0)) {
      return InvalidArgument("its input ", i, " is left out");
    }
  }
  for (const OptionRow& o : kOptions) {
    if (!o.ops.Contains(n.op_name())) continue;
    const int64_t value = n.Int(o.option, o.least);
    if (value >= o.least && value <= o.most) continue;
    return InvalidArgument(
        "its option ", o.option, " is ", value, ", not ",
        Bounds{static_cast<int>(o.least), o.most == kMostOption ? kAny : static_cast<int>(o.most)}
            .ToString());
  }
  for (const CountRow& c : kCounts) {
    if (c.op != n.op_name()) continue;
    const int count = c.inputs ? n.num_inputs() : n.num_outputs();
    if (n.Int(c.option) == count) continue;
    return InvalidArgument("its option ", c.option, " is ", n.Int(c.option), ", and it has ", count,
                           c.inputs ? " inputs" : " outputs");
  }
  return OkStatus();
}

}  // namespace smelt
