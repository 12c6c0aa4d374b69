// Einsum, and XlaEinsum of the same meaning.
#include "smelt/graph/einsum_equation.h"
#include "smelt/kernels/fusible.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/onednn/contraction.h"

namespace smelt {
namespace {

struct EinsumState final : FusibleState {
  EinsumEquation equation;
  onednn::Contraction contraction;

  StatusOr<std::unique_ptr<BoundKernel>> BindThen(const BindContext& context,
                                                  const FusedOps& then) override {
    absl::InlinedVector<const Shape*, 2> shapes;
    for (size_t i = 0; i < equation.inputs.size(); ++i) {
      shapes.push_back(&context.inputs[i].shape);
    }
    const auto s = ExpandEinsum(equation, shapes);
    // What the run will refuse is left to it.
    if (!s.ok()) return nullptr;
    return contraction.Bind(*s, context, then);
  }
};

Status RunEinsum(OpContext& ctx) {
  auto& state = ctx.state<EinsumState>();
  absl::InlinedVector<const Shape*, 2> shapes;
  absl::InlinedVector<const Tensor*, 2> operands;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    shapes.push_back(&ctx.input(i).shape());
    operands.push_back(&ctx.input(i));
  }
  ASSIGN_OR_RETURN(const EinsumShapes s, ExpandEinsum(state.equation, shapes));
  ASSIGN_OR_RETURN(Tensor result, state.contraction.Run(s, operands, ctx.step().allocator));
  ctx.set_output(0, std::move(result));
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareEinsum(const Node& node) {
  auto state = std::make_unique<EinsumState>();
  ASSIGN_OR_RETURN(state->equation, ParseEinsum(node.String("equation")));
  if (node.input_types.size() != state->equation.inputs.size()) {
    return InvalidArgument("Expected ", state->equation.inputs.size(),
                           " inputs but got: ", node.input_types.size());
  }
  state->contraction.SetConstant(onednn::InputIsConst(node, 0), onednn::InputIsConst(node, 1));
  return state;
}

constexpr Kernel kEinsumTable[] = {
    {"Einsum", "T", Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16), "onednn:einsum",
     RunEinsum, PrepareEinsum},
    {"Einsum", "T", Types(Dtype::kDouble, Dtype::kInt32, Dtype::kInt64) | kComplexTypes,
     "reference:einsum", RunEinsum, PrepareEinsum},
    {"XlaEinsum", "T", Types(Dtype::kFloat, Dtype::kBfloat16, Dtype::kComplex64), "onednn:einsum",
     RunEinsum, PrepareEinsum},
};

}  // namespace

extern constinit const std::span<const Kernel> kEinsumKernels = kEinsumTable;

}  // namespace smelt
