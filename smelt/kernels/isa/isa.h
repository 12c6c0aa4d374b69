// Hot loops, compiled once for each instruction set: of x86 baseline SSE2, AVX2 + FMA and AVX-512,
// of AArch64 NEON (base/processor.h lists them). A process uses the loops of one set (Isa).
//
// Files named *.isa.cpp are compiled several times (cmake/isa.cmake), each time with
// SMELT_ISA_NAMESPACE naming the namespace of that copy; they may include only headers without
// inline functions, else the linker could keep a copy that this processor cannot run.
//
// Everything here is thread safe. Outputs may be the very array of an input, but must not overlap
// one partially. Elementary functions are within about 2 units in the last place of float.
#ifndef SMELT_KERNELS_ISA_ISA_H_
#define SMELT_KERNELS_ISA_ISA_H_

#include <cstdint>

namespace smelt {

// kBaseline is what every processor of its kind has: SSE2 or NEON.
enum class IsaLevel : uint8_t { kBaseline, kAvx2, kAvx512 };

// Functions of one float. alpha: LeakyRelu's slope, unused by the others.
enum class UnaryF32 : uint8_t {
  kIdentity,
  kRelu,
  kRelu6,
  kLeakyRelu,
  kElu,
  kSelu,
  kTanh,
  kSigmoid,
  kSwish,
  kHardSwish,
  kGeluErf,
  kGeluTanh,
  kSoftplus,
  kSoftsign,
  kAbs,
  kNeg,
  kSign,
  kSquare,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kErf,
  kErfc,
  kAsin,
  kAcos,
  kAtan,
  kAsinh,
  kAcosh,
  kAtanh,
  kSin,
  kCos,
  kFloor,
  kCeil,
  kRint,
  kCount,
};

enum class IsaBinary : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,      // float types only
  kMaximum,  // NaN if either is
  kMinimum,
  kSquaredDifference,
  kAtan2,  // of float only
  kCount,
};

enum class IsaCompare : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kCount
};

// Element types of binary and comparison loops.
enum class IsaType : uint8_t { kF32, kF64, kI32, kI64, kU32, kU64, kU8, kI8, kCount };

// Loops over one row: vector with vector, vector with one value, one value with vector.
using IsaBinaryFn = void (*)(const void* a, const void* b, void* out, int64_t n);
struct IsaBinaryLoops {
  IsaBinaryFn vv = nullptr;
  IsaBinaryFn vs = nullptr;
  IsaBinaryFn sv = nullptr;
};

using IsaUnaryFn = void (*)(const float* x, float* y, int64_t n, float alpha);
using IsaConvertFn = void (*)(const void* x, void* y, int64_t n);
// out[i] = condition[i] ? a[i] : b[i]; a and b advance by 0 or 1 elements.
using IsaSelectFn = void (*)(const uint8_t* condition, const void* a, int64_t a_step, const void* b,
                             int64_t b_step, void* out, int64_t n);

// Of an LSTM's cells, before their functions: input, forget, cell's candidate and output.
struct LstmGates {
  const float *i, *f, *g, *o;
};

struct IsaTable {
  IsaLevel level;
  const char* name;  // "sse2", "avx2", "avx512"; "neon"

  IsaUnaryFn unary[static_cast<int>(UnaryF32::kCount)];
  // y = act(x + bias), elementwise over one row.
  void (*bias_unary[static_cast<int>(UnaryF32::kCount)])(const float* x, const float* bias,
                                                         float* y, int64_t n, float alpha);
  IsaBinaryLoops binary[static_cast<int>(IsaBinary::kCount)][static_cast<int>(IsaType::kCount)];
  // Results are bytes, 0 or 1.
  IsaBinaryLoops compare[static_cast<int>(IsaCompare::kCount)][static_cast<int>(IsaType::kCount)];
  IsaSelectFn select1, select2, select4, select8;  // for elements of so many bytes

  // Bit patterns of the 16-bit types; rounding to nearest even.
  IsaConvertFn bf16_to_f32, f32_to_bf16, f16_to_f32, f32_to_f16;
  IsaConvertFn u8_to_f32, i8_to_f32, i32_to_f32, i64_to_f32;
  // The moduli of complex numbers of two floats, within 2 ulp; y may be x. Infinite where a part
  // is.
  IsaConvertFn modulus;
  // Truncates towards zero; the most negative integer when out of range or NaN.
  IsaConvertFn f32_to_i32;

