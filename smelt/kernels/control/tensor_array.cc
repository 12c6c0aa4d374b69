// TensorArray, TensorArrayV2 and TensorArrayV3, one element at a time.
#include "smelt/kernels/control/tensor_array.h"

#include <atomic>

#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/control/tensor_list.h"
#include "smelt/kernels/resource_types.h"

namespace smelt {
namespace {

constexpr absl::string_view kArrays = "_tensor_arrays";
constexpr absl::string_view kArrayGradients = "_tensor_array_grads";

// The handle of versions 1 and 2.
Tensor StepHandleText(absl::string_view container, const std::string& name) {
  return Tensor::Vector<std::string>({std::string(container), name});
}

Status RunTensorArray(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t size, ArrayIndex(ctx.input(0), "TensorArray size"));
  if (size < 0) return InvalidArgument("Size should be >= 0.");
  RETURN_IF_ERROR(CheckListSize(size));
  auto array = std::make_shared<TensorArray>();
  const Node& node = ctx.node();
  const std::string base = node.String("tensor_array_name");
  array->name = UniqueArrayName(base.empty() ? node.name() : base);
  array->dtype = node.Type("dtype");
  array->clear_after_read = node.Bool("clear_after_read", true);
  array->identical_shapes = node.Bool("identical_element_shapes");
  {
    absl::MutexLock lock(&array->mutex);
    array->dynamic_size = node.Bool("dynamic_size");
    const Attr* shape = node.Find("element_shape");
    if (shape != nullptr && shape->get<PartialShape>()) {
      array->element_shape = *shape->get<PartialShape>();
    }
    array->elements.resize(static_cast<size_t>(size));
  }
  RETURN_IF_ERROR(SetArrayHandle(ctx, std::move(array)));
  return ctx.num_outputs() > 1 ? SetFlow(ctx, 1, -1) : OkStatus();
}

Status RunArrayWrite(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t index, ArrayIndex(ctx.input(1), "TensorArray index"));
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  RETURN_IF_ERROR(array->CheckWriteType(ctx.input(2).dtype()));
  {
    absl::MutexLock lock(&array->mutex);
    RETURN_IF_ERROR(array->Write(index, ctx.TakeInput(2)));
  }
  return SetFlow(ctx, 0, 3);
}

Status RunArrayRead(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t index, ArrayIndex(ctx.input(1), "TensorArray index"));
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  RETURN_IF_ERROR(array->CheckReadType(ctx.output_type(0)));
  absl::MutexLock lock(&array->mutex);
  ASSIGN_OR_RETURN(Tensor value, array->Read(ctx, index));
  ctx.set_output(0, std::move(value));
  return OkStatus();
}

Status RunArraySize(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape()));
  absl::MutexLock lock(&array->mutex);
  RETURN_IF_ERROR(array->CheckOpen());
  *out->data<int32_t>() = static_cast<int32_t>(array->elements.size());
  return OkStatus();
}

Status RunArrayClose(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto array, FindTensorArray(ctx));
  absl::MutexLock lock(&array->mutex);
  array->elements.clear();
  array->closed = true;
  return OkStatus();
}

constexpr Kernel kTensorArrayTable[] = {
    {"TensorArray", "", kAnyType, "tensor_array:new", RunTensorArray},
    {"TensorArrayWrite", "", kAnyType, "tensor_array:write", RunArrayWrite},
    {"TensorArrayRead", "", kAnyType, "tensor_array:read", RunArrayRead},
    {"TensorArraySize", "", kAnyType, "tensor_array:size", RunArraySize},
    {"TensorArrayClose", "", kAnyType, "tensor_array:close", RunArrayClose},
};

}  // namespace

extern constinit const std::span<const Kernel> kTensorArrayKernels = kTensorArrayTable;

Status TensorArray::CheckOpen() {
  if (!closed) return OkStatus();
  return InvalidArgument("TensorArray ", name, " has already been closed.");
}

Status TensorArray::Write(int64_t index, Tensor value) {
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
  if (e.written && sums_writes) return Add(e, index, value);
  if (e.written) {
    return InvalidArgument("TensorArray ", name, ": Could not write to TensorArray index ", index,
                           " because it has already been written to.");
  }
  e.shape = value.shape();
  e.value = std::move(value);
  e.written = true;
  return OkStatus();
}

StatusOr<Tensor> TensorArray::Read(OpContext& ctx, int64_t index) {
  RETURN_IF_ERROR(CheckOpen());
  const auto size = static_cast<int64_t>(elements.size());
  if (index < 0 || (index >= size && !is_gradient)) {
    return InvalidArgument("Tried to read from index ", index, " but array size is: ", size);
  }
  // A gradient grows to what is read of it.
  if (index >= size) {
    RETURN_IF_ERROR(CheckListSize(index + 1));
    elements.resize(static_cast<size_t>(index) + 1);
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
    ASSIGN_OR_RETURN(e.shape, Shape::Make(element_shape.dims()));
  }
  if (!e.value.valid()) {
    ASSIGN_OR_RETURN(e.value, ZeroItem(ctx, dtype, e.shape));
  }
  e.read = true;
  if (!clear_after_read) return e.value;
  e.cleared = true;
  return std::move(e.value);
}

