// TensorFlow's formulas of the optimizers, for one element: s are the variable and its slots, g its
// gradient, h the scalars in the order of the rule's row below.
#include <cmath>

#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/train/apply.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

// NaN of a NaN.
template <typename W>
W ApplySign(W x) {
  return x != x ? x : W((x > W(0)) - (x < W(0)));
}
template <typename W>
W ApplyMax(W a, W b) {
  return a < b ? b : a;
}
// x moved towards 0 by `by`, at most to 0: the soft threshold of L1 regularization.
template <typename W>
W ApplyShrink(W x, W by) {
  return ApplySign(x) * ApplyMax(std::abs(x) - by, W(0));
}
// A moving average: moves s towards g by the part (1 - keep).
template <typename W>
void ApplyMove(W& s, W g, W keep) {
  s += (g - s) * (W(1) - keep);
}
// The same; on rows in the form that stays infinite once it is, as TensorFlow's.
template <typename W>
void ApplyMix(W& s, W g, W keep, const ApplyFlags& f) {
  if (!f.rows) return ApplyMove(s, g, keep);
  s = s * keep + g * (W(1) - keep);
}

struct DescentRule {
  static constexpr int kSlots = 1;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags&) {
    s[0] -= g * h[0];
  }
};

template <typename W>
W ApplyProximal(W var, W g, W lr, W l1, W l2) {
  const W moved = var - g * lr;
  const W drawn = l1 > W(0) ? ApplyShrink(moved, lr * l1) : moved;
  return drawn / (W(1) + l2 * lr);
}
struct ProximalDescentRule {
  static constexpr int kSlots = 1;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags&) {
    s[0] = ApplyProximal(s[0], g, h[0], h[1], h[2]);
  }
};
struct ProximalAdagradRule {
  static constexpr int kSlots = 2;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags&) {
    s[1] += g * g;
    s[0] = ApplyProximal(s[0], g, h[0] / std::sqrt(s[1]), h[1], h[2]);
  }
};

struct MomentumRule {
  static constexpr int kSlots = 2;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    s[1] = s[1] * h[1] + g;
    s[0] -= f.use_nesterov ? g * h[0] + s[1] * h[1] * h[0] : s[1] * h[0];
  }
};
struct KerasMomentumRule {
  static constexpr int kSlots = 2;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    s[1] = s[1] * h[1] - g * h[0];
    s[0] += f.use_nesterov ? s[1] * h[1] - g * h[0] : s[1];
  }
};

struct AdagradRule {
  static constexpr int kSlots = 2;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    if (f.update_slots) s[1] += g * g;
    s[0] -= g * h[0] / std::sqrt(s[1]);
  }
};
struct AdagradV2Rule {
  static constexpr int kSlots = 2;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    if (f.update_slots) s[1] += g * g;
    s[0] -= g * h[0] / (std::sqrt(s[1]) + h[1]);
  }
};
// The variable is computed from the sums of gradients and of their squares, not from its own value.
struct AdagradDaRule {
  static constexpr int kSlots = 3;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    const W lr = h[0], l1 = h[1], l2 = h[2], step = h[3];
    s[1] += g;
    s[2] += g * g;
    if (f.wide) {
      // Divided by the step, which is the same only while step and rate are positive.
      const W mean = s[1] / step;
      const W left =
          l1 > W(0) ? ApplySign(s[1]) * ApplyMax(std::abs(s[1]) / step - l1, W(0)) : mean;
      s[0] = -left / (l2 + std::sqrt(s[2]) / (step * lr));
      return;
    }
    const W drawn = l1 > W(0) ? ApplyShrink(s[1], l1 * step) : s[1];
    s[0] = -lr * drawn / (l2 * step * lr + std::sqrt(s[2]));
  }
};
struct AdadeltaRule {
  static constexpr int kSlots = 3;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags&) {
    const W lr = h[0], rho = h[1], epsilon = h[2];
    s[1] = s[1] * rho + g * g * (W(1) - rho);
    const W update = std::sqrt(s[2] + epsilon) / std::sqrt(s[1] + epsilon) * g;
    s[0] -= update * lr;
    s[2] = s[2] * rho + update * update * (W(1) - rho);
  }
};

