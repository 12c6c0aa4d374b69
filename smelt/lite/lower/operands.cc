// The bounds of options are those that LiteRT 2.1's kernels check when they prepare an operator.
#include "smelt/lite/lower/operands.h"

#include <limits>

#include "smelt/lite/common/operand_counts.h"

namespace smelt {
namespace {

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

uint64_t OptionalInputs(OpName op) {
  for (const OptionalRow& row : kOptional) {
    if (row.ops.Contains(op)) return row.inputs;
  }
  return 0;
}

}  // namespace

Status CheckOperands(const Node& n) {
  const OperandCounts* counts = FindOperandCounts(n.op_name());
  if (counts == nullptr) return Internal("the table of operands has no row for it");
  if (!counts->inputs.Has(n.num_inputs())) {
    return InvalidArgument("it has ", n.num_inputs(), " inputs, not ", counts->inputs.ToString());
  }
  if (!counts->outputs.Has(n.num_outputs())) {
    return InvalidArgument("it has ", n.num_outputs(), " outputs, not ",
                           counts->outputs.ToString());
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
    const CountBounds wanted = {static_cast<int>(o.least), static_cast<int>(o.most)};
    return InvalidArgument("its option ", o.option, " is ", value, ", not ", wanted.ToString());
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
