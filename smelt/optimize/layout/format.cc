#include "smelt/optimize/layout/format.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace smelt::layout {
namespace {

constexpr OpSet kConvolutions = {"Conv2D", "Conv3D"};
constexpr OpSet kConvolutionGradients = {"Conv2DBackpropInput",
                                         "Conv2DBackpropFilter",
                                         "Conv3DBackpropInput",
                                         "Conv3DBackpropInputV2",
                                         "Conv3DBackpropFilter",
                                         "Conv3DBackpropFilterV2",
                                         "DepthwiseConv2dNativeBackpropInput",
                                         "DepthwiseConv2dNativeBackpropFilter"};

// Cores that multiply matrices do so along the last dimension, and compute in half since the first
// kind of GPU, in bfloat16, and in float of fewer bits, since the second.
constexpr double kHalfCores = 7.0, kFloatCores = 8.0;

struct GpuCounts {
  int gpus = 0, half = 0, floats = 0;
};

GpuCounts CountGpus(const PassContext& context) {
  GpuCounts counts;
  for (const DeviceProperties& device : context.devices) {
    if (device.type != "GPU") continue;
    ++counts.gpus;
    const auto found = device.environment.find("architecture");
    double architecture = 0;
    if (found == device.environment.end() || !absl::SimpleAtod(found->second, &architecture)) {
      continue;
    }
    counts.half += architecture >= kHalfCores;
    counts.floats += architecture >= kFloatCores;
  }
  return counts;
}

// Do half of the GPUs have such cores, and half of the convolutions a type for them?
bool PrefersChannelsLast(const Graph& graph, const GpuCounts& counts) {
  const bool half = 2 * counts.half >= counts.gpus, floats = 2 * counts.floats >= counts.gpus;
  if (!half && !floats) return false;
  int convolutions = 0, of_half = 0, of_bfloat16 = 0, of_float = 0;
  bool float_gradient = false;
  for (int id = 0; id < graph.max_id(); ++id) {
    const Node* n = graph.NodeOf(id);
    if (n == nullptr || !(n->Is(kConvolutions) || n->Is(kConvolutionGradients)) ||
        !IsOnDevice(*n, "GPU")) {
      continue;
    }
    const Dtype type = n->Type("T");
    if (n->Is(kConvolutionGradients)) {
      float_gradient = float_gradient || type == Dtype::kFloat;
      continue;
    }
    ++convolutions;
    of_half += type == Dtype::kHalf;
    of_bfloat16 += type == Dtype::kBfloat16;
    of_float += type == Dtype::kFloat;
  }
  int prefer = half ? of_half : 0;
  if (floats) prefer += of_bfloat16 + (float_gradient ? 0 : of_float);
  return convolutions > 0 && 2 * prefer >= convolutions;
}

Conversion ToChannelsLast(absl::string_view device_type) {
  return {std::string(device_type), Formats("NCHW", "NHWC"), Formats("NCDHW", "NDHWC")};
}

Conversion ToChannelsSecond(absl::string_view device_type) {
  return {std::string(device_type), Formats("NHWC", "NCHW"), Formats("NDHWC", "NCDHW")};
}

std::vector<int32_t> Permutation(absl::string_view from, absl::string_view to) {
  std::vector<int32_t> out;
  for (const char letter : to) out.push_back(static_cast<int32_t>(from.find(letter)));
  return out;
}

}  // namespace

Formats::Formats(absl::string_view from, absl::string_view to)
    : src(from), dst(to), to_dst(Permutation(from, to)), to_src(Permutation(to, from)) {}

bool IsOnDevice(const Node& node, absl::string_view type) {
  const absl::string_view device = node.device;
  const size_t slash = device.rfind('/');
  if (slash == absl::string_view::npos) return false;
  const std::string last = absl::AsciiStrToLower(device.substr(slash + 1));
  const absl::string_view kind_and_number = absl::StripPrefix(last, "device:");
  const size_t colon = kind_and_number.find(':');
  int number = 0;
  return colon != absl::string_view::npos &&
         absl::SimpleAtoi(kind_and_number.substr(colon + 1), &number) &&
         absl::StrContains(kind_and_number.substr(0, colon), absl::AsciiStrToLower(type));
}

std::optional<Conversion> ChooseConversion(const Graph& graph, const PassContext& context) {
  const GpuCounts counts = CountGpus(context);
  if (counts.gpus > 0) {
    return PrefersChannelsLast(graph, counts) ? ToChannelsLast("GPU") : ToChannelsSecond("GPU");
  }
  if (context.config.cpu_layout_conversion == CpuLayout::kNchwToNhwc) return ToChannelsLast("CPU");
  // TensorFlow has the other direction in its configuration alone.
  return std::nullopt;
}

}  // namespace smelt::layout
