// Control flow of version 2: calls, branches and loops over functions of the library.
#include "absl/strings/match.h"
#include "smelt/graph/function_ops.h"
#include "smelt/kernels/control/truth.h"
#include "smelt/kernels/direct_call.h"

namespace smelt {
namespace {

struct CallState final : KernelState {
  std::vector<Callee> functions;  // by branch; a loop's condition, then its body
};

StatusOr<std::unique_ptr<KernelState>> PrepareFunctional(const Node& node) {
  auto state = std::make_unique<CallState>();
  auto push = [&](const FuncAttr& f) -> Status {
    ASSIGN_OR_RETURN(Callee callee, Callee::Of(f));
    state->functions.push_back(std::move(callee));
    return OkStatus();
  };
  auto add = [&](absl::string_view name) {
    const FuncAttr* f = node.Func(name);
    if (f == nullptr) return InvalidArgument(node.op(), " names no function '", name, "'");
    return push(*f);
  };
  if (IsPartitionedCall(node)) {
    RETURN_IF_ERROR(add("f"));
  } else if (IsIf(node) || node.Is("XlaIf")) {
    RETURN_IF_ERROR(add("then_branch"));
    RETURN_IF_ERROR(add("else_branch"));
  } else if (IsLoop(node) || node.Is("XlaWhile")) {
    RETURN_IF_ERROR(add("cond"));
    RETURN_IF_ERROR(add("body"));
  } else {
    const Attr* attr = node.Find("branches");
    const auto* branches = attr ? attr->get<std::vector<FuncAttr>>() : nullptr;
    if (branches == nullptr || branches->empty()) {
      return InvalidArgument(node.op(), " has no branches");
    }
    for (const FuncAttr& f : *branches) RETURN_IF_ERROR(push(f));
  }
  return state;
}

// The op is the function, the attributes are the function's.
StatusOr<std::unique_ptr<KernelState>> PrepareDirectCall(const Node& node) {
  auto attrs = std::make_shared<AttrMap>();
  for (const auto& [name, value] : node.attrs()) {
    if (!absl::StartsWith(name, "_")) attrs->Set(name, value);
  }
  ASSIGN_OR_RETURN(Callee callee, Callee::Of({std::string(node.op()), std::move(attrs)}));
  auto state = std::make_unique<CallState>();
  state->functions.push_back(std::move(callee));
  return state;
}

StatusOr<bool> AsCondition(const Tensor& t) {
  if (!t.valid()) return Internal("the condition has no value");
  if (const std::optional<bool> truth = TruthOf(t)) return *truth;
  return InvalidArgument("DType ", DtypeName(t.dtype()), " cannot be converted to a Python bool");
}

std::vector<Tensor> TakeInputs(OpContext& ctx, int first) {
  std::vector<Tensor> args;
  args.reserve(static_cast<size_t>(ctx.num_inputs()));
  for (int i = first; i < ctx.num_inputs(); ++i) args.push_back(ctx.TakeInput(i));
  return args;
}

// Calls f, which must give tensors of the types that the node's outputs have.
Status CallFor(OpContext& ctx, const Callee& f, std::vector<Tensor> args,
               std::vector<Tensor>* results) {
  Step& step = ctx.step();
  if (step.functions == nullptr) {
    return Internal("function '", f.name(), "' cannot be called here");
  }
  results->clear();
  RETURN_IF_ERROR(step.functions->Call(f, std::move(args), results, step));
  if (results->size() != static_cast<size_t>(ctx.num_outputs())) {
    return InvalidArgument("function '", f.name(), "' returns ", results->size(), " values, ",
                           ctx.node().op(), " has ", ctx.num_outputs());
  }
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const Tensor& t = (*results)[static_cast<size_t>(i)];
    if (t.valid() && t.dtype() != BaseType(ctx.output_type(i))) {
      return InvalidArgument("function '", f.name(), "' returns a ", DtypeName(t.dtype()),
                             " as value ", i, ", not a ", DtypeName(ctx.output_type(i)));
    }
  }
  return OkStatus();
}

Status CallAndReturn(OpContext& ctx, const Callee& f, std::vector<Tensor> args) {
  std::vector<Tensor> results;
  RETURN_IF_ERROR(CallFor(ctx, f, std::move(args), &results));
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    ctx.set_output(i, std::move(results[static_cast<size_t>(i)]));
  }
  return OkStatus();
}

Status RunCall(OpContext& ctx) {
  return CallAndReturn(ctx, ctx.state<CallState>().functions[0], TakeInputs(ctx, 0));
}

Status RunIf(OpContext& ctx) {
  ASSIGN_OR_RETURN(const bool cond, AsCondition(ctx.input(0)));
  const CallState& state = ctx.state<CallState>();
  return CallAndReturn(ctx, state.functions[cond ? 0 : 1], TakeInputs(ctx, 1));
}

