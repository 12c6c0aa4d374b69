// Reductions of rows and columns, normalizations and what elementwise loops do by row, against sums
// in double.
#include <algorithm>

#include "smelt/kernels/isa/columns.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/score_rows.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

double SumOf(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += v;
  return sum;
}

TEST(IsaRows, Sums) {
  for (const int64_t n : Lengths()) {
    const std::vector<float> x = Floats(n, -1, 1), y = Floats(n, -1, 1);
    double dot = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      dot += double{x[i]} * y[i];
      squares += (double{x[i]} - 0.25) * (double{x[i]} - 0.25);
    }
    const auto scale = static_cast<double>(n);
    AtTheEdge<float> x_edge(x), y_edge(y);
    EXPECT_TRUE(Near(Isa().sum(x_edge.data(), n), SumOf(x), 1e-7, scale)) << n;
    EXPECT_TRUE(Near(Isa().dot(x_edge.data(), y_edge.data(), n), dot, 1e-7, scale)) << n;
    EXPECT_TRUE(Near(Isa().sum_squares(x.data(), n, 0.25f), squares, 1e-6)) << n;
  }
}

TEST(IsaRows, Extremes) {
  EXPECT_EQ(Isa().max(nullptr, 0), -kInfinity);
  EXPECT_EQ(Isa().min(nullptr, 0), kInfinity);
  for (const int64_t n : Lengths()) {
    std::vector<float> x = Floats(n, -9, 9);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(Isa().max(x.data(), n), *std::max_element(x.begin(), x.end()));
      ASSERT_EQ(Isa().min(x.data(), n), *std::min_element(x.begin(), x.end()));
      const float kept = x[i];
      for (const float special : {kInfinity, -kInfinity, 10.0f, -10.0f}) {
        x[i] = special;
        ASSERT_EQ(Isa().max(x.data(), n), *std::max_element(x.begin(), x.end()))
            << i << " of " << n;
        ASSERT_EQ(Isa().min(x.data(), n), *std::min_element(x.begin(), x.end()))
            << i << " of " << n;
      }
      x[i] = kNaN;
      ASSERT_TRUE(std::isnan(Isa().max(x.data(), n))) << i << " of " << n;
      ASSERT_TRUE(std::isnan(Isa().min(x.data(), n))) << i << " of " << n;
      x[i] = kept;
      if (n > 200) i += 36;
    }
  }
}

std::vector<double> SoftmaxOf(const float* x, int64_t n) {
  std::vector<double> y(x, x + n);
  double sum = 0;
  const double most = n > 0 ? *std::max_element(x, x + n) : 0;
  for (double& v : y) sum += v = std::exp(v - most);
  for (double& v : y) v /= sum;
  return y;
}

