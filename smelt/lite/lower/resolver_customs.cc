// Custom operators that TensorFlow Lite's own resolver brings, which files therefore have without a
// library. Options are a map of a FlexBuffer; those that a file leaves out are 0 there, which is an
// error here where it would leave nothing to compute.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "smelt/kernels/kernel.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

class CustomOptions {
 public:
  static StatusOr<CustomOptions> Of(const Node& n) {
    CustomOptions out;
    ASSIGN_OR_RETURN(out.entries_, ReadFlexMap(n.String("custom_options")));
    return out;
  }
  // Numbers of other kinds are converted as FlexBuffers do it.
  StatusOr<int64_t> Integer(absl::string_view name, std::optional<double> otherwise = {}) const {
    ASSIGN_OR_RETURN(const double v, Number(name, otherwise));
    using Limits = std::numeric_limits<int32_t>;
    if (!(v > Limits::min() - 1.0 && v < Limits::max() + 1.0)) {
      return InvalidArgument("its option ", name, " is ", v);
    }
    return static_cast<int64_t>(v);
  }
  StatusOr<float> Real(absl::string_view name, std::optional<double> otherwise = {}) const {
    ASSIGN_OR_RETURN(const double v, Number(name, otherwise));
    return static_cast<float>(v);
  }
  StatusOr<bool> Truth(absl::string_view name) const {
    ASSIGN_OR_RETURN(const double v, Number(name, 0));
    return std::trunc(v) != 0;
  }

 private:
  StatusOr<double> Number(absl::string_view name, std::optional<double> otherwise) const {
    for (const auto& [key, value] : entries_) {
      if (key != name) continue;
      if (const auto* i = value.get<int64_t>()) return static_cast<double>(*i);
      if (const auto* f = value.get<float>()) return static_cast<double>(*f);
      if (const auto* b = value.get<bool>()) return *b ? 1.0 : 0.0;
      return InvalidArgument("its option ", name, " is no number");
    }
    if (otherwise) return *otherwise;
    return InvalidArgument("its options lack ", name);
  }

  std::vector<FlexEntry> entries_;
};

Status WantType(const Node& n, int input, Dtype type, const Lowering& l) {
  const Dtype given = l.type(n.input(input));
  if (given == type) return OkStatus();
  return InvalidArgument("its input ", input, " is ", DtypeName(given), ", not ", DtypeName(type));
}

LoweredEndpoints AudioSpectrogram(Node& n, const CustomOptions& o, Lowering& l) {
  RETURN_IF_ERROR(WantType(n, 0, Dtype::kFloat, l));
  ASSIGN_OR_RETURN(const int64_t window, o.Integer("window_size"));
  ASSIGN_OR_RETURN(const int64_t stride, o.Integer("stride"));
  ASSIGN_OR_RETURN(const bool squared, o.Truth("magnitude_squared"));
  if (window < 2 || window > int64_t{1} << 30) {
    return InvalidArgument("its option window_size is ", window);
  }
  if (stride < 1) return InvalidArgument("its option stride is ", stride);
  AttrMap attrs;
  attrs.Set("window_size", window);
  attrs.Set("stride", stride);
  attrs.Set("magnitude_squared", squared);
  return OneOf(l.Add("AudioSpectrogram", {n.input(0)}, std::move(attrs)));
}

// Limits lose their fraction there, too.
LoweredEndpoints Mfcc(Node& n, const CustomOptions& o, Lowering& l) {
  RETURN_IF_ERROR(WantType(n, 0, Dtype::kFloat, l));
  RETURN_IF_ERROR(WantType(n, 1, Dtype::kInt32, l));
  ASSIGN_OR_RETURN(const int64_t high, o.Integer("upper_frequency_limit"));
  ASSIGN_OR_RETURN(const int64_t low, o.Integer("lower_frequency_limit", 0));
  ASSIGN_OR_RETURN(const int64_t bands, o.Integer("filterbank_channel_count"));
  ASSIGN_OR_RETURN(const int64_t coefficients, o.Integer("dct_coefficient_count"));
  if (low < 0 || high <= low) {
    return InvalidArgument("its frequencies go from ", low, " to ", high, " Hz");
  }
  if (coefficients < 1 || coefficients > bands) {
    return InvalidArgument("its option dct_coefficient_count is ", coefficients,
                           ", and filterbank_channel_count is ", bands);
  }
  AttrMap attrs;
  attrs.Set("upper_frequency_limit", static_cast<float>(high));
  attrs.Set("lower_frequency_limit", static_cast<float>(low));
  attrs.Set("filterbank_channel_count", bands);
  attrs.Set("dct_coefficient_count", coefficients);
  // The rate may be of any rank.
  ASSIGN_OR_RETURN(const Endpoint rate, l.Add("Reshape", {n.input(1), l.Ints({})}));
  return OneOf(l.Add("Mfcc", {n.input(0), rate}, std::move(attrs)));
}

