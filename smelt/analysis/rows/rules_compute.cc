// Ops that compute: elementwise ones, products, layers, reductions.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "smelt/analysis/rows/rules.h"
#include "smelt/graph/einsum_equation.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/xla/dimension_numbers.h"

namespace smelt {
namespace {

constexpr char kComputesWithSizes[] = "computes with the number of rows";
constexpr char kFirstOnly[] = "takes rows where every row should meet the same";
constexpr char kNotDimension0[] = "works along the dimension that the rows are in";
constexpr char kMixesBatch[] = "is not known to treat rows by themselves in this form";

std::string EachElement(RowNode& n) {
  int rank = 0;
  for (int i = 0; i < n.inputs(); ++i) rank = std::max(rank, n.rank(i));
  RowState out;
  std::string why = BroadcastRows(n, 0, n.inputs(), rank, &out);
  n.SetAll(out);
  return why;
}

// Only input 0 has rows, and its elements keep their places.
std::string FirstElements(RowNode& n) {
  if (n.sizes(0)) return kComputesWithSizes;
  if (!n.rows(0) || !n.WholeFrom(1)) return kFirstOnly;
  n.SetAll(n.in(0));
  return "";
}
// A range that is not given is that of all elements.
std::string OfGivenRange(RowNode& n) {
  const bool by_default = n.node().Is("QuantizeAndDequantizeV3");
  if (!n.node().Bool("range_given", by_default)) return "looks for the range of all rows";
  if (const std::string why = FirstElements(n); !why.empty()) return why;
  return n.node().Int("axis", -1) == n.in(0).axis ? "has a range for each row" : "";
}
// The second one: what looks rows up in a table.
std::string SecondElements(RowNode& n) {
  if (!n.whole(0) || !n.rows(1) || !n.WholeFrom(2)) return kFirstOnly;
  n.SetAll(n.in(1));
  return "";
}
// A batch of images, series, ...: dimension 0 of input 0 is that of the results.
std::string FirstAlone(RowNode& n) {
  if (const std::string why = FirstElements(n); !why.empty()) return why;
  return n.in(0).axis == 0 ? "" : kNotDimension0;
}
// A convolution or product with what was fused behind it as further inputs.
std::string FirstThenAdded(RowNode& n) {
  if (!n.rows(0) || !n.whole(1)) return kFirstOnly;
  if (n.in(0).axis != 0) return kNotDimension0;
  n.SetAll(n.in(0));
  const int rank = n.rank(n.output(0));
  if (rank < 0) return "has an output of unknown rank";
  RowState out = n.in(0);
  return BroadcastRows(n, 2, n.inputs(), rank, &out, true);
}
std::string OfWindows(RowNode& n) {
  const auto size = n.node().Ints("ksize"), strides = n.node().Ints("strides");
  if (size.empty() || size[0] != 1 || strides.empty() || strides[0] != 1) {
    return "has windows of several rows";
  }
  return FirstAlone(n);
}
std::string Patches(RowNode& n) { return FirstAlone(n); }
std::string BackpropInput(RowNode& n) {
  if (!(n.whole(0) || n.sizes(0)) || !n.whole(1) || !n.rows(2)) return kFirstOnly;
  n.SetAll(n.in(2));
  return n.in(2).axis == 0 ? "" : kNotDimension0;
}
std::string Normalizes(RowNode& n) {
  if (n.node().Bool("is_training", true)) return "normalizes by the mean of all rows";
  if (!n.rows(0)) return kFirstOnly;
  for (int i = 1; i < 5; ++i) {
    if (!n.whole(i)) return kFirstOnly;
  }
  if (n.in(0).axis != 0) return kNotDimension0;
  n.Set(0, n.in(0));
  RowState out = n.in(0);
  return BroadcastRows(n, 5, n.inputs(), n.rank(0), &out, true);
}

// A sum of products: each input's dimensions and the output's have labels; equal labels meet, and
// what the output lacks is added up.
std::string Contracts(RowNode& n, std::span<const EinsumLabels> inputs,
                      const EinsumLabels& output) {
  int label = -1;
  RowState rows;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    if (n.whole(i)) continue;
    if (!n.rows(i)) return absl::StrCat("computes with ", RowStateText(n.in(i)));
    const int mine = inputs[i][n.in(i).axis];
    if (std::ranges::count(inputs[i], mine) != 1) return "takes a diagonal of the rows";
    if (label >= 0 && (mine != label || !(n.in(i).At(0) == rows.At(0)))) {
      return "multiplies rows with rows";
    }
    label = mine;
    rows = n.in(i);
  }
  if (label < 0) return kMixesBatch;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const auto at = std::ranges::find(inputs[i], label);
    if (n.rows(i) || at == inputs[i].end()) continue;
    const int d = static_cast<int>(at - inputs[i].begin());
    // Of labels those of an ellipsis alone are repeated.
    if (!n.whole(i) || n.Dim(n.input(i), d) != 1 || label < kEllipsis) {
      return "has another value for each row";
    }
  }
  const auto at = std::ranges::find(output, label);
  if (at == output.end()) return "adds up over the rows";
  n.SetAll(rows.At(static_cast<int>(at - output.begin())));
  return std::ranges::count(output, label) == 1 ? "" : "puts rows on a diagonal";
}

