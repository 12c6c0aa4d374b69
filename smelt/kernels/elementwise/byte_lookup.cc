// Functions of one number of 8 bits by tables of all of them, which the optimizer makes.
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/look_up_bytes.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

constexpr int64_t kNumbers = 256;

struct LookupState final : KernelState {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override {
    const Tensor* table = context.inputs[1].constant;
    if (table == nullptr) return DeclineToBind("the table is no constant");
    if (table->num_elements() != kNumbers || !Fits(context, 2, context.inputs[0].shape)) {
      return nullptr;
    }
    return BindCall([kept = *table, n = context.inputs[0].shape.num_elements()](
                        const void* const* in, void* const* out,
                        void*) { LookUpAllBytes(kept.raw(), in[0], out[0], n); },
                    {0});
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareLookup(const Node&) {
  return std::make_unique<LookupState>();
}

Status RunLookup(OpContext& ctx) {
  const Tensor &x = ctx.input(0), &table = ctx.input(1);
  if (table.num_elements() != kNumbers) {
    return InvalidArgument("the table of all ", kNumbers, " numbers has ", table.num_elements());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, x.shape()));
  LookUpAllBytes(table.raw(), x.raw(), out->raw(), x.num_elements());
  return OkStatus();
}

constexpr Kernel kByteLookupTable[] = {
    {"_ByteTable", "", kAnyType, "isa:byte_table", RunLookup, PrepareLookup},
};

}  // namespace

extern constinit const std::span<const Kernel> kByteLookupKernels = kByteLookupTable;

}  // namespace smelt