Status TensorArray::CheckReadType(Dtype wanted) const {
  if (dtype == wanted) return OkStatus();
  return InvalidArgument("TensorArray dtype is ", DtypeName(dtype), " but Op requested dtype ",
                         DtypeName(wanted), ".");
}

Status TensorArray::CheckWriteType(Dtype given) const {
  if (dtype == given) return OkStatus();
  return InvalidArgument("TensorArray dtype is ", DtypeName(dtype),
                         " but Op is trying to write dtype ", DtypeName(given), ".");
}

Status TensorArray::Add(Element& e, int64_t index, const Tensor& value) {
  if (!(value.shape() == e.shape)) {
    return InvalidArgument("TensorArray ", name, ": Could not aggregate to TensorArray index ",
                           index, " because the existing shape is ", e.shape.ToString(),
                           " but the new input shape is ", value.shape().ToString(), ".");
  }
  if (!e.value.valid()) {
    e.value = value;
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor sum, e.value.Clone());
  if (!VisitNumber(dtype, [&]<typename T>() {
        T* to = sum.data<T>();
        const T* from = value.data<T>();
        for (int64_t i = 0; i < sum.num_elements(); ++i) to[i] = AddValues(to[i], from[i]);
      })) {
    return InvalidArgument("TensorArray ", name, ": values of type ", DtypeName(dtype),
                           " cannot be added");
  }
  e.value = std::move(sum);
  return OkStatus();
}

std::string UniqueArrayName(absl::string_view base) {
  static std::atomic<int64_t> counter{0};
  return absl::StrCat(base, "_", counter.fetch_add(1, std::memory_order_relaxed));
}

Status SetStepHandle(OpContext& ctx, absl::string_view container, const std::string& name,
                     std::shared_ptr<Resource> resource) {
  ResourceHandle handle;
  handle.container = std::string(container);
  handle.name = name;
  handle.device = std::string(ctx.step().device);
  const Dtype wanted = ctx.output_type(0);
  if (wanted == Dtype::kResource) {
    // The handle alone owns the resource: it needs no name in the step.
    handle.type_name = std::string(ResourceTypeName(resource->kind()));
    handle.resource = std::move(resource);
    ctx.set_output(0, Tensor::Scalar(std::move(handle)));
    return OkStatus();
  }
  ResourceManager* resources = ctx.step().step_resources;
  if (resources == nullptr) {
    return FailedPrecondition("'", name, "' is used outside of a step");
  }
  const std::string kind(resource->kind());
  RETURN_IF_ERROR(resources
                      ->FindOrCreate(container, kind, name,
                                     [&]() -> StatusOr<std::shared_ptr<Resource>> {
                                       return std::move(resource);
                                     })
                      .status());
  Tensor text = StepHandleText(container, name);
  if (IsRef(wanted)) {
    auto variable = std::make_shared<Variable>(name, Dtype::kString);
    variable->Assign(std::move(text));
    handle.resource = std::move(variable);
    text = Tensor::Scalar(std::move(handle));
  }
  ctx.set_output(0, std::move(text));
  return OkStatus();
}

Status SetArrayHandle(OpContext& ctx, std::shared_ptr<TensorArray> array) {
  const std::string name = array->name;
  const absl::string_view container = array->is_gradient ? kArrayGradients : kArrays;
  return SetStepHandle(ctx, container, name, std::move(array));
}

StatusOr<std::shared_ptr<Resource>> FindStepResource(const OpContext& ctx, absl::string_view kind) {
  Tensor handle = ctx.input(0);
  if (handle.dtype() == Dtype::kResource && handle.num_elements() > 0) {
    const ResourceHandle& h = handle.scalar<ResourceHandle>();
    const bool by_name = IsRef(ctx.node().input_types[0]) && h.resource != nullptr &&
                         h.resource->kind() == Variable::kKind;
    if (!by_name) return ResourceOfKind(h, kind);
    handle = static_cast<const Variable&>(*h.resource).Read();
  }
  if (handle.dtype() != Dtype::kString || handle.num_elements() != 2) {
    return InvalidArgument("Tensor array handle must be 2-element vector, but had shape: ",
                           handle.shape().ToString());
  }
  const auto text = handle.flat<std::string>();
  std::shared_ptr<Resource> found;
  if (ctx.step().step_resources != nullptr) {
    found = ctx.step().step_resources->Find(text[0], kind, text[1]);
  }
  if (found == nullptr) {
    return NoSuchResource(text[0], text[1], kind);
  }
  return found;
}

StatusOr<std::shared_ptr<TensorArray>> FindTensorArray(const OpContext& ctx) {
  ASSIGN_OR_RETURN(auto resource, FindStepResource(ctx, TensorArray::kKind));
  return std::static_pointer_cast<TensorArray>(std::move(resource));
}

StatusOr<int64_t> ArrayIndex(const Tensor& t, absl::string_view what) {
  if (t.rank() != 0) {
    return InvalidArgument(what,
                           what == "Stack size" ? " must be a scalar, but had shape: "
                                                : " must be scalar, but had shape: ",
                           t.shape().ToString());
  }
  return IndexAt(t, 0);
}

Status SetFlow(OpContext& ctx, int output, int input) {
  if (input >= 0) {
    ctx.set_output(output, ctx.TakeInput(input));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * flow, ctx.Allocate(output, Shape()));
  *flow->data<float>() = 0;
  return OkStatus();
}

}  // namespace smelt
