// Losses over classes.
#include <algorithm>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// The logarithms of the probabilities of classes, and what the loss says of each logit.
Endpoint LogProbabilities(Endpoint x, OperatorChain& c) {
  return c.Make("tfl.log_softmax", {x}, {}, {Dtype::kFloat, c.shape(x)});
}
Endpoint Slope(Endpoint x, Endpoint labels, OperatorChain& c) {
  const Endpoint probabilities =
      c.Make("tfl.softmax", {x}, Options({{"beta", 1.0f}}), {Dtype::kFloat, c.shape(x)});
  return c.Sub(probabilities, labels);
}

// The loss of each row of logits, and its gradient.
LiteEndpoints CrossEntropy(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  if (l.rank(n.input(0)) != 2 || l.rank(n.input(1)) != 2) {
    return Unimplemented("the ranks of its inputs are not known");
  }
  for (int d = 0; d < 2; ++d) {
    const int64_t x = l.shape(n.input(0))[d], y = l.shape(n.input(1))[d];
    if (x >= 0 && y >= 0 && x != y) return Unimplemented("it broadcasts logits or labels");
  }
  OperatorChain c(l);
  const Endpoint labels = n.input(1);
  const Endpoint each = c.Mul(labels, LogProbabilities(n.input(0), c));
  const Endpoint loss = c.Op("tfl.neg", {c.Reduce("tfl.sum", each, {1}, false)});
  return c.Done({loss, Slope(n.input(0), labels, c)});
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
  // Other classes may be impossible: a product would not take them away.
  const Endpoint mine = c.Select(hot, LogProbabilities(n.input(0), c), 0);
  const Endpoint loss = c.Op("tfl.neg", {c.Reduce("tfl.sum", mine, {1}, false)});
  return c.Done({loss, Slope(n.input(0), c.Cast(hot, Dtype::kFloat), c)});
}

constexpr ExportRow kLossRows[] = {
    {"SoftmaxCrossEntropyWithLogits", CrossEntropy},
    {"SparseSoftmaxCrossEntropyWithLogits", SparseCrossEntropy},
};

}  // namespace

std::span<const ExportRow> LossExport() { return kLossRows; }

}  // namespace smelt
