// The function attributes of XLA's ops: reducers, update computations and comparators. Bodies that
// are known by sight run as loops, bodies of elementwise ops on whole tensors at once, all others
// scalar by scalar. Made anew for each run; not thread safe.
#ifndef SMELT_KERNELS_XLA_COMBINER_H_
#define SMELT_KERNELS_XLA_COMBINER_H_

#include <vector>

#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/step.h"

namespace smelt::xla {

// What a body of two scalars does; the last two, how it must be called.
enum class BodyKind : uint8_t {
  kAdd,
  kMul,
  kMax,
  kMin,
  kAnd,
  kOr,
  kSecond,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kElementwise,
  kScalar
};

// A function attribute of a node.
struct FunctionState final : KernelState {
  Callee function;
};
StatusOr<Callee> FunctionOf(const Node& node, absl::string_view attr);

class Combiner {
 public:
  // `values`: how many values are combined at once; the function takes twice as many scalars.
  Combiner(Step& step, const Callee& function, int values);

  // Is it one of those that CombineLoops runs on this type?
  bool loops(Dtype dtype) const;
  BodyKind kind() const { return kind_; }
  bool compares() const { return kind_ >= BodyKind::kLess && kind_ <= BodyKind::kGreaterEqual; }

  // Results of the function for each element of the arguments, which all have one shape.
  StatusOr<std::vector<Tensor>> Call(std::vector<Tensor> args) const;
  // into = f(into..., with...): as many tensors each as values.
  Status Fold(std::vector<Tensor>* into, std::vector<Tensor> with) const;

 private:
  Step& step_;
  const Callee& function_;
  BodyKind kind_;
};

// into[sum(i_d * dims[d].dst)] = f(into[...], from[sum(i_d * dims[d].src)]) for all i.
// A NaN in `from` does not win against a number. REQUIRES: combiner.loops(dtype) for the combiner
// of that kind; distinct places in `into`.
void CombineLoops(BodyKind kind, Dtype dtype, void* into, const void* from,
                  std::span<const CopyDim> dims);

// Sets n elements to what such a fold does not notice: 0 for sums, the least value for maxima.
// False when the kind has no such value.
bool FillNeutral(BodyKind kind, Dtype dtype, void* to, int64_t n);

// `t` for folding in any order: XLA's maxima and minima pass over NaN, so it becomes neutral.
StatusOr<Tensor> WithoutNan(BodyKind kind, Tensor t, Allocator* allocator);

// Does the pair (a, b) fulfil a comparison? For real types; NaN fulfils none.
template <typename T>
bool Fulfils(BodyKind kind, T a, T b) {
  switch (kind) {
    case BodyKind::kLess:
      return a < b;
    case BodyKind::kLessEqual:
      return a <= b;
    case BodyKind::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace smelt::xla

#endif  // SMELT_KERNELS_XLA_COMBINER_H_