TEST(IsaRows, Softmax) {
  for (const int64_t n : Lengths()) {
    const int64_t rows = 5;
    const std::vector<float> x = Floats(n * rows, -20, 20);
    std::vector<float> y(x), log(x), one(x);
    Isa().softmax_rows(y.data(), y.data(), rows, n);
    for (int64_t r = 0; r < rows; ++r) {
      const std::vector<double> wanted = SoftmaxOf(x.data() + r * n, n);
      Isa().softmax(x.data() + r * n, one.data() + r * n, n);
      Isa().log_softmax(x.data() + r * n, log.data() + r * n, n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_TRUE(Near(y[r * n + i], wanted[i], 3e-6)) << n;
        ASSERT_TRUE(Near(one[r * n + i], wanted[i], 3e-6)) << n;
        ASSERT_TRUE(Near(log[r * n + i], std::log(wanted[i]), 2e-6, 1)) << n;
      }
    }
    const std::vector<float> mask = Floats(n + 1, -3, 3);
    for (const int mask_step : {-1, 0, 1}) {
      std::vector<float> masked(x.begin(), x.begin() + n), sum(masked);
      for (int64_t i = 0; i < n; ++i) sum[i] *= 0.5f;
      for (int64_t i = 0; i < n && mask_step >= 0; ++i) sum[i] += mask[i * mask_step];
      Isa().masked_softmax(masked.data(), 0.5f, mask_step < 0 ? nullptr : mask.data(),
                           std::max(mask_step, 0), n);
      const std::vector<double> wanted = SoftmaxOf(sum.data(), n);
      for (int64_t i = 0; i < n; ++i) ASSERT_TRUE(Near(masked[i], wanted[i], 6e-6)) << n;
    }
  }
  for (int64_t n = 1; n <= IsaScores().most; ++n) {
    constexpr int64_t kRows = 5;
    const int64_t step = (n + IsaScores().lanes - 1) / IsaScores().lanes * IsaScores().lanes;
    std::vector<float> scores = Floats(step * kRows, -20, 20);
    for (int64_t i = 0; i < kRows * step; ++i) {
      if (i % step >= n) scores[i] = kNaN;
    }
    // Exactly as many numbers as are read.
    const std::vector<float> whole = Floats(n * kRows, -3, 3), few = Floats(kRows, -3, 3);
    AtTheEdge<float> whole_edge(whole), few_edge(few);
    for (const bool column : {false, true}) {
      std::vector<float> x = scores;
      const ScoreMask mask =
          column ? ScoreMask{whole_edge.data(), n, 1} : ScoreMask{few_edge.data(), 1, 0};
      const ScoreMask same = {whole_edge.data() + (kRows - 1) * n, 0, 1};
      IsaScores().softmax({x.data(), step, kRows, n, 0.5f, {mask, column ? same : ScoreMask()}});
      for (int64_t r = 0; r < kRows; ++r) {
        std::vector<float> sum(n);
        for (int64_t i = 0; i < n; ++i) {
          sum[i] = scores[r * step + i] * 0.5f +
                   (column ? whole[r * n + i] + whole[(kRows - 1) * n + i] : few[r]);
        }
        const std::vector<double> wanted = SoftmaxOf(sum.data(), n);
        for (int64_t i = 0; i < n; ++i) ASSERT_TRUE(Near(x[r * step + i], wanted[i], 6e-6)) << n;
      }
    }
    // A row with NaN, one with an infinite number, one whose other numbers are hidden.
    const float infinities[] = {kNaN, kInfinity, -kInfinity};
    std::vector<float> x(3 * step, 1.0f);
    for (int64_t r = 0; r < 3; ++r) x[r * step + n / 2] = infinities[r];
    std::vector<float> want = x;
    IsaScores().softmax({x.data(), step, 3, n, 1, {}});
    for (int64_t r = 0; r < 3; ++r) {
      Isa().softmax(want.data() + r * step, want.data() + r * step, n);
      for (int64_t i = r * step; i < r * step + n; ++i) {
        ASSERT_EQ(std::isnan(x[i]), std::isnan(want[i])) << n << " " << r;
        ASSERT_TRUE(std::isnan(x[i]) || Near(x[i], want[i], 1e-6)) << n << " " << r;
      }
    }
  }
  // What nobody can be told from NaN is NaN; what is masked out is nothing.
  for (const int64_t n : {1, 5, 16, 33}) {
    std::vector<float> x(n, 1.0f), y(n);
    x[n / 2] = kNaN;
    Isa().softmax(x.data(), y.data(), n);
    for (const float v : y) EXPECT_TRUE(std::isnan(v)) << n;
    x[n / 2] = n > 1 ? -kInfinity : 0;
    Isa().softmax(x.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_TRUE(Near(y[i], n == 1 ? 1.0 : i == n / 2 ? 0.0 : 1.0 / (n - 1), 1e-6)) << n;
    }
  }
}

TEST(IsaRows, LayerNorm) {
  for (const int64_t n : Lengths()) {
    const std::vector<float> x = Floats(n, -3, 5), scale = Floats(n, 0, 2),
                             shift = Floats(n, -1, 1);
    double mean = SumOf(x) / static_cast<double>(n), variance = 0;
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
    for (const bool scales : {false, true}) {
      for (const bool shifts : {false, true}) {
        std::vector<float> y(n);
        for (const auto norm : {Isa().layer_norm, Isa().affine_norm}) {
          norm(x.data(), scales ? scale.data() : nullptr, shifts ? shift.data() : nullptr, 1e-3f,
               y.data(), n);
          for (int64_t i = 0; i < n; ++i) {
            const double wanted =
                (x[i] - mean) / std::sqrt(variance + 1e-3) * (scales ? scale[i] : 1.0f) +
                (shifts ? shift[i] : 0.0f);
            ASSERT_TRUE(Near(y[i], wanted, 2e-6, 4)) << i << " of " << n;
          }
        }
      }
    }
  }
}

