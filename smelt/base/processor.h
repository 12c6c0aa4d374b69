// The processor that the program is compiled for, and what the one that it runs on has beside. The
// only header that knows it: what has to be written for one processor stands in a source named
// *.x86.cc or *.aarch64.cc, of which a build takes its own (cmake/folder.cmake). Any thread.
#ifndef SMELT_BASE_PROCESSOR_H_
#define SMELT_BASE_PROCESSOR_H_

#include <cstdint>

namespace smelt {

enum class CpuFeature : uint8_t {
  kX86V3,         // AVX2, FMA and what else x86-64-v3 lets compilers use
  kX86V4,         // x86-64-v4: AVX-512 F, BW, DQ, CD and VL as well
  kDotBytes,      // dot products of four bytes: AVX512-VNNI, Armv8.2's DotProd
  kDotBfloat16,   // dot products of two bfloat16: AVX512-BF16, Armv8.6's BF16
  kFastHalf,      // half as fast as float: AMX-FP16, AVX-NE-CONVERT
  kTilesOfBytes,  // products of matrices of bytes: AMX-INT8, which the system lets the process use
  kTilesOfBfloat16,  // the same of bfloat16: AMX-BF16
};
// Does the processor have it, and the system save its registers?
bool CpuHas(CpuFeature feature);

// The floating-point control word of a thread: rounding, exceptions, denormals.
#if defined(__x86_64__)

using FloatMode = unsigned;
inline FloatMode ReadFloatMode() { return __builtin_ia32_stmxcsr(); }
inline void WriteFloatMode(FloatMode mode) { __builtin_ia32_ldmxcsr(mode); }
// Denormal results become zero (bit 15), and operands count as zero (bit 6).
inline constexpr FloatMode kFlushesDenormals = 0x8040;

// For a loop that waits: gives way to the core's other thread.
inline void CpuPause() { __builtin_ia32_pause(); }

// The sets that cmake/isa.cmake compiles loops for, as F(level of IsaLevel, name, ...).
#define SMELT_ISA_SETS(F, ...) \
  F(kBaseline, sse2, __VA_ARGS__) F(kAvx2, avx2, __VA_ARGS__) F(kAvx512, avx512, __VA_ARGS__)

#elif defined(__aarch64__)

using FloatMode = uint64_t;
inline FloatMode ReadFloatMode() {
  FloatMode mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
// The compiler moves no arithmetic on memory across it.
inline void WriteFloatMode(FloatMode mode) {
  asm volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
// Denormal operands and results are zero (FZ).
inline constexpr FloatMode kFlushesDenormals = 1u << 24;

inline void CpuPause() { asm volatile("yield"); }

#define SMELT_ISA_SETS(F, ...) F(kBaseline, neon, __VA_ARGS__)

#else
#error "smelt is written for x86-64 and AArch64"
#endif

}  // namespace smelt

#endif  // SMELT_BASE_PROCESSOR_H_
