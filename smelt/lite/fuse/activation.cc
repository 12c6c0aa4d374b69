// Activations that the operator before takes in.
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

constexpr OpSet kTakesActivation = {"tfl.conv_2d",
                                    "tfl.depthwise_conv_2d",
                                    "tfl.fully_connected",
                                    "tfl.transpose_conv",
                                    "tfl.average_pool_2d",
                                    "tfl.max_pool_2d",
                                    "tfl.add",
                                    "tfl.sub",
                                    "tfl.mul",
                                    "tfl.div",
                                    "tfl.conv_3d",
                                    "tfl.conv_3d_transpose"};

StatusOr<bool> FuseActivation(Node& n, Fuser& f) {
  const Endpoint x = n.input(0);
  if (!x.node->Is(kTakesActivation) || Fuser::type(x) != Dtype::kFloat) return false;
  if (x.node->String("fused_activation_function", "NONE") != "NONE") {
    return f.Declined(n, "what it follows has an activation");
  }
  if (!Fuser::ReadOnce(x)) return f.Declined(n, "others read what it follows");
  const char* name = n.Is("tfl.relu") ? "RELU" : n.Is("tfl.relu6") ? "RELU6" : "RELU_N1_TO_1";
  x.node->AttrsToChange().Set("fused_activation_function", name);
  f.Replace(&n, x);
  return true;
}

constexpr Fusion kActivationFusions[] = {
    {"FuseActivation",
     {"tfl.relu", "tfl.relu6", "tfl.relu_n1_to_1"},
     FuseActivation,
     "relu(conv_2d(x)) -> conv_2d(x) with an activation"},
};

}  // namespace

std::span<const Fusion> ActivationFusions() { return kActivationFusions; }

}  // namespace smelt
