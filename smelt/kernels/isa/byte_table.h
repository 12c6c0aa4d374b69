// Tables of all bytes. Thread safe.
#ifndef SMELT_KERNELS_ISA_BYTE_TABLE_H_
#define SMELT_KERNELS_ISA_BYTE_TABLE_H_

#include <cstdint>

namespace smelt {

// y = table[x]; y may be x. REQUIRES: the table has 256 entries.
void LookUpBytes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_BYTE_TABLE_H_
