// Loops over a few registers, which hold what they do only where the loops are unrolled.
#ifndef SMELT_KERNELS_ISA_UNROLL_H_
#define SMELT_KERNELS_ISA_UNROLL_H_

#if defined(__clang__)
#define SMELT_UNROLL  // Clang unrolls them unasked.
#else
#define SMELT_UNROLL _Pragma("GCC unroll 12")
#endif

#endif  // SMELT_KERNELS_ISA_UNROLL_H_
