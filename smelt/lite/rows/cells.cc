// Steps of recurrent layers as version 1 of TensorFlow has them in one op, and layers of steps.
#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/composites/lstm.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kCellTypes = Types(Dtype::kFloat);
// Layers are spelled out, of so many steps at most.
constexpr int64_t kMostCellSteps = 256;

// x and h beside each other, times a matrix [inputs + cells, units] that is transposed already.
Endpoint OfBoth(Endpoint x, Endpoint h, Endpoint weights, Endpoint bias, OperatorChain& c) {
  if (!c.ok()) return {};
  const PartialShape a = c.shape(x), b = c.shape(h), w = c.shape(weights);
  const int64_t rows = a[0] >= 0 ? a[0] : std::max<int64_t>(b[0], -1);
  const Endpoint both = c.Make("tfl.concatenation", {x, h}, Options({{"axis", int64_t{1}}}),
                               {Dtype::kFloat, PartialShape::Of({rows, w[1]})});
  return c.Make("tfl.fully_connected", {both, weights, bias}, {},
                {Dtype::kFloat, PartialShape::Of({rows, w[0]})});
}

// What the steps of a layer share: gates are in the order i, c, f, o, or i, f, c, o.
struct BlockLstm {
  int64_t units;
  Endpoint weights;  // [4 * units, inputs + units]
  Endpoint bias;     // with what the forget gate has on top, where it is constant
  Endpoint wci, wcf, wco;
  bool peephole, forget_first;
  float clip, forget_bias;  // on top of `bias`
};

StatusOr<BlockLstm> BlockOf(const Node& n, int first, Legalizer& l) {
  const PartialShape w = l.shape(n.input(first + 3));
  if (w.rank() != 2 || !w.fully_known() || w[1] % 4 != 0) {
    return Unimplemented("the shape of its weights is not known");
  }
  BlockLstm b;
  b.units = w[1] / 4;
  b.forget_first = n.Is("BlockLSTMV2");
  b.peephole = n.Bool("use_peephole");
  b.clip = n.Float("cell_clip", b.forget_first ? 0.0f : 3.0f);
  b.forget_bias = b.forget_first ? 0.0f : n.Float("forget_bias", 1.0f);
  ASSIGN_OR_RETURN(b.weights, LiteTransposed(n.input(first + 3), l));
  b.wci = n.input(first + 4);
  b.wcf = n.input(first + 5);
  b.wco = n.input(first + 6);
  b.bias = n.input(first + 7);
  const auto bias = l.Constant(b.bias);
  if (!bias || b.forget_bias == 0 || bias->num_elements() != w[1]) return b;
  ASSIGN_OR_RETURN(Tensor more, Tensor::Zeros(Dtype::kFloat, bias->shape()));
  const auto at = static_cast<ptrdiff_t>(2 * b.units);
  std::fill_n(more.data<float>() + at, b.units, b.forget_bias);
  ASSIGN_OR_RETURN(const Tensor sum, Binary("AddV2", *bias, more));
  b.bias = l.Const(sum);
  b.forget_bias = 0;
  return b;
}

// i, cs, f, o, ci, co, h of one step.
std::vector<Endpoint> LstmStep(const BlockLstm& b, Endpoint x, Endpoint cell, Endpoint hidden,
                               OperatorChain& c) {
  const std::vector<Endpoint> gates = c.Split(OfBoth(x, hidden, b.weights, b.bias, c), 4, 1);
  Endpoint i = gates[0], f = gates[b.forget_first ? 1 : 2], o = gates[3];
  if (b.forget_bias != 0) f = c.Add(f, static_cast<double>(b.forget_bias));
  if (b.peephole) {
    i = c.Add(i, c.Mul(cell, b.wci));
    f = c.Add(f, c.Mul(cell, b.wcf));
  }
  i = c.Op("tfl.logistic", {i});
  f = c.Op("tfl.logistic", {f});
  const Endpoint ci = c.Op("tfl.tanh", {gates[b.forget_first ? 2 : 1]});
  Endpoint cs = c.Add(c.Mul(i, ci), c.Mul(f, cell));
  if (b.clip > 0) {
    cs = c.Max(c.Min(cs, static_cast<double>(b.clip)), -static_cast<double>(b.clip));
  }
  if (b.peephole) o = c.Add(o, c.Mul(cs, b.wco));
  o = c.Op("tfl.logistic", {o});
  const Endpoint co = c.Op("tfl.tanh", {cs});
  return {i, cs, f, o, ci, co, c.Mul(o, co)};
}

LiteEndpoints LstmCell(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCellTypes));
  if (l.rank(n.input(0)) != 2 || l.rank(n.input(2)) != 2) {
    return Unimplemented("the ranks of its inputs are not known");
  }
  ASSIGN_OR_RETURN(const BlockLstm b, BlockOf(n, 0, l));
  OperatorChain c(l);
  return c.Done(LstmStep(b, n.input(0), n.input(1), n.input(2), c));
}