// Labels of matrices, with batch dimensions before the last two: {..., m, k} x {..., k, n}.
std::string ProductOf(RowNode& n, bool swap_a, bool swap_b) {
  const int a = n.rank(0), b = n.rank(1);
  if (a < 2 || b < 2) return "has an input of unknown rank";
  const auto labels = [](int rank, int rows, int columns) {
    EinsumLabels out;
    for (int d = rank - 3; d >= 0; --d) out.push_back(kEllipsis + d);
    out.push_back(rows);
    out.push_back(columns);
    return out;
  };
  const std::array<EinsumLabels, 2> in = {swap_a ? labels(a, 'k', 'm') : labels(a, 'm', 'k'),
                                          swap_b ? labels(b, 'n', 'k') : labels(b, 'k', 'n')};
  return Contracts(n, in, labels(std::max(a, b), 'm', 'n'));
}
std::string MatrixProduct(RowNode& n) {
  return ProductOf(n, n.node().Bool("transpose_a"), n.node().Bool("transpose_b"));
}
std::string BatchProduct(RowNode& n) {
  return ProductOf(n, n.node().Bool("adj_x"), n.node().Bool("adj_y"));
}
std::string FusedProduct(RowNode& n) {
  return n.node().Bool("transpose_a") ? kNotDimension0 : FirstThenAdded(n);
}
std::string Int8Product(RowNode& n) {
  return n.rank(0) > n.node().Int("contracted", 1) ? FirstThenAdded(n) : kNotDimension0;
}
std::string Einsum(RowNode& n) {
  const auto e = ParseEinsum(n.node().String("equation"));
  if (!e.ok() || static_cast<int>(e->inputs.size()) != n.inputs()) return kMixesBatch;
  // The ellipsis stands for as many dimensions as the longest one has.
  int longest = 0;
  std::vector<EinsumLabels> inputs;
  const auto expand = [](const EinsumLabels& labels, int hidden) {
    EinsumLabels out;
    for (int label : labels) {
      if (label != kEllipsis) out.push_back(label);
      for (int d = hidden - 1; label == kEllipsis && d >= 0; --d) out.push_back(kEllipsis + d);
    }
    return out;
  };
  for (int i = 0; i < n.inputs(); ++i) {
    const auto& in = e->inputs[i];
    const auto dots = static_cast<int>(std::ranges::count(in, kEllipsis));
    const int hidden = n.rank(i) - static_cast<int>(in.size()) + dots;
    if (n.rank(i) < 0 || hidden < 0) return "has an input of unknown rank";
    longest = std::max(longest, dots > 0 ? hidden : 0);
    inputs.push_back(expand(in, hidden));
  }
  return Contracts(n, inputs, expand(e->output, longest));
}
std::string XlaProduct(RowNode& n) {
  const auto d = DotDimensionsOf(n.node());
  if (!d.ok() || !d->lhs_batch.empty()) return kMixesBatch;
  if (std::ranges::find(d->lhs_contracting, 0) != d->lhs_contracting.end()) {
    return "adds up over the rows";
  }
  return FirstAlone(n);
}
std::string XlaConvolution(RowNode& n) {
  const auto d = ConvDimensionsOf(n.node());
  if (!d.ok() || d->input_batch != 0 || d->output_batch != 0 ||
      n.node().Int("batch_group_count", 1) != 1) {
    return kMixesBatch;
  }
  return FirstAlone(n);
}

