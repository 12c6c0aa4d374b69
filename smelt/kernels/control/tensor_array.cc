// TensorArrayV3 and StackV2: sequences of tensors that live in one step, written and read by ops
// that a float "flow" or control edges put in order. The handle owns the resource.
#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/control/tensor_list.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/movement/copy.h"

namespace smelt {
namespace {

class TensorArray final : public Resource {
 public:
  static constexpr absl::string_view kKind = "tensor_array";
  absl::string_view kind() const override { return kKind; }

  struct Element {
    Tensor value;
    bool written = false;
    bool read = false;
    bool cleared = false;
  };

  std::string name;
  Dtype dtype = Dtype::kInvalid;
  bool dynamic_size = false;
  bool clear_after_read = true;
  bool identical_shapes = false;

  absl::Mutex mutex;
  PartialShape element_shape ABSL_GUARDED_BY(mutex);
  std::vector<Element> elements ABSL_GUARDED_BY(mutex);
  bool closed ABSL_GUARDED_BY(mutex) = false;

  Status CheckOpen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (!closed) return OkStatus();
    return InvalidArgument("TensorArray ", name, " has already been closed.");
  }

  Status Write(int64_t index, Tensor value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    RETURN_IF_ERROR(CheckOpen());
    const auto size = static_cast<int64_t>(elements.size());
    if (index < 0 || (index >= size && !dynamic_size)) {
      return InvalidArgument("TensorArray ", name, ": Tried to write to index ", index,
                             " but array is not resizeable and size is: ", size);
    }
    RETURN_IF_ERROR(CheckListSize(index + 1));
    if (index >= size) elements.resize(static_cast<size_t>(index) + 1);
    Element& e = elements[static_cast<size_t>(index)];
    if (value.dtype() != dtype) {
      return InvalidArgument("TensorArray ", name, ": Could not write to TensorArray index ", index,
                             " because the value dtype is ", DtypeName(value.dtype()),
                             " but TensorArray dtype is ", DtypeName(dtype), ".");
    }
    if (!element_shape.Matches(value.shape())) {
      return InvalidArgument("TensorArray ", name, ": Could not write to TensorArray index ", index,
                             " because the value shape is ", value.shape().ToString(),
                             " which is incompatible with the TensorArray's inferred element ",
                             "shape: ", element_shape.ToString(),
                             " (consider setting infer_shape=False).");
    }
    if (identical_shapes) element_shape = value.shape();
    if (e.read) {
      return InvalidArgument("TensorArray ", name, ": Could not write to TensorArray index ", index,
                             " because it has already been read.");
    }
    if (e.written) {
      return InvalidArgument("TensorArray ", name, ": Could not write to TensorArray index ", index,
                             " because it has already been written to.");
    }
    e.value = std::move(value);
    e.written = true;
    return OkStatus();
  }

  StatusOr<Tensor> Read(OpContext& ctx, int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    RETURN_IF_ERROR(CheckOpen());
    const auto size = static_cast<int64_t>(elements.size());
    if (index < 0 || index >= size) {
      return InvalidArgument("Tried to read from index ", index, " but array size is: ", size);
    }
    Element& e = elements[static_cast<size_t>(index)];
    if (e.cleared) {
      return InvalidArgument("TensorArray ", name, ": Could not read index ", index,
                             " twice because it was cleared after a previous read (perhaps try ",
                             "setting clear_after_read = false?).");
    }
    if (!e.written) {
      if (!element_shape.fully_known()) {
        return InvalidArgument(
            "TensorArray ", name, ": Could not read from TensorArray index ", index,
            ".  Furthermore, the element shape is not fully defined: ", element_shape.ToString(),
            ".  It is possible you are working with a resizeable TensorArray and stop_gradients ",
            "is not allowing the gradients to be written.  If you set the full element_shape ",
            "property on the forward TensorArray, the proper all-zeros tensor will be returned ",
            "instead of incurring this error.");
      }
      ASSIGN_OR_RETURN(Shape shape, Shape::Make(element_shape.dims()));
      ASSIGN_OR_RETURN(e.value, ZeroItem(ctx, dtype, shape));
    }
    e.read = true;
    if (!clear_after_read) return e.value;
    e.cleared = true;
    return std::move(e.value);
  }
};

class Stack final : public Resource {
 public:
  static constexpr absl::string_view kKind = "stack";
  absl::string_view kind() const override { return kKind; }

  std::string name;
  Dtype dtype = Dtype::kInvalid;
  int64_t max_size = -1;

