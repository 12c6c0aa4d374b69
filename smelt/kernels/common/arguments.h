// Reading small integer tensors, attributes and function arguments of a node. Thread safe.
#ifndef SMELT_KERNELS_COMMON_ARGUMENTS_H_
#define SMELT_KERNELS_COMMON_ARGUMENTS_H_

#include <array>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "smelt/kernels/common/binds_by_function.h"
#include "smelt/kernels/common/bound_function.h"

namespace smelt {

// An element of a tensor of any integer type; 0 for other types. IndexAt (tensor.h) is the faster
// one for int32 and int64 alone. REQUIRES: 0 <= i < num_elements().
int64_t IntAt(const Tensor& t, int64_t i);

// All elements of an integer tensor, in row-major order.
Dims IntsOf(const Tensor& t);

// The shape of these sizes. INVALID_ARGUMENT, in TensorFlow's words, for a negative size, more than
// kMaxRank dimensions or too many elements.
StatusOr<Shape> CheckedShape(std::span<const int64_t> dims);

// A tensor of `dtype` (int32 or int64) and shape [values.size()], as output i.
Status SetInts(OpContext& ctx, int i, std::span<const int64_t> values);

// Up to six integer (or bool) attributes, read once per node, in the order of the names that
// ReadIntAttrs is given. INVALID_ARGUMENT when one is missing or of another type.
struct IntAttrs final : BindsByFunction<IntAttrs> {
  std::array<int64_t, 6> values{};
  int64_t operator[](int i) const { return values[i]; }
};
StatusOr<std::unique_ptr<KernelState>> ReadIntAttrs(const Node& node,
                                                    std::initializer_list<absl::string_view> names,
                                                    IntAttrs::BindFunction bind = nullptr);
// The state of kernels that read no attributes and can be bound.
template <IntAttrs::BindFunction kBind>
StatusOr<std::unique_ptr<KernelState>> PrepareBinding(const Node& node) {
  return ReadIntAttrs(node, {}, kBind);
}

// The function that attribute `name` names, bound to inputs [first, first + count) as the values
// that it captured. INVALID_ARGUMENT when it names none. Each call checks the types of the results
// against `results` unless that is empty.
StatusOr<BoundFunction> FunctionArgument(const OpContext& ctx, absl::string_view name, int first,
                                         int count, std::vector<Dtype> results);

// What a function returned as the outputs of the node. INVALID_ARGUMENT for another number of them.
Status SetResults(OpContext& ctx, std::vector<Tensor> results);

// Rows [begin, end) of dimension 0 of `source`, under `shape`. They share the bytes of `source`, or
// are copied when a small result would keep a much larger buffer alive.
StatusOr<Tensor> ShareOrCopyRows(OpContext& ctx, const Tensor& source, int64_t begin, int64_t end,
                                 const Shape& shape);

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_ARGUMENTS_H_
