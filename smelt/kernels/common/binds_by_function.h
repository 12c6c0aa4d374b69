// Kernel states that several kernels have, each of which binds in its own way.
#ifndef SMELT_KERNELS_COMMON_BINDS_BY_FUNCTION_H_
#define SMELT_KERNELS_COMMON_BINDS_BY_FUNCTION_H_

#include <memory>

#include "smelt/kernels/kernel.h"

namespace smelt {

// The base of `State`.
template <typename State>
struct BindsByFunction : KernelState {
  using BindFunction = StatusOr<std::unique_ptr<BoundKernel>> (*)(const State& state,
                                                                  const BindContext& context);
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) final {
    if (bind == nullptr) return nullptr;
    return bind(static_cast<const State&>(*this), context);
  }

  BindFunction bind = nullptr;  // nullptr: the kernel is never bound
};

// A prepare function: what `kRead` reads of a node, bound by `kBind`.
template <typename State, StatusOr<std::unique_ptr<KernelState>> (*kRead)(const Node&),
          typename BindsByFunction<State>::BindFunction kBind>
StatusOr<std::unique_ptr<KernelState>> PrepareBoundBy(const Node& node) {
  ASSIGN_OR_RETURN(auto state, kRead(node));
  static_cast<State&>(*state).bind = kBind;
  return state;
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_BINDS_BY_FUNCTION_H_
