#include "smelt/kernels/isa/byte_table.h"

namespace smelt {

void LookUpBytes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = table[x[i]];
}

}  // namespace smelt
