// What this processor does faster in a narrow type than in float.
#ifndef SMELT_KERNELS_ONEDNN_FEATURES_H_
#define SMELT_KERNELS_ONEDNN_FEATURES_H_

namespace smelt {

// Products of bfloat16 with float sums, in one instruction, at more than float's pace. The
// environment variable SMELT_BF16 decides instead: "native" or "float"; so does a SMELT_ISA below
// avx512, which asks for float.
bool Bfloat16IsNative();

// Products of 8-bit integers with 32-bit sums, in one instruction. SMELT_INT8 decides instead:
// "native" or "plain".
bool Int8IsNative();

}  // namespace smelt

#endif  // SMELT_KERNELS_ONEDNN_FEATURES_H_