  absl::Mutex mutex;
  std::vector<Tensor> items ABSL_GUARDED_BY(mutex);
  bool closed ABSL_GUARDED_BY(mutex) = false;
};

StatusOr<int64_t> ArrayIndex(const Tensor& t, absl::string_view what) {
  if (t.rank() != 0) {
    return InvalidArgument(what, " must be a scalar, but had shape: ", t.shape().ToString());
  }
  return IndexAt(t, 0);
}

void SetHandle(OpContext& ctx, std::string name, std::shared_ptr<Resource> resource) {
  ResourceHandle handle;
  handle.container = "_tensor_arrays";
  handle.name = std::move(name);
  handle.device = ctx.step().device;
  handle.resource = std::move(resource);
  ctx.set_output(0, Tensor::Scalar(std::move(handle)));
}

// The float that orders accesses: passed on where there is one, made where not.
Status SetFlow(OpContext& ctx, int output, int input) {
  if (input >= 0) {
    ctx.set_output(output, ctx.TakeInput(input));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * flow, ctx.Allocate(output, Shape()));
  *flow->data<float>() = 0;
  return OkStatus();
}

Status RunTensorArray(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t size, ArrayIndex(ctx.input(0), "TensorArray size"));
  if (size < 0) return InvalidArgument("Size should be >= 0.");
  RETURN_IF_ERROR(CheckListSize(size));
  auto array = std::make_shared<TensorArray>();
  const Node& node = ctx.node();
  array->name = node.String("tensor_array_name");
  if (array->name.empty()) array->name = node.name();
  array->dtype = node.Type("dtype");
  array->dynamic_size = node.Bool("dynamic_size");
  array->clear_after_read = node.Bool("clear_after_read", true);
  array->identical_shapes = node.Bool("identical_element_shapes");
  {
    absl::MutexLock lock(&array->mutex);
    const Attr* shape = node.Find("element_shape");
    if (shape != nullptr && shape->get<PartialShape>()) {
      array->element_shape = *shape->get<PartialShape>();
    }
    array->elements.resize(static_cast<size_t>(size));
  }
  std::string name = array->name;
  SetHandle(ctx, std::move(name), std::move(array));
  return SetFlow(ctx, 1, -1);
}

Status CheckReadType(const TensorArray& array, Dtype wanted) {
  if (array.dtype == wanted) return OkStatus();
  return InvalidArgument("TensorArray dtype is ", DtypeName(array.dtype),
                         " but Op requested dtype ", DtypeName(wanted), ".");
}

Status CheckWriteType(const TensorArray& array, Dtype given) {
  if (array.dtype == given) return OkStatus();
  return InvalidArgument("TensorArray dtype is ", DtypeName(array.dtype),
                         " but Op is trying to write dtype ", DtypeName(given), ".");
}

Status RunArrayWrite(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, LookupResource<TensorArray>(ctx.input(0)));
  ASSIGN_OR_RETURN(const int64_t index, ArrayIndex(ctx.input(1), "TensorArray index"));
  RETURN_IF_ERROR(CheckWriteType(*array, ctx.input(2).dtype()));
  {
    absl::MutexLock lock(&array->mutex);
    RETURN_IF_ERROR(array->Write(index, ctx.TakeInput(2)));
  }
  return SetFlow(ctx, 0, 3);
}

Status RunArrayRead(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, LookupResource<TensorArray>(ctx.input(0)));
  ASSIGN_OR_RETURN(const int64_t index, ArrayIndex(ctx.input(1), "TensorArray index"));
  RETURN_IF_ERROR(CheckReadType(*array, ctx.output_type(0)));
  absl::MutexLock lock(&array->mutex);
  ASSIGN_OR_RETURN(Tensor value, array->Read(ctx, index));
  ctx.set_output(0, std::move(value));
  return OkStatus();
}

Status RunArrayGather(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, LookupResource<TensorArray>(ctx.input(0)));
  const Dtype dtype = ctx.output_type(0);
  RETURN_IF_ERROR(CheckReadType(*array, dtype));
  const Tensor& indices = ctx.input(1);
  if (indices.rank() != 1) {
    return InvalidArgument("Expected indices to be a vector, but received shape: ",
                           indices.shape().ToString());
  }
  PartialShape wanted;
  if (const Attr* attr = ctx.node().Find("element_shape");
      attr != nullptr && attr->get<PartialShape>()) {
    wanted = *attr->get<PartialShape>();
  }
  absl::MutexLock lock(&array->mutex);
  RETURN_IF_ERROR(array->CheckOpen());
  ASSIGN_OR_RETURN(wanted, MergeElementShapes(wanted, array->element_shape));
  const int64_t n = indices.num_elements();
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
  for (int32_t i : indices.flat<int32_t>()) {
    ASSIGN_OR_RETURN(Tensor item, array->Read(ctx, i));
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

Status RunArrayConcat(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, LookupResource<TensorArray>(ctx.input(0)));
  const Dtype dtype = ctx.output_type(0);
  RETURN_IF_ERROR(CheckReadType(*array, dtype));
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
  ASSIGN_OR_RETURN(auto array, LookupResource<TensorArray>(ctx.input(0)));
  const Tensor& indices = ctx.input(1);
  const Tensor& value = ctx.input(2);
  RETURN_IF_ERROR(CheckWriteType(*array, value.dtype()));
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

Status RunArraySplit(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, LookupResource<TensorArray>(ctx.input(0)));
  const Tensor& value = ctx.input(1);
  const Tensor& lengths = ctx.input(2);
  RETURN_IF_ERROR(CheckWriteType(*array, value.dtype()));
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

Status RunArraySize(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, LookupResource<TensorArray>(ctx.input(0)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape()));
  absl::MutexLock lock(&array->mutex);
  RETURN_IF_ERROR(array->CheckOpen());
  *out->data<int32_t>() = static_cast<int32_t>(array->elements.size());
  return OkStatus();
}

