// Copies from inputs to outputs of a node, worked out once: what moving data is once shapes are
// known.
#ifndef SMELT_KERNELS_COMMON_TRANSFERS_H_
#define SMELT_KERNELS_COMMON_TRANSFERS_H_

#include <memory>
#include <span>
#include <vector>

#include "smelt/kernels/bound_kernel.h"
#include "smelt/kernels/common/copy.h"

namespace smelt {

// Built in one thread; Run is thread safe.
class Transfers {
 public:
  // REQUIRES: IsPod(dtype).
  explicit Transfers(Dtype dtype) : dtype_(dtype) {}
  // As CopyStrided, from `from` elements after the beginning of an input to `to` elements after
  // that of an output.
  void Add(int input, int64_t from, int output, int64_t to, std::span<const CopyDim> loops);
  // In the order in which they were added.
  void Run(const void* const* inputs, void* const* outputs) const;
  // The transfers as runs of bytes; empty where one of them is no run.
  std::vector<CopiedRun> Runs() const;
  // What an output is that one transfer fills from its first element on.
  std::optional<BoundView> View(int output) const;

  // REQUIRES: together the transfers write all of the outputs.
  static std::unique_ptr<BoundKernel> Bind(Transfers transfers);

 private:
  struct Transfer {
    StridedCopy copy;
    int input, output;
    int64_t from, to;  // bytes
    CopyDims loops;
  };
  Dtype dtype_;
  std::vector<Transfer> all_;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_TRANSFERS_H_
