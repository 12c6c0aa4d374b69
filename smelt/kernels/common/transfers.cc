#include "smelt/kernels/common/transfers.h"

#include <algorithm>

#include "smelt/kernels/common/bound_call.h"

namespace smelt {

void Transfers::Add(int input, int64_t from, int output, int64_t to,
                    std::span<const CopyDim> loops) {
  const auto size = static_cast<int64_t>(DtypeSize(dtype_));
  all_.push_back({StridedCopy(dtype_, loops), input, output, from * size, to * size,
                  CopyDims(loops.begin(), loops.end())});
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

std::optional<BoundView> Transfers::View(int output) const {
  const Transfer* only = nullptr;
  for (const Transfer& t : all_) {
    if (t.output != output) continue;
    if (only != nullptr) return std::nullopt;
    only = &t;
  }
  if (only == nullptr || only->to != 0) return std::nullopt;
  std::vector<CopyDim> loops;
  std::ranges::copy_if(only->loops, std::back_inserter(loops),
                       [](const CopyDim& d) { return d.size != 1; });
  std::ranges::sort(loops, std::greater(), &CopyDim::dst);
  BoundView view{only->input, only->from / static_cast<int64_t>(DtypeSize(dtype_)), {}};
  int64_t inside = 1;  // elements that the loops further in write
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    const CopyDim& d = *loop;
    if (d.dst != inside) return std::nullopt;
    inside *= d.size;
    view.loops.insert(view.loops.begin(), {d.size, d.src});
  }
  return view;
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
  std::optional<BoundView> view(int i) const override { return transfers_.View(i); }

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