struct AdamRule {
  static constexpr int kSlots = 3;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    const W rate = h[2] * std::sqrt(W(1) - h[1]) / (W(1) - h[0]);
    ApplyMove(s[1], g, h[3]);
    ApplyMove(s[2], g * g, h[4]);
    const W m = f.use_nesterov ? g * (W(1) - h[3]) + h[3] * s[1] : s[1];
    s[0] -= m * rate / (std::sqrt(s[2]) + h[5]);
  }
};
struct AmsgradRule {
  static constexpr int kSlots = 4;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags&) {
    const W rate = h[2] * std::sqrt(W(1) - h[1]) / (W(1) - h[0]);
    ApplyMove(s[1], g, h[3]);
    ApplyMove(s[2], g * g, h[4]);
    s[3] = ApplyMax(s[3], s[2]);
    s[0] -= s[1] * rate / (std::sqrt(s[3]) + h[5]);
  }
};
struct AdaMaxRule {
  static constexpr int kSlots = 3;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags&) {
    ApplyMove(s[1], g, h[2]);
    s[2] = ApplyMax(h[3] * s[2], std::abs(g));
    s[0] -= h[1] / (W(1) - h[0]) * (s[1] / (s[2] + h[4]));
  }
};

struct AddSignRule {
  static constexpr int kSlots = 2;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags&) {
    s[1] = s[1] * h[3] + g * (W(1) - h[3]);
    s[0] -= h[0] * (h[1] + h[2] * ApplySign(g) * ApplySign(s[1])) * g;
  }
};
struct PowerSignRule {
  static constexpr int kSlots = 2;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags&) {
    s[1] = s[1] * h[3] + g * (W(1) - h[3]);
    s[0] -= h[0] * std::exp(h[1] * h[2] * ApplySign(g) * ApplySign(s[1])) * g;
  }
};

struct RmsPropRule {
  static constexpr int kSlots = 3;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    ApplyMix(s[1], g * g, h[1], f);
    s[2] = s[2] * h[2] + g * h[0] / std::sqrt(s[1] + h[3]);
    s[0] -= s[2];
  }
};
struct CenteredRmsPropRule {
  static constexpr int kSlots = 4;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    ApplyMix(s[2], g * g, h[1], f);
    ApplyMix(s[1], g, h[1], f);
    s[3] = s[3] * h[2] + g * h[0] / std::sqrt(s[2] - s[1] * s[1] + h[3]);
    s[0] -= s[3];
  }
};

// FTRL, follow the regularized leader; s are var, accum, linear. With multiply_linear_by_lr, linear
// holds lr times its value.
template <typename W>
void ApplyFtrl(W* s, W g, W shrinkage, W lr, W l1, W l2, W power, const ApplyFlags& f) {
  const auto root = [&](W x) { return power == W(-0.5) ? std::sqrt(x) : std::pow(x, -power); };
  const W accum = s[1] + g * g;
  const W grown = root(accum) - root(s[1]);
  const W pull = g + W(2) * shrinkage * s[0];
  if (f.multiply_linear_by_lr) {
    s[2] += pull * lr - grown * s[0];
    l1 *= lr;
  } else {
    s[2] += pull - grown / lr * s[0];
  }
  const W y = f.multiply_linear_by_lr ? root(accum) + W(2) * l2 * lr : root(accum) / lr + W(2) * l2;
  // As in TensorFlow, a NaN in linear makes a dense variable 0, but a row NaN.
  if (std::abs(s[2]) > l1 || (f.rows && s[2] != s[2])) {
    s[0] = (l1 * ApplySign(s[2]) - s[2]) / y;
  } else {
    s[0] = W(0);
  }
  s[1] = accum;
}
struct FtrlRule {
  static constexpr int kSlots = 3;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    ApplyFtrl(s, g, W(0), h[0], h[1], h[2], h[3], f);
  }
};
struct FtrlV2Rule {
  static constexpr int kSlots = 3;
  template <typename W>
  static void Step(W* s, W g, const W* h, const ApplyFlags& f) {
    ApplyFtrl(s, g, h[3], h[0], h[1], h[2], h[4], f);
  }
};

// ---- loops ----

template <typename Rule, typename T>
void ApplyRuleLoop(void* const* slots, const void* grad, const ApplyScalars& scalars,
                   const ApplyFlags& flags, int64_t n) {
  using W = Wide<T>;
  W h[kMaxApplyScalars];
  for (int k = 0; k < kMaxApplyScalars; ++k) {
    if constexpr (kIsComplex<W>) {
      h[k] = W(scalars[k]);
    } else {
      h[k] = static_cast<W>(scalars[k].real());
    }
  }
  T* v[Rule::kSlots];
  for (int k = 0; k < Rule::kSlots; ++k) v[k] = static_cast<T*>(slots[k]);
  const T* g = static_cast<const T*>(grad);
  for (int64_t i = 0; i < n; ++i) {
    W s[Rule::kSlots];
    for (int k = 0; k < Rule::kSlots; ++k) s[k] = static_cast<W>(v[k][i]);
    Rule::template Step<W>(s, static_cast<W>(g[i]), h, flags);
    for (int k = 0; k < Rule::kSlots; ++k) v[k][i] = T(s[k]);
  }
}

