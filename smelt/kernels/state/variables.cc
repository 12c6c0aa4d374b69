// Variables of both generations: handles, reads, assignments.
#include "smelt/kernels/common/variables.h"

#include "smelt/kernels/common/shared_handle.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/resource_types.h"
#include "smelt/kernels/state/update.h"

namespace smelt {
namespace {

// TensorFlow's reserved shared_name: every run of such a VarHandleOp makes a variable of its own.
constexpr absl::string_view kAnonymousName = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

struct HandleState final : KernelState {
  bool same_for_resources() const override { return !anonymous; }
  explicit HandleState(const Node& node) : at(node) {}
  const ResourceName at;
  Dtype dtype;
  PartialShape shape;
  bool anonymous = false;
  HandleCache cache;
};

StatusOr<std::unique_ptr<KernelState>> PrepareHandle(const Node& node) {
  auto state = std::make_unique<HandleState>(node);
  state->anonymous = node.String("shared_name") == kAnonymousName;
  state->dtype = node.Type("dtype");
  if (state->dtype == Dtype::kInvalid) {
    return InvalidArgument("variable '", node.name(), "' has no dtype");
  }
  state->shape = node.Get<PartialShape>("shape", {});
  // A reference variable has a whole shape or none.
  if (IsRef(node.output_types[0]) && state->shape.known_rank() && !state->shape.fully_known()) {
    return InvalidArgument("Shape ", state->shape.ToString(), " is not fully defined");
  }
  return state;
}

Tensor MakeVariableHandle(const HandleState& s, std::shared_ptr<Resource> variable,
                          const Step& step) {
  ResourceHandle h;
  h.container = s.at.container;
  h.name = s.at.name;
  h.device = std::string(step.device);
  h.type_name = std::string(ResourceTypeName(Variable::kKind));
  h.types_and_shapes.emplace_back(s.dtype, s.shape);
  h.resource = std::move(variable);
  return Tensor::Scalar(std::move(h));
}

Status RunHandle(OpContext& ctx) {
  auto& s = ctx.state<HandleState>();
  ResourceManager* resources = ctx.step().resources;
  // Errors call a reference variable by its node.
  const std::string& name = IsRef(ctx.output_type(0)) ? ctx.node().name() : s.at.name;
  const auto make = [&] { return std::make_shared<Variable>(name, s.dtype); };
  if (s.anonymous) {
    ctx.set_output(0, MakeVariableHandle(s, make(), ctx.step()));
    return OkStatus();
  }
  if (const Tensor* handle = s.cache.Find(resources)) {
    ctx.set_output(0, *handle);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable,
                   FindOrCreateResource<Variable>(ctx, "variable", s.at, make));
  ctx.set_output(0, MakeVariableHandle(s, std::move(variable), ctx.step()));
  s.cache.Set(resources, ctx.output(0));
  return OkStatus();
}

// The value of the variable that input 0 names; FAILED_PRECONDITION when there is none or it is
// uninitialized.
StatusOr<Tensor> ReadWritten(const OpContext& ctx) {
  auto variable = FindVariable(ctx, 0);
  Tensor value;
  if (variable.ok()) value = (*variable)->Read();
  if (value.valid()) return value;
  if (ctx.input(0).dtype() != Dtype::kResource || ctx.input(0).num_elements() == 0) {
    return variable.status();
  }
  const ResourceHandle& h = ctx.input(0).scalar<ResourceHandle>();
  const Status why = variable.ok() ? NoVariable(h.container, h.name) : variable.status();
  return FailedPrecondition("Could not find variable ", h.name,
                            ". This could mean that the variable has been deleted. In TF1, it "
                            "can also mean the variable is uninitialized. Debug info: container=",
                            h.container, ", status error message=", why.message());
}

Status RunRead(OpContext& ctx) {
  ASSIGN_OR_RETURN(Tensor value, ReadWritten(ctx));
  RETURN_IF_ERROR(CheckReadType(ctx, value));
  ctx.set_output(0, std::move(value));
  return OkStatus();
}

Status RunIsInitialized(OpContext& ctx) {
  // A handle to no variable is not an error here.
  const auto variable = FindVariable(ctx, 0);
  ctx.set_output(0, Tensor::Scalar(variable.ok() && (*variable)->initialized()));
  return OkStatus();
}

struct AssignState final : KernelState {
  bool validate_shape = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareAssign(const Node& node) {
  auto state = std::make_unique<AssignState>();
  state->validate_shape = node.Bool("validate_shape");
  return state;
}

Status RunAssignVariable(OpContext& ctx) {
  auto found = FindVariable(ctx, 0);
  if (absl::IsNotFound(found.status()) && ctx.step().resources != nullptr) {
    // A fed handle may name a variable that no VarHandleOp has made; TensorFlow makes it here, too.
    const ResourceHandle& h = ctx.input(0).scalar<ResourceHandle>();
    RETURN_IF_ERROR(ctx.step()
                        .resources
                        ->FindOrCreate(h.container, Variable::kKind, h.name,
                                       [&]() -> StatusOr<std::shared_ptr<Resource>> {
                                         return std::make_shared<Variable>(h.name,
                                                                           ctx.input(1).dtype());
                                       })
                        .status());
    found = FindVariable(ctx, 0);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, std::move(found));
  const Tensor& value = ctx.input(1);
  if (variable->dtype() != value.dtype()) {
    return InvalidArgument("Trying to assign variable with wrong dtype. Expected ",
                           DtypeName(variable->dtype()), " got ", DtypeName(value.dtype()));
  }
  if (ctx.state<AssignState>().validate_shape) {
    const Tensor old = variable->Read();
    if (old.valid() && !(old.shape() == value.shape())) {
      return InvalidArgument("Trying to assign to variable with tensor with wrong shape. Expected ",
                             old.shape().ToString(), " got ", value.shape().ToString());
    }
  }
  variable->Assign(ctx.TakeInput(1));
  return OkStatus();
}

template <UpdateKind kKind>
Status RunAssignUpdate(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, FindVariable(ctx, 0));
  const Tensor& delta = ctx.input(1);
  const bool is_ref = IsRef(ctx.node().input_types[0]);
  RETURN_IF_ERROR(variable->Update([&](Tensor& value) -> Status {
    if (!value.valid()) return UninitializedVariable(ctx, 0);
    if (value.dtype() != delta.dtype()) {
      return InvalidArgument("Trying to update a variable of type ", DtypeName(value.dtype()),
                             " with a value of type ", DtypeName(delta.dtype()));
    }
    if (!(value.shape() == delta.shape())) {
      if (is_ref) return InvalidArgument("Parameters and update must be the same size");
      return InvalidArgument("Cannot update variable with shape ", value.shape().ToString(),
                             " using a Tensor with shape ", delta.shape().ToString(),
                             ", shapes must be equal.");
    }
    ApplyUpdate(kKind, value.dtype(), value.raw(), delta.raw(), value.num_elements(), 1);
    return OkStatus();
  }));
  ForwardRef(ctx);
  return OkStatus();
}

// Version 1's Assign: output 0 is the reference that input 0 is.
Status RunAssignRef(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, FindVariable(ctx, 0));
  const Tensor& value = ctx.input(1);
  if (variable->dtype() != value.dtype()) {
    return InvalidArgument("Trying to assign variable with wrong dtype. Expected ",
                           DtypeName(variable->dtype()), " got ", DtypeName(value.dtype()));
  }
  if (ctx.state<AssignState>().validate_shape) {
    const Tensor old = variable->Read();
    const auto& known = ctx.input(0).scalar<ResourceHandle>().types_and_shapes;
    std::string want;
    if (old.valid()) {
      if (!(old.shape() == value.shape())) want = old.shape().ToString();
    } else if (!known.empty() && !known[0].second.known_rank()) {
      // A variable made without a shape is a scalar until something assigns it another.
      if (value.rank() != 0) want = "[]";
    } else if (!known.empty() && !known[0].second.Matches(value.shape())) {
      want = known[0].second.ToString();
    }
    if (!want.empty()) {
      return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= ", want,
                             " rhs shape= ", value.shape().ToString());
    }
  }
  variable->Assign(ctx.TakeInput(1));
  ForwardRef(ctx);
  return OkStatus();
}

