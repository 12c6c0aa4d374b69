// Ops that round to quantized numbers and back.
#include <algorithm>
#include <cmath>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {
namespace {

// Real numbers from `low` to `high` in `steps` steps of `scale`, of which one is 0.
struct Grid {
  float low, high, scale;
  int64_t zero;  // the step that is 0
};

// TensorFlow moves the range so that 0 is a step.
Grid GridOf(float min, float max, int64_t first, int64_t last) {
  Grid g;
  g.scale = (max - min) / static_cast<float>(last - first);
  const float from_min = static_cast<float>(first) - min / g.scale;
  if (from_min < static_cast<float>(first)) {
    g.zero = first;
  } else if (from_min > static_cast<float>(last)) {
    g.zero = last;
  } else {
    g.zero = static_cast<int64_t>(std::round(from_min));
  }
  g.low = static_cast<float>(first - g.zero) * g.scale;
  g.high = static_cast<float>(last - g.zero) * g.scale;
  return g;
}

// What TensorFlow's converter makes of the range: in doubles, from the end that is nearer to zero.
Grid ConvertedGrid(double min, double max, int64_t first, int64_t last) {
  const auto low = static_cast<double>(first), high = static_cast<double>(last);
  const double scale = (max - min) / (high - low);
  const bool from_min = low + std::abs(min / scale) < high + std::abs(max / scale);
  const double zero = from_min ? low - min / scale : high - max / scale;
  Grid g;
  g.scale = static_cast<float>(scale);
  g.zero = static_cast<int64_t>(std::round(std::clamp(zero, low, high)));
  g.low = static_cast<float>(first - g.zero) * g.scale;
  g.high = static_cast<float>(last - g.zero) * g.scale;
  return g;
}

// One value for all channels, or one for each.
StatusOr<Endpoint> PerChannel(const std::vector<Grid>& grids, float Grid::*field, Legalizer& l) {
  std::vector<float> values;
  for (const Grid& g : grids) values.push_back(g.*field);
  return values.size() == 1 ? l.Floats(values[0])
                            : l.Const(Tensor::Vector(std::span<const float>(values)));
}

// floor((clamp(x) - low) / scale + 0.5) * scale + low, as TensorFlow computes it.
LiteEndpoints Rounded(Node& n, Legalizer& l, const std::vector<Grid>& grids) {
  const LiteOutput out = l.OutputOf(n);
  std::vector<Grid> inverse = grids;
  for (Grid& g : inverse) g.scale = 1 / g.scale;
  ASSIGN_OR_RETURN(const Endpoint low, PerChannel(grids, &Grid::low, l));
  ASSIGN_OR_RETURN(const Endpoint high, PerChannel(grids, &Grid::high, l));
  ASSIGN_OR_RETURN(const Endpoint scale, PerChannel(grids, &Grid::scale, l));
  ASSIGN_OR_RETURN(const Endpoint steps, PerChannel(inverse, &Grid::scale, l));
  ASSIGN_OR_RETURN(Endpoint e, l.Add("tfl.maximum", {n.input(0), low}, {}, out));
  ASSIGN_OR_RETURN(e, l.Add("tfl.minimum", {e, high}, {}, out));
  ASSIGN_OR_RETURN(e, l.Add("tfl.sub", {e, low}, {}, out));
  ASSIGN_OR_RETURN(e, l.Add("tfl.mul", {e, steps}, {}, out));
  ASSIGN_OR_RETURN(e, l.Add("tfl.add", {e, l.Floats(0.5f)}, {}, out));
  ASSIGN_OR_RETURN(e, l.Add("tfl.floor", {e}, {}, out));
  ASSIGN_OR_RETURN(e, l.Add("tfl.mul", {e, scale}, {}, out));
  return One(l.Add("tfl.add", {e, low}, {}, out));
}

LiteEndpoints FakeQuantized(Node& n, Legalizer& l, std::span<const float> min,
                            std::span<const float> max) {
  const int64_t bits = n.Int("num_bits", 8);
  const int64_t first = n.Bool("narrow_range") ? 1 : 0;
  std::vector<Grid> grids;
  for (size_t i = 0; i < min.size(); ++i) {
    if (!(min[i] < max[i]) || !std::isfinite(max[i] - min[i])) {
      // TensorFlow gives zeros for a range of nothing, and refuses others.
      return Unimplemented("its range is from ", min[i], " to ", max[i]);
    }
    grids.push_back(GridOf(min[i], max[i], first, (int64_t{1} << bits) - 1));
  }
  const bool declares = l.declares_ranges();
  if (grids.size() != 1 || bits != 8 || (first != 0 && !declares)) return Rounded(n, l, grids);
  const LiteOutput out = l.OutputOf(n);
  const Grid g =
      declares ? ConvertedGrid(static_cast<double>(min[0]), static_cast<double>(max[0]), first, 255)
               : grids[0];
  AttrMap options = Options(
      {{kScales, std::vector<float>{g.scale}}, {kZeroPoints, std::vector<int64_t>{g.zero - 128}}});
  if (declares) options.Set(kDeclaresRange, std::vector<float>{min[0], max[0]});
  ASSIGN_OR_RETURN(const Endpoint quantized, l.Add("tfl.quantize", {n.input(0)}, std::move(options),
                                                   {Dtype::kInt8, out.shape}));
  return One(l.Add("tfl.dequantize", {quantized}, {}, out));
}

LiteEndpoints OfArgs(Node& n, Legalizer& l) {
  const float min = n.Float("min", -6), max = n.Float("max", 6);
  return FakeQuantized(n, l, {&min, 1}, {&max, 1});
}

LiteEndpoints OfVars(Node& n, Legalizer& l) {
  const auto min = l.Constant(n.input(1)), max = l.Constant(n.input(2));
  if (!min || !max) return Unimplemented("its range is no constant");
  if (min->num_elements() != max->num_elements()) {
    return Unimplemented("it has ", min->num_elements(), " minima and ", max->num_elements(),
                         " maxima");
  }
  const auto count = static_cast<size_t>(min->num_elements());
  return FakeQuantized(n, l, {min->data<float>(), count}, {max->data<float>(), count});
}

constexpr ExportRow kQuantizationRows[] = {
    {"FakeQuantWithMinMaxArgs", OfArgs},
    {"FakeQuantWithMinMaxVars", OfVars},
    {"FakeQuantWithMinMaxVarsPerChannel", OfVars},
};

}  // namespace

std::span<const ExportRow> QuantizationExport() { return kQuantizationRows; }

}  // namespace smelt
