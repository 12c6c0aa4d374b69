#include "smelt/kernels/lite/lstm_cell.h"

#include <algorithm>
#include <array>
#include <limits>

#include "smelt/kernels/common/cancellable.h"

namespace smelt::lite {
namespace {

constexpr int kInput = 0, kForget = 1, kCell = 2, kOutput = 3;
// Products of so many floats are taken before the steps that need them.
constexpr int64_t kAheadFloats = 1 << 18;

const Tensor* InputOf(const OpContext& ctx, int i) {
  if (i < 0 || i >= ctx.num_inputs() || IsLeftOut(ctx.input(i))) return nullptr;
  return &ctx.input(i);
}

// Floats, or numbers of 8 or 16 bits with one scale; empty: left out.
StatusOr<std::vector<float>> VectorOf(const OpContext& ctx, int i, int64_t n) {
  const Tensor* t = InputOf(ctx, i);
  std::vector<float> out;
  if (t == nullptr) return out;
  if (t->rank() != 1 || t->dim(0) != n) {
    return InvalidArgument("input ", i, " has the shape ", t->shape().ToString(), ", not [", n,
                           "]");
  }
  if (t->dtype() == Dtype::kFloat) {
    out.assign(t->data<float>(), t->data<float>() + n);
    return out;
  }
  const int8_t* steps = StepsOf(*t);
  if (steps == nullptr) return Unimplemented("input ", i, " is ", DtypeName(t->dtype()));
  const float scale = InputAffine(ctx.node(), i).scale();
  for (int64_t k = 0; k < n; ++k) {
    out.push_back(static_cast<float>(steps[k]) * scale);
  }
  return out;
}

// Inputs `at` + first .. `at` + 3.
StatusOr<GateProduct> ProductOf(const OpContext& ctx, int at, int first, bool asymmetric) {
  std::vector<GateProduct::Gate> gates;
  for (int g = first; g < 4; ++g) {
    const Tensor* t = InputOf(ctx, at + g);
    if (t == nullptr) return InvalidArgument("input ", at + g, " is left out");
    gates.push_back({t, InputAffine(ctx.node(), at + g).scale()});
  }
  return GateProduct::Make(gates, asymmetric);
}

void Clip(float limit, float* x, int64_t n) {
  if (!(limit > 0)) return;
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

}  // namespace

StatusOr<std::shared_ptr<const LstmCell>> LstmCell::Make(const OpContext& ctx, const LstmPlaces& p,
                                                         const LstmOptions& options) {
  auto c = std::make_shared<LstmCell>();
  c->options_ = options;
  c->first_ = InputOf(ctx, p.weights) == nullptr ? 1 : 0;
  ASSIGN_OR_RETURN(c->x_, ProductOf(ctx, p.weights, c->first_, options.asymmetric));
  ASSIGN_OR_RETURN(c->h_, ProductOf(ctx, p.recurrent, c->first_, options.asymmetric));
  c->cells_ = c->x_.columns() / (4 - c->first_);
  c->outputs_ = c->h_.depth();
  if (c->h_.columns() != c->x_.columns()) {
    return InvalidArgument("weights of inputs are of ", c->cells_, " cells, those of outputs of ",
                           c->h_.columns() / (4 - c->first_));
  }
  if (InputOf(ctx, p.projection) != nullptr) {
    const GateProduct::Gate gate = {&ctx.input(p.projection),
                                    InputAffine(ctx.node(), p.projection).scale()};
    ASSIGN_OR_RETURN(c->projection_, GateProduct::Make({&gate, 1}, options.asymmetric));
    if (c->projection_->depth() != c->cells_ || c->projection_->columns() != c->outputs_) {
      return InvalidArgument("the projection is of the shape ", gate.weights->shape().ToString(),
                             ", not [", c->outputs_, ",", c->cells_, "]");
    }
    ASSIGN_OR_RETURN(c->projection_bias_, VectorOf(ctx, p.projection_bias, c->outputs_));
  } else if (c->outputs_ != c->cells_) {
    return InvalidArgument(c->cells_, " cells make ", c->outputs_, " outputs without a projection");
  }
  if (p.aux >= 0 && InputOf(ctx, p.aux + kForget) != nullptr) {
    ASSIGN_OR_RETURN(c->aux_, ProductOf(ctx, p.aux, c->first_, options.asymmetric));
    if (c->aux_->columns() != c->x_.columns()) {
      return InvalidArgument("weights of the auxiliary input are of other cells");
    }
  }
  const int peephole[] = {p.peephole, p.peephole + 1, -1, p.peephole + 2};
  for (int g = c->first_; g < 4; ++g) {
    ASSIGN_OR_RETURN(c->peephole_[g], VectorOf(ctx, peephole[g], c->cells_));
    ASSIGN_OR_RETURN(c->bias_[g], VectorOf(ctx, p.bias + g, c->cells_));
    if (p.norm < 0) continue;
    ASSIGN_OR_RETURN(c->norm_[g], VectorOf(ctx, p.norm + g, c->cells_));
  }
  return std::shared_ptr<const LstmCell>(std::move(c));
}

LstmRanges::LstmRanges() {
  std::ranges::fill(low, std::numeric_limits<float>::infinity());
  std::ranges::fill(high, -std::numeric_limits<float>::infinity());
}

void LstmRanges::Note(int which, const float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    low[which] = std::min(low[which], values[i]);
    high[which] = std::max(high[which], values[i]);
  }
}

void LstmCell::FinishGate(int gate, const float* cell, float* values, LstmRanges* ranges) const {
  const auto g = static_cast<size_t>(gate);
  for (size_t i = 0; i < peephole_[g].size(); ++i) values[i] += peephole_[g][i] * cell[i];
  if (ranges != nullptr) ranges->Note(gate, values, cells_);
  if (!norm_[g].empty()) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < cells_; ++i) sum += static_cast<double>(values[i]);
    const double mean = sum / static_cast<double>(cells_);
    for (int64_t i = 0; i < cells_; ++i) {
      const double d = static_cast<double>(values[i]) - mean;
      squares += d * d;
    }
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(cells_) + 1e-8);
    for (size_t i = 0; i < norm_[g].size(); ++i) {
      const double normal = (static_cast<double>(values[i]) - mean) * inverse;
      values[i] = static_cast<float>(normal) * norm_[g][i] + (bias_[g].empty() ? 0 : bias_[g][i]);
    }
  }
  if (gate == kCell) return Activate(options_.activation, values, values, cells_);
  Isa().unary[static_cast<int>(UnaryF32::kSigmoid)](values, values, cells_, 0);
}

