// LSTMBlockCell, BlockLSTM and BlockLSTMV2: an LSTM step, and a layer of steps, in one op.
#include "smelt/kernels/recurrent/lstm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/recurrent/checks.h"

namespace smelt {
namespace {

float LstmSigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// Where a step writes: i, cs, f, o, ci, co, h of [batch, cell] each, as the ops give them out.
using LstmOutputs = std::array<float*, 7>;

// `gates` are the products of the inputs, without the bias.
void LstmStep(const LstmState& s, const LstmSizes& d, const LstmInputs& in, const float* gates,
              const float* cs_prev, const LstmOutputs& out) {
  const int64_t n = d.cell;
  const float* bias = in.b.data<float>();
  for (int64_t b = 0; b < d.batch; ++b) {
    for (int64_t k = 0; k < n; ++k) {
      const auto gate = [&](int g) { return gates[(b * 4 + g) * n + k] + bias[g * n + k]; };
      const int64_t at = b * n + k;
      const float before = cs_prev[at];
      float i = gate(0), f = gate(s.f_gate) + s.forget_bias, o = gate(3);
      if (s.peephole) {
        i += before * in.wci.data<float>()[k];
        f += before * in.wcf.data<float>()[k];
      }
      i = LstmSigmoid(i);
      f = LstmSigmoid(f);
      const float ci = std::tanh(gate(s.c_gate));
      float cs = i * ci + f * before;
      if (s.cell_clip > 0) {
        cs = cs > s.cell_clip ? s.cell_clip : cs < -s.cell_clip ? -s.cell_clip : cs;
      }
      if (s.peephole) o += cs * in.wco.data<float>()[k];
      o = LstmSigmoid(o);
      const float co = std::tanh(cs);
      const float values[] = {i, cs, f, o, ci, co, o * co};
      for (int v = 0; v < 7; ++v) out[v][at] = values[v];
    }
  }
}

// REQUIRES: taken > 0, and results that are not empty.
Status TakeLstmSteps(OpContext& ctx, LstmState& s, const LstmSizes& d, const LstmInputs& in,
                     int64_t taken, LstmOutputs out) {
  ASSIGN_OR_RETURN(Tensor xh, ctx.Temp(Dtype::kFloat, Shape({d.batch, d.input + d.cell})));
  ASSIGN_OR_RETURN(Tensor gates, ctx.Temp(Dtype::kFloat, Shape({d.batch, 4 * d.cell})));
  ASSIGN_OR_RETURN(const nn::MatMulProblem p,
                   nn::MakeMatMulProblem(xh.shape(), in.w.shape(), false, false, false));
  const float* cs = in.cs_prev.data<float>();
  const float* h = in.h_prev.data<float>();
  const int64_t size = d.batch * d.cell;
  for (int64_t t = 0; t < taken; ++t) {
    JoinLstmRows(d, in.x.data<float>() + t * d.batch * d.input, h, xh.data<float>());
    RETURN_IF_ERROR(s.matmul.Run(p, xh, in.w, false, {}, {}, &gates, ctx.step().allocator));
    LstmStep(s, d, in, gates.data<float>(), cs, out);
    cs = out[1];
    h = out[6];
    for (float*& o : out) o += size;
  }
  return OkStatus();
}

// Takes `taken` of the steps of x; the rest of the results is 0.
Status RunLstmSteps(OpContext& ctx, LstmState& s, const LstmSizes& d, int first, int64_t taken,
                    const Shape& shape) {
  ASSIGN_OR_RETURN(const LstmInputs in, ReadLstm(ctx, first));
  Tensor results[7];
  LstmOutputs out;
  for (int v = 0; v < 7; ++v) {
    ASSIGN_OR_RETURN(results[v], Tensor::Zeros(Dtype::kFloat, shape, ctx.step().allocator));
    out[v] = results[v].data<float>();
  }
  // With no cells nothing is computed: the sizes of empty tensors may be huge.
  if (taken > 0 && d.batch * d.cell > 0) {
    RETURN_IF_ERROR(TakeLstmSteps(ctx, s, d, in, taken, out));
  }
  for (int v = 0; v < 7; ++v) {
    ASSIGN_OR_RETURN(Tensor typed, FromFloat(results[v], ctx.output_type(v), ctx.step().allocator));
    ctx.set_output(v, std::move(typed));
  }
  return OkStatus();
}

Status RunLstmCell(OpContext& ctx) {
  auto& s = ctx.state<LstmState>();
  ASSIGN_OR_RETURN(const LstmSizes d, CheckLstm(ctx, s, 0, false));
  return RunLstmSteps(ctx, s, d, 0, 1, Shape({d.batch, d.cell}));
}

Status RunLstmLayer(OpContext& ctx) {
  auto& s = ctx.state<LstmState>();
  ASSIGN_OR_RETURN(const LstmSizes d, CheckLstm(ctx, s, 1, true));
  ASSIGN_OR_RETURN(const int64_t taken, LstmStepsTaken(ctx, d));
  const int64_t dims[] = {d.steps, d.batch, d.cell};
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  return RunLstmSteps(ctx, s, d, 1, taken, shape);
}

constexpr DtypeSet kLstmTypes = Types(Dtype::kFloat, Dtype::kHalf);

constexpr Kernel kLstmTable[] = {
    {"LSTMBlockCell", "T", kLstmTypes, "recurrent:lstm_cell", RunLstmCell, PrepareLstm},
    {"BlockLSTM", "T", kLstmTypes, "recurrent:lstm", RunLstmLayer, PrepareLstm},
};

}  // namespace

extern constinit const std::span<const Kernel> kLstmKernels = kLstmTable;

StatusOr<std::unique_ptr<KernelState>> PrepareLstm(const Node& node) {
  auto s = std::make_unique<LstmState>();
  const bool newer = node.Is("BlockLSTMV2") || node.Is("BlockLSTMGradV2");
  s->forget_bias = newer ? 0 : node.Float("forget_bias", 1);
  s->cell_clip = node.Float("cell_clip", newer ? 0 : 3);
  s->peephole = node.Bool("use_peephole");
  if (newer) std::swap(s->c_gate, s->f_gate);
  return s;
}

namespace {

// The operands of a layer, each checked whole before the next.
StatusOr<LstmSizes> CheckLayer(const OpContext& ctx, int first) {
  const auto rank = [&](int i, absl::string_view name, int wanted) {
    return CheckRanks(ctx, first + i, RankWords::kDimensions, {{name, wanted}});
  };
  RETURN_IF_ERROR(rank(0, "x", 3));
  const Shape& x = ctx.input(first).shape();
  LstmSizes d;
  d.steps = x[0];
  d.batch = x[1];
  d.input = x[2];
  RETURN_IF_ERROR(rank(1, "cs_prev", 2));
  d.cell = ctx.input(first + 1).dim(1);
  int64_t sum = 0, gates = 0;
  if (__builtin_add_overflow(d.input, d.cell, &sum) ||
      __builtin_mul_overflow(d.cell, int64_t{4}, &gates)) {
    return InvalidArgument("sizes of an LSTM are too large: ", d.input, ", ", d.cell);
  }
  RETURN_IF_ERROR(CheckSizes(ctx, {{first + 1, 0, "cs_prev.dims(0)", "batch_size", d.batch}}));
  RETURN_IF_ERROR(rank(2, "h_prev", 2));
  RETURN_IF_ERROR(CheckSizes(ctx, {{first + 2, 0, "h_prev.dims(0)", "batch_size", d.batch},
                                   {first + 2, 1, "h_prev.dims(1)", "cell_size", d.cell}}));
  RETURN_IF_ERROR(rank(3, "w", 2));
  RETURN_IF_ERROR(CheckSizes(ctx, {{first + 3, 0, "w.dim_size(0)", "input_size + cell_size", sum},
                                   {first + 3, 1, "w.dim_size(1)", "cell_size * 4", gates}}));
  RETURN_IF_ERROR(rank(4, "wci", 1));
  RETURN_IF_ERROR(CheckSizes(ctx, {{first + 4, 0, "wci.dim_size(0)", "cell_size", d.cell}}));
  RETURN_IF_ERROR(rank(5, "wcf", 1));
  RETURN_IF_ERROR(CheckSizes(ctx, {{first + 5, 0, "wcf.dim_size(0)", "cell_size", d.cell}}));
  RETURN_IF_ERROR(rank(6, "wco", 1));
  RETURN_IF_ERROR(CheckSizes(ctx, {{first + 6, 0, "wco.dim_size(0)", "cell_size", d.cell}}));
  RETURN_IF_ERROR(rank(7, "b", 1));
  RETURN_IF_ERROR(CheckSizes(ctx, {{first + 7, 0, "b.dim_size(0)", "cell_size * 4", gates}}));
  return d;
}

}  // namespace

StatusOr<LstmSizes> CheckLstm(const OpContext& ctx, const LstmState& s, int first, bool layer) {
  if (layer && ctx.input(0).rank() != 0) {
    return InvalidArgument("`seq_len_max_tensor` must be rank 0 but is rank ", ctx.input(0).rank());
  }
  const RankWords words = !layer                                       ? RankWords::kTensor
                          : absl::StrContains(ctx.node().op(), "Grad") ? RankWords::kPlain
                                                                       : RankWords::kDimensions;
  if (words == RankWords::kDimensions) return CheckLayer(ctx, first);
  RETURN_IF_ERROR(CheckRanks(ctx, first, words,
                             {{"x", layer ? 3 : 2},
                              {"cs_prev", 2},
                              {"h_prev", 2},
                              {"w", 2},
                              {"wci", 1},
                              {"wcf", 1},
                              {"wco", 1},
                              {"b", 1}}));
  const Shape& x = ctx.input(first).shape();
  LstmSizes d;
  d.steps = layer ? x[0] : 1;
  d.batch = x[layer ? 1 : 0];
  d.input = x.back();
  d.cell = ctx.input(first + 1).dim(1);
  int64_t sum = 0, gates = 0;
  if (__builtin_add_overflow(d.input, d.cell, &sum) ||
      __builtin_mul_overflow(d.cell, int64_t{4}, &gates)) {
    return InvalidArgument("sizes of an LSTM are too large: ", d.input, ", ", d.cell);
  }
  if (words == RankWords::kPlain) {
    // As TensorFlow does, the gradient of a layer first checks w against its own columns.
    const Tensor& w = ctx.input(first + 3);
    const int64_t rows = d.input + w.dim(1) / 4;
    if (rows != w.dim(0)) {
      return InvalidArgument("w matrix rows don't match: ", rows, " vs. ", w.dim(0));
    }
  }
  RETURN_IF_ERROR(CheckSizes(ctx, {{first + 1, 0, "cs_prev.dims(0)", "batch_size", d.batch},
                                   {first + 2, 0, "h_prev.dims(0)", "batch_size", d.batch},
                                   {first + 2, 1, "h_prev.dims(1)", "cell_size", d.cell},
                                   {first + 3, 0, "w.dim_size(0)", "input_size + cell_size", sum},
                                   {first + 3, 1, "w.dim_size(1)", "cell_size * 4", gates},
                                   {first + 7, 0, "b.dim_size(0)", "cell_size * 4", gates}}));
  if (layer || s.peephole) {
    RETURN_IF_ERROR(CheckSizes(ctx, {{first + 4, 0, "wci.dim_size(0)", "cell_size", d.cell},
                                     {first + 5, 0, "wcf.dim_size(0)", "cell_size", d.cell},
                                     {first + 6, 0, "wco.dim_size(0)", "cell_size", d.cell}}));
  }
  return d;
}

StatusOr<int64_t> LstmStepsTaken(const OpContext& ctx, const LstmSizes& d) {
  const int64_t taken = IndexAt(ctx.input(0), 0);
  if (taken < 0 || taken > d.steps) {
    return InvalidArgument("seq_len_max must be in [0, ", d.steps, "], got ", taken);
  }
  return taken;
}

StatusOr<LstmInputs> ReadLstm(const OpContext& ctx, int first) {
  LstmInputs in;
  Tensor* const all[] = {&in.x, &in.cs_prev, &in.h_prev, &in.w, &in.wci, &in.wcf, &in.wco, &in.b};
  for (int i = 0; i < 8; ++i) {
    ASSIGN_OR_RETURN(*all[i], ToFloat(ctx.input(first + i), ctx.step().allocator));
  }
  return in;
}

void JoinLstmRows(const LstmSizes& d, const float* x, const float* h, float* xh) {
  for (int64_t b = 0; b < d.batch; ++b) {
    xh = std::copy_n(x + b * d.input, d.input, xh);
    xh = std::copy_n(h + b * d.cell, d.cell, xh);
  }
}

}  // namespace smelt
