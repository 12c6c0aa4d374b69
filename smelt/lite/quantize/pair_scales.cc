// Measured on LiteRT (tests/peers/lite_quantize_test.py).
#include "smelt/lite/quantize/pair_scales.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/quantize/integer_format.h"
#include "smelt/lite/quantize/quantized_ops.h"

namespace smelt {
namespace {

constexpr OpSet kSums = {"tfl.add", "tfl.sub"};
constexpr OpSet kPairs = {"tfl.add", "tfl.sub", "tfl.mul", "tfl.squared_difference", "tfl.square"};

bool IsPower(double scale, int* log) {
  const double power = std::log2(scale), rounded = std::round(power);
  *log = static_cast<int>(rounded);
  return std::abs(power - rounded) < 1e-3;
}

// Where all scales are powers of two, kernels of int16 shift operands to the right alone, and one
// of them not at all.
bool PowersFit(double a, double b, double result) {
  int log_a = 0, log_b = 0, log_result = 0;
  if (!IsPower(a, &log_a) || !IsPower(b, &log_b) || !IsPower(result, &log_result)) return true;
  return std::max(log_a, log_b) == log_result;
}

}  // namespace

bool IsScaledPair(OpName op) { return kPairs.Contains(op); }

bool PairScalesFit(OpName op, bool int16, float a, float b, float result) {
  if (int16 && op == "tfl.squared_difference") {
    return PairScalesFit("tfl.sub", int16, a, b, DifferenceScale(result));
  }
  const double wide = result;
  if (op == "tfl.mul" || op == "tfl.square") {
    // The product of any two integers, times this, is to go into 32 bits before it saturates.
    const double most = int16 ? 2 : 32768;
    return static_cast<double>(a) * static_cast<double>(b) < most * wide;
  }
  // Operands are brought to twice the coarser scale with some bits more, from which a result is to
  // be scaled down.
  const double twice = 2 * static_cast<double>(std::max(a, b));
  // What is this close may be 1 when it is rounded.
  constexpr double kBelowOne = 1 - 1e-6;
  if (!kSums.Contains(op)) return twice * twice < kBelowOne * (1 << 14) * wide;
  const double finer = int16 ? 1 << 15 : 1 << 20;
  return twice < kBelowOne * finer * wide &&
         (!int16 || PowersFit(static_cast<double>(a), static_cast<double>(b), wide));
}

void MakeProduct(Graph& graph, Node* square) {
  graph.SetOp(square, "tfl.mul");
  graph.AddInput(square, square->input(0));
}

StatusOr<Node*> MakeProductOfDifference(Graph& graph, Node* n) {
  const std::vector<Endpoint> inputs(n->inputs().begin(), n->inputs().end());
  ASSIGN_OR_RETURN(Node * difference, graph.Add(absl::StrCat(n->name(), "/difference"), "tfl.sub",
                                                inputs, n->attrs()));
  graph.SetOp(n, "tfl.mul");
  graph.SetInputs(n, {{difference, 0}, {difference, 0}});
  return difference;
}

float DifferenceScale(float square) {
  return std::sqrt(square / static_cast<float>(kInt16Format.high));
}

bool IsScaling(const Node& n) {
  if (n.Is("tfl.neg")) return n.output_types[0] == Dtype::kFloat;
  if (!n.Is("tfl.div")) return false;
  const auto by = ConstantTensor(*n.input(1).node);
  return by && by->dtype() == Dtype::kFloat && std::ranges::all_of(by->flat<float>(), [](float v) {
           return std::abs(v) > 1e-30f && std::abs(v) < 1e30f;
         });
}

Status MakeScaling(Graph& graph, Node* n) {
  Tensor factor = Tensor::Scalar(-1.0f);
  if (n->Is("tfl.div")) {
    const Tensor by = *ConstantTensor(*n->input(1).node);
    ASSIGN_OR_RETURN(factor, Tensor::Make(Dtype::kFloat, by.shape()));
    std::ranges::transform(by.flat<float>(), factor.data<float>(), [](float v) { return 1 / v; });
  }
  AttrMap attrs;
  attrs.Set("dtype", Dtype::kFloat);
  attrs.Set("value", factor);
  ASSIGN_OR_RETURN(Node * constant,
                   graph.Add(absl::StrCat(n->name(), "/factor"), "Const", {}, std::move(attrs)));
  graph.SetOp(n, "tfl.mul");
  graph.SetInputs(n, {n->input(0), {constant, 0}});
  return UpdateInputTypes(graph, n);
}

}  // namespace smelt
