#include "smelt/kernels/isa/choice.h"

#include <cstdint>

#include "smelt/kernels/isa/loop.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
void FillChoice(ChoiceLoops& t);
namespace {

void Choose(float* x, const uint8_t* c, bool keeps, float scale, float other, int64_t n) {
  SMELT_LOOP
  for (int64_t i = 0; i < n; ++i) {
    const float kept = x[i] * scale;
    x[i] = (c[i] != 0) == keeps ? kept : other;
  }
}

}  // namespace

void FillChoice(ChoiceLoops& t) { t.choose = Choose; }

}  // namespace smelt::SMELT_ISA_NAMESPACE
