// Matrix products: those of float and narrower floats through FloatMatMul, others in plain loops.
#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "smelt/base/parallel.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/fusible.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/onednn/bound_layer.h"
#include "smelt/kernels/onednn/float_matmul.h"

namespace smelt {
namespace {

struct MatMulState : FusibleState {
  bool transpose_a = false;
  bool transpose_b = false;
  bool adjoint = false;  // transposing conjugates
  bool broadcast = false;
  bool constant_b = false;
  FusedOps fused;
  onednn::FloatMatMul product;

  StatusOr<std::unique_ptr<BoundKernel>> BindThen(const BindContext& context,
                                                  const FusedOps& then) override;
};

// A product times a number.
struct ScaledMatMulState final : MatMulState {
  bool adds = false;  // a matrix for each first dimension as well

  StatusOr<std::unique_ptr<BoundKernel>> BindThen(const BindContext& context,
                                                  const FusedOps& then) override;
};

StatusOr<std::unique_ptr<BoundKernel>> MatMulState::BindThen(const BindContext& context,
                                                             const FusedOps& then) {
  const Shape& a = context.inputs[0].shape;
  const Shape& b = context.inputs[1].shape;
  // What the run will refuse is left to it.
  if (!adjoint && (a.rank() != 2 || b.rank() != 2)) return DeclineToBind("no matrices");
  const auto p = nn::MakeMatMulProblem(a, b, transpose_a, transpose_b, broadcast);
  if (!p.ok() || p->output.num_elements() == 0) {
    return DeclineToBind("shapes that do not fit, or an empty result");
  }
  if (!SlopesAgree(fused, then)) return DeclineToBind("two slopes of Relu and LeakyRelu");
  const JoinedSteps steps = JoinSteps(fused, then, context, p->output);
  const BindContext joined{context.node, steps.inputs, context.outputs};
  if (!onednn::ArgumentsFit(steps.ops, joined.inputs.subspan(2), p->output, p->output.rank() - 1)) {
    return DeclineToBind("an operand of what follows has another shape");
  }
  return product.Bind(*p, joined, steps.ops);
}

// Values of any integer type as `to`, which holds them.
template <typename From>
void WidenMatrix(const From* from, int64_t n, Tensor* to) {
  switch (to->dtype()) {
    case Dtype::kInt16:
      return std::copy(from, from + n, to->data<int16_t>()), void();
    case Dtype::kInt64:
      return std::copy(from, from + n, to->data<int64_t>()), void();
    case Dtype::kFloat:
      return std::copy(from, from + n, to->data<float>()), void();
    case Dtype::kDouble:
      return std::copy(from, from + n, to->data<double>()), void();
    default:
      return std::copy(from, from + n, to->data<int32_t>()), void();
  }
}

// An 8-bit operand of BatchMatMulV3 in the type of the result; other types must be that already.
StatusOr<Tensor> MatMulOperand(const Tensor& t, Dtype want, Allocator* allocator) {
  if (t.dtype() == want) return t;
  const bool narrow = t.dtype() == Dtype::kInt8 || t.dtype() == Dtype::kUint8;
  const bool wide = want == Dtype::kInt16 || want == Dtype::kInt32 || want == Dtype::kInt64 ||
                    want == Dtype::kFloat || want == Dtype::kDouble;
  if (!narrow || !wide) {
    return Unimplemented("matrix product of ", DtypeName(t.dtype()), " giving ", DtypeName(want));
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(want, t.shape(), allocator));
  if (t.dtype() == Dtype::kInt8) {
    WidenMatrix(t.data<int8_t>(), t.num_elements(), &out);
  } else {
    WidenMatrix(t.data<uint8_t>(), t.num_elements(), &out);
  }
  return out;
}

Status RunMatMul(OpContext& ctx) {
  auto& state = ctx.state<MatMulState>();
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  // `adjoint` is set for batched products; MatMul takes matrices only.
  if (!state.adjoint && a.rank() == b.rank() && a.rank() != 2) {
    return InvalidArgument("In[0] and In[1] ndims must be == 2: ", a.rank());
  }
  ASSIGN_OR_RETURN(const nn::MatMulProblem p,
                   nn::MakeMatMulProblem(a.shape(), b.shape(), state.transpose_a, state.transpose_b,
                                         state.broadcast));
  if (ctx.num_inputs() < 2 + state.fused.num_args) {
    return InvalidArgument("fused matrix product needs ", state.fused.num_args, " arguments");
  }
  nn::WidenedArgs args;
  for (int i = 0; i < state.fused.num_args; ++i) args.push_back(&ctx.input(2 + i));
  RETURN_IF_ERROR(nn::CheckFusedArgs(state.fused, args, p.output, p.output.rank() - 1));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  if (out->num_elements() == 0) return OkStatus();
  Allocator* allocator = ctx.step().allocator;
  const Dtype dtype = out->dtype();
  const bool floats = dtype == Dtype::kFloat && a.dtype() == dtype && b.dtype() == dtype;
  if (floats || Has(kHalfTypes, dtype)) {
    return state.product.Run(p, a, b, state.constant_b, state.fused, args, out, allocator);
  }
  ASSIGN_OR_RETURN(const Tensor wide_a, MatMulOperand(a, dtype, allocator));
  ASSIGN_OR_RETURN(const Tensor wide_b, MatMulOperand(b, dtype, allocator));
  return nn::MatMulReference(p, wide_a, wide_b, state.adjoint && state.transpose_a,
                             state.adjoint && state.transpose_b, out);
}

// How a product is scaled, and a matrix for each first dimension added.
struct Scaling {
  int64_t matrix = 0, matrices = 0;  // elements of each, and how many
  bool adds = false;
  int64_t repeats = 1;  // of each matrix that is added

