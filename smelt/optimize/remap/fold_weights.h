// Factors and sums by channel that follow a convolution or product are folded into its constant
// weights. For sessions alone: a scaled filter is a copy, and its last bits differ.
#ifndef SMELT_OPTIMIZE_REMAP_FOLD_WEIGHTS_H_
#define SMELT_OPTIMIZE_REMAP_FOLD_WEIGHTS_H_

#include <string>
#include <vector>

#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::remap {

// What becomes one node: a Conv2D, DepthwiseConv2dNative or MatMul, and what follows it.
struct Chain {
  Node* root;
  Node* last;                  // so far
  std::vector<Node*> between;  // root and last apart
  std::vector<std::string> ops;
  std::vector<Endpoint> args;
  float epsilon = 0;
  float alpha = 0;
  bool activated = false;
  // By channel: the factors to fold into the constant filter, and the bias that replaces args[0].
  // Empty: nothing is folded.
  std::vector<float> scale, bias;
};

// Size of the result's last dimension as the constant weights state it; -1 unknown.
int64_t Depth(const Node& root, const Rewriter& r);
// The floats of a constant along the last dimension of the root's result; one value is repeated.
// Nothing when it is no such constant.
std::optional<std::vector<float>> ByChannel(Endpoint e, const Node& root, const Rewriter& r);
// Can a factor for each channel be folded into the filter, and into the bias if there is one?
bool MayScale(const Chain& chain, const Rewriter& r);
// From here on chain.bias holds the bias (zeros if there was none). REQUIRES: MayScale.
void StartFolding(Chain& chain, const Rewriter& r);
// y = y * scale + shift, folded into filter and bias. REQUIRES: MayScale.
void ScaleAndShift(Chain& chain, const std::vector<float>& scale, const std::vector<float>& shift,
                   const Rewriter& r);
// What a normalization of `channels` does by its constant statistics: y = x * scale + shift.
// Nothing where they are no such constants.
struct ConstantNorm {
  std::vector<float> scale, shift;
};
std::optional<ConstantNorm> ConstantNormOf(const Node& batch_norm, int64_t channels,
                                           const Rewriter& r);
// The same of a normalization by constant statistics; false when it has no such.
bool FoldBatchNorm(Chain& chain, const Node& batch_norm, const Rewriter& r);
// Makes constants of what was folded: the filter to use in the root's place, chain.args.
StatusOr<Endpoint> FoldedFilter(Chain& chain, Rewriter& r);

}  // namespace smelt::remap

#endif  // SMELT_OPTIMIZE_REMAP_FOLD_WEIGHTS_H_