Status RunDestroy(OpContext& ctx) {
  // Looked for by the handle alone, which knows no type that has a name.
  const auto missing = [&] {
    const ResourceHandle& h = ctx.input(0).scalar<ResourceHandle>();
    return NotFound("Resource ", h.container, "/", h.name, "/<unknown> does not exist.");
  };
  auto variable = FindVariable(ctx, 0);
  const bool ignore = ctx.node().Bool("ignore_lookup_error", true);
  if (!variable.ok()) {
    // A resource of another kind: the manager drops its reference, and the last handle destroys it.
    if (absl::IsNotFound(variable.status())) return ignore ? OkStatus() : missing();
    const ResourceHandle& h = ctx.input(0).scalar<ResourceHandle>();
    if (h.resource != nullptr && ctx.step().resources != nullptr) {
      ctx.step().resources->Remove(h.container, h.resource->kind(), h.name);
      return OkStatus();
    }
    return variable.status();
  }
  // Emptied, not removed: handles that were made before can still assign it.
  if (!(*variable)->initialized() && !ignore) return missing();
  (*variable)->Clear();
  return OkStatus();
}

Status RunDisableCopyOnRead(OpContext& ctx) {
  // Reads share and never copy; there is nothing to switch off.
  return ReadWritten(ctx).status();
}

