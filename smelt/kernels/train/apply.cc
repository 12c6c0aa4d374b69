// Runs optimizer steps: finds the variables and the scalars of an op, checks them, and applies a
// dense gradient, or the rows that `indices` name. Errors are found in TensorFlow's order and
// before anything changes, but for indices of rules that are checked in turn.
#include "smelt/kernels/train/apply.h"

#include <algorithm>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/strip.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/variables.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

struct ApplyState final : KernelState {
  const ApplyRule* rule = nullptr;
  ApplyLoop loop = nullptr;
  ApplyFlags flags;
  Dtype dtype = Dtype::kInvalid;
  int num_slots = 0;
  // The inputs that hold them; -1: the op has no such argument.
  std::array<int, kMaxApplyScalars> scalars;
  int grad = -1;
  int indices = -1;
  absl::string_view grad_name;
};

StatusOr<std::unique_ptr<KernelState>> PrepareApply(const Node& node) {
  auto s = std::make_unique<ApplyState>();
  absl::string_view name = node.op();
  absl::ConsumePrefix(&name, "Resource");
  absl::ConsumePrefix(&name, "Sparse");
  absl::ConsumePrefix(&name, "Apply");
  s->rule = FindApplyRule(name);
  s->dtype = node.Type("T");
  if (s->rule != nullptr) s->loop = s->rule->loop(s->dtype);
  if (s->loop == nullptr || node.def() == nullptr) {
    return InvalidArgument("node '", node.name(), "': ", node.op(), " does not take ",
                           DtypeName(s->dtype));
  }
  // Every argument is one tensor, so that its place among the arguments is the input's.
  const auto find = [&](absl::string_view arg) {
    const auto& args = node.def()->inputs;
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].name == arg) return static_cast<int>(i);
    }
    return -1;
  };
  s->grad_name = find("delta") >= 0 ? "delta" : "grad";
  s->grad = find(s->grad_name);
  s->indices = find("indices");
  for (int k = 0; k < kMaxApplyScalars; ++k) {
    const absl::string_view scalar = s->rule->scalars[k].name;
    s->scalars[k] = scalar.empty() ? -1 : find(scalar);
    if (!scalar.empty() && s->scalars[k] < 0) {
      return Internal(node.op(), " has no argument '", scalar, "'");
    }
  }
  for (const absl::string_view slot : s->rule->slots) s->num_slots += !slot.empty();
  if (s->grad < s->num_slots) return Internal(node.op(), " has no gradient behind its variables");
  s->flags.rows = s->indices >= 0;
  s->flags.use_nesterov = node.Bool("use_nesterov");
  s->flags.update_slots = node.Bool("update_slots", true);
  s->flags.multiply_linear_by_lr = node.Bool("multiply_linear_by_lr");
  return s;
}

