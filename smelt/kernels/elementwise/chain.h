// Elementwise ops one after the other in one pass: each computes a tile of elements, which stays in
// the nearest cache for those that read it, before any computes the next. The loops are those of
// the ops' kernels, so that a chain gives the very bits that its ops give.
#ifndef SMELT_KERNELS_ELEMENTWISE_CHAIN_H_
#define SMELT_KERNELS_ELEMENTWISE_CHAIN_H_

#include <memory>
#include <optional>
#include <vector>

#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// `alpha`: LeakyRelu's slope.
using UnaryFn = void (*)(const void* x, void* y, int64_t n, float alpha);

// What an op of one, two or three operands does to consecutive elements. Results may be written to
// an operand's own array.
struct TileOp {
  enum class Kind : uint8_t { kUnary, kBinary, kSelect, kScaled };
  // Between floats and int8 numbers at one scale.
  struct Limits {
    float zero = 0, low = 0, high = 0;
  };
  using ScaledFn = void (*)(const void* x, const Limits& limits, float scale, void* y, int64_t n);
  using SelectFn = void (*)(const bool* c, int64_t c_step, const void* a, int64_t a_step,
                            const void* b, int64_t b_step, void* out, int64_t n);
  Kind kind = Kind::kUnary;
  // Of an op of one operand one of these: the first that is there.
  IsaConvertFn convert = nullptr;
  IsaUnaryFn f32 = nullptr;
  UnaryFn unary = nullptr;
  float alpha = 0;
  IsaBinaryLoops binary;  // those that are nullptr the op lacks
  SelectFn select = nullptr;
  ScaledFn scaled = nullptr;
  ScaledFn scaled_unsigned = nullptr;  // where the int8 numbers are stored so (unsigned_int8.h)
  Limits limits;
  bool same_shapes = false;  // operands do not broadcast by numpy's rules
  int64_t grain = 1 << 15;   // elements that one thread should have at least
  int operands() const { return kind == Kind::kUnary ? 1 : kind == Kind::kSelect ? 3 : 2; }
};

// What kernels keep whose op may be a step of a chain.
class TiledState : public KernelState {
 public:
  // nullopt: the op is more than a loop for the node's types.
  virtual std::optional<TileOp> tile_op() const = 0;
};

// The steps' results all have the dimensions `sizes`.
struct Chain {
  // Elements of an input of the bound kernel.
  struct Operand {
    int input = 0;
    int64_t first = 0;
    Dims steps;    // by dimension, in elements; 0: it repeats
    int size = 0;  // bytes of an element
  };
  struct Step {
    TileOp op;
    int size = 0;           // bytes of an element of the result
    std::vector<int> from;  // operands; -1 - i: the result of step i, which stands before
    int output = -1;        // of the bound kernel; -1: it is none
  };
  Dims sizes;  // none is 1
  std::vector<Operand> operands;
  std::vector<Step> steps;
};

// nullptr where there are too many values at a time, or rows too short to be worth it.
std::unique_ptr<BoundKernel> BindChain(const Chain& chain);

// The row that stands for the chain where a kernel is named; it is never run.
const Kernel& ChainKernel(const Chain& chain);
// Is it one of those?
bool IsChainKernel(const Kernel& kernel);

}  // namespace smelt

#endif  // SMELT_KERNELS_ELEMENTWISE_CHAIN_H_
