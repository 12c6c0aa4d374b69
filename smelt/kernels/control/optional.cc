#include "smelt/kernels/common/optional.h"

#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

Status RunOptionalFromValue(OpContext& ctx) {
  auto optional = std::make_shared<Optional>();
  optional->has_value = true;
  for (int i = 0; i < ctx.num_inputs(); ++i) optional->components.push_back(ctx.TakeInput(i));
  ctx.set_output(0, Tensor::Scalar(Variant{std::move(optional)}));
  return OkStatus();
}

Status RunOptionalNone(OpContext& ctx) {
  ctx.set_output(0, Tensor::Scalar(Variant{std::make_shared<Optional>()}));
  return OkStatus();
}

StatusOr<const Optional*> OptionalOf(OpContext& ctx) {
  const Tensor& t = ctx.input(0);
  if (t.rank() != 0) {
    return InvalidArgument("Input to ", ctx.node().op(),
                           " must be a scalar tensor containing an OptionalVariant object.");
  }
  const Optional* optional = OptionalIn(t);
  if (optional == nullptr) {
    return InvalidArgument("Input to ", ctx.node().op(), " must be an OptionalVariant object.");
  }
  return optional;
}

Status RunOptionalHasValue(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Optional* optional, OptionalOf(ctx));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape()));
  *out->data<bool>() = optional->has_value;
  return OkStatus();
}

Status RunOptionalGetValue(OpContext& ctx) {
  ASSIGN_OR_RETURN(const Optional* optional, OptionalOf(ctx));
  if (!optional->has_value) return InvalidArgument("The given optional does not have a value.");
  const std::vector<Tensor>& components = optional->components;
  if (components.size() != static_cast<size_t>(ctx.num_outputs())) {
    return InvalidArgument("The given optional has ", components.size(), " components, expected ",
                           ctx.num_outputs());
  }
  const Attr* attr = ctx.node().Find("output_shapes");
  const auto* shapes = attr ? attr->get<std::vector<PartialShape>>() : nullptr;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const Tensor& t = components[static_cast<size_t>(i)];
    if (t.dtype() != ctx.output_type(i)) {
      return InvalidArgument("The given optional does not match the expected type for component ",
                             i, ". Expected: ", DtypeName(ctx.output_type(i)),
                             ". Actual: ", DtypeName(t.dtype()), ".");
    }
    if (shapes != nullptr && static_cast<size_t>(i) < shapes->size() &&
        !(*shapes)[static_cast<size_t>(i)].Matches(t.shape())) {
      return InvalidArgument("The given optional does not match the expected shape for component ",
                             i, ". Expected: ", (*shapes)[static_cast<size_t>(i)].ToString(),
                             ". Actual: ", t.shape().ToString(), ".");
    }
    ctx.set_output(i, t);
  }
  return OkStatus();
}

constexpr Kernel kOptionalTable[] = {
    {"OptionalFromValue", "", kAnyType, "optional:from_value", RunOptionalFromValue},
    {"OptionalNone", "", kAnyType, "optional:none", RunOptionalNone},
    {"OptionalHasValue", "", kAnyType, "optional:has_value", RunOptionalHasValue},
    {"OptionalGetValue", "", kAnyType, "optional:get_value", RunOptionalGetValue},
};

}  // namespace

extern constinit const std::span<const Kernel> kOptionalKernels = kOptionalTable;

}  // namespace smelt
