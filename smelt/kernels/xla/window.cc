#include "smelt/kernels/xla/window.h"

#include "smelt/kernels/common/arguments.h"

namespace smelt::xla {

StatusOr<std::vector<WindowAxis>> WindowAxes(const Shape& in, const Tensor& size,
                                             const Tensor& stride, const Tensor* base_dilation,
                                             const Tensor* dilation, const Tensor& padding) {
  if (size.rank() == 1 && stride.rank() == 1 && size.dim(0) != stride.dim(0)) {
    return InvalidArgument(
        "Window has different number of window dimensions than of window strides\n"
        "Number of window dimensions: ",
        size.dim(0), "\nNumber of window strides: ", stride.dim(0));
  }
  for (const Tensor* t : {&size, &stride, base_dilation, dilation}) {
    if (t != nullptr && (t->rank() != 1 || t->num_elements() != in.rank())) {
      return InvalidArgument("windows over ", in.rank(), " dimensions are given by vectors of ",
                             in.rank(), " elements, not of shape ", t->shape().ToString());
    }
  }
  if (padding.rank() != 2 || padding.dim(0) != in.rank() || padding.dim(1) != 2) {
    return InvalidArgument("padding must be a matrix with minor dimension 2 and ", in.rank(),
                           " rows, got ", padding.shape().ToString());
  }
  std::vector<WindowAxis> axes;
  for (int i = 0; i < in.rank(); ++i) {
    WindowAxis a;
    a.size = IndexAt(size, i);
    a.stride = IndexAt(stride, i);
    a.dilation = dilation != nullptr ? IndexAt(*dilation, i) : 1;
    const int64_t base = base_dilation != nullptr ? IndexAt(*base_dilation, i) : 1;
    if (a.size < 1 || a.stride < 1 || a.dilation < 1 || base < 1) {
      return InvalidArgument("sizes, strides and dilations of windows must be positive: dimension ",
                             i, " has ", a.size, ", ", a.stride, ", ", a.dilation, " and ", base);
    }
    a.pad = {IndexAt(padding, 2 * i), IndexAt(padding, 2 * i + 1), base - 1};
    RETURN_IF_ERROR(PaddedSize(in[i], a.pad).status());
    axes.push_back(a);
  }
  return axes;
}

int64_t WindowCount(int64_t padded, const WindowAxis& axis) {
  int64_t reach;  // from the first to the last element of a window
  if (__builtin_mul_overflow(axis.size - 1, axis.dilation, &reach) || reach >= padded) return 0;
  return (padded - 1 - reach) / axis.stride + 1;
}

}  // namespace smelt::xla
