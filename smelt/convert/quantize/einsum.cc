// Einsum, or XLA's product, of a tensor and known weights as one matrix product.
#include <algorithm>

#include "smelt/convert/quantize/quantize.h"
#include "smelt/graph/einsum_equation.h"
#include "smelt/kernels/xla/dimension_numbers.h"

namespace smelt::quantize {
namespace {

bool HasLabel(const EinsumLabels& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}

bool Repeats(const EinsumLabels& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::find(labels.begin() + i + 1, labels.end(), labels[i]) != labels.end()) return true;
  }
  return false;
}

// The labels with the ellipsis replaced by `dims` labels of its own.
EinsumLabels WithoutEllipsis(const EinsumLabels& labels, int dims) {
  EinsumLabels out;
  for (const int label : labels) {
    if (label != kEllipsis) {
      out.push_back(label);
      continue;
    }
    for (int i = dims; i > 0; --i) out.push_back(kEllipsis + i);
  }
  return out;
}

// Where each of `wanted` is in `labels`; empty when they are the same.
std::vector<int32_t> OrderOf(const EinsumLabels& wanted, const EinsumLabels& labels) {
  if (wanted == labels) return {};
  std::vector<int32_t> order;
  for (const int label : wanted) {
    order.push_back(static_cast<int32_t>(std::ranges::find(labels, label) - labels.begin()));
  }
  return order;
}

EinsumLabels Joined(const EinsumLabels& a, const EinsumLabels& b) {
  EinsumLabels out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

// XLA's product as an equation: numbers for labels, as its dimensions have no names. Dimensions of
// a pair that are out of range are left to the kernel to refuse.
StatusOr<EinsumEquation> DotEquation(const Node& n, int lhs_rank, int rhs_rank) {
  ASSIGN_OR_RETURN(const DotDimensions d, DotDimensionsOf(n));
  EinsumEquation e;
  int next = kEllipsis + 1;
  for (const int rank : {lhs_rank, rhs_rank}) {
    EinsumLabels& labels = e.inputs.emplace_back();
    for (int i = 0; i < rank; ++i) labels.push_back(next++);
  }
  const auto pair = [&](const Dims& lhs, const Dims& rhs) {
    bool fits = lhs.size() == rhs.size();
    for (size_t i = 0; fits && i < lhs.size(); ++i) {
      fits = lhs[i] >= 0 && lhs[i] < lhs_rank && rhs[i] >= 0 && rhs[i] < rhs_rank;
      if (fits) e.inputs[1][rhs[i]] = e.inputs[0][lhs[i]];
    }
    return fits;
  };
  if (!pair(d.lhs_batch, d.rhs_batch) || !pair(d.lhs_contracting, d.rhs_contracting)) {
    return InvalidArgument("Its dimension_numbers do not fit its operands.");
  }
  for (const int64_t i : d.lhs_batch) e.output.push_back(e.inputs[0][i]);
  for (const int side : {0, 1}) {
    for (const int label : e.inputs[side]) {
      if (!HasLabel(e.inputs[1 - side], label)) e.output.push_back(label);
    }
  }
  return e;
}

// `input_rank` is that of the operand that is not the weights; -1: not known.
StatusOr<EinsumEquation> EquationOf(const Layer& layer, int input_rank) {
  const Node& n = *layer.node;
  if (n.Is("Einsum")) return ParseEinsum(n.String("equation"));
  if (input_rank < 0) return InvalidArgument("The rank of its input is not known.");
  const int weights_rank = layer.weight_value.rank();
  return layer.weights_input == 0 ? DotEquation(n, weights_rank, input_rank)
                                  : DotEquation(n, input_rank, weights_rank);
}

constexpr char kNoProduct[] = "Its equation is not one product of a matrix and its weights.";

}  // namespace

StatusOr<ProductForm> ProductFormOf(const Layer& layer, int input_rank) {
  ASSIGN_OR_RETURN(const EinsumEquation equation, EquationOf(layer, input_rank));
  if (equation.inputs.size() != 2) return InvalidArgument(kNoProduct);
  const Shape& shape = layer.weight_value.shape();
  const EinsumLabels& weights = equation.inputs[layer.weights_input];
  EinsumLabels input = equation.inputs[layer.input], output = equation.output;
  if (HasLabel(weights, kEllipsis) || static_cast<int>(weights.size()) != shape.rank() ||
      HasLabel(input, kEllipsis) != HasLabel(output, kEllipsis)) {
    return InvalidArgument(kNoProduct);
  }
  if (HasLabel(input, kEllipsis)) {
    const int dims = input_rank - (static_cast<int>(input.size()) - 1);
    if (input_rank < 0) return InvalidArgument("The rank of its input is not known.");
    if (dims < 0) return InvalidArgument("Its input has too few dimensions.");
    input = WithoutEllipsis(input, dims);
    output = WithoutEllipsis(output, dims);
  }
  if (Repeats(input) || Repeats(weights) || Repeats(output)) return InvalidArgument(kNoProduct);

  ProductForm form;
  EinsumLabels summed, input_rest, weights_rest;
  for (const int label : input) {
    const bool shared = HasLabel(weights, label);
    if (shared == HasLabel(output, label)) return InvalidArgument(kNoProduct);
    (shared ? summed : input_rest).push_back(label);
  }
  for (size_t d = 0; d < weights.size(); ++d) {
    if (HasLabel(input, weights[d])) continue;
    if (!HasLabel(output, weights[d])) return InvalidArgument(kNoProduct);
    weights_rest.push_back(weights[d]);
    form.channels.push_back(shape[static_cast<int>(d)]);
  }
  // Where nothing is summed over, or the weights give no dimension to the output, it is no product.
  if (summed.empty() || weights_rest.empty() ||
      output.size() != input_rest.size() + weights_rest.size()) {
    return InvalidArgument(kNoProduct);
  }
  form.input_rank = static_cast<int>(input.size());
  form.summed = static_cast<int>(summed.size());
  form.weights_last = weights == Joined(weights_rest, summed);
  form.input_order = OrderOf(Joined(input_rest, summed), input);
  if (!form.weights_last) form.weights_order = OrderOf(Joined(summed, weights_rest), weights);
  form.output_order = OrderOf(output, Joined(input_rest, weights_rest));
  form.channel_strides.assign(weights.size(), 0);
  int64_t stride = 1;
  for (size_t d = weights.size(); d-- > 0;) {
    if (HasLabel(summed, weights[d])) continue;
    form.channel_strides[d] = stride;
    stride *= shape[static_cast<int>(d)];
  }
  return form;
}

}  // namespace smelt::quantize
