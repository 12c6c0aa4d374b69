// What rules of convolutions and products share: finding the parts of a pattern, and making them
// one node.
#ifndef SMELT_OPTIMIZE_REMAP_CONTRACTION_H_
#define SMELT_OPTIMIZE_REMAP_CONTRACTION_H_

#include <string>
#include <vector>

#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::remap {

inline constexpr OpSet kBatchNorms = {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"};

struct Contraction {
  OpName op, fused;
};

// A node within a pattern: nothing but the next of the pattern needs it.
bool IsInner(const Node& n);
// Do the node's channels come second?
bool ChannelsFirst(const Node& n);

// A contraction and the bias that is added to it.
struct Biased {
  Node* contraction = nullptr;  // nullptr: there is none
  const Contraction* row = nullptr;
  Endpoint bias;
  absl::string_view why;  // that there is none, though it nearly was
};
// What `sum` adds to a contraction, if the contraction may be fused: a BiasAdd, or for oneDNN an
// Add of one number for each channel.
Biased FindBiased(const Node& sum, Rewriter& r);

// The attributes of the fused op; `args` are its inputs behind the contraction's own.
AttrMap FusedAttrs(const Node& contraction, const Contraction& row,
                   std::vector<std::string> fused_ops, const std::vector<Endpoint>& args);
// `node`, the last of the pattern, becomes the fused op under its own name.
Status Fuse(Node& node, const Node& contraction, const Contraction& row, AttrMap attrs,
            const std::vector<Endpoint>& args, Rewriter& r);

}  // namespace smelt::remap

#endif  // SMELT_OPTIMIZE_REMAP_CONTRACTION_H_
