// Functions of one float, alone and behind a bias, against libm in double.
#include <algorithm>
#include <functional>
#include <string>

#include "smelt/kernels/isa/isa.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

constexpr float kAlpha = 0.3f;
// 2 units in the last place, and the rounding of what is done around a function.
constexpr double kTolerance = 6e-7;

struct Function {
  const char* name;
  UnaryF32 op;
  std::function<double(double)> of;
  float low = -20, high = 20;  // where arguments are drawn
  // Of |x|: what cancels there counts as accurate.
  double of_argument = 0;
  double tolerance = kTolerance;
  double least_scale = 0;  // as accurate as a number of this size
};

double Clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Expm1Of(double x) { return std::expm1(x); }

std::vector<Function> Functions() {
  using U = UnaryF32;
  const double a = 1.6732632423543772848170429916717, l = 1.0507009873554804934193349852946;
  return {
      {"identity", U::kIdentity, [](double x) { return x; }},
      {"relu", U::kRelu, [](double x) { return x <= 0 ? 0 : x; }},
      {"relu6", U::kRelu6, [](double x) { return std::isnan(x) ? x : Clamp(x, 0, 6); }},
      {"leaky_relu", U::kLeakyRelu, [](double x) { return x > 0 ? x : x * double{kAlpha}; }},
      // exp(x) - 1 in floats, as TensorFlow has it.
      {"elu", U::kElu, [](double x) { return x < 0 ? Expm1Of(x) : x; }, -20, 20, 0, kTolerance, 1},
      {"selu", U::kSelu, [=](double x) { return x < 0 ? l * a * Expm1Of(x) : l * x; }, -20, 20, 0,
       kTolerance, 1},
      {"tanh", U::kTanh, [](double x) { return std::tanh(x); }},
      {"sigmoid", U::kSigmoid, Sigmoid, -80, 80},
      // Zero where float's sigmoid is.
      {"swish", U::kSwish, [](double x) { return x < -87.5 ? -0.0 : x * Sigmoid(x); }, -80, 80},
      {"hard_swish", U::kHardSwish, [](double x) { return x * Clamp(x + 3, 0, 6) / 6; }, -6, 6, 1},
      {"gelu_erf", U::kGeluErf, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); },
       -6, 6, 1},
      {"gelu_tanh", U::kGeluTanh,
       [](double x) {
         return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       },
       -6, 6, 1},
      {"softplus", U::kSoftplus,
       [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
      {"softsign", U::kSoftsign, [](double x) { return x / (1 + std::abs(x)); }},
      {"abs", U::kAbs, [](double x) { return std::abs(x); }},
      {"neg", U::kNeg, [](double x) { return -x; }},
      {"sign", U::kSign, [](double x) { return x > 0   ? 1
                                               : x < 0 ? -1
                                                       : x; }},
      {"square", U::kSquare, [](double x) { return x * x; }},
      {"sqrt", U::kSqrt, [](double x) { return std::sqrt(x); }, 0, 1e6},
      {"rsqrt", U::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 0, 1e6},
      {"reciprocal", U::kReciprocal, [](double x) { return 1 / x; }},
      {"exp", U::kExp, [](double x) { return std::exp(x); }, -87, 88},
      {"expm1", U::kExpm1, Expm1Of, -30, 88},
      {"log", U::kLog, [](double x) { return std::log(x); }, 0, 50},
      {"log1p", U::kLog1p, [](double x) { return std::log1p(x); }, -1, 50},
      {"erf", U::kErf, [](double x) { return std::erf(x); }, -4, 4},
      {"erfc", U::kErfc, [](double x) { return std::erfc(x); }, -9, 9, 0, 8e-7},
      {"asin", U::kAsin, [](double x) { return std::asin(x); }, -1, 1},
      {"acos", U::kAcos, [](double x) { return std::acos(x); }, -1, 1},
      {"atan", U::kAtan, [](double x) { return std::atan(x); }},
      {"asinh", U::kAsinh, [](double x) { return std::asinh(x); }},
      {"acosh", U::kAcosh, [](double x) { return std::acosh(x); }, 1, 50},
      {"atanh", U::kAtanh, [](double x) { return std::atanh(x); }, -1, 1},
      {"sin", U::kSin, [](double x) { return std::sin(x); }, -1000, 1000, 1e-3},
      {"cos", U::kCos, [](double x) { return std::cos(x); }, -1000, 1000, 1e-3},
      {"floor", U::kFloor, [](double x) { return std::floor(x); }},
      {"ceil", U::kCeil, [](double x) { return std::ceil(x); }},
      {"rint", U::kRint, [](double x) { return std::nearbyint(x); }},
  };
}

