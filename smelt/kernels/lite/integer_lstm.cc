#include "smelt/kernels/lite/integer_lstm.h"

#include <algorithm>

#include "smelt/kernels/common/cancellable.h"

namespace smelt::lite {
namespace {

constexpr int kInputGate = 0, kForgetGate = 1, kCellGate = 2, kOutputGate = 3;
constexpr float kGateScale = 1.0f / 4096;  // of gates that are not normalized

const Tensor* Present(const OpContext& ctx, int i) {
  if (i < 0 || i >= ctx.num_inputs() || IsLeftOut(ctx.input(i))) return nullptr;
  return &ctx.input(i);
}

Status CheckInput(const OpContext& ctx, int i, Dtype type, std::initializer_list<int64_t> dims) {
  const Tensor* t = Present(ctx, i);
  if (t == nullptr) return InvalidArgument("input ", i, " is left out");
  if (t->dtype() != type) {
    return InvalidArgument("input ", i, " is ", DtypeName(t->dtype()), ", not ", DtypeName(type));
  }
  if (!std::ranges::equal(t->shape().dims(), dims)) {
    return InvalidArgument("input ", i, " has the shape ", t->shape().ToString());
  }
  const Affine a = InputAffine(ctx.node(), i);
  if (a.scales.size() > 1) return InvalidArgument("input ", i, " has several scales");
  return OkStatus();
}

int16_t Narrow(int64_t x) { return static_cast<int16_t>(std::clamp<int64_t>(x, -32768, 32767)); }
int8_t Byte(int64_t x) { return static_cast<int8_t>(std::clamp<int64_t>(x, -128, 127)); }

// `sum` + a * b; wraps.
int32_t Dot(int32_t sum, const int8_t* a, const int8_t* b, int64_t n) {
  auto total = static_cast<uint32_t>(sum);
  for (int64_t i = 0; i < n; ++i) total += static_cast<uint32_t>(int32_t{a[i]} * b[i]);
  return static_cast<int32_t>(total);
}

// a * b / 2^by, of which 16 bits stay.
int16_t Scaled(int16_t a, int16_t b, int by) {
  return static_cast<int16_t>(DividedByPower(int32_t{a} * b, by));
}

template <typename T>
T Clipped(T x, T limit) {
  return limit > 0 ? std::clamp(x, static_cast<T>(-limit), limit) : x;
}

// The limit in steps, none for 0.
template <typename T>
T LimitOf(float limit, float scale) {
  if (!(limit > 0)) return 0;
  return static_cast<T>(std::min(limit / scale, static_cast<float>(std::numeric_limits<T>::max())));
}

}  // namespace

StatusOr<IntegerLstm::Product> IntegerLstm::MakeProduct(const OpContext& ctx, int weights, int bias,
                                                        int64_t rows, int64_t depth, int32_t zero,
                                                        double factor) const {
  RETURN_IF_ERROR(CheckInput(ctx, weights, Dtype::kInt8, {rows, depth}));
  Product p;
  p.weights = ctx.input(weights);
  p.factor = FactorOf(factor);
  p.sums.assign(static_cast<size_t>(rows), 0);
  if (bias >= 0 && Present(ctx, bias) != nullptr) {
    RETURN_IF_ERROR(CheckInput(ctx, bias, Dtype::kInt32, {rows}));
    std::copy_n(ctx.input(bias).data<int32_t>(), rows, p.sums.begin());
  }
  const auto* w = p.weights.data<int8_t>();
  for (int64_t r = 0; r < rows; ++r) {
    int32_t total = 0;
    for (int64_t i = 0; i < depth; ++i) total += w[r * depth + i];
    auto& sum = p.sums[static_cast<size_t>(r)];
    sum = static_cast<int32_t>(static_cast<uint32_t>(sum) -
                               static_cast<uint32_t>(total) * static_cast<uint32_t>(zero));
  }
  return p;
}

Status IntegerLstm::MakeGate(const OpContext& ctx, const LstmPlaces& p, int gate) {
  const Node& node = ctx.node();
  Gate& g = gates_[gate];
  const bool normal = p.norm >= 0 && Present(ctx, p.norm + kForgetGate) != nullptr;
  const auto scale = [&](int i) { return InputAffine(node, i).scale(); };
  float gate_scale = kGateScale;
  if (normal) {
    const auto scales = node.Get<std::vector<float>>("_intermediate_scales", {});
    gate_scale = scales.size() > static_cast<size_t>(gate) ? scales[static_cast<size_t>(gate)] : 0;
    if (!(gate_scale > 0)) return InvalidArgument("intermediate ", gate, " has no scale");
    RETURN_IF_ERROR(CheckInput(ctx, p.norm + gate, Dtype::kInt16, {cells_}));
    RETURN_IF_ERROR(CheckInput(ctx, p.bias + gate, Dtype::kInt32, {cells_}));
    g.norm = ctx.input(p.norm + gate);
    const auto bias = ctx.input(p.bias + gate).flat<int32_t>();
    g.norm_bias.assign(bias.begin(), bias.end());
    const float norm_scale = scale(p.norm + gate);
    g.of_norm = FactorOf(static_cast<double>(norm_scale));
    g.of_norm.shift += 12;
    const float least = 10000 * norm_scale;
    g.least_variance = least > 1 ? static_cast<int32_t>(std::min(least, 1e9f)) : 1;
  }
  ASSIGN_OR_RETURN(
      g.x, MakeProduct(ctx, p.weights + gate, normal ? -1 : p.bias + gate, cells_, inputs_,
                       InputAffine(node, 0).zero(),
                       static_cast<double>(scale(p.weights + gate) * scale(0) / gate_scale)));
  ASSIGN_OR_RETURN(g.h, MakeProduct(ctx, p.recurrent + gate, -1, cells_, outputs_, state_zero_,
                                    static_cast<double>(scale(p.recurrent + gate) * scale(p.state) /
                                                        gate_scale)));
  const int peephole[] = {p.peephole, p.peephole + 1, -1, p.peephole + 2};
  const int at = peephole[gate];
  if (at < 0 || Present(ctx, at) == nullptr) return OkStatus();
  RETURN_IF_ERROR(CheckInput(ctx, at, Dtype::kInt16, {cells_}));
  if (outputs_ > cells_) {
    return Unimplemented("peepholes of ", cells_, " cells beside ", outputs_, " outputs");
  }
  g.peephole = ctx.input(at);
  const double cell_scale = std::ldexp(1.0, cell_power_);
  g.of_peephole = FactorOf(static_cast<double>(static_cast<float>(
      cell_scale * static_cast<double>(scale(at)) / static_cast<double>(gate_scale))));
  return OkStatus();
}

StatusOr<std::shared_ptr<const IntegerLstm>> IntegerLstm::Make(const OpContext& ctx,
                                                               const LstmPlaces& p) {
  const Node& node = ctx.node();
  auto c = std::make_shared<IntegerLstm>();
  c->first_ = Present(ctx, p.weights) == nullptr ? 1 : 0;
  const Tensor *x = Present(ctx, p.weights + kOutputGate),
               *h = Present(ctx, p.recurrent + kOutputGate);
  if (x == nullptr || h == nullptr || x->rank() != 2 || h->rank() != 2) {
    return InvalidArgument("weights of the output gate are no matrices");
  }
  c->cells_ = x->dim(0);
  c->inputs_ = x->dim(1);
  c->outputs_ = h->dim(1);
  if (c->cells_ == 0) return InvalidArgument("it has no cells");
  const Affine cell = InputAffine(node, p.cell), state = InputAffine(node, p.state);
  if (cell.scales.size() != 1 || state.scales.size() != 1 || !InputAffine(node, 0).quantized()) {
    return InvalidArgument("its input or a state has no scale of its own");
  }
  int exponent = 0;
  const bool power = std::frexp(cell.scale(), &exponent) == 0.5f;
  c->cell_power_ = exponent - 1;
  const int bits = 15 + c->cell_power_;  // before the point
  if (!power || bits < 0 || bits > kMostTanhBits) {
    return Unimplemented("its cell state has the scale ", cell.scale());
  }
  c->state_zero_ = state.zero();
  for (int gate = c->first_; gate < 4; ++gate) RETURN_IF_ERROR(c->MakeGate(ctx, p, gate));

  const auto scales = node.Get<std::vector<float>>("_intermediate_scales", {});
  const std::vector<int64_t> zeros = node.Ints("_intermediate_zero_points");
  const float hidden = scales.size() == 5 ? scales[4] : 0;
  if (!(hidden > 0)) return InvalidArgument("what is before its projection has no scale");
  c->hidden_zero_ = zeros.size() == 5 ? static_cast<int32_t>(zeros[4]) : 0;
  c->of_hidden_ = FactorOf(static_cast<double>(static_cast<float>(
      std::ldexp(1.0, -15) / static_cast<double>(hidden) * std::ldexp(1.0, -15))));
  c->projects_ = Present(ctx, p.projection) != nullptr;
  if (c->projects_) {
    // LiteRT's steps before a projection are about the other side of 0, which decides what
    // saturates.
    c->hidden_zero_ = -c->hidden_zero_;
    const float scale = InputAffine(node, p.projection).scale();
    ASSIGN_OR_RETURN(
        c->projection_,
        c->MakeProduct(ctx, p.projection, p.projection_bias, c->outputs_, c->cells_,
                       c->hidden_zero_, static_cast<double>(scale * hidden / state.scale())));
  } else if (c->outputs_ != c->cells_) {
    return InvalidArgument(c->cells_, " cells make ", c->outputs_, " outputs without a projection");
  }
  c->cell_clip_ = LimitOf<int16_t>(node.Float("cell_clip"), cell.scale());
  c->proj_clip_ = LimitOf<int8_t>(node.Float("proj_clip"), OutputAffine(node).scale());
  return std::shared_ptr<const IntegerLstm>(std::move(c));
}

void IntegerLstm::Add(const Product& p, const int8_t* row, int16_t* to) {
  const int64_t rows = p.weights.dim(0), depth = p.weights.dim(1);
  const auto* w = p.weights.data<int8_t>();
  for (int64_t r = 0; r < rows; ++r, w += depth) {
    const int32_t sum = Dot(p.sums[static_cast<size_t>(r)], w, row, depth);
    to[r] = Narrow(int64_t{Times(sum, p.factor)} + to[r]);
  }
}

void IntegerLstm::Normalize(const Gate& g, int16_t* values) const {
  constexpr int64_t kSteps = 1 << 20;  // the square of 2^10, so many steps has 1
  int64_t sum = 0, squares = 0;
  for (int64_t i = 0; i < cells_; ++i) {
    sum += values[i];
    squares += int64_t{values[i]} * values[i];
  }
  const auto mean = static_cast<int32_t>(sum * 1024 / cells_);
  const int64_t variance = squares * static_cast<int32_t>(kSteps / cells_) - int64_t{mean} * mean;
  auto whole = static_cast<int32_t>(variance / kSteps);
  if (whole < 1) whole = g.least_variance;
  const Factor inverse = InverseRoot(whole);
  const auto* norm = g.norm.data<int16_t>();
  for (int64_t i = 0; i < cells_; ++i) {
    const int32_t normal = Times(1024 * values[i] - mean, inverse);
    const auto product =
        static_cast<int32_t>(static_cast<uint32_t>(normal) * static_cast<uint32_t>(norm[i]) +
                             static_cast<uint32_t>(g.norm_bias[static_cast<size_t>(i)]));
    const int64_t wide = product;
    const auto rounded = static_cast<int32_t>((wide > 0 ? wide + 512 : wide - 512) / 1024);
    values[i] = Narrow(Times(rounded, g.of_norm));
  }
}

// LiteRT walks over cells of all rows in steps of the outputs' width: with a projection to fewer,
// weights lie beside other cells than their own, and the last cells have none.
void IntegerLstm::AddPeephole(const Gate& g, const Row& row, int16_t* to) const {
  const auto* w = g.peephole.data<int16_t>();
  const int64_t first = row.number * cells_;
  const int64_t count = std::min(cells_, row.count * outputs_ - first);
  for (int64_t i = 0; i < count; ++i) {
    const int32_t product = int32_t{w[(first + i) % outputs_]} * row.cell[i];
    to[i] = Narrow(int64_t{Times(product, g.of_peephole)} + to[i]);
  }
}

void IntegerLstm::Compute(const Gate& g, const Row& row, const FixedTable& activation,
                          int16_t* to) const {
  std::fill_n(to, cells_, int16_t{0});
  Add(g.x, row.x, to);
  Add(g.h, row.state, to);
  if (g.peephole.valid()) AddPeephole(g, row, to);
  if (g.norm.valid()) Normalize(g, to);
  for (int64_t i = 0; i < cells_; ++i) to[i] = At(activation, to[i]);
}

void IntegerLstm::Step(const Row& row, std::vector<int16_t>* gates,
                       std::vector<int8_t>& hidden) const {
  const FixedTable& sigmoid = SigmoidTable();
  const auto compute = [&](int gate, const FixedTable& table) {
    Compute(gates_[gate], row, table, gates[gate].data());
  };
  int16_t* cell = row.cell;
  int8_t* state = row.state;
  if (first_ == 0) compute(kInputGate, sigmoid);
  compute(kForgetGate, sigmoid);
  compute(kCellGate, TanhTable(3));
  for (int64_t i = 0; i < cells_; ++i) {
    const auto at = static_cast<size_t>(i);
    const int16_t forget = gates[kForgetGate][at];
    const auto input = first_ == 0 ? gates[kInputGate][at] : static_cast<int16_t>(32767 - forget);
    const int16_t kept = Scaled(forget, cell[i], 15);
    const int16_t fresh = Scaled(input, gates[kCellGate][at], 30 + cell_power_);
    cell[i] = Clipped(Narrow(kept + fresh), cell_clip_);
  }
  compute(kOutputGate, sigmoid);
  const FixedTable& tanh = TanhTable(15 + cell_power_);
  for (int64_t i = 0; i < cells_; ++i) {
    const auto at = static_cast<size_t>(i);
    const int32_t product = int32_t{gates[kOutputGate][at]} * At(tanh, cell[i]);
    hidden[at] = Byte(int64_t{Times(product, of_hidden_)} + hidden_zero_);
  }
  if (!projects_) {
    std::copy_n(hidden.data(), cells_, state);
    return;
  }
  const auto* w = projection_.weights.data<int8_t>();
  for (int64_t r = 0; r < outputs_; ++r, w += cells_) {
    const int32_t sum = Dot(projection_.sums[static_cast<size_t>(r)], w, hidden.data(), cells_);
    state[r] = Clipped(Byte(int64_t{Times(sum, projection_.factor)} + state_zero_), proj_clip_);
  }
}

Status IntegerLstm::Run(const Sequence& s, const smelt::Step& step) const {
  if (s.batch == 0) return OkStatus();
  std::vector<int16_t> gates[4];
  for (auto& g : gates) g.resize(static_cast<size_t>(cells_));
  std::vector<int8_t> hidden(static_cast<size_t>(cells_));
  for (int64_t t = 0; t < s.steps; ++t) {
    RETURN_IF_ERROR(CheckStep(step));
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t at = t * s.step_rows + b * s.batch_rows;
      const Row row = {.number = s.together ? b : 0,
                       .count = s.together ? s.batch : 1,
                       .x = s.x + at * inputs_,
                       .state = s.state + b * outputs_,
                       .cell = s.cell + b * cells_};
      Step(row, gates, hidden);
      std::copy_n(row.state, outputs_, s.out + at * outputs_);
    }
  }
  return OkStatus();
}

}  // namespace smelt::lite