TEST(IsaRows, Columns) {
  const ColumnLoops& loops = IsaColumns();
  for (const int64_t n : {1, 3, 4, 5, 8, 15, 16, 17, 33, 64, 67, 131}) {
    for (const int64_t rows : {1, 2, 3, 4, 5, 8, 9, 21}) {
      const int64_t step = n + 3;
      std::vector<float> x = Floats(rows * step, -1, 1), sum(n), most(n), least(n);
      for (const bool nan : {false, true}) {
        const int64_t column = n / 2;
        if (nan) x[rows / 2 * step + column] = kNaN;
        loops.sum(x.data(), step, rows, n, sum.data());
        loops.max(x.data(), step, rows, n, most.data());
        loops.min(x.data(), step, rows, n, least.data());
        for (int64_t c = 0; c < n; ++c) {
          double all = 0;
          float high = -kInfinity, low = kInfinity;
          for (int64_t r = 0; r < rows; ++r) {
            const float v = x[r * step + c];
            all += v;
            high = std::isnan(high) || v < high ? high : v;
            low = std::isnan(low) || v > low ? low : v;
          }
          ASSERT_TRUE(Near(sum[c], all, 1e-6, 4));
          ASSERT_TRUE(Same(most[c], high)) << rows << " rows, " << c << " of " << n;
          ASSERT_TRUE(Same(least[c], low)) << rows << " rows, " << c << " of " << n;
        }
      }
    }
  }
  for (const int64_t n : Lengths()) {
    std::vector<float> x(n, -4294967296.0f);
    EXPECT_TRUE(loops.modest(x.data(), n));
    for (const float much : {4294967808.0f, kInfinity, -kInfinity, kNaN}) {
      if (n > 0) x[n - 1] = much;
      EXPECT_EQ(loops.modest(x.data(), n), n == 0) << much;
    }
  }
}

TEST(IsaRows, AffineLoops) {
  for (const int64_t n : Lengths()) {
    const std::vector<float> x = Floats(n, -2, 2), a = Floats(n, -2, 2), b = Floats(n, -2, 2);
    std::vector<float> scaled(n), added(b), mixed(n), between(n);
    Isa().scale_shift(x.data(), scaled.data(), n, 1.5f, -0.3f);
    Isa().axpy(x.data(), added.data(), n, 0.7f);
    Isa().mul_add(x.data(), a.data(), b.data(), mixed.data(), n);
    const float* corners[4] = {x.data(), a.data(), b.data(), x.data()};
    Isa().bilinear(corners, 0.25f, 0.7f, between.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_TRUE(Near(scaled[i], x[i] * 1.5 - double{0.3f}, 2e-7, 3));
      ASSERT_TRUE(Near(added[i], b[i] + double{0.7f} * x[i], 2e-7, 3));
      ASSERT_TRUE(Near(mixed[i], double{x[i]} * a[i] + b[i], 2e-7, 6));
      const double upper = x[i] + (double{a[i]} - x[i]) * 0.25;
      const double lower = b[i] + (double{x[i]} - b[i]) * 0.25;
      ASSERT_TRUE(Near(between[i], upper + (lower - upper) * double{0.7f}, 4e-7, 4));
    }
  }
}

TEST(IsaRows, Modulus) {
  for (const int64_t n : Lengths()) {
    for (const float size : {1.0f, 0x1p-149f, 1e-42f, 1e-30f, 0x1p-40f, 0x1p60f, 1e30f, 2e38f}) {
      std::vector<float> x = Floats(2 * n, -1, 1), y(n);
      for (float& v : x) v *= size;
      Isa().modulus(x.data(), y.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        const double wanted = std::hypot(double{x[2 * i]}, double{x[2 * i + 1]});
        ASSERT_NEAR(y[i], wanted, wanted * 2.4e-7 + 0x1p-149) << x[2 * i] << " " << x[2 * i + 1];
      }
    }
    for (const auto& [re, im, wanted] :
         {std::tuple(kInfinity, kNaN, kInfinity), std::tuple(kNaN, -kInfinity, kInfinity),
          std::tuple(-kInfinity, 1.0f, kInfinity), std::tuple(kNaN, 1.0f, kNaN),
          std::tuple(0.0f, kNaN, kNaN), std::tuple(-0.0f, 0.0f, 0.0f)}) {
      std::vector<float> x(2 * n), y(n);
      for (int64_t i = 0; i < n; ++i) x[2 * i] = re, x[2 * i + 1] = im;
      Isa().modulus(x.data(), y.data(), n);
      for (const float v : y) ASSERT_TRUE(std::isnan(wanted) ? std::isnan(v) : v == wanted) << v;
    }
  }
}

// Rounds after each operation, so that the answer is one to the bit.
TEST(IsaRows, FakeQuant) {
  for (const int64_t n : Lengths()) {
    const std::vector<float> x = Floats(n, -3, 3);
    for (const float inverse : {0.0f, 84.3f}) {
      std::vector<float> y(n);
      const float low = -1.5f, high = 1.5f, scale = 3.0f / 255, zero = 0.25f;
      Isa().fake_quant(x.data(), y.data(), n, low, high, scale, inverse, zero);
      for (int64_t i = 0; i < n; ++i) {
        const volatile float shifted = std::min(std::max(x[i], low), high) - low;
        const volatile float q = inverse == 0 ? shifted / scale : shifted * inverse;
        const volatile float moved = q - zero;
        const volatile float up = moved + 0.5f;
        ASSERT_EQ(y[i], std::floor(up) * scale) << x[i];
      }
    }
  }
}

}  // namespace
}  // namespace smelt