void LstmCell::Step(float* gates, int64_t batch, float* state, float* cell,
                    LstmRanges* ranges) const {
  std::vector<float> hidden(static_cast<size_t>(cells_));
  for (int64_t b = 0; b < batch; ++b, gates += x_.columns(), state += outputs_, cell += cells_) {
    const auto values = [&](int gate) { return gates + (gate - first_) * cells_; };
    if (first_ == 0) FinishGate(kInput, cell, values(kInput), ranges);
    FinishGate(kForget, cell, values(kForget), ranges);
    FinishGate(kCell, cell, values(kCell), ranges);
    const float *forget = values(kForget), *fresh = values(kCell);
    const float* input = first_ == 0 ? values(kInput) : nullptr;
    for (int64_t i = 0; i < cells_; ++i) {
      cell[i] = forget[i] * cell[i] + (input != nullptr ? input[i] : 1 - forget[i]) * fresh[i];
    }
    Clip(options_.cell_clip, cell, cells_);
    FinishGate(kOutput, cell, values(kOutput), ranges);
    Activate(options_.activation, cell, hidden.data(), cells_);
    const float* open = values(kOutput);
    for (int64_t i = 0; i < cells_; ++i) hidden[static_cast<size_t>(i)] *= open[i];
    if (ranges != nullptr) {
      ranges->Note(LstmRanges::kHidden, hidden.data(), cells_);
      ranges->Note(LstmRanges::kCell, cell, cells_);
    }
    if (!projection_) {
      std::copy(hidden.begin(), hidden.end(), state);
      continue;
    }
    std::fill(state, state + outputs_, 0.0f);
    std::copy(projection_bias_.begin(), projection_bias_.end(), state);
    projection_->Add(hidden.data(), 1, state);
    Clip(options_.proj_clip, state, outputs_);
  }
}

Status LstmCell::Run(const Sequence& s, const smelt::Step& step) const {
  const int64_t width = x_.columns();
  if (s.steps == 0 || s.batch == 0) return OkStatus();
  const int64_t ahead =
      std::clamp<int64_t>(kAheadFloats / std::max<int64_t>(1, s.batch * width), 1, s.steps);
  std::vector<float> sums(static_cast<size_t>(ahead * s.batch * width));
  std::vector<float> rows;
  const auto row = [&](int64_t step, int64_t b) {
    const int64_t t = s.backwards ? s.steps - 1 - step : step;
    return t * s.step_rows + b * s.batch_rows;
  };
  // sums += weights of the rows of steps [from, from + n).
  const auto add = [&](const GateProduct& weights, const float* x, int64_t from, int64_t n) {
    rows.resize(static_cast<size_t>(n * s.batch * weights.depth()));
    float* to = rows.data();
    for (int64_t t = from; t < from + n; ++t) {
      for (int64_t b = 0; b < s.batch; ++b) {
        to = std::copy_n(x + row(t, b) * weights.depth(), weights.depth(), to);
      }
    }
    weights.Add(rows.data(), n * s.batch, sums.data());
  };
  for (int64_t from = 0; from < s.steps; from += ahead) {
    const int64_t n = std::min(ahead, s.steps - from);
    float* to = sums.data();
    for (int64_t r = 0; r < n * s.batch; ++r) {
      for (int g = first_; g < 4; ++g, to += cells_) {
        const auto& bias = bias_[g];
        if (!bias.empty() && norm_[g].empty()) {
          std::copy(bias.begin(), bias.end(), to);
        } else {
          std::fill(to, to + cells_, 0.0f);
        }
      }
    }
    add(x_, s.x, from, n);
    if (aux_ && s.aux != nullptr) add(*aux_, s.aux, from, n);
    for (int64_t t = 0; t < n; ++t) {
      RETURN_IF_ERROR(CheckStep(step));
      float* gates = sums.data() + t * s.batch * width;
      h_.Add(s.state, s.batch, gates);
      Step(gates, s.batch, s.state, s.cell, s.ranges);
      for (int64_t b = 0; b < s.batch; ++b) {
        std::copy_n(s.state + b * outputs_, outputs_, s.out + row(from + t, b) * s.out_width);
      }
    }
  }
  return OkStatus();
}

}  // namespace smelt::lite
