// Small integer values of which some elements are known: what shapes are computed with.
#ifndef SMELT_GRAPH_SHAPE_VALUES_H_
#define SMELT_GRAPH_SHAPE_VALUES_H_

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

inline constexpr int64_t kUnknownInt = std::numeric_limits<int64_t>::min();
constexpr bool IsKnownInt(int64_t x) { return x != kUnknownInt && !IsSymbolicDim(x); }

// A scalar or vector of int32 or int64 elements.
struct IntVector {
  bool scalar = false;
  Dims values;  // kUnknownInt: not known; a symbol (tensor/shape.h): the size that it stands for

  bool complete() const;  // all elements are numbers
  bool operator==(const IntVector&) const = default;
};

// Nothing unless the tensor is an int32 or int64 scalar or vector of at most kMaxTracked elements
// (values.cc).
std::optional<IntVector> IntVectorOf(const Tensor& t);
// REQUIRES: complete(), dtype int32 or int64.
Tensor ToTensor(const IntVector& v, Dtype dtype);

// Is it a type that sizes are computed in? FollowValues has nothing of outputs of other types.
inline bool IsIndexType(Dtype t) {
  t = BaseType(t);
  return t == Dtype::kInt32 || t == Dtype::kInt64;
}

// Values of the node's outputs, by output; nothing where they are unknown or the op is not one that
// computes shapes. `values[i]` is nullptr when nothing is known of input i's elements.
std::vector<std::optional<IntVector>> FollowValues(const Node& n,
                                                   std::span<const PartialShape* const> inputs,
                                                   std::span<const IntVector* const> values);

}  // namespace smelt

#endif  // SMELT_GRAPH_SHAPE_VALUES_H_