// The real numbers that the input stands for.
StatusOr<Endpoint> Reals(const Node& n, int input, Lowering& l) {
  const Endpoint e = n.input(input);
  if (l.type(e) == Dtype::kFloat) return e;
  AttrMap attrs;
  if (l.type(e) == Dtype::kHalf) {
    attrs.Set("DstT", Dtype::kFloat);
    return l.Add("Cast", {e}, std::move(attrs));
  }
  const Quantization* q = l.quantization(e);
  if (q == nullptr || q->block != 0) {
    return InvalidArgument("its input ", input, " is ", DtypeName(l.type(e)), " without scales");
  }
  NoteInputQuantization(attrs, 0, *q);
  attrs.Set("Tin", DtypeVector{l.type(e)});
  attrs.Set("Tout", DtypeVector{Dtype::kFloat});
  ASSIGN_OR_RETURN(Node * made, l.AddNode("tfl.dequantize", std::array{e}, std::move(attrs)));
  RETURN_IF_ERROR(FindKernel(*made).status());
  return Endpoint{made, 0};
}

// How far quantized numbers are off the ones that they stand for. Files of a quantization debugger
// fail where that is too much, unless the tolerance is so small that they want to see it alone.
LoweredEndpoints NumericVerify(Node& n, const CustomOptions& o, Lowering& l) {
  const Endpoint from = n.input(0);
  const Dtype type = l.type(from);
  if (type != Dtype::kUint8 && type != Dtype::kInt8 && type != Dtype::kInt16 &&
      type != Dtype::kHalf) {
    return InvalidArgument("its input 0 is ", DtypeName(type),
                           ", and none of uint8, int8, int16 and half");
  }
  RETURN_IF_ERROR(WantType(n, 1, Dtype::kFloat, l));
  ASSIGN_OR_RETURN(const float tolerance, o.Real("tolerance", 0));
  ASSIGN_OR_RETURN(const bool fails, o.Truth("log_if_failed"));
  ASSIGN_OR_RETURN(const Endpoint reals, Reals(n, 0, l));
  // As many numbers, however they are shaped.
  ASSIGN_OR_RETURN(const Endpoint shape, l.Add("Shape", {from}));
  ASSIGN_OR_RETURN(const Endpoint reference, l.Add("Reshape", {n.input(1), shape}));
  ASSIGN_OR_RETURN(const Endpoint off, l.Add("Sub", {reals, reference}));
  if (!fails || !(static_cast<double>(tolerance) >= 0.1)) return OneOf(off);
  // Several scales count as none.
  const Quantization* q = l.quantization(from);
  const float scale = q != nullptr && q->scales.size() == 1 ? q->scales[0] : 0;
  const float most = tolerance * scale;
  ASSIGN_OR_RETURN(const Endpoint distance, l.Add("Abs", {off}));
  ASSIGN_OR_RETURN(const Endpoint allowed, l.Number(static_cast<double>(most)));
  ASSIGN_OR_RETURN(const Endpoint beyond, l.Add("Greater", {distance, allowed}));
  ASSIGN_OR_RETURN(const Endpoint flat,
                   l.Add("Reshape", {beyond, l.Ints(std::array{int64_t{-1}})}));
  ASSIGN_OR_RETURN(const Endpoint any, l.Add("Any", {flat, l.Int(0)}));
  ASSIGN_OR_RETURN(const Endpoint none, l.Add("LogicalNot", {any}));
  const Endpoint says = l.Const(Tensor::Scalar(
      absl::StrCat("NumericVerify: a quantized number differs from its reference by more than ",
                   most, ", the tolerance ", tolerance, " of the scale ", scale, ":")));
  AttrMap attrs;
  attrs.Set("summarize", int64_t{8});
  RETURN_IF_ERROR(l.AddNode("Assert", std::array{none, says, distance}, std::move(attrs)).status());
  return OneOf(off);
}