  // Fake quantization: y = floor(q + 0.5) * scale, where q = (clamp(x, lo, hi) - lo) / scale -
  // zero, or with inv_scale != 0 the product by it instead of the quotient. Rounds after each
  // operation.
  void (*fake_quant)(const float* x, float* y, int64_t n, float lo, float hi, float scale,
                     float inv_scale, float zero);
  // Interpolates between rows of four pixels (top left, top right, bottom left, bottom right):
  // l + (r - l) * wx above and below, then the same between these two by wy.
  void (*bilinear)(const float* const corners[4], float wx, float wy, float* y, int64_t n);
  // y = x * scale + shift.
  void (*scale_shift)(const float* x, float* y, int64_t n, float scale, float shift);
  // y += alpha * x.
  void (*axpy)(const float* x, float* y, int64_t n, float alpha);
  // A step of an LSTM's cells: c = sigmoid(f) * before + sigmoid(i) * tanh(g), h = sigmoid(o) *
  // tanh(c). As the loops of these functions within the roundings that quotients of products save.
  // c and h may be where anything is that is read, but for c where o is.
  void (*lstm_cell)(const LstmGates& gates, const float* before, float* c, float* h, int64_t n);
  // y[i] = x[i] * scale[i] + shift[i].
  void (*mul_add)(const float* x, const float* scale, const float* shift, float* y, int64_t n);

  // Reductions of a row. max and min of nothing are -inf and inf; they are NaN if any element is.
  float (*sum)(const float* x, int64_t n);
  float (*max)(const float* x, int64_t n);
  float (*min)(const float* x, int64_t n);
  float (*dot)(const float* x, const float* y, int64_t n);
  // Sum of (x - center)^2.
  float (*sum_squares)(const float* x, int64_t n, float center);

  void (*softmax)(const float* x, float* y, int64_t n);
  // softmax of each of `rows` consecutive rows of n.
  void (*softmax_rows)(const float* x, float* y, int64_t rows, int64_t n);
  // x = softmax(x * scale + mask) of one row; mask advances by 0 or 1 elements, nullptr: none.
  void (*masked_softmax)(float* x, float scale, const float* mask, int64_t mask_step, int64_t n);
  void (*log_softmax)(const float* x, float* y, int64_t n);
  // y = (x - mean) / sqrt(variance + epsilon) * scale + shift over one row; scale and shift may be
  // nullptr (1 and 0). The biased variance, computed in a second pass.
  void (*layer_norm)(const float* x, const float* scale, const float* shift, float epsilon,
                     float* y, int64_t n);
  // The same number as y = x * factor + (shift - mean * factor), factor = scale / sqrt(variance +
  // epsilon): what users of tf.nn.batch_normalization spell, whose roundings differ.
  void (*affine_norm)(const float* x, const float* scale, const float* shift, float epsilon,
                      float* y, int64_t n);

  // y[m,n] = act(x[m,k] * w[k,n] + bias[n]), in this thread. Meant for few rows (m up to about 8);
  // right for any. Rows of x, w and y lie ldx, ldw and ldy elements apart. bias may be nullptr. y
  // overlaps nothing.
  void (*dense)(const float* x, int64_t ldx, int64_t m, int64_t k, const float* w, int64_t ldw,
                int64_t n, const float* bias, UnaryF32 act, float alpha, float* y, int64_t ldy);
  // The same with w as dense_pack wrote it: panels of dense_panel columns, k rows each, the last
  // padded by zeros: k * ceil(n / dense_panel) * dense_panel floats. Before act `addend`, [m,n]
  // with rows ldy apart, is added to the sums; it may be nullptr.
  int64_t dense_panel;
  void (*dense_pack)(const float* w, int64_t ldw, int64_t k, int64_t n, float* packed);
  // The same for the w that `turned`, [n,k] with rows ldw elements apart, is when it is transposed.
  void (*dense_pack_turned)(const float* turned, int64_t ldw, int64_t k, int64_t n, float* packed);
  void (*dense_packed)(const float* x, int64_t ldx, int64_t m, int64_t k, const float* packed,
                       int64_t n, const float* bias, const float* addend, UnaryF32 act, float alpha,
                       float* y, int64_t ldy);
};

// The best set that this processor runs, but none above the one that the environment variable
// SMELT_ISA (sse2, avx2, avx512; neon) names. Chosen at the first call.
const IsaTable& Isa();
// One set, nullptr when the processor lacks it. For tests and benchmarks.
const IsaTable* IsaOf(IsaLevel level);
// Does this processor run `level`?
bool IsaSupported(IsaLevel level);

}  // namespace smelt

#endif  // SMELT_KERNELS_ISA_ISA_H_