  // Small enough pieces stay in the cache between the two steps.
  void Run(float factor, const float* addend, float* y) const {
    constexpr int64_t kPiece = 4096;
    const int64_t pieces = (matrix + kPiece - 1) / kPiece;
    ParallelFor(matrices * pieces, 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t which = i / pieces, at = i % pieces * kPiece;
        const int64_t n = std::min(kPiece, matrix - at);
        float* piece = y + which * matrix + at;
        Isa().scale_shift(piece, piece, n, factor, 0);
        if (adds) Isa().axpy(addend + which / repeats * matrix + at, piece, n, 1);
      }
    });
  }
};

// `args`: the shapes of a number and, where `adds`, of what is added.
StatusOr<Scaling> MakeScaling(const Shape& output, std::span<const Shape> args, bool adds) {
  if (args.size() != (adds ? 2 : 1)) {
    return InvalidArgument("fused batch matrix product needs ", adds ? 2 : 1, " arguments");
  }
  if (args[0].num_elements() != 1) {
    return InvalidArgument("fused Mul needs one number, not ", args[0].ToString());
  }
  Scaling s;
  s.adds = adds;
  if (adds) {
    const Shape& added = args[1];
    bool fits = output.rank() == 4 && added.rank() == 4;
    for (int d = 0; fits && d < 4; ++d) fits = added[d] == output[d] || (d == 1 && added[d] == 1);
    if (!fits) {
      return InvalidArgument("fused Add needs a tensor that broadcasts to ", output.ToString(),
                             " along dimension 1, not ", added.ToString());
    }
    if (added[1] == 1) s.repeats = output[1];
  }
  if (output.num_elements() > 0) {
    const int rank = output.rank();
    s.matrix = output[rank - 1] * output[rank - 2];
    s.matrices = output.num_elements() / s.matrix;
  }
  return s;
}

Status RunScaledMatMul(OpContext& ctx) {
  auto& state = ctx.state<ScaledMatMulState>();
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  ASSIGN_OR_RETURN(const nn::MatMulProblem p,
                   nn::MakeMatMulProblem(a.shape(), b.shape(), state.transpose_a, state.transpose_b,
                                         state.broadcast));
  absl::InlinedVector<Shape, 2> args;
  for (int i = 2; i < ctx.num_inputs(); ++i) args.push_back(ctx.input(i).shape());
  ASSIGN_OR_RETURN(const Scaling scaling, MakeScaling(p.output, args, state.adds));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  if (out->num_elements() == 0) return OkStatus();
  RETURN_IF_ERROR(state.product.Run(p, a, b, state.constant_b, {}, {}, out, ctx.step().allocator));
  scaling.Run(ctx.input(2).data<float>()[0], state.adds ? ctx.input(3).data<float>() : nullptr,
              out->data<float>());
  return OkStatus();
}

class BoundScaledMatMul final : public BoundKernel {
 public:
  BoundScaledMatMul(std::unique_ptr<BoundKernel> product, const Scaling& scaling)
      : product_(std::move(product)), scaling_(scaling) {}

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    RETURN_IF_ERROR(product_->Run(inputs, outputs, scratch));
    scaling_.Run(*static_cast<const float*>(inputs[2]),
                 scaling_.adds ? static_cast<const float*>(inputs[3]) : nullptr,
                 static_cast<float*>(outputs[0]));
    return OkStatus();
  }
  size_t scratch_bytes() const override { return product_->scratch_bytes(); }

 private:
  const std::unique_ptr<BoundKernel> product_;
  const Scaling scaling_;
};

