// Which narrow types this processor multiplies faster than float. Decided at the first call; thread
// safe. An SMELT_ISA below avx512 makes both false, unless the variables named here say otherwise.
#ifndef SMELT_KERNELS_ONEDNN_FEATURES_H_
#define SMELT_KERNELS_ONEDNN_FEATURES_H_

namespace smelt {

// Products of bfloat16 with float sums, in one instruction that is faster than float's. The
// environment variable SMELT_BF16 overrules: "native" or "float".
bool Bfloat16IsNative();

// Products of 8-bit integers with 32-bit sums, in one instruction. SMELT_INT8 overrules: "native"
// or "plain".
bool Int8IsNative();

// Does the library multiply whole tiles of narrow numbers in one instruction (AMX)?
bool MultipliesTiles();

}  // namespace smelt

#endif  // SMELT_KERNELS_ONEDNN_FEATURES_H_
