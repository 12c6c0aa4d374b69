// Ops of one element at a time that are a few operators: functions, and gradients of functions.
#include <algorithm>
#include <cmath>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kCompoundTypes = Types(Dtype::kFloat);

LiteEndpoints Asinh(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint x = n.input(0), size = c.Op("tfl.abs", {x});
  const Endpoint root = c.Op("tfl.sqrt", {c.Add(c.Mul(size, size), 1)});
  return c.Done(c.Mul(c.Op("tfl.sign", {x}), c.Op("tfl.log", {c.Add(size, root)})));
}

LiteEndpoints Acosh(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint x = n.input(0);
  const Endpoint square = c.Mul(c.Sub(x, 1), c.Add(x, 1));
  return c.Done(c.Op("tfl.log", {c.Add(x, c.Op("tfl.sqrt", {square}))}));
}

LiteEndpoints Atanh(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint x = n.input(0);
  const Endpoint ratio = c.Div(c.Add(x, 1), c.Sub(1, x));
  return c.Done(c.Mul(c.Op("tfl.log", {ratio}), 0.5));
}

// Abramowitz and Stegun 7.1.26: within 1.5e-7 of erf(x).
Endpoint Erf(Endpoint x, OperatorChain& c) {
  const Endpoint size = c.Op("tfl.abs", {x});
  const Endpoint t = c.Div(1, c.Add(c.Mul(size, 0.3275911), 1));
  Endpoint sum = c.Add(c.Mul(t, 1.061405429), -1.453152027);
  for (const double a : {1.421413741, -0.284496736, 0.254829592}) sum = c.Add(c.Mul(sum, t), a);
  const Endpoint tail = c.Op("tfl.exp", {c.Op("tfl.neg", {c.Mul(x, x)})});
  const Endpoint of_size = c.Sub(1, c.Mul(c.Mul(sum, t), tail));
  return c.Mul(c.Op("tfl.sign", {x}), of_size);
}

LiteEndpoints ErrorFunction(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint erf = Erf(n.input(0), c);
  return c.Done(n.Is("Erf") ? erf : c.Sub(1, erf));
}

// ---- gradients

LiteEndpoints ReluGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint dy = n.input(0), x = n.input(1), above = c.Less(0, x);
  if (n.Is("LeakyReluGrad")) {
    return c.Done(c.Select(above, dy, c.Mul(dy, n.Float("alpha", 0.2f))));
  }
  return c.Done(c.Select(n.Is("Relu6Grad") ? c.And(above, c.Less(x, 6)) : above, dy, 0));
}

LiteEndpoints EluGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint dy = n.input(0), y = n.input(1), below = c.Less(y, 0);
  if (n.Is("EluGrad")) return c.Done(c.Select(below, c.Mul(c.Add(y, 1), dy), dy));
  constexpr double kScale = 1.0507009873554805, kAlpha = 1.6732632423543772;
  return c.Done(c.Select(below, c.Mul(c.Add(y, kScale * kAlpha), dy), c.Mul(dy, kScale)));
}

LiteEndpoints SoftGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint dy = n.input(0), x = n.input(1);
  if (n.Is("SoftplusGrad")) return c.Done(c.Mul(dy, c.Op("tfl.logistic", {x})));
  const Endpoint sum = c.Add(c.Op("tfl.abs", {x}), 1);
  return c.Done(c.Div(dy, c.Mul(sum, sum)));
}

// Of functions whose gradient is one of what they gave.
LiteEndpoints RootGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint y = n.input(0), dy = n.input(1);
  if (n.Is("SqrtGrad")) return c.Done(c.Div(c.Mul(dy, 0.5), y));
  if (n.Is("RsqrtGrad")) return c.Done(c.Mul(c.Mul(dy, -0.5), c.Mul(y, c.Mul(y, y))));
  return c.Done(c.Mul(c.Op("tfl.neg", {dy}), c.Mul(y, y)));
}

// ---- colors: the last dimension is red, green and blue, or hue, saturation and value

