// Tensors that stand side by side in one buffer: _ScopedAllocator, _ScopedAllocatorConcat and
// _ScopedAllocatorSplit. In TensorFlow the makers of the inputs write into the buffer themselves;
// here the concat copies them there.
#include <cstring>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/copy.h"

namespace smelt {
namespace {

// Each tensor begins at a multiple of so many bytes.
constexpr int64_t kScopedAlignment = 64;

int64_t ScopedElements(Dtype dtype, int64_t elements) {
  const int64_t per = kScopedAlignment / static_cast<int64_t>(DtypeSize(dtype));
  return (elements + per - 1) / per * per;
}

Status CheckScopedType(const Node& n) {
  const Dtype dtype = n.Type("T");
  const auto bytes = static_cast<int64_t>(DtypeSize(dtype));
  if (IsPod(dtype) && bytes > 0 && kScopedAlignment % bytes == 0) return OkStatus();
  return InvalidArgument("a buffer cannot hold elements of ", DtypeName(dtype));
}

Status RunScopedAllocator(OpContext& ctx) {
  RETURN_IF_ERROR(CheckScopedType(ctx.node()));
  const PartialShape stated = ctx.node().Get<PartialShape>("shape", {});
  if (!stated.fully_known()) {
    return InvalidArgument("the shape of the buffer is not known: ", stated.ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, stated.ToShape()));
  // What stands between the tensors is computed with.
  std::memset(out->raw(), 0, out->bytes());
  return OkStatus();
}

Status RunScopedConcat(OpContext& ctx) {
  RETURN_IF_ERROR(CheckScopedType(ctx.node()));
  const Tensor& backing = ctx.input(0);
  const Dtype dtype = backing.dtype();
  int64_t needed = 0;
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    needed += ScopedElements(dtype, ctx.input(i).num_elements());
    if (needed > backing.num_elements()) {
      return InvalidArgument("input ", i - 1, " of shape ", ctx.input(i).shape().ToString(),
                             " does not fit into the buffer of ", backing.num_elements(),
                             " elements");
    }
  }
  const PartialShape stated = ctx.node().Get<PartialShape>("shape", {});
  const Shape shape = stated.fully_known() ? stated.ToShape() : Shape();
  const bool same = ctx.node().Bool("reshape") ? shape.num_elements() == backing.num_elements()
                                               : shape == backing.shape();
  if (!stated.fully_known() || !same) {
    return InvalidArgument("the buffer of shape ", backing.shape().ToString(),
                           " cannot take the shape ", stated.ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Forward(0, {0}, shape));
  if (out->raw() != backing.raw()) std::memset(out->raw(), 0, out->bytes());
  int64_t at = 0;
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    const Tensor& in = ctx.input(i);
    if (in.num_elements() > 0) std::memcpy(At(dtype, out->raw(), at), in.raw(), in.bytes());
    at += ScopedElements(dtype, in.num_elements());
  }
  return OkStatus();
}

Status RunScopedSplit(OpContext& ctx) {
  RETURN_IF_ERROR(CheckScopedType(ctx.node()));
  const Tensor& whole = ctx.input(0);
  ASSIGN_OR_RETURN(const Shape flat, Shape::Make(Dims{whole.num_elements()}));
  const auto shapes = ctx.node().Get<std::vector<PartialShape>>("shapes", {});
  int64_t at = 0;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    // The inputs behind the first are of the shapes of the parts.
    const Shape& shape = ctx.input(i + 1).shape();
    const PartialShape* stated =
        static_cast<size_t>(i) < shapes.size() ? &shapes[static_cast<size_t>(i)] : nullptr;
    if (stated == nullptr || !stated->fully_known() || !(stated->ToShape() == shape)) {
      return InvalidArgument("output ", i, " is of shape ", shape.ToString(),
                             ", which the attribute shapes does not say");
    }
    const int64_t end = at + shape.num_elements();
    if (end > whole.num_elements()) {
      return InvalidArgument("output ", i, " of shape ", shape.ToString(),
                             " is not in the buffer of ", whole.num_elements(), " elements");
    }
    ASSIGN_OR_RETURN(Tensor part, ShareOrCopyRows(ctx, whole.WithShape(flat), at, end, shape));
    ctx.set_output(i, std::move(part));
    at += ScopedElements(whole.dtype(), shape.num_elements());
  }
  return OkStatus();
}

constexpr Kernel kScopedTable[] = {
    {"_ScopedAllocator", "", kAnyType, "movement:scoped_buffer", RunScopedAllocator},
    {"_ScopedAllocatorConcat", "", kAnyType, "movement:scoped_concat", RunScopedConcat},
    {"_ScopedAllocatorSplit", "", kAnyType, "movement:scoped_split", RunScopedSplit},
};

}  // namespace

extern constinit const std::span<const Kernel> kScopedKernels = kScopedTable;

}  // namespace smelt
