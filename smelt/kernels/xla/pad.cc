#include "smelt/kernels/xla/pad.h"

#include <algorithm>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace xla {
namespace {

// The elements of a dimension that stay: [first, first + count), the first of them at `at`.
struct KeptRange {
  int64_t first = 0, count = 0, at = 0;
};
KeptRange KeptOf(int64_t size, int64_t padded, const PadAxis& axis) {
  KeptRange r;
  const int64_t step = axis.interior + 1;
  if (axis.low < 0) r.first = (-axis.low + step - 1) / step;
  const int64_t last = padded - 1 - axis.low;  // the last place, seen from element 0
  if (padded == 0 || last < 0) return r;
  r.count = std::max<int64_t>(0, std::min(size - 1, last / step) - r.first + 1);
  r.at = axis.low + r.first * step;
  return r;
}

}  // namespace

StatusOr<int64_t> PaddedSize(int64_t size, const PadAxis& axis) {
  constexpr int64_t kMost = int64_t{1} << 48;  // nothing overflows below
  if (axis.interior < 0) {
    return InvalidArgument("padding_interior must be non-negative, got ", axis.interior);
  }
  int64_t dilated = 0;
  const auto fits = [](int64_t x) { return x >= -kMost && x <= kMost; };
  if (!fits(axis.low) || !fits(axis.high) || !fits(size) ||
      (size > 0 && (__builtin_mul_overflow(size - 1, axis.interior, &dilated) ||
                    __builtin_add_overflow(dilated, size, &dilated) || !fits(dilated)))) {
    return InvalidArgument("padding of ", axis.low, ", ", axis.interior, " and ", axis.high,
                           " is too large");
  }
  const int64_t padded = dilated + axis.low + axis.high;
  if (padded < 0) {
    return InvalidArgument("Padding result in negative size: ", padded);
  }
  return padded;
}

StatusOr<Tensor> PadTensor(const Tensor& in, const void* value, std::span<const PadAxis> axes,
                           Allocator* allocator) {
  Dims dims;
  bool same = true;
  for (int i = 0; i < in.rank(); ++i) {
    const PadAxis& a = axes[static_cast<size_t>(i)];
    const auto padded = PaddedSize(in.dim(i), a);
    if (!padded.ok()) return Suffix(padded.status(), absl::StrCat(" for dimension ", i));
    const int64_t size = *padded;
    same = same && a.low == 0 && a.high == 0 && (a.interior == 0 || in.dim(i) < 2);
    dims.push_back(size);
  }
  if (same) return in;
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(in.dtype(), shape, allocator));
  if (shape.num_elements() == 0) return out;
  FillRun(in.dtype(), out.raw(), value, shape.num_elements());
  if (in.num_elements() == 0) return out;
  const Dims from = Strides(in.shape()), to = Strides(shape);
  CopyDims loops;
  int64_t read = 0, write = 0;
  for (int i = 0; i < in.rank(); ++i) {
    const PadAxis& a = axes[static_cast<size_t>(i)];
    const KeptRange kept = KeptOf(in.dim(i), shape[i], a);
    if (kept.count == 0) return out;
    read += kept.first * from[i];
    write += kept.at * to[i];
    // One element has no step, whatever the interior is.
    const int64_t step = kept.count == 1 ? 0 : (a.interior + 1) * to[i];
    loops.push_back({kept.count, step, from[i]});
  }
  CopyStrided(in.dtype(), At(in.dtype(), out.raw(), write), At(in.dtype(), in.raw(), read), loops);
  return out;
}

}  // namespace xla

