// What a core does at most: loops that do nothing else. For measuring what share of that a kernel
// reaches (`smelt bench`). Thread safe.
#ifndef SMELT_KERNELS_ISA_PEAK_H_
#define SMELT_KERNELS_ISA_PEAK_H_

#include <cstdint>

namespace smelt {

enum class PeakOp {
  kFloat,  // fused multiply-adds, or a multiplication and an addition without them
  kInt8,   // products of tiles (AMX-INT8), else dot products of four bytes (AVX512-VNNI, DotProd)
  kBfloat16,  // the same (AMX-BF16), else of two (AVX512-BF16, BF16)
};

// Computes in registers alone, in the calling thread, with the set that Isa() chose. Returns how
// many operations that were, a multiply-add being two; 0: the processor has no such instructions.
int64_t RunPeak(PeakOp op, int64_t passes);

// Reads [p, p + bytes), as wide as the set allows, and returns something that depends on all of it.
// REQUIRES: p is aligned to 64 bytes, bytes is a multiple of 512.
uint64_t ReadAll(const void* p, int64_t bytes);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_PEAK_H_
