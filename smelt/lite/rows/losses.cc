// Losses over classes.
#include <algorithm>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// Of rows of numbers, as the softmax of both ops needs them.
struct Rows {
  Endpoint moved;   // less the greatest of the row
  Endpoint powers;  // exp of it
  Endpoint sums;    // of those
};

Rows SoftmaxRows(Endpoint x, OperatorChain& c) {
  Rows r;
  r.moved = c.Sub(x, c.Reduce("tfl.reduce_max", x, {1}, true));
  r.powers = c.Op("tfl.exp", {r.moved});
  r.sums = c.Reduce("tfl.sum", r.powers, {1}, true);
  return r;
}

// The loss of each row of logits, and its gradient.
LiteEndpoints CrossEntropy(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  if (l.rank(n.input(0)) != 2 || l.rank(n.input(1)) != 2) {
    return Unimplemented("the ranks of its inputs are not known");
  }
  OperatorChain c(l);
  const Endpoint labels = n.input(1);
  const Rows r = SoftmaxRows(n.input(0), c);
  const Endpoint each = c.Mul(labels, c.Sub(c.Op("tfl.log", {r.sums}), r.moved));
  const Endpoint loss = c.Reduce("tfl.sum", each, {1}, false);
  return c.Done({loss, c.Sub(c.Div(r.powers, r.sums), labels)});
}

// The same of labels that are numbers of classes.
LiteEndpoints SparseCrossEntropy(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const PartialShape shape = l.shape(n.input(0));
  if (shape.rank() != 2 || shape[1] < 0) {
    return Unimplemented("the number of its classes is not known");
  }
  ASSIGN_OR_RETURN(const Endpoint labels, AsInt32(n.input(1), l));
  OperatorChain c(l);
  const Endpoint yes = l.Const(Tensor::Scalar(true)), no = l.Const(Tensor::Scalar(false));
  const PartialShape hot_shape = PartialShape::Of({std::max<int64_t>(shape[0], -1), shape[1]});
  const Endpoint hot = c.Make("tfl.one_hot", {labels, l.Int(shape[1]), yes, no},
                              Options({{"axis", int64_t{-1}}}), {Dtype::kBool, hot_shape});
  const Rows r = SoftmaxRows(n.input(0), c);
  const Endpoint mine = c.Reduce("tfl.sum", c.Select(hot, r.moved, 0), {1}, false);
  const Endpoint all = c.Op("tfl.log", {c.Reduce("tfl.sum", r.powers, {1}, false)});
  const Endpoint gradient = c.Sub(c.Div(r.powers, r.sums), c.Cast(hot, Dtype::kFloat));
  return c.Done({c.Sub(all, mine), gradient});
}

constexpr ExportRow kLossRows[] = {
    {"SoftmaxCrossEntropyWithLogits", CrossEntropy},
    {"SparseSoftmaxCrossEntropyWithLogits", SparseCrossEntropy},
};

}  // namespace

std::span<const ExportRow> LossExport() { return kLossRows; }

}  // namespace smelt
