// Measured on the interpreter of TensorFlow 2.21 and on LiteRT with and without XNNPACK
// (tests/peers/lite_ranks_test.py): what the strictest of them takes.
#include "smelt/lite/common/kernel_ranks.h"

namespace smelt {
namespace {

constexpr KernelRanks kRanks[] = {
    {{"tfl.add", "tfl.sub", "tfl.mul"}, kMostLiteDims, 6},
    {{"tfl.div", "tfl.maximum", "tfl.minimum", "tfl.select_v2"}, kMostLiteDims, 5},
    {{"tfl.equal", "tfl.not_equal", "tfl.less", "tfl.less_equal", "tfl.greater",
      "tfl.greater_equal", "tfl.floor_div", "tfl.floor_mod", "tfl.pow", "tfl.squared_difference",
      "tfl.logical_and", "tfl.logical_or", "tfl.bitwise_xor", "tfl.right_shift"},
     kMostLiteDims,
     4},
    {{"tfl.atan2", "tfl.stablehlo_and", "tfl.stablehlo_shift_left"}, kMostLiteDims, 0},
    {{"tfl.slice", "tfl.strided_slice", "tfl.pad", "tfl.padv2"}, 5},
    // XNNPACK takes those of floats, and then has no more.
    {{"tfl.transpose", "tfl.concatenation", "tfl.split", "tfl.split_v", "tfl.softmax",
      "tfl.log_softmax", "tfl.fully_connected", "tfl.mean", "tfl.sum", "tfl.reduce_max",
      "tfl.reduce_min", "tfl.reduce_prod", "tfl.reduce_any", "tfl.reduce_all"},
     6},
    {{"tfl.batch_matmul"}, 5},
    {{"tfl.sparse_to_dense"}, 4},
};
constexpr KernelRanks kOtherRanks = {{}};

}  // namespace

const KernelRanks& KernelRanksOf(OpName op) {
  for (const KernelRanks& row : kRanks) {
    if (row.ops.Contains(op)) return row;
  }
  return kOtherRanks;
}

}  // namespace smelt
