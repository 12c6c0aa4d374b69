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

std::vector<CopiedRun> Transfers::Runs() const {
  const auto size = static_cast<int64_t>(DtypeSize(dtype_));
  std::vector<CopiedRun> runs;
  for (const Transfer& t : all_) {
    const int64_t elements = t.copy.side_by_side();
    if (elements < 0) return {};
    if (elements > 0) runs.push_back({t.input, t.output, t.from, t.to, elements * size});
  }
  return runs;
}

namespace {

class BoundTransfers final : public BoundKernel {
 public:
  explicit BoundTransfers(Transfers transfers)
      : transfers_(std::move(transfers)), runs_(transfers_.Runs()) {}
  Status Run(const void* const* inputs, void* const* outputs, void* /*scratch*/) const override {
    transfers_.Run(inputs, outputs);
    return OkStatus();
  }
  std::span<const CopiedRun> copied_runs() const override { return runs_; }

 private:
  const Transfers transfers_;
  const std::vector<CopiedRun> runs_;
};

}  // namespace

std::unique_ptr<BoundKernel> Transfers::Bind(Transfers transfers) {
  return std::make_unique<BoundTransfers>(std::move(transfers));
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
