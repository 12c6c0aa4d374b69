// Ops that round to quantized numbers and back.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/chain.h"

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

// A range around zero whose ends are steps, as QuantizeAndDequantize has it, and steps of 8 bits.
std::optional<Grid> EvenGrid(const Node& n, const Legalizer& l) {
  const auto min = l.Constant(n.input(1)), max = l.Constant(n.input(2));
  int64_t bits = n.Int("num_bits", 8);
  if (n.Is("QuantizeAndDequantizeV3")) {
    const auto given = l.Integers(n.input(3));
    bits = given && given->size() == 1 ? (*given)[0] : 0;
  }
  if (!min || !max || min->dtype() != Dtype::kFloat || max->dtype() != Dtype::kFloat ||
      min->num_elements() != 1 || max->num_elements() != 1 || bits != 8 ||
      !n.Bool("range_given", false) || n.Bool("narrow_range") || n.Int("axis", -1) != -1) {
    return std::nullopt;
  }
  const bool is_signed = n.Bool("signed_input", true);
  const float first = is_signed ? -128.0f : 0.0f, last = is_signed ? 127.0f : 255.0f;
  const float low = min->data<float>()[0], high = max->data<float>()[0];
  Grid g;
  g.scale = std::max(first * low > 0 ? low / first : 0.0f, last * high > 0 ? high / last : 0.0f);
  if (!(g.scale > 0) || !std::isfinite(g.scale)) return std::nullopt;
  g.zero = is_signed ? 0 : -128;
  g.low = first * g.scale;
  g.high = last * g.scale;
  return g;
}

