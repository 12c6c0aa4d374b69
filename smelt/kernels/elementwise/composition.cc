// _UnaryOpsComposition: a chain of unary ops that an optimizer made one node of. It computes what
// the ops compute one after the other, each by its own kernel; only the first may read the input
// that others still want, the rest write where they read.
#include <utility>
#include <vector>

#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

constexpr DtypeSet kCompositionTypes = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kDouble);
// What TensorFlow's kernel composes; of halves it lacks some.
constexpr OpSet kComposedOps = {"Abs",   "Ceil",       "Cos",    "Elu",   "Exp",  "Expm1",
                                "Floor", "Inv",        "Log",    "Log1p", "Neg",  "Relu",
                                "Relu6", "Reciprocal", "Round",  "Rsqrt", "Selu", "Sigmoid",
                                "Sin",   "Sqrt",       "Square", "Tanh"};
constexpr OpSet kComposedFloatOps = {"Acos",  "Acosh", "Asin", "Asinh", "Atan",
                                     "Atanh", "Cosh",  "Rint", "Sinh",  "Tan"};

struct ComposedOp {
  const Node* node;
  const Kernel* kernel;
  std::unique_ptr<KernelState> state;
};

struct CompositionState final : KernelState {
  // Holds the nodes that the kernels are prepared for.
  Graph graph{std::make_shared<FunctionLibrary>()};
  std::vector<ComposedOp> ops;
};

StatusOr<std::unique_ptr<KernelState>> PrepareComposition(const Node& node) {
  const auto names = node.Get<std::vector<std::string>>("op_names", {});
  if (names.empty()) return InvalidArgument("Unary op composition must have at least one op");
  const Dtype type = node.Type("T");
  auto state = std::make_unique<CompositionState>();
  for (const std::string& name : names) {
    const OpName op = OpName::Of(name);
    if (!kComposedOps.Contains(op) && (type == Dtype::kHalf || !kComposedFloatOps.Contains(op))) {
      return InvalidArgument("Do not have a compute function registered for op: ", name);
    }
    ASSIGN_OR_RETURN(Node * n, state->graph.AddNode(state->graph.FreeName(name), name));
    n->AttrsToChange().Set("T", type);
    RETURN_IF_ERROR(state->graph.ResolveTypes(n));
    ComposedOp& composed = state->ops.emplace_back();
    composed.node = n;
    ASSIGN_OR_RETURN(composed.kernel, FindKernel(*n));
    if (composed.kernel->prepare != nullptr) {
      ASSIGN_OR_RETURN(composed.state, composed.kernel->prepare(*n));
    }
  }
  return state;
}

Status RunComposition(OpContext& ctx) {
  Tensor value = ctx.TakeInput(0);
  for (const ComposedOp& op : ctx.state<CompositionState>().ops) {
    Tensor result;
    Tensor* const input = &value;
    const bool last_use = true;
    OpContext inner(*op.node, op.state.get(), ctx.step(), std::span<Tensor* const>(&input, 1),
                    std::span<const bool>(&last_use, 1), std::span<Tensor>(&result, 1));
    RETURN_IF_ERROR(op.kernel->run(inner));
    value = std::move(result);
  }
  ctx.set_output(0, std::move(value));
  return OkStatus();
}

constexpr Kernel kCompositionRows[] = {
    {"_UnaryOpsComposition", "T", kCompositionTypes, "elementwise:composition", RunComposition,
     PrepareComposition},
};

}  // namespace

extern constinit const std::span<const Kernel> kCompositionKernels = kCompositionRows;

}  // namespace smelt
