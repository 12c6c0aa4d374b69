#include "smelt/kernels/reduce/reduce_plan.h"

#include "smelt/kernels/kernel.h"

namespace smelt {

namespace {

// Short rows that lie side by side, many times: columns all the way down, then rows of those.
void GroupShortRows(ReducePlan* p) {
  constexpr int64_t kShort = 64, kLeastRepeats = 4;
  if (!p->inner_reduced || p->inner == 0 || p->inner >= kShort ||
      p->reduced.count < kLeastRepeats || p->kept.count == 0 || p->kept.sizes.empty() ||
      p->kept.strides.back() != p->inner) {
    return;
  }
  p->group = p->inner;
  p->inner *= p->kept.sizes.back();
  p->inner_reduced = false;
  p->kept.count /= p->kept.sizes.back();
  p->kept.sizes.pop_back();
  p->kept.strides.pop_back();
}

}  // namespace

ReducePlan PlanReduction(const Shape& shape, const ReducedDims& reduce) {
  absl::InlinedVector<std::pair<int64_t, bool>, 8> dims;
  ReducePlan plan;
  for (int i = 0; i < shape.rank(); ++i) {
    if (reduce[i]) plan.reduced_elements *= shape[i];
    if (shape[i] == 1) continue;
    if (!dims.empty() && dims.back().second == reduce[i]) {
      dims.back().first *= shape[i];
    } else {
      dims.emplace_back(shape[i], reduce[i]);
    }
  }
  if (dims.empty()) return plan;
  plan.inner = dims.back().first;
  plan.inner_reduced = dims.back().second;
  dims.pop_back();
  Dims strides(dims.size());
  int64_t stride = plan.inner;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i].first;
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    (dims[i].second ? plan.reduced : plan.kept).Add(dims[i].first, strides[i]);
  }
  GroupShortRows(&plan);
  return plan;
}

StatusOr<ReducedDims> ReducedDimensions(const Shape& shape, const Tensor& axes) {
  ReducedDims reduce(shape.rank(), false);
  const int64_t num_axes = axes.num_elements();
  for (int64_t i = 0; i < num_axes; ++i) {
    int64_t axis = IndexAt(axes, i);
    if (axis < -shape.rank() || axis >= shape.rank()) {
      return InvalidArgument("Invalid reduction dimension (", axis, " for input with ",
                             shape.rank(), " dimension(s)");
    }
    if (axis < 0) axis += shape.rank();
    if (reduce[axis]) {
      return InvalidArgument("Invalid reduction arguments: Axes contains duplicate dimension: ",
                             axis);
    }
    reduce[axis] = true;
  }
  return reduce;
}

}  // namespace smelt