// The loop of a rule for a floating type; nullptr for other types.
template <typename Rule>
ApplyLoop RealApplyLoop(Dtype t) {
  ApplyLoop loop = nullptr;
  VisitTypes(FloatTypes() + HalfTypes(), t, [&]<typename T>() { loop = ApplyRuleLoop<Rule, T>; });
  return loop;
}
template <typename Rule>
ApplyLoop NumberApplyLoop(Dtype t) {
  ApplyLoop loop = RealApplyLoop<Rule>(t);
  VisitTypes(ComplexTypes(), t, [&]<typename T>() { loop = ApplyRuleLoop<Rule, T>; });
  return loop;
}

#define SMELT_SCALAR(NAME) \
  { NAME, NAME " is not a scalar: " }
constexpr ApplyScalar kRate = SMELT_SCALAR("lr");
constexpr ApplyScalar kRateSpaced{"lr", "lr is not a scalar : "};
constexpr ApplyScalar kRateSpacedRows{"lr", "lr is not a scalar: ", ApplyRange::kAny,
                                      "lr is not a scalar : "};
constexpr ApplyScalar kRateSpacedDense{"lr", "lr is not a scalar : ", ApplyRange::kAny,
                                       "lr is not a scalar: "};
constexpr ApplyScalar kRatePositive{"lr", "lr is not a positive scalar: ", ApplyRange::kPositive};
constexpr ApplyScalar kRateFtrl{
    "lr", "lr is not a scalar: ", ApplyRange::kPositive,
    "lr is not a positive scalar (or zero if multiply_linear_by_lr is set): "};
constexpr ApplyScalar kL1{"l1", "l1 regularization strength is not a scalar: "};
constexpr ApplyScalar kL2{"l2", "l2 regularization strength is not a scalar: "};
constexpr absl::string_view kL1Negative =
    "l1 regularization strength is not a non-negative scalar: ";
constexpr absl::string_view kL2Negative =
    "l2 regularization strength is not a non-negative scalar: ";
constexpr ApplyScalar kL1NonNegative{"l1", kL1Negative, ApplyRange::kNonNegative};
constexpr ApplyScalar kL2NonNegative{"l2", kL2Negative, ApplyRange::kNonNegative};
constexpr ApplyScalar kL1Ftrl{"l1", kL1.otherwise, ApplyRange::kNonNegative, kL1Negative};
constexpr ApplyScalar kL2Ftrl{"l2", kL2.otherwise, ApplyRange::kNonNegative, kL2Negative};
constexpr ApplyScalar kShrinkage{
    "l2_shrinkage",
    "l2 shrinkage regularization strength is not a scalar: ", ApplyRange::kNonNegative,
    "l2 shrinkage regularization strength is not a non-negative scalar: ", true};
constexpr ApplyScalar kPower{"lr_power", "lr_power is not a scalar", ApplyRange::kNonPositive,
                             "lr_power is not a non-positive scalar: "};
constexpr ApplyScalar kRho = SMELT_SCALAR("rho");
constexpr ApplyScalar kMomentum = SMELT_SCALAR("momentum");
constexpr ApplyScalar kMomentumLate{"momentum", "momentum is not a scalar: ", ApplyRange::kAny, "",
                                    true};
constexpr ApplyScalar kEpsilon = SMELT_SCALAR("epsilon");
constexpr ApplyScalar kBeta = SMELT_SCALAR("beta");
constexpr ApplyScalar kBeta1 = SMELT_SCALAR("beta1");
constexpr ApplyScalar kBeta2 = SMELT_SCALAR("beta2");
constexpr ApplyScalar kBeta1Power = SMELT_SCALAR("beta1_power");
constexpr ApplyScalar kBeta2Power = SMELT_SCALAR("beta2_power");
constexpr ApplyScalar kSignDecay{
    "sign_decay", "sign_decay is not a scalar: ", ApplyRange::kAny, "", true, true};

