// Matrix products: those of float and narrower floats through FloatMatMul, others in plain loops.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "smelt/base/parallel.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/onednn/float_matmul.h"

namespace smelt {
namespace {

struct MatMulState final : KernelState {
  bool transpose_a = false;
  bool transpose_b = false;
  bool adjoint = false;  // transposing conjugates
  bool broadcast = false;
  bool constant_b = false;
  FusedOps fused;
  bool adds = false;  // of a product times a number: a matrix for each first dimension is added
  onednn::FloatMatMul product;
};

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

// A product times a number, and a matrix for each first dimension added: small enough pieces stay
// in the cache between the two steps.
Status RunScaledMatMul(OpContext& ctx) {
  auto& state = ctx.state<MatMulState>();
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  ASSIGN_OR_RETURN(const nn::MatMulProblem p,
                   nn::MakeMatMulProblem(a.shape(), b.shape(), state.transpose_a, state.transpose_b,
                                         state.broadcast));
  if (ctx.num_inputs() != 2 + (state.adds ? 2 : 1)) {
    return InvalidArgument("fused batch matrix product needs ", state.adds ? 2 : 1, " arguments");
  }
  if (ctx.input(2).num_elements() != 1) {
    return InvalidArgument("fused Mul needs one number, not ", ctx.input(2).shape().ToString());
  }
  const float factor = ctx.input(2).data<float>()[0];
  int64_t repeats = 1;  // of each matrix that is added
  if (state.adds) {
    const Shape& added = ctx.input(3).shape();
    bool fits = p.output.rank() == 4 && added.rank() == 4;
    for (int d = 0; fits && d < 4; ++d) fits = added[d] == p.output[d] || (d == 1 && added[d] == 1);
    if (!fits) {
      return InvalidArgument("fused Add needs a tensor that broadcasts to ", p.output.ToString(),
                             " along dimension 1, not ", added.ToString());
    }
    if (added[1] == 1) repeats = p.output[1];
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, p.output));
  if (out->num_elements() == 0) return OkStatus();
  RETURN_IF_ERROR(state.product.Run(p, a, b, state.constant_b, {}, {}, out, ctx.step().allocator));
  constexpr int64_t kPiece = 4096;
  const int rank = p.output.rank();
  const int64_t matrix = p.output[rank - 1] * p.output[rank - 2];
  const int64_t pieces = (matrix + kPiece - 1) / kPiece;
  float* y = out->data<float>();
  const float* addend = state.adds ? ctx.input(3).data<float>() : nullptr;
  ParallelFor(out->num_elements() / matrix * pieces, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t which = i / pieces, at = i % pieces * kPiece;
      const int64_t n = std::min(kPiece, matrix - at);
      float* piece = y + which * matrix + at;
      Isa().scale_shift(piece, piece, n, factor, 0);
      if (addend != nullptr) Isa().axpy(addend + which / repeats * matrix + at, piece, n, 1);
    }
  });
  return OkStatus();
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

StatusOr<std::unique_ptr<KernelState>> MakeBatchMatMulState(const Node& node, bool broadcast) {
  auto state = std::make_unique<MatMulState>();
  state->transpose_a = node.Bool("adj_x");
  state->transpose_b = node.Bool("adj_y");
  state->adjoint = true;
  state->broadcast = broadcast;
  state->constant_b = onednn::InputIsConst(node, 1);
  return state;
}
StatusOr<std::unique_ptr<KernelState>> PrepareBatchMatMul(const Node& node) {
  return MakeBatchMatMulState(node, false);
}
StatusOr<std::unique_ptr<KernelState>> PrepareBatchMatMulV2(const Node& node) {
  return MakeBatchMatMulState(node, true);
}

StatusOr<std::unique_ptr<KernelState>> PrepareScaledMatMul(const Node& node) {
  const auto names = node.Get<std::vector<std::string>>("fused_ops", {});
  const bool adds = names == std::vector<std::string>{"Mul", "Add"};
  if (!adds && names != std::vector<std::string>{"Mul"}) {
    return Unimplemented("Fusion is not implemented: [", absl::StrJoin(names, ","), "]");
  }
  ASSIGN_OR_RETURN(auto state, MakeBatchMatMulState(node, true));
  static_cast<MatMulState*>(state.get())->adds = adds;
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