std::vector<Endpoint> ChannelsOf(Endpoint e, OperatorChain& c) {
  const PartialShape shape = c.shape(e);
  if (shape.rank() < 1 || shape[shape.rank() - 1] != 3) {
    c.Fail(Unimplemented("its input is not known to have three channels"));
    return {};
  }
  return c.Split(e, 3, shape.rank() - 1);
}

Endpoint Channelwise(const std::vector<Endpoint>& parts, const LiteOutput& out, OperatorChain& c) {
  return c.Make("tfl.concatenation", {parts[0], parts[1], parts[2]},
                Options({{"axis", int64_t{out.shape.rank()} - 1}}), out);
}

// Hue, saturation and value of red, green and blue.
std::vector<Endpoint> ToHsv(const std::vector<Endpoint>& rgb, OperatorChain& c) {
  const Endpoint r = rgb[0], g = rgb[1], b = rgb[2];
  const Endpoint value = c.Max(c.Max(r, g), b);
  const Endpoint range = c.Sub(value, c.Min(c.Min(r, g), b));
  const Endpoint saturation = c.Select(c.Less(0, value), c.Div(range, value), 0);
  const Endpoint norm = c.Div(1.0 / 6, range);
  const Endpoint of_red = c.Mul(norm, c.Sub(g, b));
  const Endpoint of_green = c.Add(c.Mul(norm, c.Sub(b, r)), 2.0 / 6);
  const Endpoint of_blue = c.Add(c.Mul(norm, c.Sub(r, g)), 4.0 / 6);
  Endpoint hue =
      c.Select(c.Equal(r, value), of_red, c.Select(c.Equal(g, value), of_green, of_blue));
  hue = c.Select(c.Less(0, range), hue, 0);
  hue = c.Select(c.Less(hue, 0), c.Add(hue, 1), hue);
  return {hue, saturation, value};
}

// Each channel falls from the value as the hue goes away from it.
std::vector<Endpoint> ToRgb(const std::vector<Endpoint>& hsv, OperatorChain& c) {
  const Endpoint sixths = c.Mul(hsv[0], 6), most = c.Mul(hsv[1], hsv[2]);
  std::vector<Endpoint> out;
  for (const double first : {5.0, 3.0, 1.0}) {
    const Endpoint k = c.Op("tfl.floor_mod", {c.Add(sixths, first), 6});
    const Endpoint part = c.Max(c.Min(c.Min(k, c.Sub(4, k)), 1), 0);
    out.push_back(c.Sub(hsv[2], c.Mul(most, part)));
  }
  return out;
}

LiteEndpoints Colors(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  std::vector<Endpoint> parts = ChannelsOf(n.input(0), c);
  if (parts.empty()) return c.Done(Endpoint());
  if (!n.Is("HSVToRGB")) parts = ToHsv(parts, c);
  if (n.Is("AdjustHue")) {
    parts[0] = c.Op("tfl.floor_mod", {c.Add(parts[0], n.input(1)), 1});
  } else if (n.Is("AdjustSaturation")) {
    parts[1] = c.Min(c.Max(c.Mul(parts[1], n.input(1)), 0), 1);
  }
  if (!n.Is("RGBToHSV")) parts = ToRgb(parts, c);
  return c.Done(Channelwise(parts, l.OutputOf(n), c));
}

// Away from the mean of each channel.
LiteEndpoints AdjustContrast(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  const Endpoint x = n.input(0);
  const int rank = l.rank(x);
  if (rank < 3) return Unimplemented("the rank of its input is not known");
  const Endpoint mean = c.Reduce("tfl.mean", x, {rank - 3, rank - 2}, true);
  return c.Done(c.Add(c.Mul(c.Sub(x, mean), n.input(1)), mean));
}

