#include "smelt/kernels/lite/fixed_point.h"

#include "absl/strings/str_cat.h"

namespace smelt::lite {
namespace {

Affine ReadAffine(const Node& node, absl::string_view before, absl::string_view behind) {
  Affine a;
  const auto name = [&](absl::string_view what) { return absl::StrCat(before, what, behind); };
  a.scales = node.Get<std::vector<float>>(name("scales"), {});
  a.zeros = node.Ints(name("zero_points"));
  a.dim = static_cast<int>(node.Int(name("quantized_dim")));
  a.block = node.Int(name("block_size"));
  return a;
}

}  // namespace

Affine InputAffine(const Node& node, int input) {
  return ReadAffine(node, "_input_", absl::StrCat("_", input));
}

Affine OutputAffine(const Node& node, int output) {
  return ReadAffine(node, "_", output == 0 ? "" : absl::StrCat("_", output));
}

Factor FactorOf(double real) {
  if (!(real > 0) || !std::isfinite(real)) return {};
  Factor f;
  const double fraction = std::frexp(real, &f.shift);
  auto fixed = static_cast<int64_t>(std::round(fraction * static_cast<double>(int64_t{1} << 31)));
  if (fixed == int64_t{1} << 31) {
    fixed /= 2;
    ++f.shift;
  }
  if (f.shift < -31) return {};
  // More would leave nothing of any integer.
  if (f.shift > 30) return {std::numeric_limits<int32_t>::max(), 30};
  f.fraction = static_cast<int32_t>(fixed);
  return f;
}

Range RangeOf(Dtype type) {
  switch (type) {
    case Dtype::kInt8:
      return {-128, 127};
    case Dtype::kUint8:
      return {0, 255};
    case Dtype::kInt16:
      return {-32768, 32767};
    default:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

RealRange ActivatedReals(const Node& node) {
  const std::string activation = node.String("fused_activation_function", "NONE");
  RealRange range;
  if (activation == "RELU" || activation == "RELU6") range.low = 0;
  if (activation == "RELU6") range.high = 6;
  if (activation == "RELU_N1_TO_1") range = {-1, 1};
  return range;
}

std::string DeclineUnlessBounds(const Node& node) {
  const std::string activation = node.String("fused_activation_function", "NONE");
  const bool bounds = activation != "TANH" && activation != "SIGN_BIT";
  return bounds ? "" : absl::StrCat("its activation is ", activation);
}

Range ActivatedRange(const Node& node, const Affine& output) {
  const Range all = RangeOf(node.output_types[0]);
  const RealRange reals = ActivatedReals(node);
  const auto at = [&](float x) { return Quantized(x, output.scale(), output.zero(), all); };
  return {at(reals.low), at(reals.high)};
}

std::string DeclineUnlessNarrow(const Node& node, int inputs) {
  if (node.num_inputs() < inputs) return absl::StrCat("it has ", node.num_inputs(), " inputs");
  if (std::string why = DeclineUnlessBounds(node); !why.empty()) return why;
  const Dtype type = node.output_types[0];
  if (!VisitNarrow(type, []<typename T>() {})) {
    return absl::StrCat("its output is ", DtypeName(type));
  }
  const auto has_one = [](const Affine& a) {
    return a.scales.size() == 1 && a.zeros.size() == 1 && std::abs(a.zeros[0]) <= 65536;
  };
  const Affine out = OutputAffine(node);
  if (!has_one(out) || !IsScale(out.scale())) return "its output has no scale of its own";
  for (int i = 0; i < inputs; ++i) {
    if (node.input_types[static_cast<size_t>(i)] != type) {
      return absl::StrCat("input ", i, " is not of the output's type");
    }
    // A constant of nothing but 0 may have the scale 0 in files of 16 bits.
    const Affine in = InputAffine(node, i);
    if (!has_one(in) || !(in.scale() == 0 || IsScale(in.scale()))) {
      return absl::StrCat("input ", i, " has no scale of its own");
    }
  }
  return "";
}

}  // namespace smelt::lite