Status RunCase(OpContext& ctx) {
  const CallState& state = ctx.state<CallState>();
  const Tensor& index = ctx.input(0);
  if (index.num_elements() != 1) {
    return InvalidArgument("branch_index must be scalar, got shape ", index.shape().ToString());
  }
  const auto last = static_cast<int64_t>(state.functions.size()) - 1;
  int64_t branch = IndexAt(index, 0);
  if (branch < 0 || branch > last) branch = last;
  return CallAndReturn(ctx, state.functions[static_cast<size_t>(branch)], TakeInputs(ctx, 1));
}

// The tuple shape of the values in XLA's notation: "(s32[], f32[2,3])".
std::string XlaShapesText(std::span<const Tensor> values) {
  constexpr std::pair<Dtype, absl::string_view> kNames[] = {
      {Dtype::kBool, "pred"},  {Dtype::kInt8, "s8"},       {Dtype::kInt16, "s16"},
      {Dtype::kInt32, "s32"},  {Dtype::kInt64, "s64"},     {Dtype::kUint8, "u8"},
      {Dtype::kUint16, "u16"}, {Dtype::kUint32, "u32"},    {Dtype::kUint64, "u64"},
      {Dtype::kHalf, "f16"},   {Dtype::kBfloat16, "bf16"}, {Dtype::kFloat, "f32"},
      {Dtype::kDouble, "f64"}, {Dtype::kComplex64, "c64"}, {Dtype::kComplex128, "c128"},
  };
  std::string text;
  for (const Tensor& t : values) {
    absl::string_view name = DtypeName(t.dtype());
    for (const auto& [dtype, xla] : kNames) {
      if (dtype == t.dtype()) name = xla;
    }
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, t.shape().ToString());
  }
  return absl::StrCat("(", text, ")");
}

// kXla: XlaWhile, which XLA compiles with fixed shapes; variables must keep theirs, and the
// condition must be a bool scalar.
template <bool kXla>
Status RunWhile(OpContext& ctx) {
  const Callee& cond = ctx.state<CallState>().functions[0];
  const Callee& body = ctx.state<CallState>().functions[1];
  Step& step = ctx.step();
  if (step.functions == nullptr) {
    return Internal("function '", cond.name(), "' cannot be called here");
  }
  std::vector<Tensor> variables = TakeInputs(ctx, 0);
  std::vector<Tensor> go, results;
  while (true) {
    if (step.cancellation != nullptr) RETURN_IF_ERROR(step.cancellation->Check());
    RETURN_IF_ERROR(step.functions->Call(cond, variables, &go, step));
    if (go.size() != 1) {
      return InvalidArgument("Expected a single scalar return value from WhileOp cond function '",
                             cond.name(), "', got ", go.size(), " tensors.");
    }
    if (kXla && (go[0].rank() != 0 || go[0].dtype() != Dtype::kBool)) {
      return InvalidArgument(
          "Output shape of loop condition should be (pred[]) or (pred[], token[]), got: ",
          XlaShapesText(go));
    }
    ASSIGN_OR_RETURN(const bool more, AsCondition(go[0]));
    if (!more) break;
    const std::string before = kXla ? XlaShapesText(variables) : "";
    // The body is given the only references, so that it may update them in place.
    go.clear();
    RETURN_IF_ERROR(CallFor(ctx, body, std::move(variables), &results));
    if (kXla && XlaShapesText(results) != before) {
      return InvalidArgument("Input and output shapes of loop body do not match: ", before, " vs. ",
                             XlaShapesText(results));
    }
    variables.swap(results);
  }
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    ctx.set_output(i, std::move(variables[static_cast<size_t>(i)]));
  }
  return OkStatus();
}

constexpr Kernel kFunctionalTable[] = {
    {"PartitionedCall", "", kAnyType, "function:call", RunCall, PrepareFunctional},
    {"StatefulPartitionedCall", "", kAnyType, "function:call", RunCall, PrepareFunctional},
    {"If", "", kAnyType, "function:if", RunIf, PrepareFunctional},
    {"StatelessIf", "", kAnyType, "function:if", RunIf, PrepareFunctional},
    {"Case", "", kAnyType, "function:case", RunCase, PrepareFunctional},
    {"StatelessCase", "", kAnyType, "function:case", RunCase, PrepareFunctional},
    {"While", "", kAnyType, "function:while", RunWhile<false>, PrepareFunctional},
    {"StatelessWhile", "", kAnyType, "function:while", RunWhile<false>, PrepareFunctional},
    {"XlaIf", "", kAnyType, "function:if", RunIf, PrepareFunctional},
    {"XlaWhile", "", kAnyType, "function:while", RunWhile<true>, PrepareFunctional},
};

constexpr Kernel kDirectCall = {"PartitionedCall", "",      kAnyType,
                                "function:call",   RunCall, PrepareDirectCall};

}  // namespace

const Kernel* DirectCallKernel() { return &kDirectCall; }

extern constinit const std::span<const Kernel> kFunctionalKernels = kFunctionalTable;

}  // namespace smelt
