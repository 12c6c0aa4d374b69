// What the elementwise families share: broadcasting, solved once, and the two ways to run a row
// function over tensors. Broadcasting is for whoever needs it, the rest for this folder. Everything
// here is thread safe.
//
// Row functions are type-erased: the families choose them by dtype when a node is prepared. 16-bit
// floating types have none of their own: blocks are converted to float and back.
#ifndef SMELT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define SMELT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// Up to three operands under numpy's rules, neighbouring dimensions merged where all allow it.
struct Broadcast {
  static constexpr int kMaxOperands = 3;
  Shape shape;  // of the result
  Dims sizes;   // merged, outermost first; at least one
  // In elements; 0 where an operand repeats. The innermost is 0 or 1.
  Dims strides[kMaxOperands];
};

// false when the shapes do not broadcast (or have too many elements).
bool MakeBroadcast(std::span<const Shape* const> shapes, Broadcast* out);
// "Incompatible shapes: [2,3] vs. [4]".
Status IncompatibleShapes(const Shape& a, const Shape& b);

// Calls row(offsets of the operands, offset of the result, length) for the rows of a range.
// `rows` is the product of all sizes but the last.
int64_t NumRows(const Broadcast& bc);
void ForEachRow(const Broadcast& bc, int64_t begin, int64_t end,
                absl::FunctionRef<void(const int64_t* offsets, int64_t out, int64_t n)> row);

// How 16-bit floating elements become floats.
enum class Widen : uint8_t { kNone, kHalf, kBfloat16 };
Widen WidenOf(Dtype t);
// The type that is computed with: float for the 16-bit floating types.
Dtype ComputeType(Dtype t);

// What must be looked at before a loop may run.
enum class OperandCheck : uint8_t {
  kNone,
  kDivisor,          // no integer 0 on the right
  kDivisorInternal,  // the same, reported as TruncateDiv and TruncateMod do
  kExponent,         // no negative integer on the right
};

struct BinaryState : KernelState {
  IsaBinaryLoops loops;  // of the compute type
  // Sizes in memory of inputs and result.
  uint8_t in_size = 0;
  uint8_t out_size = 0;
  Widen widen = Widen::kNone;
  bool narrow_result = false;  // the result is of the widened type too (not bool)
  OperandCheck check = OperandCheck::kNone;
  Dtype type = Dtype::kInvalid;
  // Equal, NotEqual with incompatible_shape_error=false: what they say of shapes that do not fit.
  bool incompatible_is_value = false;
  bool incompatible_value = false;
  int64_t grain = 1 << 15;  // elements that one thread should have at least
};

// The state of a binary node of type T and result type R over `loops`.
// INVALID_ARGUMENT when there are no loops for the type.
StatusOr<std::unique_ptr<KernelState>> MakeBinaryState(const Node& node, Dtype type, Dtype result,
                                                       const IsaBinaryLoops& loops,
                                                       OperandCheck check = OperandCheck::kNone,
                                                       int64_t grain = 1 << 15);
// The run function of every binary row: inputs 0 and 1, output 0; the state is a BinaryState.
Status RunBinary(OpContext& ctx);

using UnaryFn = void (*)(const void* x, void* y, int64_t n, float alpha);
// In place on at most kNarrowBlock values of a 16-bit type, widened; the result is rounded after.
constexpr int64_t kNarrowBlock = 512;
using NarrowFn = void (*)(Widen type, float* x, int64_t n, float alpha);
NarrowFn NarrowActivation(absl::string_view op);  // nullptr: the float loop is right, rounded
// The same of two operands: loops over the 16-bit type itself, empty where float's are right.
IsaBinaryLoops NarrowBinary(absl::string_view op, Widen type);

struct UnaryState : KernelState {
  UnaryFn fn = nullptr;      // of the compute type, or
  IsaUnaryFn f32 = nullptr;  // for floats
  uint8_t in_size = 0;
  uint8_t out_size = 0;
  Widen widen = Widen::kNone;
  bool narrow_result = false;
  NarrowFn narrow = nullptr;  // of 16-bit types, instead of the others
  float alpha = 0;
  int64_t grain = 1 << 15;
};
StatusOr<std::unique_ptr<KernelState>> MakeUnaryState(const Node& node, Dtype type, Dtype result,
                                                      UnaryFn fn, IsaUnaryFn f32 = nullptr,
                                                      int64_t grain = 1 << 15, float alpha = 0);
// The run function of every unary row: input 0, output 0; the state is a UnaryState.
Status RunUnary(OpContext& ctx);

// The loops that the instruction set's table has for the type, if any.
bool IsaTypeOf(Dtype t, IsaType* out);

}  // namespace smelt

#endif  // SMELT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
