// Activations: those that the operator before takes in, and those that are spelled out.
#include <algorithm>
#include <cmath>

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

// The operand of a commutative operator that is the number; -1: none is.
int NumberAt(const Node& n, float number) {
  for (const int i : {0, 1}) {
    if (Fuser::Number(n.input(i)) == number) return i;
  }
  return -1;
}

// The input of relu6(x + 3), whether the clamp stands by itself or in the sum.
std::optional<Endpoint> HardSigmoidInput(Endpoint e) {
  if (!Fuser::ReadOnce(e)) return std::nullopt;
  const Node* sum = e.node;
  if (sum->Is("tfl.relu6")) {
    sum = sum->input(0).node;
    if (!sum->Is("tfl.add") || sum->String("fused_activation_function", "NONE") != "NONE") {
      return std::nullopt;
    }
  } else if (!sum->Is("tfl.add") || sum->String("fused_activation_function") != "RELU6") {
    return std::nullopt;
  }
  const int three = NumberAt(*sum, 3.0f);
  if (three < 0) return std::nullopt;
  return sum->input(1 - three);
}

// A factor of 1/6 as models spell it: by a product or a quotient, in a few roundings.
std::optional<Endpoint> SixthOf(Endpoint e) {
  const Node* n = e.node;
  if (n->String("fused_activation_function", "NONE") != "NONE") return std::nullopt;
  if (n->Is("tfl.mul")) {
    for (const int i : {0, 1}) {
      const std::optional<float> c = Fuser::Number(n->input(i));
      if (c && std::abs(*c * 6 - 1) < 1e-4f) return n->input(1 - i);
    }
  }
  if (n->Is("tfl.div") && Fuser::Number(n->input(1)) == 6.0f) return n->input(0);
  return std::nullopt;
}

// x * relu6(x + 3) / 6 in each of its orders.
StatusOr<bool> FuseHardSwish(Node& n, Fuser& f) {
  if (n.String("fused_activation_function", "NONE") != "NONE") return false;
  // (x * clamped) * sixth
  if (const auto product = SixthOf({&n, 0})) {
    const Node* mul = product->node;
    if (mul->Is("tfl.mul") && Fuser::ReadOnce(*product) &&
        mul->String("fused_activation_function", "NONE") == "NONE") {
      for (const int i : {0, 1}) {
        const auto x = HardSigmoidInput(mul->input(i));
        if (!x || !(*x == mul->input(1 - i))) continue;
        ASSIGN_OR_RETURN(const Endpoint e, f.Add("tfl.hard_swish", {*x}, {}, n));
        f.Replace(&n, e);
        return true;
      }
    }
  }
  if (!n.Is("tfl.mul")) return false;
  for (const int i : {0, 1}) {
    // x * (clamped * sixth), (x * sixth) * clamped
    const Endpoint a = n.input(i), b = n.input(1 - i);
    std::optional<Endpoint> x;
    if (const auto clamped = SixthOf(a); clamped && Fuser::ReadOnce(a)) {
      x = HardSigmoidInput(*clamped);
      if (x && !(*x == b)) x.reset();
    }
    if (const auto scaled = SixthOf(a); !x && scaled && Fuser::ReadOnce(a)) {
      x = HardSigmoidInput(b);
      if (x && !(*x == *scaled)) x.reset();
    }
    if (!x) continue;
    ASSIGN_OR_RETURN(const Endpoint e, f.Add("tfl.hard_swish", {*x}, {}, n));
    f.Replace(&n, e);
    return true;
  }
  return false;
}

// Clamps between numbers that an operator has.
StatusOr<bool> FuseClamp(Node& n, Fuser& f) {
  const bool outer_min = n.Is("tfl.minimum");
  for (const int i : {0, 1}) {
    const std::optional<float> outer = Fuser::Number(n.input(i));
    const Endpoint e = n.input(1 - i);
    if (!outer || !Fuser::ReadOnce(e)) continue;
    if (outer_min && *outer == 6.0f && e.node->Is("tfl.relu")) {
      ASSIGN_OR_RETURN(const Endpoint by, f.Add("tfl.relu6", {e.node->input(0)}, {}, n));
      f.Replace(&n, by);
      return true;
    }
    if (!e.node->Is(outer_min ? OpName("tfl.maximum") : OpName("tfl.minimum"))) continue;
    for (const int k : {0, 1}) {
      const std::optional<float> inner = Fuser::Number(e.node->input(k));
      if (!inner) continue;
      const float low = outer_min ? *inner : *outer, high = outer_min ? *outer : *inner;
      OpName op = "tfl.relu_n1_to_1";
      if (low == 0 && high == 6) {
        op = "tfl.relu6";
      } else if (low == 0 && high == 1) {
        op = "tfl.relu_0_to_1";
      } else if (low != -1 || high != 1) {
        continue;
      }
      ASSIGN_OR_RETURN(const Endpoint by, f.Add(op, {e.node->input(1 - k)}, {}, n));
      f.Replace(&n, by);
      return true;
    }
  }
  return false;
}

constexpr Fusion kActivationFusions[] = {
    {"FuseHardSwish",
     {"tfl.mul", "tfl.div"},
     FuseHardSwish,
     "x * relu6(x + 3) / 6 -> hard_swish(x)"},
    {"FuseClamp",
     {"tfl.minimum", "tfl.maximum"},
     FuseClamp,
     "min(max(x, 0), 6) -> relu6(x); and to [-1, 1], [0, 1]"},
    {"FuseActivation",
     {"tfl.relu", "tfl.relu6", "tfl.relu_n1_to_1"},
     FuseActivation,
     "relu(conv_2d(x)) -> conv_2d(x) with an activation"},
};

}  // namespace

std::span<const Fusion> ActivationFusions() { return kActivationFusions; }

}  // namespace smelt
