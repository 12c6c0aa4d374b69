// What shape rules share: sizes that may be unknown (-1), and the checks that TensorFlow words the
// same way everywhere. For the files of this folder and for rules of higher floors.
#ifndef SMELT_GRAPH_SHAPE_RULES_H_
#define SMELT_GRAPH_SHAPE_RULES_H_

#include <optional>
#include <vector>

#include "smelt/graph/shape/infer.h"

namespace smelt {

inline constexpr int64_t kUnknownDim = -1;

// ---- sizes ----
// Unknown when a part is unknown or the result does not fit.
int64_t AddDims(int64_t a, int64_t b);
int64_t MulDims(int64_t a, int64_t b);
// "Dimensions must be equal, but are 3 and 4"
StatusOr<int64_t> MergeDims(int64_t a, int64_t b);
// Size i, unknown when the rank is. REQUIRES: i < rank where that is known.
int64_t DimOf(const PartialShape& s, int i);
// Product of sizes [begin, end); a zero decides whatever else is unknown.
int64_t DimProduct(const PartialShape& s, int begin, int end);
int64_t NumElements(const PartialShape& s);

// How XLA moves a window along one dimension. Padding may be negative.
struct XlaWindow {
  int64_t stride = 1, base_dilation = 1, dilation = 1, low = 0, high = 0;
};
// The places of a window of `size` along `in`; `in`, known or not, where there is one for each.
// Unknown when either is, or no window is such.
int64_t XlaWindowedDim(int64_t in, int64_t size, const XlaWindow& window);

// ---- shapes ----
// The shape, or an unknown one of this rank where nothing is known: "Shape must be rank 2 but is
// rank 3".
StatusOr<PartialShape> WithRank(const PartialShape& s, int rank);
// "Shape must be at least rank 2 but is rank 1"
Status RankAtLeast(const PartialShape& s, int rank);
// The result of numpy's broadcasting, unknown where either rank is: "Dimensions must be equal, but
// are 3 and 4".
StatusOr<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b);
// The sizes that both have; unknown rank where the ranks differ. Never an error, unlike Merge.
PartialShape CommonShape(const PartialShape& a, const PartialShape& b);
// Dimensions [begin, end), or from `begin` on. REQUIRES: known rank, 0 <= begin <= end <= rank.
PartialShape SubShape(const PartialShape& s, int begin, int end);
PartialShape SubShape(const PartialShape& s, int begin);
// Unknown rank when either is.
PartialShape Concatenate(const PartialShape& a, const PartialShape& b);
PartialShape VectorShape(int64_t size);
// An axis in [-rank, rank) counted from the front: "Dimension 3 must be in the range [-2, 2)".
StatusOr<int> WrapAxis(int64_t axis, int rank);

// ---- inputs ----
// All values of an int32 or int64 input that is a known constant, else nothing.
std::optional<std::vector<int64_t>> IntConstants(const ShapeContext& ctx, int i);
// The same for an input of one element.
std::optional<int64_t> IntConstant(const ShapeContext& ctx, int i);
// The shape that input i holds as a vector; a scalar (-1 by convention) stands for any shape.
PartialShape ShapeFromInput(const ShapeContext& ctx, int i);

// ---- whole rules ----
Status SameShape(ShapeContext& ctx);       // output 0 as input 0
Status SameShapes(ShapeContext& ctx);      // output i as input i
Status SecondShape(ShapeContext& ctx);     // output 0 as input 1
Status ScalarShapes(ShapeContext& ctx);    // every output a scalar
Status NoShapes(ShapeContext& ctx);        // nothing is known, or there are no outputs
Status MergedShape(ShapeContext& ctx);     // output 0 as all inputs, which must have one shape
Status BroadcastShape(ShapeContext& ctx);  // output 0 as inputs 0 and 1 broadcast
Status VectorShapes(ShapeContext& ctx);    // every output a vector of unknown length
Status ShapeFromAttr(ShapeContext& ctx);   // attribute "shape"
template <int kInput>
Status ShapeFromInputRule(ShapeContext& ctx) {
  ctx.set_output(0, ShapeFromInput(ctx, kInput));
  return OkStatus();
}
template <int kRank>
Status SomeRank(ShapeContext& ctx) {
  for (int i = 0; i < ctx.node().num_outputs(); ++i) {
    ctx.set_output(i, PartialShape::UnknownOfRank(kRank));
  }
  return OkStatus();
}

}  // namespace smelt

#endif  // SMELT_GRAPH_SHAPE_RULES_H_
