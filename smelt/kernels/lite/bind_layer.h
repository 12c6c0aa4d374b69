// A layer that runs from numbers of type T to numbers of it, as a bound kernel. Private to this
// folder.
#ifndef SMELT_KERNELS_LITE_BIND_LAYER_H_
#define SMELT_KERNELS_LITE_BIND_LAYER_H_

#include <memory>

#include "smelt/kernels/common/bound_call.h"

namespace smelt::lite {

// layer->Run(const T* x, T* y, void* scratch), whose result may lie where input 0 does.
template <typename T, typename Layer>
std::unique_ptr<BoundKernel> BindLayer(std::shared_ptr<const Layer> layer) {
  const size_t scratch = layer->scratch_bytes();
  return BindCall(
      [layer = std::move(layer)](const void* const* in, void* const* out, void* memory) {
        layer->Run(static_cast<const T*>(in[0]), static_cast<T*>(out[0]), memory);
      },
      {0}, scratch);
}

}  // namespace smelt::lite

#endif  // SMELT_KERNELS_LITE_BIND_LAYER_H_
