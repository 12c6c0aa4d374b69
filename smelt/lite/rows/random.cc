// Ops that draw random numbers. Others than TensorFlow draws, from the same distribution.
#include <numbers>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

AttrMap Seeds(const Node& n) {
  return Options({{"seed", n.Int("seed")}, {"seed2", n.Int("seed2")}});
}

LiteEndpoints Drawn(Node& n, Legalizer& l) {
  if (n.output_types[0] != Dtype::kFloat) {
    return Unimplemented("its operator does not draw ", DtypeName(n.output_types[0]));
  }
  ASSIGN_OR_RETURN(const Endpoint shape, AsInt32(n.input(0), l));
  return One(l.Add(l.row().lite, {shape}, Seeds(n), l.OutputOf(n)));
}

LiteEndpoints Multinomial(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  ASSIGN_OR_RETURN(const Endpoint count, AsInt32(n.input(1), l));
  return One(l.Add("tfl.multinomial", {n.input(0), count}, Seeds(n), l.OutputOf(n)));
}

// Whole numbers of [low, high), by a uniform one: of as many values as a float tells apart.
LiteEndpoints DrawnIntegers(Node& n, Legalizer& l) {
  const auto low = l.Integers(n.input(1)), high = l.Integers(n.input(2));
  if (!low || !high || low->size() != 1 || high->size() != 1) {
    return Unimplemented("its limits are no constants");
  }
  const int64_t count = (*high)[0] - (*low)[0];
  if (count < 1 || count > int64_t{1} << 23) {
    return Unimplemented("it draws among ", count, " numbers, which a float does not tell apart");
  }
  ASSIGN_OR_RETURN(const Endpoint shape, AsInt32(n.input(0), l));
  OperatorChain c(l);
  const LiteOutput out = l.OutputOf(n);
  const Endpoint drawn =
      c.Make("tfl.random_uniform", {shape}, Seeds(n), {Dtype::kFloat, out.shape});
  const Endpoint scaled = c.Mul(drawn, static_cast<double>(count));
  const Endpoint whole = c.Min(c.Op("tfl.floor", {scaled}), static_cast<double>(count - 1));
  return c.Done(c.Add(c.Cast(whole, out.type), static_cast<double>((*low)[0])));
}

// A normal distribution without what is beyond two: its quantiles at uniform numbers.
LiteEndpoints DrawnWithin(Node& n, Legalizer& l) {
  constexpr double kErf = 0.95449973610364158;  // of the square root of 2
  if (n.output_types[0] != Dtype::kFloat) {
    return Unimplemented("its operator does not draw ", DtypeName(n.output_types[0]));
  }
  ASSIGN_OR_RETURN(const Endpoint shape, AsInt32(n.input(0), l));
  OperatorChain c(l);
  const Endpoint drawn = c.Make("tfl.random_uniform", {shape}, Seeds(n), l.OutputOf(n));
  const Endpoint x = c.Mul(c.Sub(drawn, 0.5), 2 * kErf);
  const Endpoint product = c.Mul(c.Sub(1, x), c.Add(x, 1));
  return c.Done(c.Mul(InverseErf(x, product, c), std::numbers::sqrt2));
}

// Rows in the order of numbers that are drawn.
LiteEndpoints Shuffled(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8,
                                     Dtype::kUint8, Dtype::kInt16, Dtype::kBool)));
  const PartialShape shape = l.shape(n.input(0));
  if (shape.rank() < 1) return Unimplemented("the rank of its input is not known");
  const PartialShape rows = PartialShape::Of({std::max<int64_t>(shape[0], -1)});
  Endpoint count = l.Int(shape[0]);
  if (shape[0] < 0) {
    ASSIGN_OR_RETURN(count, SizeOf(n.input(0), 0, l));
  }
  OperatorChain c(l);
  const Endpoint sizes =
      c.Make("tfl.expand_dims", {count, l.Int(0)}, {}, {Dtype::kInt32, PartialShape::Of({1})});
  const Endpoint drawn = c.Make("tfl.random_uniform", {sizes}, Seeds(n), {Dtype::kFloat, rows});
  RETURN_IF_ERROR(c.Done(drawn).status());
  ASSIGN_OR_RETURN(Node * order, l.AddMany("tfl.topk_v2", std::vector<Endpoint>{drawn, count}, {},
                                           std::vector<LiteOutput>{{Dtype::kFloat, rows},
                                                                   {Dtype::kInt32, rows}}));
  return c.Done(c.Make("tfl.gather", {n.input(0), {order, 1}}, Options({{"axis", int64_t{0}}}),
                       l.OutputOf(n)));
}

LiteEndpoints OfSeed(Node&, Legalizer&) {
  return Unimplemented(
      "it draws the same numbers for the same seed, and operators that draw keep a ",
      "state of their own");
}

constexpr ExportRow kRandomRows[] = {
    {"RandomUniformInt", DrawnIntegers},
    {"RandomUniform", Drawn, "tfl.random_uniform"},
    {"RandomStandardNormal", Drawn, "tfl.random_standard_normal"},
    {"Multinomial", Multinomial},
    {"TruncatedNormal", DrawnWithin},
    {"RandomShuffle", Shuffled},
    {"StatelessRandomUniform", OfSeed},
    {"StatelessRandomUniformV2", OfSeed},
    {"StatelessRandomUniformInt", OfSeed},
    {"StatelessRandomUniformIntV2", OfSeed},
    {"StatelessRandomUniformFullInt", OfSeed},
    {"StatelessRandomUniformFullIntV2", OfSeed},
    {"StatelessRandomNormal", OfSeed},
    {"StatelessRandomNormalV2", OfSeed},
    {"StatelessTruncatedNormal", OfSeed},
    {"StatelessTruncatedNormalV2", OfSeed},
    {"StatelessMultinomial", OfSeed},
    {"StatelessShuffle", OfSeed},
    {"StatelessRandomGetKeyCounter", OfSeed},
};

}  // namespace

std::span<const ExportRow> RandomExport() { return kRandomRows; }

}  // namespace smelt