Status RunCountUpTo(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, FindVariable(ctx, 0));
  const int64_t limit = ctx.node().Int("limit");
  Tensor before;
  RETURN_IF_ERROR(variable->Update([&](Tensor& value) -> Status {
    if (!value.valid()) return UninitializedVariable(ctx, 0);
    if (value.dtype() != ctx.output_type(0)) {
      return InvalidArgument("input is not ", DtypeName(ctx.output_type(0)));
    }
    if (value.rank() != 0) {
      return InvalidArgument("input is not a scalar: ", value.shape().ToString());
    }
    const int64_t now = IndexAt(value, 0);
    if (now >= limit) return OutOfRange("Reached limit of ", limit);
    if (value.dtype() == Dtype::kInt32) {
      before = Tensor::Scalar(static_cast<int32_t>(now));
      *value.data<int32_t>() = static_cast<int32_t>(now) + 1;
    } else {
      before = Tensor::Scalar(now);
      *value.data<int64_t>() = now + 1;
    }
    return OkStatus();
  }));
  ctx.set_output(0, std::move(before));
  return OkStatus();
}

constexpr Kernel kVariableTable[] = {
    {"VarHandleOp", "", kAnyType, "state:var_handle", RunHandle, PrepareHandle},
    {"Variable", "", kAnyType, "state:variable", RunHandle, PrepareHandle},
    {"ReadVariableOp", "", kAnyType, "state:read", RunRead},
    {"VarIsInitializedOp", "", kAnyType, "state:is_initialized", RunIsInitialized},
    {"IsVariableInitialized", "", kAnyType, "state:is_initialized", RunIsInitialized},
    {"AssignVariableOp", "", kAnyType, "state:assign", RunAssignVariable, PrepareAssign},
    {"Assign", "", kAnyType, "state:assign", RunAssignRef, PrepareAssign},
    {"AssignAddVariableOp", "dtype", kNumberTypes, "state:assign_add",
     RunAssignUpdate<UpdateKind::kAdd>},
    {"AssignSubVariableOp", "dtype", kNumberTypes, "state:assign_sub",
     RunAssignUpdate<UpdateKind::kSub>},
    {"AssignAdd", "T", kNumberTypes, "state:assign_add", RunAssignUpdate<UpdateKind::kAdd>},
    {"AssignSub", "T", kNumberTypes, "state:assign_sub", RunAssignUpdate<UpdateKind::kSub>},
    {"DestroyResourceOp", "", kAnyType, "state:destroy", RunDestroy},
    {"DisableCopyOnRead", "", kAnyType, "state:disable_copy_on_read", RunDisableCopyOnRead},
    {"CountUpTo", "T", kIndexTypes, "state:count_up_to", RunCountUpTo},
    {"ResourceCountUpTo", "T", kIndexTypes, "state:count_up_to", RunCountUpTo},
};

}  // namespace

extern constinit const std::span<const Kernel> kVariableKernels = kVariableTable;

}  // namespace smelt
