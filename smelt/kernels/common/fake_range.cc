#include "smelt/kernels/common/fake_range.h"

namespace smelt::quantized {

StatusOr<std::unique_ptr<KernelState>> ReadFakeQuant(const Node& node) {
  auto s = std::make_unique<FakeQuantState>();
  const int64_t bits = node.Int("num_bits", 8);
  s->quant_min = node.Bool("narrow_range", false) ? 1.0f : 0.0f;
  if (node.Is("FakeQuantWithMinMaxArgs") || node.Is("FakeQuantWithMinMaxArgsGradient")) {
    s->min = node.Float("min", -6.0f);
    s->max = node.Float("max", 6.0f);
    if (!(s->min < s->max)) {
      return InvalidArgument("min has to be smaller than max, was: ", s->min, " >= ", s->max);
    }
  }
  if (bits < 2 || bits > 16) {
    return InvalidArgument("num_bits must be between 2 and 16, inclusive");
  }
  s->quant_max = static_cast<float>((int64_t{1} << bits) - 1);
  return s;
}

}  // namespace smelt::quantized
