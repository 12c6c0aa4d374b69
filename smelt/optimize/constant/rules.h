// TensorFlow's constant_folding: its rules by theme, and what they share. constant_folding.cc has
// the order.
#ifndef SMELT_OPTIMIZE_CONSTANT_RULES_H_
#define SMELT_OPTIMIZE_CONSTANT_RULES_H_

#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::constant {

// materialize.cc: what shapes alone tell
extern const Rule kMaterializeShapes;
extern const Rule kMaterializeShapeN;
extern const Rule kMaterializeTensorArraySize;
extern const Rule kMaterializeBroadcastGradientArgs;
extern const Rule kMaterializeReductionIndices;
extern const Rule kMaterializeConstantValuedNode;
// simplify_movement.cc: what moves elements, and moves none
extern const Rule kRemoveSplit;
extern const Rule kRemoveTranspose;
extern const Rule kRemoveRandomShuffle;
extern const Rule kRemoveReverse;
extern const Rule kSimplifySlice;
extern const Rule kSimplifyStridedSlice;
extern const Rule kSimplifyTile;
extern const Rule kSimplifyPad;
extern const Rule kSimplifySqueeze;
extern const Rule kSimplifyPack;
extern const Rule kSimplifyReshape;
// simplify_flow.cc: loops, branches and calls
extern const Rule kMoveConstantsPastEnter;
extern const Rule kSimplifySwitch;
extern const Rule kPartialConstPropThroughIdentityN;
extern const Rule kSimplifyCase;
// simplify_numbers.cc: zeros, ones, and what has one element
extern const Rule kSimplifyReduction;
extern const Rule kSimplifyArithmeticOperations;
extern const Rule kReduceDivToReciprocalMul;
extern const Rule kSimplifySelect;
extern const Rule kRemoveRedundantVariableUpdates;
// push_down.cc: constants move to where they meet others
extern const Rule kConstantPushDown;
extern const Rule kMulConvPushDown;
extern const Rule kConstantPushDownBiasAdd;
// partial.cc: the constants among many inputs
extern const Rule kPartialAssocOpConstFolding;
extern const Rule kMergeConcat;
extern const Rule kPartialConcatConstFolding;

// ---- replace.cc: what a node becomes in its place. Inputs that it reads no more it waits for, and
// attributes whose names begin with '_' stay.

// What is no part of the op's own definition: attributes whose names begin with '_'.
AttrMap HiddenAttrs(const Node& node);
StatusOr<Rewritten> BecomeIdentity(Node& node, int input, Rewriter& r);
// Identity; where memory is written in place Snapshot, whose result is memory of its own.
StatusOr<Rewritten> BecomeSnapshot(Node& node, int input, Rewriter& r);
// BroadcastTo of the input to the shape of output 0; nothing where that is not known.
StatusOr<Rewritten> BecomeBroadcastTo(Node& node, int input, Rewriter& r);
StatusOr<Rewritten> BecomeConst(Node& node, Dtype dtype, Attr value, Rewriter& r);
// Const of one number.
StatusOr<Rewritten> BecomeUniform(Node& node, double value, const Shape& shape, Rewriter& r);
StatusOr<Rewritten> BecomeNoOp(Node& node, Rewriter& r);
// The node reads `inputs` alone, and waits for those that it read besides.
Status ReadOnly(Node& node, std::span<const Endpoint> inputs, Rewriter& r);
// A Const beside `node` under its name with this suffix, which waits for `before`.
StatusOr<Node*> ConstBeside(const Node& node, absl::string_view suffix, const Tensor& value,
                            Endpoint before, Rewriter& r);
Tensor IntegerVector(Dtype dtype, std::span<const int64_t> values);
// Is every element known to be this number: of a Const, a Fill of one, a ZerosLike or OnesLike?
bool IsAll(double value, Endpoint e, const Rewriter& r);

// Is the node marked for a TPU, whose compiler looks for it?
bool IsMarkedForTpu(const Node& node);

inline bool IsConstant(Endpoint e, const Rewriter& r) { return r.ConstantValue(e) != nullptr; }

}  // namespace smelt::constant

#endif  // SMELT_OPTIMIZE_CONSTANT_RULES_H_