namespace {

Status RunXlaPad(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Tensor& value = ctx.input(1);
  if (value.rank() != 0) {
    return InvalidArgument("padding value must be a scalar, not of shape ",
                           value.shape().ToString());
  }
  constexpr absl::string_view kNames[] = {"padding_low", "padding_high", "padding_interior"};
  for (int i = 2; i < 5; ++i) {
    const Tensor& t = ctx.input(i);
    if (t.rank() != 1 || t.num_elements() != in.rank()) {
      return InvalidArgument("The size of ", kNames[i - 2], " must be equal to the input rank (",
                             t.num_elements(), " vs. ", in.rank(), ")");
    }
  }
  std::vector<xla::PadAxis> axes;
  for (int i = 0; i < in.rank(); ++i) {
    axes.push_back({IndexAt(ctx.input(2), i), IndexAt(ctx.input(3), i), IndexAt(ctx.input(4), i)});
  }
  ASSIGN_OR_RETURN(Tensor out, xla::PadTensor(in, value.raw(), axes, ctx.step().allocator));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Where a slice of `size` starts: moved inside along each dimension.
// REQUIRES: as many sizes as dimensions, none of them larger.
StatusOr<Dims> ClampedStart(const Tensor& start, const Shape& in, std::span<const int64_t> size,
                            absl::string_view op) {
  if (start.rank() != 1 || start.num_elements() != in.rank()) {
    return InvalidArgument(op, " has mismatched number of slice sizes (", in.rank(),
                           ") and number of start indices (", start.num_elements(), ")");
  }
  Dims at;
  for (int i = 0; i < in.rank(); ++i) {
    at.push_back(std::clamp<int64_t>(IndexAt(start, i), 0, in[i] - size[i]));
  }
  return at;
}

CopyDims BlockLoops(const Shape& whole, const Shape& block, const Dims& at, bool into_whole,
                    int64_t* offset) {
  const Dims outer = Strides(whole), inner = Strides(block);
  CopyDims loops;
  *offset = 0;
  for (int i = 0; i < whole.rank(); ++i) {
    *offset += at[i] * outer[i];
    loops.push_back(into_whole ? CopyDim{block[i], outer[i], inner[i]}
                               : CopyDim{block[i], inner[i], outer[i]});
  }
  return loops;
}

Status RunXlaDynamicSlice(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Tensor& sizes = ctx.input(2);
  if (sizes.rank() != 1 || sizes.num_elements() != in.rank()) {
    return InvalidArgument(ctx.node().op(), ": size_indices must be a vector of ", in.rank(),
                           " elements, not of shape ", sizes.shape().ToString());
  }
  const Dims size = IntsOf(sizes);
  for (int i = 0; i < in.rank(); ++i) {
    if (size[i] < 0 || size[i] > in.dim(i)) {
      return InvalidArgument(ctx.node().op(), " has slice size ", size[i],
                             " greater than dimension size ", in.dim(i), " in dimension ", i,
                             " of operand");
    }
  }
  ASSIGN_OR_RETURN(const Dims at, ClampedStart(ctx.input(1), in.shape(), size, ctx.node().op()));
  const Shape shape{std::span<const int64_t>(size)};
  if (shape == in.shape()) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  int64_t offset;
  const CopyDims loops = BlockLoops(in.shape(), shape, at, false, &offset);
  CopyStrided(in.dtype(), out->raw(), At(in.dtype(), in.raw(), offset), loops);
  return OkStatus();
}

Status RunXlaDynamicUpdateSlice(OpContext& ctx) {
  const Tensor update = ctx.input(1);
  const Shape shape = ctx.input(0).shape();
  if (update.rank() != shape.rank()) {
    return InvalidArgument("input and update must have the same rank, input shape is ",
                           shape.ToString(), "; update shape is ", update.shape().ToString());
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (update.dim(i) > shape[i]) {
      return InvalidArgument("Update dim size ", update.dim(i),
                             " greater than dynamic slice dimension: ", shape[i]);
    }
  }
  ASSIGN_OR_RETURN(const Dims at,
                   ClampedStart(ctx.input(2), shape, update.shape().dims(), ctx.node().op()));
  Tensor out = ctx.TakeInput(0);
  if (update.num_elements() > 0) {
    if (!out.Writable()) {
      ASSIGN_OR_RETURN(out, out.Clone(ctx.step().allocator));
    }
    int64_t offset;
    const CopyDims loops = BlockLoops(shape, update.shape(), at, true, &offset);
    CopyStrided(out.dtype(), At(out.dtype(), out.raw(), offset), update.raw(), loops);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr Kernel kXlaSliceTable[] = {
    {"XlaPad", "", kAnyType, "xla:pad", RunXlaPad},
    {"XlaDynamicSlice", "", kAnyType, "xla:dynamic_slice", RunXlaDynamicSlice},
    {"XlaDynamicUpdateSlice", "", kAnyType, "xla:dynamic_update_slice", RunXlaDynamicUpdateSlice},
};

}  // namespace

extern constinit const std::span<const Kernel> kXlaSliceKernels = kXlaSliceTable;

}  // namespace smelt