std::string Reduces(RowNode& n) {
  if (n.sizes(0)) return kComputesWithSizes;
  const auto axes = n.Ints(1);
  if (!n.rows(0) || !axes || n.rank(0) < 0) return "may reduce the dimension that the rows are in";
  const bool keeps = n.node().Bool("keep_dims");
  int before = 0;
  for (int d = 0; d <= n.in(0).axis; ++d) {
    if (std::ranges::none_of(*axes, [&](int64_t a) { return RowDimension(a, n.rank(0)) == d; })) {
      continue;
    }
    if (d == n.in(0).axis) return "reduces the dimension that the rows are in";
    ++before;
  }
  n.SetAll(n.in(0).At(n.in(0).axis - (keeps ? 0 : before)));
  return "";
}
// Along the axes that input 1 names, with every element keeping its place.
std::string AlongAxes(RowNode& n) {
  const auto axes = n.Ints(1);
  if (!n.rows(0) || !axes || n.rank(0) < 0) return kNotDimension0;
  for (int64_t a : *axes) {
    if (RowDimension(a, n.rank(0)) == n.in(0).axis) return kNotDimension0;
  }
  n.SetAll(n.in(0));
  return "";
}
// Along the last kLast dimensions.
template <int kLast>
std::string AlongLast(RowNode& n) {
  if (const std::string why = FirstElements(n); !why.empty()) return why;
  return n.rank(0) >= 0 && n.in(0).axis < n.rank(0) - kLast ? "" : kNotDimension0;
}
std::string ReversesSequences(RowNode& n) {
  const int64_t batch = n.node().Int("batch_dim");
  if (!n.rows(0) || !(n.rows(1) || n.whole(1))) return kFirstOnly;
  if (n.in(0).axis == n.node().Int("seq_dim")) return kNotDimension0;
  n.SetAll(n.in(0));
  const bool own_lengths = n.in(0).axis == batch;
  if (n.rows(1) != own_lengths) return "puts rows against rows";
  return !n.rows(1) || n.in(0).At(0) == n.in(1) ? "" : "puts rows against rows";
}
// Select of version 1: the condition is a scalar, a vector by dimension 0, or as large as the
// values.
std::string Selects(RowNode& n) {
  if (n.rank(0) == 1 && n.rank(1) > 1 && n.rows(0)) {
    for (int i : {1, 2}) {
      if (!(n.rows(i) && n.in(i) == n.in(0))) return "puts rows against rows";
    }
    n.SetAll(n.in(0));
    return "";
  }
  return EachElement(n);
}
// Of a vector of serialized examples; sparse and ragged results come first or last, and hold as
// many values as all examples have.
std::string ParsesExamples(RowNode& n) {
  if (!n.rows(0) || !(n.in(0) == RowState::Rows(0)) || !n.WholeFrom(1)) return kFirstOnly;
  const Node& node = n.node();
  const int64_t sparse = node.Int("num_sparse", node.Int("Nsparse"));
  const auto shapes = node.Get<std::vector<PartialShape>>("dense_shapes", {});
  for (int port = 0; port < node.num_outputs(); ++port) {
    const auto dense = static_cast<size_t>(port - 3 * sparse);
    const bool fixed = port >= 3 * sparse && dense < shapes.size() && shapes[dense].fully_known();
    n.Set(port, fixed ? RowState::Rows(0) : RowState{RowKind::kItems});
  }
  return "";
}
std::string MeetsRows(RowNode&) { return "compares the values of all rows"; }
std::string AnyOrder(RowNode&) { return "moves rows to other places"; }

