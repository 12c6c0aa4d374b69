// A step of an LSTM's cells, in two loops: what one needs would not all find a register.
#include <cstdint>

#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/isa/vector.inc"
#include "smelt/kernels/isa/vector_exp.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillLstmCell(IsaTable& t);
namespace {

#define SMELT_FN inline __attribute__((always_inline))

SMELT_FN Vec Load(const float* p, int64_t count) {
  return count == kLanes ? LoadVec(p) : LoadFirst(p, count);
}
SMELT_FN void Store(float* p, Vec v, int64_t count) {
  if (count == kLanes) return StoreVec(p, v);
  float lanes[kLanes];
  StoreVec(lanes, v);
  for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
}

// 1 / sigmoid(x), but at most e^87: a sigmoid that is less counts for nothing beside a tanh.
SMELT_FN Vec SigmoidDivisor(Vec x) { return ShortExp(-Between(x, -87.0f, 87.0f)) + 1.0f; }

// A number that is divided once it is multiplied by others.
struct Quotient {
  Vec n, d;
};
// As e^2x - 1 and e^2x + 1, the first without what 1 - 1 would lose.
SMELT_FN Quotient Tanh(Vec x) {
  const ExpParts e = PartsOfExp(Between(x, -10.0f, 10.0f) * 2.0f);
  const Vec power = PowerOf(e);
  const Vec n = power * Expm1OfRest(e) + (power - 1.0f);
  return {n, n + 2.0f};
}

SMELT_FN void Cells(const LstmGates& gates, const float* before, float* c, int64_t k,
                    int64_t count) {
  const Vec f = Load(gates.f + k, count);
  const Vec divided = 1.0f / SigmoidDivisor(f);
  // Whatever the state was: a gate that is shut lets nothing pass.
  const Vec keep = f < -87.0f ? Vec{} : divided;
  const Quotient t = Tanh(Load(gates.g + k, count));
  const Vec divisor = SigmoidDivisor(Load(gates.i + k, count));
  Store(c + k, keep * Load(before + k, count) + t.n / (divisor * t.d), count);
}
SMELT_FN void Shown(const LstmGates& gates, const float* c, float* h, int64_t k, int64_t count) {
  const Quotient t = Tanh(Load(c + k, count));
  Store(h + k, t.n / (SigmoidDivisor(Load(gates.o + k, count)) * t.d), count);
}

void LstmCell(const LstmGates& all, const float* before, float* c, float* h, int64_t n) {
  const LstmGates gates = all;
  const int64_t whole = n - n % kLanes;
  for (int64_t k = 0; k < whole; k += kLanes) Cells(gates, before, c, k, kLanes);
  if (whole < n) Cells(gates, before, c, whole, n - whole);
  for (int64_t k = 0; k < whole; k += kLanes) Shown(gates, c, h, k, kLanes);
  if (whole < n) Shown(gates, c, h, whole, n - whole);
}

}  // namespace

void FillLstmCell(IsaTable& t) { t.lstm_cell = LstmCell; }

}  // namespace smelt::SMELT_ISA_NAMESPACE