Status RunArrayClose(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, LookupResource<TensorArray>(ctx.input(0)));
  absl::MutexLock lock(&array->mutex);
  array->elements.clear();
  array->closed = true;
  return OkStatus();
}

Status RunNewStack(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t max_size, ArrayIndex(ctx.input(0), "Stack size"));
  auto stack = std::make_shared<Stack>();
  const Node& node = ctx.node();
  stack->name = node.String("stack_name");
  if (stack->name.empty()) stack->name = node.name();
  stack->dtype = node.Type("elem_type");
  stack->max_size = max_size;
  std::string name = stack->name;
  SetHandle(ctx, std::move(name), std::move(stack));
  return OkStatus();
}

Status RunStackPush(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto stack, LookupResource<Stack>(ctx.input(0)));
  Tensor value = ctx.TakeInput(1);
  if (value.dtype() != stack->dtype) {
    return InvalidArgument("Must have type ", DtypeName(stack->dtype), " but got ",
                           DtypeName(value.dtype()));
  }
  absl::MutexLock lock(&stack->mutex);
  if (stack->closed) return InvalidArgument("Stack[", stack->name, "] has already been closed.");
  if (stack->max_size >= 0 && static_cast<int64_t>(stack->items.size()) >= stack->max_size) {
    return InvalidArgument("Stack[", stack->name, "] overflowed its max_size (", stack->max_size,
                           ")");
  }
  stack->items.push_back(value);
  ctx.set_output(0, std::move(value));
  return OkStatus();
}

Status RunStackPop(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto stack, LookupResource<Stack>(ctx.input(0)));
  if (stack->dtype != ctx.output_type(0)) {
    return InvalidArgument("Must have type ", DtypeName(stack->dtype), " but got ",
                           DtypeName(ctx.output_type(0)));
  }
  absl::MutexLock lock(&stack->mutex);
  if (stack->closed) return InvalidArgument("Stack[", stack->name, "] has already been closed.");
  if (stack->items.empty()) {
    return InvalidArgument("Stack[", stack->name, "] is empty when calling Pop().");
  }
  ctx.set_output(0, std::move(stack->items.back()));
  stack->items.pop_back();
  return OkStatus();
}

Status RunStackClose(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto stack, LookupResource<Stack>(ctx.input(0)));
  absl::MutexLock lock(&stack->mutex);
  stack->items.clear();
  stack->closed = true;
  return OkStatus();
}

constexpr Kernel kTensorArrayTable[] = {
    {"TensorArrayV3", "", kAnyType, "tensor_array:new", RunTensorArray},
    {"TensorArrayWriteV3", "", kAnyType, "tensor_array:write", RunArrayWrite},
    {"TensorArrayReadV3", "", kAnyType, "tensor_array:read", RunArrayRead},
    {"TensorArrayGatherV3", "", kAnyType, "tensor_array:gather", RunArrayGather},
    {"TensorArrayScatterV3", "", kAnyType, "tensor_array:scatter", RunArrayScatter},
    {"TensorArrayConcatV3", "", kAnyType, "tensor_array:concat", RunArrayConcat},
    {"TensorArraySplitV3", "", kAnyType, "tensor_array:split", RunArraySplit},
    {"TensorArraySizeV3", "", kAnyType, "tensor_array:size", RunArraySize},
    {"TensorArrayCloseV3", "", kAnyType, "tensor_array:close", RunArrayClose},
    {"StackV2", "", kAnyType, "stack:new", RunNewStack},
    {"StackPushV2", "", kAnyType, "stack:push", RunStackPush},
    {"StackPopV2", "", kAnyType, "stack:pop", RunStackPop},
    {"StackCloseV2", "", kAnyType, "stack:close", RunStackClose},
};

}  // namespace

extern constinit const std::span<const Kernel> kTensorArrayKernels = kTensorArrayTable;

}  // namespace smelt
