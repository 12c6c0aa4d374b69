// Bound kernels made of a function: for kernels that need no class of their own. Thread safe.
#ifndef SMELT_KERNELS_COMMON_BOUND_CALL_H_
#define SMELT_KERNELS_COMMON_BOUND_CALL_H_

#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

#include "smelt/kernels/bound_kernel.h"

namespace smelt {

template <typename F>
class BoundCall final : public BoundKernel {
 public:
  BoundCall(F run, std::initializer_list<int> lent, size_t scratch)
      : run_(std::move(run)), scratch_(scratch) {
    for (const int i : lent) lent_ |= 1u << i;
  }
  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    if constexpr (std::is_void_v<
                      std::invoke_result_t<const F&, const void* const*, void* const*, void*>>) {
      run_(inputs, outputs, scratch);
      return OkStatus();
    } else {
      return run_(inputs, outputs, scratch);
    }
  }
  size_t scratch_bytes() const override { return scratch_; }
  bool may_overwrite(int i) const override { return i < 32 && (lent_ >> i & 1) != 0; }

 private:
  const F run_;
  const size_t scratch_;
  uint32_t lent_ = 0;
};

// run(inputs, outputs, scratch), which returns a Status or nothing. Output 0 may lie where one of
// the inputs `lent` lies. REQUIRES: 0 <= lent < 32.
template <typename F>
std::unique_ptr<BoundKernel> BindCall(F run, std::initializer_list<int> lent = {},
                                      size_t scratch = 0) {
  return std::make_unique<BoundCall<F>>(std::move(run), lent, scratch);
}

// All bytes of input `input` as output 0, which has as many.
std::unique_ptr<BoundKernel> BindWhole(int input, const BoundTensor& output);

// Are there as many inputs and outputs, and is output 0 of the shape? Where inference and kernel
// disagree a run says so.
inline bool Fits(const BindContext& context, size_t inputs, const Shape& output) {
  return context.inputs.size() == inputs && context.outputs[0].shape == output;
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_BOUND_CALL_H_
