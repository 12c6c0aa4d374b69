// Steps of an LSTM's cells against double, and in place.
#include "smelt/kernels/isa/isa.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Rows {
  std::vector<float> i, f, g, o, before;
  LstmGates gates() const { return {i.data(), f.data(), g.data(), o.data()}; }
};
Rows Drawn(int64_t n, float wide) {
  return {Floats(n, -wide, wide), Floats(n, -wide, wide), Floats(n, -wide, wide),
          Floats(n, -wide, wide), Floats(n, -2, 2)};
}

void ExpectNear(float got, double wanted, const char* what) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << what << " is " << got;
  } else {
    EXPECT_NEAR(got, wanted, 4e-7 * std::max(1.0, std::abs(wanted))) << what;
  }
}

void ExpectCells(const Rows& r, const std::vector<float>& c, const std::vector<float>& h) {
  for (size_t k = 0; k < c.size(); ++k) {
    const double kept = Sigmoid(r.f[k]) * r.before[k];
    const double wanted = kept + Sigmoid(r.i[k]) * std::tanh(r.g[k]);
    ExpectNear(c[k], wanted, "c");
    ExpectNear(h[k], Sigmoid(r.o[k]) * std::tanh(double{c[k]}), "h");
  }
}

TEST(LstmCell, AsInDouble) {
  for (const int64_t n : Lengths()) {
    for (const float wide : {0.001f, 2.0f, 20.0f, 200.0f}) {
      const Rows r = Drawn(n, wide);
      std::vector<float> c(static_cast<size_t>(n)), h(c);
      Isa().lstm_cell(r.gates(), r.before.data(), c.data(), h.data(), n);
      ExpectCells(r, c, h);
    }
  }
}

TEST(LstmCell, SpecialNumbers) {
  constexpr int64_t kCells = 1000;
  const Rows r = {Anything<float>(kCells), Anything<float>(kCells), Anything<float>(kCells),
                  Anything<float>(kCells), Floats(kCells, -2, 2)};
  std::vector<float> c(kCells), h(kCells);
  Isa().lstm_cell(r.gates(), r.before.data(), c.data(), h.data(), kCells);
  ExpectCells(r, c, h);
}

TEST(LstmCell, WritesWhereItReads) {
  for (const int64_t n : Lengths()) {
    const Rows r = Drawn(n, 4);
    std::vector<float> c(static_cast<size_t>(n)), h(c);
    Isa().lstm_cell(r.gates(), r.before.data(), c.data(), h.data(), n);
    Rows in_place = r;
    Isa().lstm_cell(in_place.gates(), in_place.before.data(), in_place.before.data(),
                    in_place.o.data(), n);
    EXPECT_EQ(in_place.before, c);
    EXPECT_EQ(in_place.o, h);
  }
}

}  // namespace
}  // namespace smelt