constexpr RowRule kComputeRows[] = {
    {"Identity", EachElement},  // and every other op of kElementwiseOps
    {"IdentityN", EachElement},
    {"Snapshot", EachElement},
    {"CheckNumerics", EachElement},
    {"EnsureShape", FirstElements},
    {"BiasAdd", EachElement},
    {"BiasAddV1", EachElement},
    {"TPUReplicatedInput", EachElement},
    {"TPUReplicatedOutput", EachElement},
    {"XlaSharding", EachElement},
    {"_ByteTable", FirstElements},
    {"_Int8Quantize", FirstElements},
    {"_Int8Dequantize", FirstElements},
    {"Betainc", EachElement},
    {"Igamma", EachElement},
    {"Igammac", EachElement},
    {"NextAfter", EachElement},
    {"Polygamma", EachElement},
    {"Zeta", EachElement},
    {"ApproximateEqual", EachElement},
    {"Complex", EachElement},
    {"StringJoin", EachElement},
    {"Select", Selects},
    {"Real", FirstElements},
    {"Imag", FirstElements},
    {"Angle", FirstElements},
    {"ComplexAbs", FirstElements},
    {"Erfinv", FirstElements},
    {"Ndtri", FirstElements},
    {"Asinh", FirstElements},
    {"PopulationCount", FirstElements},
    {"Bucketize", FirstElements},
    {"FakeQuantWithMinMaxVars", FirstElements},
    {"FakeQuantWithMinMaxArgs", FirstElements},
    {"QuantizeAndDequantizeV2", OfGivenRange},
    {"QuantizeAndDequantizeV3", OfGivenRange},
    {"QuantizeAndDequantizeV4", OfGivenRange},
    {"AsString", FirstElements},
    {"StringToNumber", FirstElements},
    {"StringLower", FirstElements},
    {"StringUpper", FirstElements},
    {"StringStrip", FirstElements},
    {"StringLength", FirstElements},
    {"StaticRegexReplace", FirstElements},
    {"StaticRegexFullMatch", FirstElements},
    {"RegexReplace", FirstElements},
    {"RegexFullMatch", FirstElements},
    {"Substr", FirstElements},
    {"StringToHashBucket", FirstElements},
    {"StringToHashBucketFast", FirstElements},
    {"StringToHashBucketStrong", FirstElements},
    {"_TensorToHashBucketFast", FirstElements},
    {"DecodeBase64", FirstElements},
    {"EncodeBase64", FirstElements},
    {"DecodeRaw", FirstElements},
    {"LookupTableFind", SecondElements},
    {"LookupTableFindV2", SecondElements},
    {"Conv2D", FirstAlone},
    {"Conv3D", FirstAlone},
    {"DepthwiseConv2dNative", FirstAlone},
    {"Conv2DBackpropInput", BackpropInput},
    {"Conv3DBackpropInputV2", BackpropInput},
    {"DepthwiseConv2dNativeBackpropInput", BackpropInput},
    {"Dilation2D", FirstAlone},
    {"_FusedConv2D", FirstThenAdded},
    {"_FusedDepthwiseConv2dNative", FirstThenAdded},
    {"_Int8Conv2D", FirstThenAdded},
    {"XlaConvV2", XlaConvolution},
    {"MatMul", MatrixProduct},
    {"_FusedMatMul", FusedProduct},
    {"_Int8MatMul", Int8Product},
    {"XlaDotV2", XlaProduct},
    {"BatchMatMul", BatchProduct},
    {"BatchMatMulV2", BatchProduct},
    {"BatchMatMulV3", BatchProduct},
    {"Einsum", Einsum},
    {"FusedBatchNorm", Normalizes},
    {"FusedBatchNormV2", Normalizes},
    {"FusedBatchNormV3", Normalizes},
    {"_FusedBatchNormEx", Normalizes},
    {"MaxPool", OfWindows},
    {"MaxPool3D", OfWindows},
    {"AvgPool", OfWindows},
    {"AvgPool3D", OfWindows},
    {"LRN", FirstAlone},
    {"ResizeBilinear", FirstAlone},
    {"ResizeBicubic", FirstAlone},
    {"ResizeArea", FirstAlone},
    {"ResizeNearestNeighbor", FirstAlone},
    {"ExtractImagePatches", Patches},
    {"SpaceToDepth", FirstAlone},
    {"DepthToSpace", FirstAlone},
    {"AdjustContrastv2", AlongLast<3>},
    {"AdjustHue", AlongLast<1>},
    {"AdjustSaturation", AlongLast<1>},
    {"RGBToHSV", AlongLast<1>},
    {"HSVToRGB", AlongLast<1>},
    {"Softmax", AlongLast<1>},
    {"LogSoftmax", AlongLast<1>},
    {"L2Loss", MeetsRows},
    {"RFFT", AlongLast<1>},
    {"IRFFT", AlongLast<1>},
    {"FFT", AlongLast<1>},
    {"IFFT", AlongLast<1>},
    {"RFFT2D", AlongLast<2>},
    {"IRFFT2D", AlongLast<2>},
    {"FFT2D", AlongLast<2>},
    {"IFFT2D", AlongLast<2>},
    {"TopK", AlongLast<1>},
    {"TopKV2", AlongLast<1>},
    {"MatrixBandPart", AlongLast<2>},
    {"MatrixInverse", AlongLast<2>},
    {"Cholesky", AlongLast<2>},
    {"MatrixDeterminant", AlongLast<2>},
    {"Mean", Reduces},
    {"Sum", Reduces},
    {"Max", Reduces},
    {"Min", Reduces},
    {"Prod", Reduces},
    {"All", Reduces},
    {"Any", Reduces},
    {"EuclideanNorm", Reduces},
    {"ArgMax", Reduces},
    {"ArgMin", Reduces},
    {"Cumsum", AlongAxes},
    {"Cumprod", AlongAxes},
    {"CumulativeLogsumexp", AlongAxes},
    {"ReverseV2", AlongAxes},
    {"ReverseSequence", ReversesSequences},
    {"ParseExample", ParsesExamples},
    {"ParseExampleV2", ParsesExamples},
    {"Unique", MeetsRows},
    {"UniqueV2", MeetsRows},
    {"UniqueWithCounts", MeetsRows},
    {"DenseBincount", MeetsRows},
    {"Bincount", MeetsRows},
    {"InvertPermutation", AnyOrder},
    {"RandomShuffle", AnyOrder},
};

}  // namespace

extern const std::span<const RowRule> kComputeRowRules;
constinit const std::span<const RowRule> kComputeRowRules = kComputeRows;

}  // namespace smelt