void Check(const Function& f, const std::vector<float>& x, const std::vector<float>& y) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double scale = std::max(f.of_argument * std::abs(x[i]), f.least_scale);
    ASSERT_TRUE(Near(y[i], f.of(x[i]), f.tolerance, scale))
        << f.name << " of " << x[i] << " is " << y[i] << " for " << f.of(x[i]) << ", " << x.size()
        << " numbers, " << Isa().name;
  }
}

TEST(IsaUnary, AllAreTested) {
  EXPECT_EQ(Functions().size(), static_cast<size_t>(UnaryF32::kCount));
}

TEST(IsaUnary, NumbersOfAnyLength) {
  for (const Function& f : Functions()) {
    const IsaUnaryFn row = Isa().unary[static_cast<int>(f.op)];
    const auto bias_row = Isa().bias_unary[static_cast<int>(f.op)];
    for (const int64_t n : Lengths()) {
      const std::vector<float> x = Floats(n, f.low, f.high);
      std::vector<float> y(x.size() + 1, 77.0f);
      AtTheEdge<float> edge(x);
      row(edge.data(), y.data(), n, kAlpha);
      EXPECT_EQ(y[x.size()], 77.0f) << f.name;
      y.resize(x.size());
      Check(f, x, y);
      // In place.
      y = x;
      row(y.data(), y.data(), n, kAlpha);
      Check(f, x, y);
      // Halves add without rounding.
      std::vector<float> half(x);
      for (float& h : half) h /= 2;
      bias_row(half.data(), half.data(), y.data(), n, kAlpha);
      Check(f, x, y);
    }
  }
}

TEST(IsaUnary, NumbersThatAreSpecial) {
  const float least = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
  const std::vector<float> special = {
      kNaN, kInfinity, -kInfinity, 0.0f,    -0.0f, 1.0f,   -1.0f, least, -least, most,   -most,
      0.5f, -0.5f,     1e-10f,     -1e-10f, 1e10f, -1e10f, 88.8f, 89.5f, -88.0f, -104.0f};
  // Functions of -inf that are NaN here, as the graph's own formula is in float; and a product that
  // is infinite before it is divided.
  const auto undefined = [](UnaryF32 op, float x) {
    using U = UnaryF32;
    const bool product = op == U::kSwish || op == U::kHardSwish || op == U::kGeluErf;
    return (x == -kInfinity && (product || op == U::kGeluTanh)) ||
           (std::isinf(x) && op == U::kSoftsign) || (x > 1e38f && op == U::kHardSwish);
  };
  for (const Function& f : Functions()) {
    for (const float x : special) {
      if (undefined(f.op, x)) continue;
      // Sin and cos of what is large come from libm.
      const std::vector<float> row(19, x);
      std::vector<float> y(19);
      Isa().unary[static_cast<int>(f.op)](row.data(), y.data(), 19, kAlpha);
      Check(f, row, y);
    }
  }
}

// Chains of elementwise ops cut rows elsewhere than the ops do.
TEST(IsaUnary, NumbersDoNotDependOnTheirNeighbors) {
  std::vector<float> x(300);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.0613f - 9;
  for (const Function& f : Functions()) {
    const IsaUnaryFn row = Isa().unary[static_cast<int>(f.op)];
    std::vector<float> alone(x.size()), y = x;
    row(x.data(), alone.data(), 300, kAlpha);
    for (const size_t i : {7, 290}) y[i] = 1e30f;
    row(y.data(), y.data(), 300, kAlpha);
    for (size_t i = 0; i < x.size(); ++i) {
      if (i == 7 || i == 290 || std::isnan(alone[i])) continue;
      EXPECT_EQ(y[i], alone[i]) << f.name << " of " << x[i];
    }
  }
}

}  // namespace
}  // namespace smelt
