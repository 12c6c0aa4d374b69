// GRUBlockCell and its gradient: a step of a gated recurrent unit in one op.
#include <algorithm>
#include <cmath>

#include "smelt/kernels/onednn/float_matmul.h"
#include "smelt/kernels/recurrent/checks.h"

namespace smelt {
namespace {

struct GruState final : KernelState {
  onednn::FloatMatMul gates, candidate;
};
StatusOr<std::unique_ptr<KernelState>> PrepareGru(const Node&) {
  return std::make_unique<GruState>();
}

struct GruSizes {
  int64_t batch, input, cell;
};

StatusOr<GruSizes> CheckGru(const OpContext& ctx) {
  RETURN_IF_ERROR(
      CheckRanks(ctx, 0, RankWords::kRankOf,
                 {{"x", 2}, {"h_prev", 2}, {"w_ru_", 2}, {"w_c", 2}, {"b_ru", 1}, {"b_c", 1}}));
  const GruSizes d{ctx.input(0).dim(0), ctx.input(0).dim(1), ctx.input(1).dim(1)};
  int64_t sum = 0, gates = 0;
  if (__builtin_add_overflow(d.input, d.cell, &sum) ||
      __builtin_mul_overflow(d.cell, int64_t{2}, &gates)) {
    return InvalidArgument("sizes of a GRU are too large: ", d.input, ", ", d.cell);
  }
  RETURN_IF_ERROR(CheckSizes(ctx, {{1, 0, "h_prev.dims(0)", "batch_size", d.batch},
                                   {2, 0, "w_ru.dim_size(0)", "input_size + cell_size", sum},
                                   {2, 1, "w_ru.dim_size(1)", "cell_size * 2", gates},
                                   {3, 0, "w_c.dim_size(0)", "input_size + cell_size", sum},
                                   {3, 1, "w_c.dim_size(1)", "cell_size", d.cell},
                                   {4, 0, "b_ru.dim_size(0)", "cell_size * 2", gates},
                                   {5, 0, "b_c.dim_size(0)", "cell_size", d.cell}}));
  return d;
}

float GruSigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

Status RunGruCell(OpContext& ctx) {
  auto& s = ctx.state<GruState>();
  ASSIGN_OR_RETURN(const GruSizes d, CheckGru(ctx));
  Allocator* allocator = ctx.step().allocator;
  const float* x = ctx.input(0).data<float>();
  const float* h_prev = ctx.input(1).data<float>();
  float* out[4];  // r, u, c, h
  for (int k = 0; k < 4; ++k) {
    ASSIGN_OR_RETURN(Tensor * t, ctx.Allocate(k, Shape({d.batch, d.cell})));
    out[k] = t->data<float>();
  }
  if (d.batch * d.cell == 0) return OkStatus();
  const int64_t width = d.input + d.cell;
  ASSIGN_OR_RETURN(Tensor xh, ctx.Temp(Dtype::kFloat, Shape({d.batch, width})));
  ASSIGN_OR_RETURN(Tensor ru, ctx.Temp(Dtype::kFloat, Shape({d.batch, 2 * d.cell})));
  ASSIGN_OR_RETURN(Tensor c, ctx.Temp(Dtype::kFloat, Shape({d.batch, d.cell})));
  for (int64_t b = 0; b < d.batch; ++b) {
    float* row = std::copy_n(x + b * d.input, d.input, xh.data<float>() + b * width);
    std::copy_n(h_prev + b * d.cell, d.cell, row);
  }
  ASSIGN_OR_RETURN(const nn::MatMulProblem to_gates,
                   nn::MakeMatMulProblem(xh.shape(), ctx.input(2).shape(), false, false, false));
  RETURN_IF_ERROR(s.gates.Run(to_gates, xh, ctx.input(2), false, {}, {}, &ru, allocator));
  const float* bias = ctx.input(4).data<float>();
  for (int64_t i = 0; i < d.batch * d.cell; ++i) {
    const int64_t b = i / d.cell, k = i % d.cell;
    const float* gates = ru.data<float>() + b * 2 * d.cell;
    out[0][i] = GruSigmoid(gates[k] + bias[k]);
    out[1][i] = GruSigmoid(gates[d.cell + k] + bias[d.cell + k]);
    xh.data<float>()[b * width + d.input + k] = h_prev[i] * out[0][i];
  }
  ASSIGN_OR_RETURN(const nn::MatMulProblem to_candidate,
                   nn::MakeMatMulProblem(xh.shape(), ctx.input(3).shape(), false, false, false));
  RETURN_IF_ERROR(s.candidate.Run(to_candidate, xh, ctx.input(3), false, {}, {}, &c, allocator));
  for (int64_t i = 0; i < d.batch * d.cell; ++i) {
    out[2][i] = std::tanh(c.data<float>()[i] + ctx.input(5).data<float>()[i % d.cell]);
    out[3][i] = out[1][i] * h_prev[i] + (1 - out[1][i]) * out[2][i];
  }
  return OkStatus();
}

Status RunGruCellGrad(OpContext& ctx) {
  auto& s = ctx.state<GruState>();
  ASSIGN_OR_RETURN(const GruSizes d, CheckGru(ctx));
  RETURN_IF_ERROR(
      CheckRanks(ctx, 6, RankWords::kRankOf, {{"r", 2}, {"u", 2}, {"w_c", 2}, {"d_h", 2}}));
  RETURN_IF_ERROR(CheckSizes(ctx, {{6, 0, "r.dims(0)", "batch_size", d.batch},
                                   {6, 1, "r.dims(1)", "cell_size", d.cell},
                                   {7, 0, "u.dims(0)", "batch_size", d.batch},
                                   {7, 1, "u.dims(1)", "cell_size", d.cell},
                                   {8, 0, "c.dims(0)", "batch_size", d.batch},
                                   {8, 1, "c.dims(1)", "cell_size", d.cell},
                                   {9, 0, "d_h.dims(0)", "batch_size", d.batch},
                                   {9, 1, "d_h.dims(1)", "cell_size", d.cell}}));
  Allocator* allocator = ctx.step().allocator;
  const float* h_prev = ctx.input(1).data<float>();
  const float* r = ctx.input(6).data<float>();
  const float* u = ctx.input(7).data<float>();
  const float* c = ctx.input(8).data<float>();
  const float* d_h = ctx.input(9).data<float>();
  ASSIGN_OR_RETURN(Tensor * d_x, ctx.Allocate(0, Shape({d.batch, d.input})));
  ASSIGN_OR_RETURN(Tensor * d_h_prev, ctx.Allocate(1, Shape({d.batch, d.cell})));
  ASSIGN_OR_RETURN(Tensor * d_c_bar, ctx.Allocate(2, Shape({d.batch, d.cell})));
  ASSIGN_OR_RETURN(Tensor * d_ru_bar, ctx.Allocate(3, Shape({d.batch, 2 * d.cell})));
  if (d.batch * d.cell == 0) {
    std::fill_n(d_x->data<float>(), d_x->num_elements(), 0.0f);
    return OkStatus();
  }
  const int64_t width = d.input + d.cell;
  // The gradients of [x, h_prev * r] and [x, h_prev].
  ASSIGN_OR_RETURN(Tensor reset, ctx.Temp(Dtype::kFloat, Shape({d.batch, width})));
  ASSIGN_OR_RETURN(Tensor plain, ctx.Temp(Dtype::kFloat, Shape({d.batch, width})));
  for (int64_t i = 0; i < d.batch * d.cell; ++i) {
    d_c_bar->data<float>()[i] = d_h[i] * (1 - u[i]) * (1 - c[i] * c[i]);
  }
  ASSIGN_OR_RETURN(
      const nn::MatMulProblem from_candidate,
      nn::MakeMatMulProblem(d_c_bar->shape(), ctx.input(3).shape(), false, true, false));
  RETURN_IF_ERROR(
      s.candidate.Run(from_candidate, *d_c_bar, ctx.input(3), false, {}, {}, &reset, allocator));
  for (int64_t i = 0; i < d.batch * d.cell; ++i) {
    const int64_t b = i / d.cell, k = i % d.cell;
    float* bars = d_ru_bar->data<float>() + b * 2 * d.cell;
    const float d_hr = reset.data<float>()[b * width + d.input + k];
    bars[k] = d_hr * h_prev[i] * r[i] * (1 - r[i]);
    bars[d.cell + k] = d_h[i] * (h_prev[i] - c[i]) * u[i] * (1 - u[i]);
  }
  ASSIGN_OR_RETURN(
      const nn::MatMulProblem from_gates,
      nn::MakeMatMulProblem(d_ru_bar->shape(), ctx.input(2).shape(), false, true, false));
  RETURN_IF_ERROR(
      s.gates.Run(from_gates, *d_ru_bar, ctx.input(2), false, {}, {}, &plain, allocator));
  for (int64_t b = 0; b < d.batch; ++b) {
    const float* one = plain.data<float>() + b * width;
    const float* two = reset.data<float>() + b * width;
    for (int64_t k = 0; k < d.input; ++k) d_x->data<float>()[b * d.input + k] = one[k] + two[k];
    for (int64_t k = 0; k < d.cell; ++k) {
      const int64_t i = b * d.cell + k;
      d_h_prev->data<float>()[i] = one[d.input + k] + two[d.input + k] * r[i] + d_h[i] * u[i];
    }
  }
  return OkStatus();
}

constexpr Kernel kGruTable[] = {
    {"GRUBlockCell", "T", Types(Dtype::kFloat), "recurrent:gru_cell", RunGruCell, PrepareGru},
    {"GRUBlockCellGrad", "T", Types(Dtype::kFloat), "recurrent:gru_cell_grad", RunGruCellGrad,
     PrepareGru},
};

}  // namespace

extern constinit const std::span<const Kernel> kGruKernels = kGruTable;

}  // namespace smelt
