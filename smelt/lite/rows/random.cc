// Ops that draw random numbers. Others than TensorFlow draws, from the same distribution.
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

constexpr ExportRow kRandomRows[] = {
    {"RandomUniformInt", DrawnIntegers},
    {"RandomUniform", Drawn, "tfl.random_uniform"},
    {"RandomStandardNormal", Drawn, "tfl.random_standard_normal"},
    {"Multinomial", Multinomial},
};

}  // namespace

std::span<const ExportRow> RandomExport() { return kRandomRows; }

}  // namespace smelt
