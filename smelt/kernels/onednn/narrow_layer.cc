#include "smelt/kernels/onednn/narrow_layer.h"

#include <vector>

#include "smelt/kernels/common/via_float.h"

namespace smelt::onednn {

Status NarrowLayer::Run(const LayerCall& call, bool natively,
                        absl::FunctionRef<Status(const LayerCall&)> run) {
  Allocator* allocator = call.allocator;
  nn::WidenedArgs args(call.args.begin(), call.args.end());
  std::vector<Tensor> wide(args.size());
  if (natively) {
    RETURN_IF_ERROR(nn::WidenFusedArgs(call.fused, false, &wide, &args, allocator));
    const Status s = run({call.x, call.w, call.constant_w, call.fused, args, call.out, allocator});
    if (!absl::IsUnimplemented(s)) return s;
  }
  RETURN_IF_ERROR(nn::WidenFusedArgs(call.fused, true, &wide, &args, allocator));
  ASSIGN_OR_RETURN(const Tensor w, weights_.Get(call.w, call.constant_w, allocator));
  return ViaFloat({&call.x}, call.out, allocator, [&](std::span<const Tensor> in, Tensor* out) {
    return run({in[0], w, call.constant_w, call.fused, args, out, allocator});
  });
}

}  // namespace smelt::onednn
