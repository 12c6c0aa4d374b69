// What the files of this folder share. A row that has no operator for a node says why, as an error
// of the code UNIMPLEMENTED.
#ifndef SMELT_LITE_ROWS_ROWS_H_
#define SMELT_LITE_ROWS_ROWS_H_

#include <array>
#include <vector>

#include "smelt/graph/einsum_equation.h"
#include "smelt/lite/legalizer.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt {

std::span<const ExportRow> ElementwiseExport();
std::span<const ExportRow> MovementExport();
std::span<const ExportRow> ReduceExport();
std::span<const ExportRow> NnExport();
std::span<const ExportRow> ProductExport();
std::span<const ExportRow> ControlExport();
std::span<const ExportRow> StateExport();
std::span<const ExportRow> TableExport();
std::span<const ExportRow> QuantizationExport();
std::span<const ExportRow> RandomExport();
std::span<const ExportRow> SelectionExport();
std::span<const ExportRow> ComplexExport();
std::span<const ExportRow> CompoundExport();
std::span<const ExportRow> PlacesExport();
std::span<const ExportRow> ImageExport();
std::span<const ExportRow> XlaExport();
std::span<const ExportRow> XlaChoiceExport();
std::span<const ExportRow> XlaConvExport();
std::span<const ExportRow> BatchNormExport();
std::span<const ExportRow> LossExport();
std::span<const ExportRow> SpecialExport();
std::span<const ExportRow> MatrixExport();
std::span<const ExportRow> PartitionExport();
std::span<const ExportRow> TextExport();
std::span<const ExportRow> WindowExport();
std::span<const ExportRow> DetectionExport();
std::span<const ExportRow> ScatterExport();
std::span<const ExportRow> CellExport();
std::span<const ExportRow> CountingExport();
std::span<const ExportRow> FourierExport();
std::span<const ExportRow> RaggedExport();
std::span<const ExportRow> SparseExport();
std::span<const ExportRow> GradientExport();
std::span<const ExportRow> OptimizerExport();
std::span<const ExportRow> ProjectiveExport();

// One endpoint for a node of one output.
inline LiteEndpoints One(StatusOr<Endpoint> e) {
  RETURN_IF_ERROR(e.status());
  return std::vector<Endpoint>{*e};
}
inline std::vector<Endpoint> Inputs(const Node& n) {
  return {n.inputs().begin(), n.inputs().end()};
}

inline std::vector<LiteOutput> AllOutputs(const Node& n, const Legalizer& l) {
  std::vector<LiteOutput> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back(l.OutputOf(n, i));
  return out;
}
// All endpoints of what was made.
inline LiteEndpoints Many(StatusOr<Node*> made) {
  RETURN_IF_ERROR(made.status());
  std::vector<Endpoint> out;
  for (int i = 0; i < (*made)->num_outputs(); ++i) out.push_back({*made, i});
  return out;
}

// ---- complex.cc
// A complex tensor in two parts, and two parts that are one.
struct ComplexParts {
  Endpoint real, imaginary;
};
StatusOr<ComplexParts> PartsOfComplex(Endpoint e, Legalizer& l);
LiteEndpoints TogetherComplex(const ComplexParts& parts, const LiteOutput& out, Legalizer& l);
// Operators take complex64.
Status CheckComplex64(const Node& n);
// Exp, Neg, Add, Sub, Mul, Square and divisions of complex numbers.
LiteEndpoints ComplexArithmetic(Node& n, Legalizer& l);
// Of an op that moves what it takes: its row does so with each part.
LiteEndpoints MovedInParts(Node& n, Legalizer& l);
// Of an op that multiplies and sums what it takes: its row does so with each pair of parts.
LiteEndpoints MultipliedInParts(Node& n, Legalizer& l);
// A Cast from real numbers.
LiteEndpoints CastToComplex(Node& n, Legalizer& l);

// ---- compound.cc
// QuantizeAndDequantize: rounded to a grid of so many bits, of a range that is given.
LiteEndpoints RoundedToGrid(Node& n, Legalizer& l);

// ---- sparse.cc
// DynamicStitch of places that are no constants.
LiteEndpoints StitchedAnywhere(Node& n, Legalizer& l);

// ---- windows.cc
// MaxPool of integers, for which there is no kernel.
LiteEndpoints LargestIntegers(Node& n, Legalizer& l);

// ---- texts.cc
// SelectV2 among texts that are known when a model is exported.
LiteEndpoints SelectedTexts(Node& n, Legalizer& l);

// ---- product.cc
// The product of both inputs, whose dimensions have these labels, summed over those that the result
// lacks.
LiteEndpoints Contracted(Node& n, Legalizer& l, const EinsumLabels& a, const EinsumLabels& b,
                         const EinsumLabels& result);

// ---- batch_norm.cc
// FusedBatchNorm that is training: by the statistics of its input.
LiteEndpoints TrainingBatchNorm(Node& n, Legalizer& l);

// The type of input 0 is one that the operator's kernels take.
Status CheckType(const Node& n, DtypeSet types);
// A tensor of int32, which a constant of int64 becomes when it is exported, and which others are
// cast to.
StatusOr<Endpoint> AsInt32(Endpoint e, Legalizer& l);
// The size of a dimension when it runs: an int32 scalar. REQUIRES: the rank of `e` is known.
StatusOr<Endpoint> SizeOf(Endpoint e, int64_t axis, Legalizer& l);
// The size of dimension 0 as a vector of one int32, a constant where it is known.
StatusOr<Endpoint> BatchOf(Endpoint e, Legalizer& l);

}  // namespace smelt

#endif  // SMELT_LITE_ROWS_ROWS_H_
