// Tensor arrays of all versions, many elements at a time.
#include <algorithm>

#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/rows.h"
#include "smelt/kernels/control/tensor_array.h"
#include "smelt/kernels/control/tensor_list.h"

namespace smelt {
namespace {

// Output 0: the elements that `indices` name (nullptr: all in order), stacked along a new first
// dimension.
Status GatherElements(OpContext& ctx, TensorArray& array, const Tensor* indices)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(array.mutex) {
  const Dtype dtype = ctx.output_type(0);
  PartialShape wanted;
  if (const Attr* attr = ctx.node().Find("element_shape");
      attr != nullptr && attr->get<PartialShape>()) {
    wanted = *attr->get<PartialShape>();
  }
  RETURN_IF_ERROR(array.CheckOpen());
  // The array keeps what the op knows of the shape; to gather nothing, the op alone must know it.
  ASSIGN_OR_RETURN(array.element_shape, MergeElementShapes(array.element_shape, wanted));
  const int64_t n =
      indices != nullptr ? indices->num_elements() : static_cast<int64_t>(array.elements.size());
  std::vector<Tensor> items;
  if (n == 0) {
    if (!wanted.fully_known()) {
      return Unimplemented("TensorArray has size zero, but element shape ", wanted.ToString(),
                           " is not fully defined. Currently only static shapes are supported ",
                           "when packing zero-size TensorArrays.");
    }
    ASSIGN_OR_RETURN(Tensor out, StackItems(ctx, items, nullptr, 0, dtype, wanted.ToShape()));
    ctx.set_output(0, std::move(out));
    return OkStatus();
  }
  for (int64_t i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(Tensor item, array.Read(ctx, indices != nullptr ? IndexAt(*indices, i) : i));
    items.push_back(std::move(item));
  }
  const Shape shape = items[0].shape();
  if (!wanted.Matches(shape)) {
    return InvalidArgument("TensorArray was passed element_shape ", wanted.ToString(),
                           " which does not match the Tensor at index 0: ", shape.ToString());
  }
  for (int64_t i = 1; i < n; ++i) {
    if (!(items[static_cast<size_t>(i)].shape() == shape)) {
      return InvalidArgument(
          "TensorArray has inconsistent shapes.  Index 0 has shape: ", shape.ToString(),
          " but index ", i, " has shape: ", items[static_cast<size_t>(i)].shape().ToString());
    }
  }
  ASSIGN_OR_RETURN(Tensor out, StackItems(ctx, items, nullptr, n, dtype, shape));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status RunArrayGather(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  RETURN_IF_ERROR(array->CheckReadType(ctx.output_type(0)));
  const Tensor& indices = ctx.input(1);
  if (indices.rank() != 1) {
    return InvalidArgument("Expected indices to be a vector, but received shape: ",
                           indices.shape().ToString());
  }
  absl::MutexLock lock(&array->mutex);
  return GatherElements(ctx, *array, &indices);
}

Status RunArrayPack(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  RETURN_IF_ERROR(array->CheckReadType(ctx.output_type(0)));
  absl::MutexLock lock(&array->mutex);
  return GatherElements(ctx, *array, nullptr);
}

Status RunArrayConcat(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  const Dtype dtype = ctx.output_type(0);
  RETURN_IF_ERROR(array->CheckReadType(dtype));
  PartialShape rest;
  if (const Attr* attr = ctx.node().Find("element_shape_except0");
      attr != nullptr && attr->get<PartialShape>()) {
    rest = *attr->get<PartialShape>();
  }
  absl::MutexLock lock(&array->mutex);
  RETURN_IF_ERROR(array->CheckOpen());
  const auto n = static_cast<int64_t>(array->elements.size());
  Dims dims{0};
  std::vector<Tensor> items;
  if (n == 0) {
    if (!rest.fully_known()) {
      return Unimplemented("TensorArray has size zero, but element_shape_except0 ", rest.ToString(),
                           " is not fully defined. Currently only static shapes ",
                           "are supported when concatenating zero-size TensorArrays.");
    }
    for (int64_t d : rest.dims()) dims.push_back(d);
  }
  for (int64_t i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(Tensor item, array->Read(ctx, i));
    if (item.rank() == 0) {
      return InvalidArgument("Concat saw a scalar shape at index ", i,
                             " but requires at least vectors.  Did you mean to call pack?");
    }
    items.push_back(std::move(item));
    const Shape first = RowShape(items[0].shape()), here = RowShape(items.back().shape());
    if (!(first == here)) {
      return InvalidArgument("TensorArray has inconsistent shapes.  Index 0 has (excepting ",
                             "dimension 0) shape: ", first.ToString(), " but index ", i,
                             " has (excepting dimension 0) shape: ", here.ToString());
    }
    if (__builtin_add_overflow(dims[0], items.back().dim(0), &dims[0])) {
      return InvalidArgument("The concatenated TensorArray is too long");
    }
  }
  if (n > 0) {
    const Shape row = RowShape(items[0].shape());
    if (!rest.Matches(row)) {
      return InvalidArgument("TensorArray was passed element_shape_except0 ", rest.ToString(),
                             " but index 0 has (excepting dimension 0) shape: ", row.ToString(),
                             " which does not match.");
    }
    for (int64_t d : row.dims()) dims.push_back(d);
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  ASSIGN_OR_RETURN(Tensor * lengths, ctx.Allocate(1, Shape({n})));
  int64_t offset = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& item = items[static_cast<size_t>(i)];
    lengths->data<int64_t>()[i] = item.dim(0);
    if (item.num_elements() == 0) continue;
    CopyRun(dtype, At(dtype, out->raw(), offset), item.raw(), item.num_elements());
    offset += item.num_elements();
  }
  return OkStatus();
}

Status RunArrayScatter(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  const Tensor& indices = ctx.input(1);
  const Tensor& value = ctx.input(2);
  RETURN_IF_ERROR(array->CheckWriteType(value.dtype()));
  if (indices.rank() != 1) {
    return InvalidArgument("Expected indices to be a vector, but received shape: ",
                           indices.shape().ToString());
  }
  if (value.rank() == 0) {
    return InvalidArgument("Input value for unpack must be at least a vector but received shape: ",
                           value.shape().ToString());
  }
  const int64_t n = indices.num_elements();
  if (n != value.dim(0)) {
    return InvalidArgument("Expected len(indices) == values.shape[0], but saw: ", n, " vs. ",
                           value.dim(0));
  }
  const Shape row = RowShape(value.shape());
  absl::MutexLock lock(&array->mutex);
  const auto size = static_cast<int64_t>(array->elements.size());
  int64_t highest = -1;
  for (int32_t i : indices.flat<int32_t>()) highest = std::max<int64_t>(highest, i);
  if (highest >= size && !array->dynamic_size) {
    return InvalidArgument("Max scatter index must be < array size (", highest, " vs. ", size, ")");
  }
  for (int64_t i = 0; i < n; ++i) {
    RETURN_IF_ERROR(array->Write(IndexAt(indices, i), value.Rows(i, i + 1).WithShape(row)));
  }
  return SetFlow(ctx, 0, 3);
}

Status RunArrayUnpack(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  const Tensor& value = ctx.input(1);
  RETURN_IF_ERROR(array->CheckWriteType(value.dtype()));
  if (value.rank() == 0) {
    return InvalidArgument("Input value for unpack must be at least a vector but received shape: ",
                           value.shape().ToString());
  }
  const Shape row = RowShape(value.shape());
  absl::MutexLock lock(&array->mutex);
  RETURN_IF_ERROR(array->CheckOpen());
  const auto size = static_cast<int64_t>(array->elements.size());
  if (value.dim(0) != size && !array->dynamic_size) {
    return InvalidArgument("Input value must have first dimension equal to the array size (",
                           value.dim(0), " vs. ", size, ")");
  }
  for (int64_t i = 0; i < value.dim(0); ++i) {
    RETURN_IF_ERROR(array->Write(i, value.Rows(i, i + 1).WithShape(row)));
  }
  return SetFlow(ctx, 0, 2);
}

Status RunArraySplit(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  const Tensor& value = ctx.input(1);
  const Tensor& lengths = ctx.input(2);
  RETURN_IF_ERROR(array->CheckWriteType(value.dtype()));
  if (lengths.rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ",
                           lengths.shape().ToString());
  }
  if (value.rank() == 0) {
    return InvalidArgument("Expected value to be at least a vector, but received shape: ",
                           value.shape().ToString());
  }
  int64_t total = 0;
  for (int64_t length : lengths.flat<int64_t>()) {
    if (length < 0) return InvalidArgument("Invalid value in lengths: ", length);
    if (__builtin_add_overflow(total, length, &total)) {
      return InvalidArgument("The sum of lengths is too large");
    }
  }
  if (total != value.dim(0)) {
    return InvalidArgument("Expected sum of lengths to be equal to values.shape[0], but sum of ",
                           "lengths is ", total,
                           " and value's shape is: ", value.shape().ToString());
  }
  absl::MutexLock lock(&array->mutex);
  const auto size = static_cast<int64_t>(array->elements.size());
  const int64_t n = lengths.num_elements();
  if (size != n && !array->dynamic_size) {
    return InvalidArgument("TensorArray's size is not equal to the size of lengths (", size,
                           " vs. ", n, "), and the TensorArray is not marked as dynamically ",
                           "resizeable");
  }
  int64_t begin = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t length = IndexAt(lengths, i);
    RETURN_IF_ERROR(array->Write(i, value.Rows(begin, begin + length)));
    begin += length;
  }
  return SetFlow(ctx, 0, 3);
}

constexpr Kernel kTensorArrayBulkTable[] = {
    {"TensorArrayGather", "", kAnyType, "tensor_array:gather", RunArrayGather},
    {"TensorArrayPack", "", kAnyType, "tensor_array:gather", RunArrayPack},
    {"TensorArrayConcat", "", kAnyType, "tensor_array:concat", RunArrayConcat},
    {"TensorArrayScatter", "", kAnyType, "tensor_array:scatter", RunArrayScatter},
    {"TensorArrayUnpack", "", kAnyType, "tensor_array:scatter", RunArrayUnpack},
    {"TensorArraySplit", "", kAnyType, "tensor_array:split", RunArraySplit},
};

}  // namespace

extern constinit const std::span<const Kernel> kTensorArrayBulkKernels = kTensorArrayBulkTable;

}  // namespace smelt