// Calls `fn` with the values of all variables, locked for writing. Each is locked once, even if it
// stands twice, and in the same order by all steps, so that none deadlock.
Status WithVariables(std::span<const std::shared_ptr<Variable>> variables,
                     absl::FunctionRef<Status(std::span<Tensor* const>)> fn) {
  std::vector<Variable*> order;
  for (const auto& v : variables) order.push_back(v.get());
  std::sort(order.begin(), order.end(), std::less<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<Tensor*> held(variables.size());
  std::function<Status(size_t)> lock = [&](size_t at) -> Status {
    if (at == order.size()) return fn(held);
    return order[at]->Update([&](Tensor& value) {
      for (size_t i = 0; i < variables.size(); ++i) {
        if (variables[i].get() == order[at]) held[i] = &value;
      }
      return lock(at + 1);
    });
  };
  return lock(0);
}

std::complex<double> ScalarValue(const Tensor& t) {
  switch (t.dtype()) {
    case Dtype::kFloat:
      return t.scalar<float>();
    case Dtype::kDouble:
      return t.scalar<double>();
    case Dtype::kHalf:
      return static_cast<float>(t.scalar<Half>());
    case Dtype::kBfloat16:
      return static_cast<float>(t.scalar<Bfloat16>());
    case Dtype::kComplex64:
      return t.scalar<std::complex<float>>();
    case Dtype::kComplex128:
      return t.scalar<std::complex<double>>();
    default:  // a step number
      return static_cast<double>(IndexAt(t, 0));
  }
}

// Reads the scalars that are late, or those that are not.
Status ReadScalars(const OpContext& ctx, const ApplyState& s, bool late, ApplyScalars* values) {
  for (int k = 0; k < kMaxApplyScalars && s.scalars[k] >= 0; ++k) {
    const ApplyScalar& scalar = s.rule->scalars[k];
    if (scalar.late != late) continue;
    const Tensor& t = ctx.input(s.scalars[k]);
    const ApplyRange range = s.flags.rows || s.rule->dense_ranges ? scalar.range : ApplyRange::kAny;
    bool fits = scalar.by_count ? t.num_elements() == 1 : t.rank() == 0;
    if (fits) {
      const std::complex<double> value = ScalarValue(t);
      (*values)[k] = value;
      const double v = value.real();
      switch (range) {
        case ApplyRange::kAny:
          break;
        case ApplyRange::kPositive:
          fits = v > 0 || (s.flags.multiply_linear_by_lr && v >= 0);
          break;
        case ApplyRange::kNonNegative:
          fits = v >= 0;
          break;
        case ApplyRange::kNonPositive:
          fits = v <= 0;
          break;
      }
    }
    if (fits) continue;
    return InvalidArgument(
        s.flags.rows && !scalar.rows_otherwise.empty() ? scalar.rows_otherwise : scalar.otherwise,
        t.shape().ToString());
  }
  return OkStatus();
}

Status CheckTypes(const OpContext& ctx, const ApplyState& s, std::span<Tensor* const> slots) {
  for (int k = 0; k < s.num_slots; ++k) {
    if (!slots[k]->valid()) return UninitializedVariable(ctx, k);
    if (slots[k]->dtype() != s.dtype) {
      return InvalidArgument("Trying to update a variable of type ", DtypeName(slots[k]->dtype()),
                             " with a value of type ", DtypeName(s.dtype));
    }
  }
  return OkStatus();
}

Status CheckSlots(const ApplyState& s, std::span<Tensor* const> slots) {
  const Shape& shape = slots[0]->shape();
  for (int k = 1; k < s.num_slots; ++k) {
    if (slots[k]->shape() == shape) continue;
    const bool renamed = k == 1 && s.flags.rows && !s.rule->rows_slot_1.empty();
    return InvalidArgument("var and ", renamed ? s.rule->rows_slot_1 : s.rule->slots[k],
                           " do not have the same shape", shape.ToString(), " ",
                           slots[k]->shape().ToString());
  }
  if (s.flags.rows && shape.rank() < 1) {
    return InvalidArgument("var must be at least 1 dimensional");
  }
  return OkStatus();
}

void ApplyDense(const Tensor& grad, const ApplyState& s, std::span<Tensor* const> slots,
                const ApplyScalars& scalars) {
  const auto size = static_cast<int64_t>(DtypeSize(s.dtype));
  ParallelFor(grad.num_elements(), 1 << 13, [&](int64_t begin, int64_t end) {
    void* at[kMaxApplySlots] = {};
    for (int k = 0; k < s.num_slots; ++k) {
      at[k] = static_cast<char*>(slots[k]->raw()) + begin * size;
    }
    s.loop(at, static_cast<const char*>(grad.raw()) + begin * size, scalars, s.flags, end - begin);
  });
}

Status CheckGrad(const ApplyState& s, const Shape& var, const Tensor& grad, int64_t rows) {
  if (!s.flags.rows) {
    if (grad.shape() == var) return OkStatus();
    return InvalidArgument("var and ", s.grad_name, " do not have the same shape", var.ToString(),
                           " ", grad.shape().ToString());
  }
  if (s.rule->same_rank && grad.rank() != var.rank()) {
    return InvalidArgument("grad must have the same number of dimensions as var");
  }
  // A gradient of more dimensions gives the first elements of its rows.
  int64_t behind = 1;
  for (int d = 1; d < std::max(var.rank(), grad.rank()); ++d) {
    if (d >= var.rank()) {
      behind *= grad.dim(d);
    } else if (d >= grad.rank() || var[d] != grad.dim(d)) {
      return InvalidArgument("var and grad must match in dimension ", d);
    }
  }
  if (behind < 1) return InvalidArgument("var and grad must match in dimension ", var.rank());
  if (grad.rank() < 1 || grad.dim(0) != rows) {
    return InvalidArgument("grad must be the same size as indices in the first dimension.");
  }
  if (s.rule->filled_rows && var.Product(1, var.rank()) < 1) {
    return InvalidArgument("Inner dimension should be greater than zero.");
  }
  return OkStatus();
}

Status CheckIndex(const ApplyRule& rule, const Shape& var, const Tensor& indices, int64_t i) {
  const int64_t index = IndexAt(indices, i);
  if (index >= 0 && index < var[0]) return OkStatus();
  if (rule.element_named) {
    return InvalidArgument("indices[", i, "] = ", index, " is not in [0, ", var[0], ")");
  }
  return InvalidArgument("Index ", index, " at offset ", i, " in indices is out of range");
}

// An index that stands twice makes two steps on its row.
Status ApplySparse(const Tensor& grad, const Tensor& indices, const ApplyState& s,
                   std::span<Tensor* const> slots, const ApplyScalars& scalars) {
  const Shape& var = slots[0]->shape();
  const int64_t n = indices.num_elements();
  for (int64_t i = 0; i < n && !s.rule->in_turn; ++i) {
    RETURN_IF_ERROR(CheckIndex(*s.rule, var, indices, i));
  }
  const int64_t row = var.Product(1, var.rank());
  const auto size = static_cast<int64_t>(DtypeSize(s.dtype));
  const bool as_vector = s.rule->filled_rows && row == 1;
  const int64_t stride = n == 0 || as_vector ? 1 : grad.num_elements() / n;
  ApplyFlags flags = s.flags;
  flags.wide = row > 1;
  for (int64_t i = 0; i < n; ++i) {
    if (s.rule->in_turn) RETURN_IF_ERROR(CheckIndex(*s.rule, var, indices, i));
    void* at[kMaxApplySlots] = {};
    for (int k = 0; k < s.num_slots; ++k) {
      at[k] = static_cast<char*>(slots[k]->raw()) + IndexAt(indices, i) * row * size;
    }
    s.loop(at, static_cast<const char*>(grad.raw()) + i * stride * size, scalars, flags, row);
  }
  return OkStatus();
}

Status ApplyTo(const OpContext& ctx, const ApplyState& s, std::span<Tensor* const> slots) {
  RETURN_IF_ERROR(CheckTypes(ctx, s, slots));
  const Tensor& grad = ctx.input(s.grad);
  const Tensor* const indices = s.flags.rows ? &ctx.input(s.indices) : nullptr;
  const ApplyScalarsAt at = s.flags.rows ? s.rule->rows_at : s.rule->dense_at;
  ApplyScalars scalars{};
  const auto read_at = [&](ApplyScalarsAt here) {
    return at == here ? ReadScalars(ctx, s, false, &scalars) : OkStatus();
  };
  RETURN_IF_ERROR(read_at(ApplyScalarsAt::kFirst));
  RETURN_IF_ERROR(CheckSlots(s, slots));
  RETURN_IF_ERROR(read_at(ApplyScalarsAt::kSlots));
  if (indices != nullptr && indices->rank() != 1) {
    return InvalidArgument("indices must be one-dimensional");
  }
  RETURN_IF_ERROR(read_at(ApplyScalarsAt::kIndices));
  RETURN_IF_ERROR(
      CheckGrad(s, slots[0]->shape(), grad, indices == nullptr ? 0 : indices->num_elements()));
  RETURN_IF_ERROR(read_at(ApplyScalarsAt::kGrad));
  RETURN_IF_ERROR(ReadScalars(ctx, s, true, &scalars));
  if (indices != nullptr) return ApplySparse(grad, *indices, s, slots, scalars);
  ApplyDense(grad, s, slots, scalars);
  return OkStatus();
}

Status RunApply(OpContext& ctx) {
  const auto& s = ctx.state<ApplyState>();
  std::vector<std::shared_ptr<Variable>> variables;
  for (int k = 0; k < s.num_slots; ++k) {
    auto found = FindVariable(ctx, k);
    const bool is_ref = IsRef(ctx.node().input_types[k]);
    if (!found.ok() || (!is_ref && !(*found)->initialized())) {
      return is_ref ? UninitializedVariable(ctx, k) : Internal("Invalid variable reference.");
    }
    variables.push_back(*std::move(found));
  }
  RETURN_IF_ERROR(WithVariables(
      variables, [&](std::span<Tensor* const> slots) { return ApplyTo(ctx, s, slots); }));
  ForwardRef(ctx);
  return OkStatus();
}

constexpr DtypeSet kApplyExact = kFloatTypes;
constexpr DtypeSet kApplyHalf = kFloatTypes | Types(Dtype::kHalf);
constexpr DtypeSet kApplyReal = kFloatTypes | kHalfTypes;
constexpr DtypeSet kApplyNumber = kApplyReal | kComplexTypes;
constexpr DtypeSet kApplyNoBfloat16 = kApplyHalf | kComplexTypes;

#define SMELT_APPLY(OP, TYPES) \
  { OP, "T", TYPES, "train:apply", RunApply, PrepareApply }
#define SMELT_APPLY_DENSE(RULE, TYPES) \
  SMELT_APPLY("Apply" RULE, TYPES), SMELT_APPLY("ResourceApply" RULE, TYPES)
#define SMELT_APPLY_SPARSE(RULE, TYPES) \
  SMELT_APPLY("SparseApply" RULE, TYPES), SMELT_APPLY("ResourceSparseApply" RULE, TYPES)

constexpr Kernel kApplyTable[] = {
    SMELT_APPLY_DENSE("GradientDescent", kApplyNumber),
    SMELT_APPLY_DENSE("ProximalGradientDescent", kApplyExact),
    SMELT_APPLY_SPARSE("ProximalGradientDescent", kApplyExact),
    SMELT_APPLY_DENSE("ProximalAdagrad", kApplyExact),
    SMELT_APPLY_SPARSE("ProximalAdagrad", kApplyExact),
    SMELT_APPLY_DENSE("Momentum", kApplyNumber),
    SMELT_APPLY_SPARSE("Momentum", kApplyNumber),
    SMELT_APPLY("ResourceApplyKerasMomentum", kApplyNumber),
    SMELT_APPLY("ResourceSparseApplyKerasMomentum", kApplyNumber),
    SMELT_APPLY_DENSE("Adagrad", kApplyNumber),
    SMELT_APPLY_SPARSE("Adagrad", kApplyNumber),
    SMELT_APPLY_DENSE("AdagradV2", kApplyNumber),
    SMELT_APPLY_SPARSE("AdagradV2", kApplyNumber),
    SMELT_APPLY_DENSE("AdagradDA", kApplyExact),
    SMELT_APPLY_SPARSE("AdagradDA", kApplyExact),
    SMELT_APPLY_DENSE("Adadelta", kApplyNumber),
    SMELT_APPLY_SPARSE("Adadelta", kApplyNumber),
    SMELT_APPLY_DENSE("Adam", kApplyNumber),
    SMELT_APPLY("ResourceApplyAdamWithAmsgrad", kApplyReal),
    SMELT_APPLY_DENSE("AdaMax", kApplyHalf),
    SMELT_APPLY_DENSE("AddSign", kApplyReal),
    SMELT_APPLY_DENSE("PowerSign", kApplyReal),
    SMELT_APPLY_DENSE("RMSProp", kApplyNumber),
    SMELT_APPLY_SPARSE("RMSProp", kApplyNoBfloat16),
    SMELT_APPLY_DENSE("CenteredRMSProp", kApplyNumber),
    SMELT_APPLY_SPARSE("CenteredRMSProp", kApplyNoBfloat16),
    SMELT_APPLY_DENSE("Ftrl", kApplyReal),
    SMELT_APPLY_SPARSE("Ftrl", kApplyReal),
    SMELT_APPLY_DENSE("FtrlV2", kApplyReal),
    SMELT_APPLY_SPARSE("FtrlV2", kApplyReal),
};

#undef SMELT_APPLY
#undef SMELT_APPLY_DENSE
#undef SMELT_APPLY_SPARSE

}  // namespace

extern constinit const std::span<const Kernel> kApplyKernels = kApplyTable;

}  // namespace smelt
