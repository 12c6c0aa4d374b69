// Numpy's broadcasting, and the run functions of all unary and binary elementwise kernels. Any
// kernel may use the broadcasting; the rest is for this folder. Everything here is thread safe.
//
// A row function computes consecutive elements. It is type-erased: the families choose one by dtype
// when a node is prepared. For 16-bit floating types float's function runs on blocks that are
// converted to float and back, unless the op has a function of its own for them.
#ifndef SMELT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define SMELT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "smelt/kernels/elementwise/chain.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// Up to three operands under numpy's rules. Neighboring dimensions are merged where the strides of
// all operands allow it.
struct Broadcast {
  static constexpr int kMaxOperands = 3;
  Shape shape;  // of the result
  Dims sizes;   // merged, outermost first; at least one
  // By operand, in elements; 0 where it repeats. The innermost is 0 or 1.
  Dims strides[kMaxOperands];
};

// False when the shapes do not broadcast or the result has too many elements. REQUIRES: at most
// kMaxOperands shapes.
bool MakeBroadcast(std::span<const Shape* const> shapes, Broadcast* out);
// "Incompatible shapes: [2,3] vs. [4]".
Status IncompatibleShapes(const Shape& a, const Shape& b);

// The product of all sizes but the last.
int64_t NumRows(const Broadcast& bc);
// Calls row(offsets of the operands, offset of the result, length) for rows [begin, end). Offsets
// count elements. REQUIRES: 0 <= begin, end <= NumRows(bc).
void ForEachRow(const Broadcast& bc, int64_t begin, int64_t end,
                absl::FunctionRef<void(const int64_t* offsets, int64_t out, int64_t n)> row);

// Which 16-bit floating type is widened to float; kNone: any other type.
enum class Widen : uint8_t { kNone, kHalf, kBfloat16 };
Widen WidenOf(Dtype t);
// The type that is computed with: float for the 16-bit floating types.
Dtype ComputeType(Dtype t);

// What is checked of the right operand, of integer types only, before a loop runs: loops cannot
// fail. INVALID_ARGUMENT, but INTERNAL of kDivisorInternal.
enum class OperandCheck : uint8_t {
  kNone,
  kDivisor,          // no integer 0 on the right
  kDivisorInternal,  // the same, reported as TruncateDiv and TruncateMod do
  kExponent,         // no negative integer on the right
};

struct BinaryState : TiledState {
  IsaBinaryLoops loops;  // of the compute type
  // Bytes of an element.
  uint8_t in_size = 0;
  uint8_t out_size = 0;
  Widen widen = Widen::kNone;
  bool narrow_result = false;  // the result has the operands' type, so it is rounded to it
  OperandCheck check = OperandCheck::kNone;
  Dtype type = Dtype::kInvalid;
  // Equal, NotEqual with incompatible_shape_error=false: what they say of shapes that do not fit.
  bool incompatible_is_value = false;
  bool incompatible_value = false;
  int64_t grain = 1 << 15;  // elements that one thread should have at least

  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
  std::optional<TileOp> tile_op() const override;
};

// The state of a binary node of operands `type` and result `result`. `loops` are of
// ComputeType(type); those of NarrowBinary go before them. INVALID_ARGUMENT when `loops` are empty:
// the op does not take the type.
StatusOr<std::unique_ptr<KernelState>> MakeBinaryState(const Node& node, Dtype type, Dtype result,
                                                       const IsaBinaryLoops& loops,
                                                       OperandCheck check = OperandCheck::kNone,
                                                       int64_t grain = 1 << 15);
// The run function of every binary row: inputs 0 and 1, output 0; the state is a BinaryState.
Status RunBinary(OpContext& ctx);

constexpr int64_t kNarrowBlock = 512;
// Computes in place on n <= kNarrowBlock values of the 16-bit `type`, held as floats. Rounds every
// step but the last to the type; the caller rounds the result.
using NarrowFn = void (*)(Widen type, float* x, int64_t n, float alpha);
// nullptr where rounding the result of float's function is enough to match TensorFlow.
NarrowFn NarrowActivation(absl::string_view op);
// The same for two operands: loops over elements of the 16-bit type; empty where float's will do.
IsaBinaryLoops NarrowBinary(absl::string_view op, Widen type);

struct UnaryState : TiledState {
  UnaryFn fn = nullptr;      // of the compute type; used where f32 is nullptr
  IsaUnaryFn f32 = nullptr;  // of float
  uint8_t in_size = 0;
  uint8_t out_size = 0;
  Widen widen = Widen::kNone;
  bool narrow_result = false;
  NarrowFn narrow = nullptr;  // of 16-bit types, instead of the others
  float alpha = 0;
  int64_t grain = 1 << 15;

  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override;
  std::optional<TileOp> tile_op() const override;
};
// `f32` goes before `fn` where the compute type is float. INVALID_ARGUMENT when that leaves
// neither: the op does not take the type.
StatusOr<std::unique_ptr<KernelState>> MakeUnaryState(const Node& node, Dtype type, Dtype result,
                                                      UnaryFn fn, IsaUnaryFn f32 = nullptr,
                                                      int64_t grain = 1 << 15, float alpha = 0);
// The run function of every unary row: input 0, output 0; the state is a UnaryState.
Status RunUnary(OpContext& ctx);

// The element type of isa.h's loops that compute `t`; false where they have none.
bool IsaTypeOf(Dtype t, IsaType* out);

}  // namespace smelt

#endif  // SMELT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
