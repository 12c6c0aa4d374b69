#include "smelt/kernels/quantized/range.h"

namespace smelt::quantized {

StatusOr<float> ScalarInput(const OpContext& ctx, int i, absl::string_view name) {
  const Tensor& t = ctx.input(i);
  if (t.rank() != 0) {
    return InvalidArgument("`", name, "` must be rank 0 but is rank ", t.rank());
  }
  return t.scalar<float>();
}

void SetRange(OpContext& ctx, int i, float min, float max) {
  ctx.set_output(i, Tensor::Scalar<float>(min));
  ctx.set_output(i + 1, Tensor::Scalar<float>(max));
}

}  // namespace smelt::quantized
