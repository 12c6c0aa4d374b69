#include "smelt/lite/quantize/integer_format.h"

namespace smelt {

StatusOr<Tensor> QuantizedTo(const Tensor& value, const Params& p, const IntegerFormat& f) {
  ASSIGN_OR_RETURN(Tensor q, Tensor::Make(f.type, value.shape()));
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    const double real = static_cast<double>(value.data<float>()[i]);
    const double at = std::round(real / static_cast<double>(p.scale)) + static_cast<double>(p.zero);
    const auto number = static_cast<int64_t>(
        std::clamp(at, static_cast<double>(f.low), static_cast<double>(f.high)));
    if (f.type == Dtype::kInt8) {
      q.data<int8_t>()[i] = static_cast<int8_t>(number);
    } else if (f.type == Dtype::kUint8) {
      q.data<uint8_t>()[i] = static_cast<uint8_t>(number);
    } else {
      q.data<int16_t>()[i] = static_cast<int16_t>(number);
    }
  }
  return q;
}

}  // namespace smelt