StatusOr<std::unique_ptr<BoundKernel>> ScaledMatMulState::BindThen(const BindContext& context,
                                                                   const FusedOps& then) {
  if (!then.empty()) return DeclineToBind("it is scaled behind the product");
  absl::InlinedVector<Shape, 2> args;
  for (const BoundTensor& t : context.inputs.subspan(2)) args.push_back(t.shape);
  const auto scaling = MakeScaling(context.outputs[0].shape, args, adds);
  if (!scaling.ok()) return nullptr;
  ASSIGN_OR_RETURN(auto product, MatMulState::BindThen(context, then));
  if (product == nullptr) return nullptr;
  return std::make_unique<BoundScaledMatMul>(std::move(product), *scaling);
}

StatusOr<std::unique_ptr<KernelState>> PrepareMatMul(const Node& node) {
  auto state = std::make_unique<MatMulState>();
  state->transpose_a = node.Bool("transpose_a");
  state->transpose_b = node.Bool("transpose_b");
  state->constant_b = onednn::InputIsConst(node, 1);
  return state;
}

StatusOr<std::unique_ptr<KernelState>> PrepareFusedMatMul(const Node& node) {
  auto state = std::make_unique<MatMulState>();
  state->transpose_a = node.Bool("transpose_a");
  state->transpose_b = node.Bool("transpose_b");
  state->constant_b = onednn::InputIsConst(node, 1);
  ASSIGN_OR_RETURN(state->fused, ParseFusedOps(node, "MatMul"));
  return state;
}

template <typename State>
std::unique_ptr<State> MakeBatchMatMulState(const Node& node, bool broadcast) {
  auto state = std::make_unique<State>();
  state->transpose_a = node.Bool("adj_x");
  state->transpose_b = node.Bool("adj_y");
  state->adjoint = true;
  state->broadcast = broadcast;
  state->constant_b = onednn::InputIsConst(node, 1);
  return state;
}
StatusOr<std::unique_ptr<KernelState>> PrepareBatchMatMul(const Node& node) {
  return MakeBatchMatMulState<MatMulState>(node, false);
}
StatusOr<std::unique_ptr<KernelState>> PrepareBatchMatMulV2(const Node& node) {
  return MakeBatchMatMulState<MatMulState>(node, true);
}

StatusOr<std::unique_ptr<KernelState>> PrepareScaledMatMul(const Node& node) {
  const auto names = node.Get<std::vector<std::string>>("fused_ops", {});
  const bool adds = names == std::vector<std::string>{"Mul", "Add"};
  if (!adds && names != std::vector<std::string>{"Mul"}) {
    return Unimplemented("Fusion is not implemented: [", absl::StrJoin(names, ","), "]");
  }
  auto state = MakeBatchMatMulState<ScaledMatMulState>(node, true);
  state->adds = adds;
  return state;
}

constexpr DtypeSet kMatMulFast = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16);
constexpr DtypeSet kMatMulPlain = kIntTypes | kComplexTypes | Types(Dtype::kDouble);

constexpr Kernel kMatMulTable[] = {
    {"MatMul", "T", kMatMulFast, "onednn:matmul", RunMatMul, PrepareMatMul},
    {"MatMul", "T", kMatMulPlain, "reference:matmul", RunMatMul, PrepareMatMul},
    {"_FusedMatMul", "T", kMatMulFast, "onednn:fused_matmul", RunMatMul, PrepareFusedMatMul},
    {"BatchMatMul", "T", kMatMulFast, "onednn:batch_matmul", RunMatMul, PrepareBatchMatMul},
    {"BatchMatMul", "T", kMatMulPlain, "reference:batch_matmul", RunMatMul, PrepareBatchMatMul},
    {"BatchMatMulV2", "T", kMatMulFast, "onednn:batch_matmul", RunMatMul, PrepareBatchMatMulV2},
    {"BatchMatMulV2", "T", kMatMulPlain, "reference:batch_matmul", RunMatMul, PrepareBatchMatMulV2},
    {"_MklFusedBatchMatMulV2", "T", Types(Dtype::kFloat), "onednn:scaled_batch_matmul",
     RunScaledMatMul, PrepareScaledMatMul},
    {"BatchMatMulV3", "Tout", kMatMulFast, "onednn:batch_matmul", RunMatMul, PrepareBatchMatMulV2},
    {"BatchMatMulV3", "Tout", kMatMulPlain, "reference:batch_matmul", RunMatMul,
     PrepareBatchMatMulV2},
};

}  // namespace

extern constinit const std::span<const Kernel> kMatMulKernels = kMatMulTable;

}  // namespace smelt