// Nothing but the outputs of all steps is read: one operator.
LiteEndpoints OneOperator(const Node& n, const BlockLstm& b, const PartialShape& x, Legalizer& l) {
  SequenceLstm lstm;
  lstm.input = n.input(1);
  lstm.time_major = true;
  lstm.cell_clip = std::max(b.clip, 0.0f);
  ASSIGN_OR_RETURN(const std::vector<Endpoint> rows, LiteRowBlocks(b.weights, 4, l));
  ASSIGN_OR_RETURN(const std::vector<Endpoint> biases, LiteRowBlocks(b.bias, 4, l));
  for (size_t gate = 0; gate < 4; ++gate) {
    const size_t at = b.forget_first || gate == 0 || gate == 3 ? gate : 3 - gate;
    ASSIGN_OR_RETURN(lstm.weights[gate], LitePart(rows[at], {0, 0}, {b.units, x[2]}, l));
    ASSIGN_OR_RETURN(lstm.recurrent[gate], LitePart(rows[at], {0, x[2]}, {b.units, b.units}, l));
    lstm.bias[gate] = biases[at];
  }
  lstm.cell = n.input(2);
  lstm.hidden = n.input(3);
  lstm.output = {Dtype::kFloat, PartialShape::Of({x[0], x[1], b.units})};
  ASSIGN_OR_RETURN(const Endpoint all, AddSequenceLstm(lstm, l));
  std::vector<Endpoint> out(7, l.Floats(0));  // nobody reads the others
  out[6] = all;
  return out;
}

LiteEndpoints LstmLayer(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kInt64)));
  if (l.type(n.input(1)) != Dtype::kFloat) return Unimplemented("its operators take float alone");
  const auto taken = l.Integers(n.input(0));
  const PartialShape x = l.shape(n.input(1));
  if (x.rank() != 3 || x[0] < 1 || x[2] < 0 || !taken || taken->size() != 1) {
    return Unimplemented("the number of its steps is not known");
  }
  ASSIGN_OR_RETURN(const BlockLstm b, BlockOf(n, 1, l));
  bool outputs_alone = true;
  for (int i = 0; i < 6; ++i) outputs_alone = outputs_alone && n.NumUses(i) == 0;
  const bool states = l.shape(n.input(2)).fully_known() && l.shape(n.input(3)).fully_known();
  if (outputs_alone && states && !b.peephole && b.forget_bias == 0 && (*taken)[0] == x[0]) {
    return OneOperator(n, b, x, l);
  }
  if (x[0] > kMostCellSteps || (*taken)[0] < 0 || (*taken)[0] > x[0]) {
    return Unimplemented("it takes ", x[0], " steps, and more than ", kMostCellSteps,
                         " are not spelled out");
  }
  OperatorChain c(l);
  const std::vector<Endpoint> cut = c.Unpack(n.input(1), x[0], 0, PartialShape::Of({x[1], x[2]}));
  std::vector<std::vector<Endpoint>> all(7);
  Endpoint cell = n.input(2), hidden = n.input(3);
  for (int t = 0; t < (*taken)[0]; ++t) {
    const std::vector<Endpoint> step = LstmStep(b, cut[static_cast<size_t>(t)], cell, hidden, c);
    for (size_t i = 0; i < 7; ++i) all[i].push_back(step[i]);
    cell = step[1];
    hidden = step[6];
  }
  // Steps behind those that are taken are zero.
  const Endpoint zeros = (*taken)[0] < x[0] ? c.Op("tfl.zeros_like", {n.input(2)}) : Endpoint();
  RETURN_IF_ERROR(c.Done(zeros).status());
  std::vector<Endpoint> out(7, l.Floats(0));
  for (int i = 0; i < 7; ++i) {
    auto& parts = all[static_cast<size_t>(i)];
    if (n.NumUses(i) == 0) continue;
    parts.resize(static_cast<size_t>(x[0]), zeros);
    ASSIGN_OR_RETURN(
        out[static_cast<size_t>(i)],
        l.Add("tfl.pack", parts, Options({{"values_count", x[0]}, {"axis", int64_t{0}}}),
              {Dtype::kFloat, PartialShape::Of({x[0], x[1], b.units})}));
  }
  return out;
}

LiteEndpoints GruCell(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCellTypes));
  const PartialShape gates = l.shape(n.input(2)), candidate = l.shape(n.input(3));
  if (gates.rank() != 2 || !gates.fully_known() || candidate.rank() != 2 ||
      !candidate.fully_known() || l.rank(n.input(0)) != 2 || l.rank(n.input(1)) != 2) {
    return Unimplemented("the shape of its weights is not known");
  }
  const Endpoint x = n.input(0), before = n.input(1);
  ASSIGN_OR_RETURN(const Endpoint of_gates, LiteTransposed(n.input(2), l));
  ASSIGN_OR_RETURN(const Endpoint of_candidate, LiteTransposed(n.input(3), l));
  OperatorChain c(l);
  const Endpoint both = c.Op("tfl.logistic", {OfBoth(x, before, of_gates, n.input(4), c)});
  const std::vector<Endpoint> ru = c.Split(both, 2, 1);
  const Endpoint kept = c.Mul(before, ru[0]);
  const Endpoint made = c.Op("tfl.tanh", {OfBoth(x, kept, of_candidate, n.input(5), c)});
  const Endpoint h = c.Add(c.Mul(ru[1], before), c.Mul(c.Sub(1, ru[1]), made));
  return c.Done({ru[0], ru[1], made, h});
}

constexpr ExportRow kCellRows[] = {
    {"LSTMBlockCell", LstmCell},
    {"BlockLSTM", LstmLayer},
    {"BlockLSTMV2", LstmLayer},
    {"GRUBlockCell", GruCell},
};

}  // namespace

std::span<const ExportRow> CellExport() { return kCellRows; }

}  // namespace smelt
