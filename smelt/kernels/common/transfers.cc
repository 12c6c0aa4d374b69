#include "smelt/kernels/common/transfers.h"

#include "smelt/kernels/common/bound_call.h"

namespace smelt {

void Transfers::Add(int input, int64_t from, int output, int64_t to,
                    std::span<const CopyDim> loops) {
  const auto size = static_cast<int64_t>(DtypeSize(dtype_));
  all_.push_back({StridedCopy(dtype_, loops), input, output, from * size, to * size});
}

void Transfers::Run(const void* const* inputs, void* const* outputs) const {
  for (const Transfer& t : all_) {
    t.copy.Run(static_cast<char*>(outputs[t.output]) + t.to,
               static_cast<const char*>(inputs[t.input]) + t.from);
  }
}

std::unique_ptr<BoundKernel> Transfers::Bind(Transfers transfers) {
  return BindCall([t = std::move(transfers)](const void* const* inputs, void* const* outputs,
                                             void*) { t.Run(inputs, outputs); });
}

std::unique_ptr<BoundKernel> BindWhole(int input, const BoundTensor& output) {
  const auto bytes =
      static_cast<size_t>(output.shape.num_elements()) * Tensor::ElementSize(output.dtype);
  const auto copy = [input, bytes](const void* const* inputs, void* const* outputs, void*) {
    if (bytes > 0 && outputs[0] != inputs[input]) {
      std::memcpy(outputs[0], inputs[input], bytes);
    }
  };
  return BindCall(copy, {input});
}

}  // namespace smelt