LiteEndpoints OfEvenSteps(Node& n, Legalizer& l) {
  const auto g = EvenGrid(n, l);
  if (!g || l.type(n.input(0)) != Dtype::kFloat) return RoundedToGrid(n, l);
  const LiteOutput out = l.OutputOf(n);
  AttrMap options = Options(
      {{kScales, std::vector<float>{g->scale}}, {kZeroPoints, std::vector<int64_t>{g->zero}}});
  if (l.declares_ranges()) options.Set(kDeclaresRange, std::vector<float>{g->low, g->high});
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

// ---- QuantizeV2 and Dequantize: steps are whole numbers in floats, which only Dequantize reads

// The steps of the type: of 8 and 16 bits, which floats tell apart.
std::optional<std::pair<double, double>> StepsOf(Dtype type) {
  switch (type) {
    case Dtype::kQint8:
      return std::pair(-128.0, 127.0);
    case Dtype::kQuint8:
      return std::pair(0.0, 255.0);
    case Dtype::kQint16:
      return std::pair(-32768.0, 32767.0);
    case Dtype::kQuint16:
      return std::pair(0.0, 65535.0);
    default:
      return std::nullopt;
  }
}

struct StepRange {
  float min, max;
};

StatusOr<StepRange> StepRangeOf(const Node& n, const Legalizer& l) {
  const auto min = l.Constant(n.input(1)), max = l.Constant(n.input(2));
  if (!min || !max) return Unimplemented("its range is no constant");
  if (min->num_elements() != 1 || max->num_elements() != 1 || n.Int("axis", -1) != -1) {
    return Unimplemented("its range is one for each channel");
  }
  const StepRange r = {min->data<float>()[0], max->data<float>()[0]};
  if (!(r.min <= r.max) || !std::isfinite(r.max - r.min)) {
    return Unimplemented("its range is from ", r.min, " to ", r.max);
  }
  return r;
}

// The nearest whole number, halves away from zero.
Endpoint AwayFromZero(Endpoint e, OperatorChain& c) {
  return c.Mul(c.Op("tfl.sign", {e}), c.Op("tfl.floor", {c.Add(c.Op("tfl.abs", {e}), 0.5)}));
}

LiteEndpoints ToSteps(Node& n, Legalizer& l) {
  const auto ends = StepsOf(n.output_types[0]);
  if (!ends) return Unimplemented("floats do not tell its steps apart");
  for (const Use& use : n.uses()) {
    const bool reads = use.is_control() || use.port() != 0 || use.node->Is("Dequantize");
    if (!reads) return Unimplemented("others than Dequantize read its steps");
  }
  ASSIGN_OR_RETURN(StepRange r, StepRangeOf(n, l));
  const float least = std::max(1.0f, std::max(std::abs(r.min), std::abs(r.max))) *
                      n.Float("ensure_minimum_range", 0.01f);
  r.min = std::min(0.0f, r.min);
  r.max = std::max(0.0f, std::max(r.max, r.min + least));
  const std::string mode = n.String("mode", "MIN_COMBINED");
  const auto [low, high] = *ends;
  OperatorChain c(l);
  Endpoint e = n.input(0);
  if (mode == "MIN_FIRST") {
    const auto scale = static_cast<float>((high - low) / static_cast<double>(r.max - r.min));
    const double offset = static_cast<double>(std::round(r.min * scale)) - low;
    e = AwayFromZero(c.Mul(e, static_cast<double>(scale)), c);
    e = c.Min(c.Max(c.Sub(e, offset), low), high);
  } else if (mode == "SCALED") {
    const double first = low + (n.Bool("narrow_range") ? 1 : 0);
    constexpr float kMost = std::numeric_limits<float>::max();
    const auto by = [&](double end, float of) {
      return end * static_cast<double>(of) > 0 ? static_cast<float>(end) / of : kMost;
    };
    const float scale = std::min(by(first, r.min), by(high, r.max));
    r = {static_cast<float>(first) / scale, static_cast<float>(high) / scale};
    e = c.Max(c.Min(e, static_cast<double>(r.max)), static_cast<double>(r.min));
    e = c.Mul(e, static_cast<double>(scale));
    const bool to_even = n.String("round_mode", "HALF_AWAY_FROM_ZERO") == "HALF_TO_EVEN";
    e = to_even ? c.Op("tfl.round", {e}) : AwayFromZero(e, c);
  } else {
    const auto scale = static_cast<float>((high - low) / static_cast<double>(r.max - r.min));
    e = c.Max(c.Min(e, static_cast<double>(r.max)), static_cast<double>(r.min));
    e = c.Mul(c.Sub(e, static_cast<double>(r.min)), static_cast<double>(scale));
    e = low < 0 ? AwayFromZero(c.Add(e, low), c) : c.Op("tfl.floor", {c.Add(e, 0.5)});
  }
  return c.Done({e, l.Floats(r.min), l.Floats(r.max)});
}

LiteEndpoints FromSteps(Node& n, Legalizer& l) {
  const auto ends = StepsOf(n.input_types[0]);
  if (!ends || l.type(n.input(0)) != Dtype::kFloat || n.output_types[0] != Dtype::kFloat) {
    return Unimplemented("its steps come from others than QuantizeV2, or are not told apart");
  }
  ASSIGN_OR_RETURN(const StepRange r, StepRangeOf(n, l));
  const std::string mode = n.String("mode", "MIN_COMBINED");
  const auto [low, high] = *ends;
  const auto step = static_cast<float>(static_cast<double>(r.max - r.min) / (high - low));
  OperatorChain c(l);
  Endpoint e = n.input(0);
  if (mode == "SCALED") {
    const auto first = static_cast<float>(low + (n.Bool("narrow_range") ? 1 : 0));
    const float of_max = r.max / static_cast<float>(high);
    const float scale = low == 0 ? of_max : std::max(r.min / first, of_max);
    return c.Done(c.Mul(e, static_cast<double>(scale)));
  }
  double shift = static_cast<double>(r.min);
  if (mode == "MIN_FIRST") {
    // The range begins at a step.
    if (step > 0) shift = static_cast<double>(std::round(r.min / step) * step);
    if (low != 0) e = c.Sub(e, low);
  } else if (low < 0) {
    e = c.Add(e, -low);
  }
  return c.Done(c.Add(c.Mul(e, static_cast<double>(step)), shift));
}

constexpr ExportRow kQuantizationRows[] = {
    {"QuantizeAndDequantizeV2", OfEvenSteps},
    {"QuantizeAndDequantizeV3", OfEvenSteps},
    {"QuantizeAndDequantizeV4", OfEvenSteps},
    {"QuantizeV2", ToSteps},
    {"Dequantize", FromSteps},
    {"FakeQuantWithMinMaxArgs", OfArgs},
    {"FakeQuantWithMinMaxVars", OfVars},
    {"FakeQuantWithMinMaxVarsPerChannel", OfVars},
};

}  // namespace

std::span<const ExportRow> QuantizationExport() { return kQuantizationRows; }

}  // namespace smelt