constexpr ApplyRule kApplyRules[] = {
    {"GradientDescent", {"var"}, {{SMELT_SCALAR("alpha")}}, NumberApplyLoop<DescentRule>},
    {.name = "ProximalGradientDescent",
     .slots = {"var"},
     .scalars = {{{"alpha", "alpha is not a scalar: ", ApplyRange::kAny, "lr is not a scalar: "},
                  kL1,
                  kL2}},
     .loop = RealApplyLoop<ProximalDescentRule>,
     .in_turn = true,
     .filled_rows = true},
    {.name = "ProximalAdagrad",
     .slots = {"var", "accum"},
     .scalars = {{kRatePositive, kL1NonNegative, kL2NonNegative}},
     .loop = RealApplyLoop<ProximalAdagradRule>,
     .dense_ranges = true,
     .dense_at = ApplyScalarsAt::kSlots,
     .in_turn = true,
     .filled_rows = true},
    {.name = "Momentum",
     .slots = {"var", "accum"},
     .scalars = {{kRateSpacedRows, kMomentumLate}},
     .loop = NumberApplyLoop<MomentumRule>,
     .in_turn = true},
    {.name = "KerasMomentum",
     .slots = {"var", "accum"},
     .scalars = {{kRateSpacedRows, kMomentumLate}},
     .loop = NumberApplyLoop<KerasMomentumRule>,
     .in_turn = true,
     .element_named = true},
    {.name = "Adagrad",
     .slots = {"var", "accum"},
     .scalars = {{kRate}},
     .loop = NumberApplyLoop<AdagradRule>,
     .filled_rows = true,
     .same_rank = true},
    {.name = "AdagradV2",
     .slots = {"var", "accum"},
     .scalars = {{kRate, kEpsilon}},
     .loop = NumberApplyLoop<AdagradV2Rule>,
     .filled_rows = true,
     .same_rank = true},
    {.name = "AdagradDA",
     .slots = {"var", "accum", "accum"},
     .scalars = {{kRate, kL1, kL2, SMELT_SCALAR("global_step")}},
     .loop = RealApplyLoop<AdagradDaRule>,
     .dense_at = ApplyScalarsAt::kGrad,
     .rows_at = ApplyScalarsAt::kIndices,
     .in_turn = true,
     .filled_rows = true},
    {.name = "Adadelta",
     .slots = {"var", "accum", "accum_update"},
     .scalars = {{kRate, kRho, kEpsilon}},
     .loop = NumberApplyLoop<AdadeltaRule>,
     .rows_slot_1 = "accum_grad"},
    {"Adam",
     {"var", "m", "v"},
     {{kBeta1Power, kBeta2Power, kRateSpaced, kBeta1, kBeta2, kEpsilon}},
     NumberApplyLoop<AdamRule>},
    {"AdamWithAmsgrad",
     {"var", "m", "v", "vhat"},
     {{kBeta1Power, kBeta2Power, kRateSpaced, kBeta1, kBeta2, kEpsilon}},
     RealApplyLoop<AmsgradRule>},
    {"AdaMax",
     {"var", "m", "v"},
     {{kBeta1Power, kRateSpaced, kBeta1, kBeta2, kEpsilon}},
     RealApplyLoop<AdaMaxRule>},
    {"AddSign",
     {"var", "m"},
     {{kRate, SMELT_SCALAR("alpha"), kSignDecay, kBeta}},
     RealApplyLoop<AddSignRule>},
    {"PowerSign",
     {"var", "m"},
     {{kRate, SMELT_SCALAR("logbase"), kSignDecay, kBeta}},
     RealApplyLoop<PowerSignRule>},
    {.name = "RMSProp",
     .slots = {"var", "ms", "mom"},
     .scalars = {{kRateSpacedDense, kRho, kMomentum, kEpsilon}},
     .loop = NumberApplyLoop<RmsPropRule>,
     .rows_at = ApplyScalarsAt::kFirst},
    {.name = "CenteredRMSProp",
     .slots = {"var", "mg", "ms", "mom"},
     .scalars = {{kRateSpacedDense, kRho, kMomentum, kEpsilon}},
     .loop = NumberApplyLoop<CenteredRmsPropRule>,
     .rows_at = ApplyScalarsAt::kFirst},
    {.name = "Ftrl",
     .slots = {"var", "accum", "linear"},
     .scalars = {{kRateFtrl, kL1Ftrl, kL2Ftrl, kPower}},
     .loop = RealApplyLoop<FtrlRule>,
     .dense_at = ApplyScalarsAt::kGrad,
     .rows_at = ApplyScalarsAt::kIndices,
     .in_turn = true,
     .filled_rows = true},
    {.name = "FtrlV2",
     .slots = {"var", "accum", "linear"},
     .scalars = {{kRateFtrl, kL1Ftrl, kL2Ftrl, kShrinkage, kPower}},
     .loop = RealApplyLoop<FtrlV2Rule>,
     .dense_at = ApplyScalarsAt::kGrad,
     .rows_at = ApplyScalarsAt::kIndices,
     .in_turn = true,
     .filled_rows = true},
};
#undef SMELT_SCALAR

}  // namespace

const ApplyRule* FindApplyRule(absl::string_view name) {
  for (const ApplyRule& rule : kApplyRules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

}  // namespace smelt
