#include "smelt/kernels/common/variables.h"

#include "smelt/kernels/resource_types.h"

namespace smelt {

Status NoVariable(absl::string_view container, absl::string_view name) {
  return NoSuchResource(container, name, Variable::kKind);
}

Status UninitializedVariable(const OpContext& ctx, int i) {
  const ResourceHandle& h = ctx.input(i).scalar<ResourceHandle>();
  if (IsRef(ctx.node().input_types[i])) {
    const Node* made = ctx.node().input(i).node;
    return FailedPrecondition("Attempting to use uninitialized value ",
                              made != nullptr ? made->name() : h.name);
  }
  return NoVariable(h.container, h.name);
}

StatusOr<std::shared_ptr<Variable>> FindVariable(const OpContext& ctx, int i) {
  const Tensor& handle = ctx.input(i);
  if (handle.dtype() != Dtype::kResource || handle.num_elements() < 1) {
    return InvalidArgument("input ", i, " of node '", ctx.node().name(),
                           "' is not a resource handle");
  }
  const ResourceHandle& h = handle.scalar<ResourceHandle>();
  std::shared_ptr<Resource> resource = h.resource;
  if (resource == nullptr && ctx.step().resources != nullptr) {
    resource = ctx.step().resources->Find(h.container, Variable::kKind, h.name);
  }
  if (resource == nullptr) return NoVariable(h.container, h.name);
  if (resource->kind() != Variable::kKind) return ResourceOfKind(h, Variable::kKind).status();
  return std::static_pointer_cast<Variable>(std::move(resource));
}

Status CheckReadType(const OpContext& ctx, const Tensor& value) {
  if (value.dtype() == ctx.output_type(0)) return OkStatus();
  return InvalidArgument("Trying to read variable with wrong dtype. Expected ",
                         DtypeName(ctx.output_type(0)), " got ", DtypeName(value.dtype()));
}

StatusOr<Tensor> ReadPartOf(const OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, FindResource<Variable>(ctx.input(0)));
  Tensor value = variable->Read();
  if (!value.valid()) {
    const ResourceHandle& h = ctx.input(0).scalar<ResourceHandle>();
    return NoVariable(h.container, h.name);
  }
  RETURN_IF_ERROR(CheckReadType(ctx, value));
  return value;
}

}  // namespace smelt
