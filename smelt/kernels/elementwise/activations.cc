// Activations of neural networks.
#include <algorithm>
#include <cmath>

#include "smelt/kernels/elementwise/elementwise.h"
#include "smelt/kernels/elementwise/rows.h"
#include "smelt/kernels/isa/bfloat16.h"

namespace smelt {
namespace {

// A comparison with NaN is false: these are written so that NaN then passes.
struct ActRelu {
  template <typename T>
  static T Of(T x) {
    return x <= T(0) ? T(0) : x;
  }
};
struct ActRelu6 {
  template <typename T>
  static T Of(T x) {
    return x <= T(0) ? T(0) : (x > T(6) ? T(6) : x);
  }
};
struct ActElu {
  static double Of(double x) { return x < 0 ? std::exp(x) - 1 : x; }
};
struct ActSelu {
  static double Of(double x) {
    return x < 0 ? 1.7580993408473768599402175208123 * (std::exp(x) - 1)
                 : 1.0507009873554804934193349852946 * x;
  }
};
struct ActSoftplus {
  static double Of(double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); }
};
struct ActSoftsign {
  static double Of(double x) { return x / (1 + std::abs(x)); }
};

template <typename T>
void LeakyRow(const void* x, void* y, int64_t n, float alpha) {
  const T* a = static_cast<const T*>(x);
  T* b = static_cast<T*>(y);
  const T slope = static_cast<T>(alpha);
  for (int64_t i = 0; i < n; ++i) b[i] = a[i] > T(0) ? a[i] : static_cast<T>(a[i] * slope);
}

template <typename F>
UnaryFn ActReals(Dtype t) {
  return t == Dtype::kDouble ? UnaryRow<F, double, double> : IntRow<F>(t);
}

struct ActOp {
  absl::string_view op;
  UnaryF32 f32;
  UnaryFn (*other)(Dtype);
  int64_t grain;
};
template <UnaryFn fn>
UnaryFn ActDouble(Dtype t) {
  return t == Dtype::kDouble ? fn : nullptr;
}
constexpr ActOp kActOps[] = {
    {"Relu", UnaryF32::kRelu, ActReals<ActRelu>, 1 << 15},
    {"Relu6", UnaryF32::kRelu6, ActReals<ActRelu6>, 1 << 15},
    {"LeakyRelu", UnaryF32::kLeakyRelu, ActDouble<LeakyRow<double>>, 1 << 15},
    {"Elu", UnaryF32::kElu, ActDouble<UnaryRow<ActElu, double, double>>, 1 << 13},
    {"Selu", UnaryF32::kSelu, ActDouble<UnaryRow<ActSelu, double, double>>, 1 << 13},
    {"Softplus", UnaryF32::kSoftplus, ActDouble<UnaryRow<ActSoftplus, double, double>>, 1 << 13},
    {"Softsign", UnaryF32::kSoftsign, ActDouble<UnaryRow<ActSoftsign, double, double>>, 1 << 15},
};

StatusOr<std::unique_ptr<KernelState>> PrepareActivation(const Node& node) {
  const Dtype t = node.Type("T");
  for (const ActOp& row : kActOps) {
    if (row.op != node.op()) continue;
    if (const UnaryFn own = Bfloat16Unary(row.f32); t == Dtype::kBfloat16 && own != nullptr) {
      // The row takes bfloat16 itself, so nothing is widened around it.
      ASSIGN_OR_RETURN(auto state, MakeUnaryState(node, t, t, own, nullptr, row.grain));
      static_cast<UnaryState*>(state.get())->widen = Widen::kNone;
      return state;
    }
    return MakeUnaryState(node, t, t, row.other(t), Isa().unary[static_cast<int>(row.f32)],
                          row.grain, node.Float("alpha", 0.2f));
  }
  return Internal("no loops for ", node.op());
}

// x * tanh(softplus(x)), a piece at a time, so that the steps between stay in the cache.
void MishRow(const float* x, float* y, int64_t n, float) {
  constexpr int64_t kPiece = 512;
  float gate[kPiece];
  const IsaTable& isa = Isa();
  for (int64_t at = 0; at < n; at += kPiece) {
    const int64_t count = std::min(kPiece, n - at);
    isa.unary[static_cast<int>(UnaryF32::kSoftplus)](x + at, gate, count, 0);
    isa.unary[static_cast<int>(UnaryF32::kTanh)](gate, gate, count, 0);
    for (int64_t i = 0; i < count; ++i) y[at + i] = x[at + i] * gate[i];
  }
}

// What the remapper makes of activations that are spelled out: of floats alone.
StatusOr<std::unique_ptr<KernelState>> PrepareGated(const Node& node) {
  const IsaUnaryFn loop =
      node.Is("_MklSwish") ? Isa().unary[static_cast<int>(UnaryF32::kSwish)] : MishRow;
  return MakeUnaryState(node, Dtype::kFloat, Dtype::kFloat, nullptr, loop, 1 << 13);
}

constexpr DtypeSet kActFloats = kFloatTypes | kHalfTypes;
constexpr Kernel kActivationTable[] = {
    {"Relu", "T", kRealTypes, "isa:relu", RunUnary, PrepareActivation},
    {"Relu6", "T", kRealTypes, "isa:relu6", RunUnary, PrepareActivation},
    {"LeakyRelu", "T", kActFloats, "isa:leaky_relu", RunUnary, PrepareActivation},
    {"Elu", "T", kActFloats, "isa:elu", RunUnary, PrepareActivation},
    {"Selu", "T", kActFloats, "isa:selu", RunUnary, PrepareActivation},
    {"Softplus", "T", kActFloats, "isa:softplus", RunUnary, PrepareActivation},
    {"_MklSwish", "T", Types(Dtype::kFloat), "isa:swish", RunUnary, PrepareGated},
    {"_MklFusedMish", "T", Types(Dtype::kFloat), "isa:mish", RunUnary, PrepareGated},
    {"Softsign", "T", kActFloats, "isa:softsign", RunUnary, PrepareActivation},
};

}  // namespace

extern constinit const std::span<const Kernel> kActivationKernels = kActivationTable;

}  // namespace smelt