LoweredEndpoints DetectionPostProcess(Node& n, const CustomOptions& o, Lowering& l) {
  std::vector<Endpoint> inputs;
  for (int i = 0; i < 3; ++i) {
    const Dtype type = l.type(n.input(i));
    if (type != Dtype::kFloat && type != Dtype::kUint8) {
      return InvalidArgument("its input ", i, " is ", DtypeName(type), ", neither float nor uint8");
    }
    ASSIGN_OR_RETURN(const Endpoint reals, Reals(n, i, l));
    inputs.push_back(reals);
  }
  RETURN_IF_ERROR(WantType(n, 2, l.type(n.input(0)), l));
  AttrMap attrs;
  for (const char* name : {"max_detections", "max_classes_per_detection", "num_classes"}) {
    ASSIGN_OR_RETURN(const int64_t value, o.Integer(name));
    attrs.Set(name, value);
  }
  ASSIGN_OR_RETURN(const int64_t of_class, o.Integer("detections_per_class", 100));
  attrs.Set("detections_per_class", of_class);
  ASSIGN_OR_RETURN(const bool regular, o.Truth("use_regular_nms"));
  attrs.Set("use_regular_nms", regular);
  ASSIGN_OR_RETURN(const float score, o.Real("nms_score_threshold", 0));
  attrs.Set("nms_score_threshold", score);
  for (const char* name : {"nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale"}) {
    ASSIGN_OR_RETURN(const float value, o.Real(name));
    attrs.Set(name, value);
  }
  ASSIGN_OR_RETURN(Node * made, l.AddNode("_LiteDetectionPostProcess", inputs, std::move(attrs)));
  // Options that no run can take are an error of the file.
  ASSIGN_OR_RETURN(const Kernel* kernel, FindKernel(*made));
  RETURN_IF_ERROR(kernel->prepare(*made).status());
  return std::vector<Endpoint>{{made, 0}, {made, 1}, {made, 2}, {made, 3}};
}

struct ResolverCustom {
  absl::string_view code;
  int inputs, outputs;
  LoweredEndpoints (*lower)(Node& n, const CustomOptions& o, Lowering& l);
};
constexpr ResolverCustom kResolverCustoms[] = {
    {"AudioSpectrogram", 1, 1, AudioSpectrogram},
    {"Mfcc", 2, 1, Mfcc},
    {"NumericVerify", 2, 1, NumericVerify},
    {"TFLite_Detection_PostProcess", 3, 4, DetectionPostProcess},
};

LoweredEndpoints LowerResolverCustom(Node& n, const ResolverCustom& custom, Lowering& l) {
  if (n.num_inputs() != custom.inputs || n.num_outputs() != custom.outputs) {
    return InvalidArgument("it has ", n.num_inputs(), " inputs and ", n.num_outputs(),
                           " outputs, not ", custom.inputs, " and ", custom.outputs);
  }
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (!Lowering::Has(n, i)) return InvalidArgument("its input ", i, " is left out");
  }
  ASSIGN_OR_RETURN(const CustomOptions options, CustomOptions::Of(n));
  return custom.lower(n, options, l);
}

}  // namespace

std::optional<LoweredEndpoints> ResolverCustomLowered(Node& n, Lowering& l) {
  const std::string code = n.String("custom_code");
  const auto* custom =
      std::ranges::find(kResolverCustoms, absl::string_view(code), &ResolverCustom::code);
  if (custom == std::end(kResolverCustoms)) return std::nullopt;
  LoweredEndpoints out = LowerResolverCustom(n, *custom, l);
  if (!out.ok()) return Prefix(out.status(), absl::StrCat(code, ": "));
  return out;
}

}  // namespace smelt
