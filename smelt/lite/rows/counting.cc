// Ops that count by ranges, and that number dimensions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// The least float from which on TensorFlow counts a value to the bin, in doubles.
float EdgeOf(int64_t bin, double low, double step) {
  const auto within = [&](float v) {
    return (static_cast<double>(v) - low) / step >= static_cast<double>(bin);
  };
  auto edge = static_cast<float>(low + static_cast<double>(bin) * step);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  while (!within(edge)) edge = std::nextafter(edge, kInfinity);
  for (float before = edge; within(before); before = std::nextafter(before, -kInfinity)) {
    edge = before;
  }
  return edge;
}

// How many values are in each of as many parts of a range; those beyond count to its ends.
LiteEndpoints Histogram(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64)));
  constexpr int64_t kMostBins = 1 << 16;
  const auto range = l.Constant(n.input(1));
  const auto bins = l.Integers(n.input(2));
  if (!range || range->num_elements() != 2 || !bins || bins->size() != 1 || (*bins)[0] < 1 ||
      (*bins)[0] > kMostBins) {
    return Unimplemented("its range and number of bins are no constants");
  }
  const auto end = [&](int i) {
    return range->dtype() == Dtype::kFloat ? static_cast<double>(range->data<float>()[i])
                                           : static_cast<double>(IndexAt(*range, i));
  };
  const double low = end(0), width = end(1) - low;
  if (!(width > 0) || !std::isfinite(width)) return Unimplemented("its range is of nothing");
  const int64_t count = (*bins)[0];
  std::vector<float> edges;
  for (int64_t i = 1; i < count; ++i) {
    edges.push_back(EdgeOf(i, low, width / static_cast<double>(count)));
  }
  OperatorChain c(l);
  const Endpoint values = c.Reshape(n.input(0), {-1});
  const PartialShape flat = c.shape(values);
  const Endpoint bin =
      c.Make("tfl.bucketize", {values}, Options({{"boundaries", edges}}), {Dtype::kInt32, flat});
  const Endpoint ones = c.Add(c.Op("tfl.zeros_like", {bin}), 1);
  const Endpoint counts = c.Make("tfl.unsorted_segment_sum", {ones, bin, l.Int(count)}, {},
                                 {Dtype::kInt32, PartialShape::Of({count})});
  RETURN_IF_ERROR(c.Done(counts).status());
  return c.Done(c.Cast(counts, n.output_types[0]));
}

LiteEndpoints Spaced(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const auto count = l.Integers(n.input(2));
  if (!count || count->size() != 1 || (*count)[0] < 1) {
    return Unimplemented("its number is no constant");
  }
  std::vector<float> numbers;
  for (int64_t i = 0; i < (*count)[0]; ++i) numbers.push_back(static_cast<float>(i));
  OperatorChain c(l);
  const Endpoint start = c.Reshape(n.input(0), {1});
  if (numbers.size() == 1) return c.Done(start);
  const Endpoint step =
      c.Div(c.Sub(n.input(1), n.input(0)), static_cast<double>(numbers.size() - 1));
  const Endpoint steps = c.Mul(l.Const(Tensor::Vector(std::span<const float>(numbers))), step);
  return c.Done(c.Add(steps, start));
}

// Where each dimension of the one format stands in the other.
StatusOr<std::vector<int64_t>> FormatPlaces(const std::string& from, const std::string& to) {
  std::vector<int64_t> out;
  for (const char c : to) {
    const size_t at = from.find(c);
    if (at == std::string::npos) return Unimplemented("its formats are ", from, " and ", to);
    out.push_back(static_cast<int64_t>(at));
  }
  if (from.size() != to.size()) return Unimplemented("its formats are ", from, " and ", to);
  return out;
}

// What is said of the dimensions, in another order; of the spatial ones alone, too.
LiteEndpoints FormatPermuted(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kInt32, Dtype::kInt64)));
  std::string from = n.String("src_format", "NHWC"), to = n.String("dst_format", "NCHW");
  const PartialShape shape = l.shape(n.input(0));
  if (shape.rank() < 1 || shape[0] < 0) return Unimplemented("the size of its input is not known");
  if (shape[0] + 2 == static_cast<int64_t>(from.size())) {
    for (std::string* s : {&from, &to})
      std::erase_if(*s, [](char c) { return c == 'N' || c == 'C'; });
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> places, FormatPlaces(from, to));
  if (static_cast<int64_t>(places.size()) != shape[0]) {
    return Unimplemented("its input is of ", shape[0], " dimensions, and not of ", from);
  }
  if (std::ranges::is_sorted(places)) return std::vector<Endpoint>{n.input(0)};
  return One(l.Add("tfl.gather", {n.input(0), l.Ints(places)}, Options({{"axis", int64_t{0}}}),
                   l.OutputOf(n)));
}

// The number of a dimension in another order, whether it is counted from the first or the last.
LiteEndpoints FormatMapped(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kInt32, Dtype::kInt64)));
  const std::string from = n.String("src_format", "NHWC"), to = n.String("dst_format", "NCHW");
  ASSIGN_OR_RETURN(const std::vector<int64_t> places, FormatPlaces(to, from));
  OperatorChain c(l);
  const Endpoint at = c.Op("tfl.floor_mod", {n.input(0), static_cast<double>(places.size())});
  RETURN_IF_ERROR(c.Done(at).status());
  const Endpoint made = c.Make("tfl.gather", {l.Ints(places), at}, Options({{"axis", int64_t{0}}}),
                               {Dtype::kInt32, c.shape(at)});
  return c.Done(c.Cast(made, n.output_types[0]));
}

constexpr ExportRow kCountingRows[] = {
    {"HistogramFixedWidth", Histogram},
    {"LinSpace", Spaced},
    {"DataFormatVecPermute", FormatPermuted},
    {"DataFormatDimMap", FormatMapped},
};

}  // namespace

std::span<const ExportRow> CountingExport() { return kCountingRows; }

}  // namespace smelt