// (x - mean) / sqrt(variance + epsilon), times gamma if that is wanted, plus beta.
LiteEndpoints GlobalNormalization(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  OperatorChain c(l);
  Endpoint factor = c.Op("tfl.rsqrt", {c.Add(n.input(2), n.Float("variance_epsilon"))});
  if (n.Bool("scale_after_normalization")) factor = c.Mul(factor, n.input(4));
  const Endpoint shift = c.Sub(n.input(3), c.Mul(n.input(1), factor));
  return c.Done(c.Add(c.Mul(n.input(0), factor), shift));
}

constexpr ExportRow kCompoundRows[] = {
    {"Asinh", Asinh},
    {"Acosh", Acosh},
    {"Atanh", Atanh},
    {"ReluGrad", ReluGrad},
    {"Relu6Grad", ReluGrad},
    {"LeakyReluGrad", ReluGrad},
    {"EluGrad", EluGrad},
    {"SeluGrad", EluGrad},
    {"SoftplusGrad", SoftGrad},
    {"SoftsignGrad", SoftGrad},
    {"SqrtGrad", RootGrad},
    {"RsqrtGrad", RootGrad},
    {"ReciprocalGrad", RootGrad},
    {"InvGrad", RootGrad},
    {"RGBToHSV", Colors},
    {"HSVToRGB", Colors},
    {"AdjustHue", Colors},
    {"AdjustSaturation", Colors},
    {"AdjustContrastv2", AdjustContrast},
    {"BatchNormWithGlobalNormalization", GlobalNormalization},
};

constexpr ExportRow kLateRows[] = {{"Erf", ErrorFunction}, {"Erfc", ErrorFunction}};

}  // namespace

// Rounded to a grid of so many bits, as QuantizeAndDequantize does with a range that is given.
LiteEndpoints RoundedToGrid(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kCompoundTypes));
  if (!n.Bool("range_given", false)) return Unimplemented("its range is that of its input");
  if (n.Int("axis", -1) != -1) return Unimplemented("its range is one for each channel");
  const auto low = l.Constant(n.input(1)), high = l.Constant(n.input(2));
  int64_t bits = n.Int("num_bits", 8);
  if (n.Is("QuantizeAndDequantizeV3")) {
    const auto given = l.Integers(n.input(3));
    if (!given || given->size() != 1) return Unimplemented("its number of bits is no constant");
    bits = (*given)[0];
  }
  const bool constant = low && high && low->num_elements() == 1 && high->num_elements() == 1;
  if (!constant || bits < 1 || bits > 31) return Unimplemented("its range is no constant");
  const bool is_signed = n.Bool("signed_input", true);
  const std::string rounding = n.String("round_mode", "HALF_TO_EVEN");
  float min = low->data<float>()[0], max = high->data<float>()[0];
  const auto narrow = n.Bool("narrow_range") ? int64_t{1} : int64_t{0};
  const auto first = static_cast<float>(is_signed ? -(int64_t{1} << (bits - 1)) + narrow : 0);
  const auto last =
      static_cast<float>(is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1);
  // The side that needs the larger steps decides.
  constexpr float kNone = std::numeric_limits<float>::max();
  const float by_min = first * min > 0 ? first / min : kNone;
  const float by_max = last * max > 0 ? last / max : kNone;
  const float scale = std::min(by_min, by_max);
  const float inverse = by_min < by_max ? min / first : max / last;
  if (scale == kNone) return Unimplemented("its range is from ", min, " to ", max);
  (by_min < by_max ? max : min) = (by_min < by_max ? last : first) * inverse;
  OperatorChain c(l);
  const Endpoint clamped = c.Min(c.Max(n.input(0), min), max);
  const Endpoint steps = c.Mul(clamped, scale);
  const Endpoint whole =
      rounding == "HALF_UP" ? c.Op("tfl.floor", {c.Add(steps, 0.5)}) : c.Op("tfl.round", {steps});
  return c.Done(c.Mul(whole, inverse));
}

std::span<const ExportRow> CompoundExport() { return kCompoundRows; }
std::span<const ExportRow> LateExport() { return kLateRows; }

}  // namespace smelt
