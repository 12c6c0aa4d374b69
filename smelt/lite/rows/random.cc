// Ops that draw random numbers. Others than TensorFlow draws, from the same distribution.
#include "smelt/lite/rows/rows.h"

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

constexpr ExportRow kRandomRows[] = {
    {"RandomUniform", Drawn, "tfl.random_uniform"},
    {"RandomStandardNormal", Drawn, "tfl.random_standard_normal"},
    {"Multinomial", Multinomial},
};

}  // namespace

std::span<const ExportRow> RandomExport() { return kRandomRows; }

}  // namespace smelt
